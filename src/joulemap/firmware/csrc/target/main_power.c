/* hpx_profiler_power: the clean inference loop between two GATE edges, and nothing else while GATE is high.
 * Copyright joulemap contributors, Apache-2.0.
 *
 * BOOT -> MODEL_INIT -> READY -> WAIT_GO -> GATE_HIGH -> RUN_FIXED_N -> GATE_LOW -> DIAGNOSTIC_INIT ->
 * TERMINAL_REPORT -> PARK. Whatever fails goes to hpx_finish. */
#include "hpx_finish.h"
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

/* The counter is read once per inference, so that a gate longer than its range still adds up. */
__attribute__((noinline)) static uint32_t hpx_run_fixed_n(void)
{
    const uint32_t count = HPX_COUNT - (hpx_fault(HPX_FAULT_TERMINAL_COUNTS) ? 1u : 0u);
    uint32_t last;
    hpx_run.lines |= HPX_LINE_GATE;
    hpx_run.gate_asserted = 1u;
    hpx_run.elapsed_valid = HPX_ELAPSED;
    hpx_port_lines(hpx_run.lines);
    last = hpx_mmio_cyccnt();
    hpx_phase = HPX_PHASE_RUN_FIXED_N;
    for (uint32_t i = 0u; i < count; i++) {
        const uint32_t code = hpx_fault_before_inference(i);
        uint32_t now;
        if (code != 0u) {
            return code;
        }
        hpx_model_run();
        hpx_run.completed++;
        now = hpx_mmio_cyccnt();
        hpx_run.elapsed_cycles += now - last;
        last = now;
    }
    return HPX_ERROR_NONE;
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
    code = hpx_run_fixed_n();
    if (code != HPX_ERROR_NONE) {
        hpx_finish(code, HPX_PHASE_RUN_FIXED_N);
    }
    hpx_run.lines &= ~(uint32_t)HPX_LINE_GATE;
    hpx_port_lines(hpx_run.lines);
    hpx_phase = HPX_PHASE_GATE_LOW;
    hpx_finish(HPX_ERROR_NONE, HPX_PHASE_GATE_LOW);
}
