/* hpx_profiler_power: the clean inference loop between two GATE edges, and nothing else while GATE is high.
 * Copyright joulemap contributors, Apache-2.0.
 *
 * BOOT -> MODEL_INIT -> READY -> WAIT_GO -> GATE_HIGH -> RUN_FIXED_N -> GATE_LOW -> DIAGNOSTIC_INIT ->
 * TERMINAL_REPORT -> PARK. Whatever fails goes to hpx_finish. */
#include "hpx_finish.h"
#include "hpx_loop.h"
#include "hpx_model.h"
#include "hpx_port.h"
#include "hpx_wire.h"

#if !defined(HPX_COUNT) || !defined(HPX_LOCKSTEP) || !defined(HPX_GO_TIMEOUT_US) || !defined(HPX_IDLE_US)
#error "the plan must define HPX_COUNT, HPX_LOCKSTEP, HPX_GO_TIMEOUT_US and HPX_IDLE_US"
#endif
#ifndef HPX_ELAPSED
#define HPX_ELAPSED 1 /* 0 when one inference takes more cycles than the counter holds */
#endif

#if HPX_LOCKSTEP
static void wait_for_go(void)
{
    const uint32_t cycles_per_us = HPX_CORE_HZ / 1000000u;
    const uint32_t start = hpx_mmio_cyccnt();
    while (!hpx_port_go()) {
        const uint32_t waited_us = (hpx_mmio_cyccnt() - start) / cycles_per_us;
        if (waited_us >= HPX_GO_TIMEOUT_US) {
            hpx_finish(HPX_ERROR_NO_GO, HPX_PHASE_WAIT_GO);
        }
        hpx_port_wake_after_us(HPX_GO_TIMEOUT_US - waited_us);
        hpx_port_wait();
    }
    hpx_port_wake_after_us(0u); /* a wake-up left armed would end the next sleep early */
}
#endif

/* GATE rises, N inferences run; whoever called lowers it. */
static uint32_t run_inside_gate(void)
{
    hpx_run.lines |= HPX_LINE_GATE;
    hpx_run.gate_asserted = 1u;
    hpx_run.elapsed_valid = HPX_ELAPSED;
    hpx_loop_start();
    hpx_phase = HPX_PHASE_RUN_FIXED_N;
    hpx_port_lines(hpx_run.lines);
    return hpx_loop_run(HPX_COUNT - (hpx_fault(HPX_FAULT_TERMINAL_COUNTS) ? 1u : 0u));
}

int main(void)
{
    uint32_t code;
    hpx_phase = HPX_PHASE_BOOT;
    hpx_port_init();
    hpx_phase = HPX_PHASE_MODEL_INIT;
    code = hpx_fault(HPX_FAULT_INIT_ERROR) ? (uint32_t)HPX_ERROR_PLANTED_INIT : (uint32_t)hpx_model_init();
    if (code != HPX_ERROR_NONE) {
        hpx_finish(code, HPX_PHASE_MODEL_INIT);
    }
    if (hpx_fault(HPX_FAULT_TRANSPORT_ON)) {
        hpx_port_diagnostics(HPX_DIAG_UART | HPX_DIAG_DEBUG);
    }
    hpx_phase = HPX_PHASE_READY;
    hpx_run.lines = HPX_LINE_READY;
    hpx_port_lines(hpx_run.lines);
    hpx_phase = HPX_PHASE_WAIT_GO;
#if HPX_LOCKSTEP
    wait_for_go();
#else
    hpx_port_sleep_us(HPX_IDLE_US); /* the idle window, which the host times in lock-step */
#endif
    hpx_phase = HPX_PHASE_GATE_HIGH;
    code = run_inside_gate();
    if (code != HPX_ERROR_NONE) {
        hpx_finish(code, HPX_PHASE_RUN_FIXED_N);
    }
    hpx_run.lines &= ~(uint32_t)HPX_LINE_GATE;
    hpx_port_lines(hpx_run.lines);
    hpx_phase = HPX_PHASE_GATE_LOW;
    hpx_finish(HPX_ERROR_NONE, HPX_PHASE_GATE_LOW);
}
