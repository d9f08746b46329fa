/* The finaliser that every end of the power image shares. Copyright joulemap contributors, Apache-2.0. */
#include "hpx_finish.h"

#include "hpx_crc.h"
#include "hpx_line.h"
#include "hpx_loop.h"
#include "hpx_model.h"
#include "hpx_port.h"
#include "hpx_rtt.h"
#include "hpx_wire.h"

#ifndef HPX_DIAGNOSTICS
#define HPX_DIAGNOSTICS 1
#endif

struct hpx_run hpx_run;

#if HPX_DIAGNOSTICS
static char record_bytes[1024];

static void add(struct hpx_text *text, const char *key, uint64_t value)
{
    hpx_text_line(text, key, HPX_NO_INDEX, HPX_NO_INDEX, value);
}

static void format_record(struct hpx_text *text, uint32_t error_code, uint32_t final_phase)
{
    hpx_text_start(text, HPX_POWER_BEGIN, HPX_PROTOCOL_VERSION + (hpx_fault(HPX_FAULT_TERMINAL_VERSION) ? 1u : 0u));
    hpx_text_word(text, error_code == HPX_ERROR_NONE ? HPX_KEY_STATUS "=ok\n" : HPX_KEY_STATUS "=error\n");
    add(text, HPX_KEY_REQUESTED_COUNT, HPX_COUNT);
    add(text, HPX_KEY_COMPLETED_COUNT, hpx_loop.completed);
    if (hpx_run.elapsed_valid) {
        add(text, HPX_KEY_ELAPSED_US, (hpx_loop.elapsed_cycles * 1000000u + HPX_CORE_HZ / 2u) / HPX_CORE_HZ);
    }
    add(text, HPX_KEY_FINAL_PHASE, final_phase);
    add(text, HPX_KEY_ERROR_CODE, error_code);
    add(text, HPX_KEY_GATE_ASSERTED, hpx_run.gate_asserted);
    add(text, HPX_KEY_GATE_LOWERED, hpx_run.gate_lowered);
    if (hpx_loop.completed != 0u) {
        add(text, HPX_KEY_OUTPUT_CRC32, hpx_model_output_crc32());
    }
    add(text, HPX_KEY_RECORD_CRC32, hpx_crc32(0u, text->bytes, text->size));
    hpx_text_word(text, HPX_POWER_END "\n");
}

static void report(uint32_t error_code, uint32_t final_phase)
{
    struct hpx_text text = {.bytes = record_bytes, .capacity = sizeof record_bytes, .size = 0u};
    if (hpx_fault(HPX_FAULT_NO_DIAGNOSTICS)) {
        return;
    }
    if (hpx_fault(HPX_FAULT_TERMINAL_LATE)) {
        hpx_port_sleep_us(HPX_LATE_US);
    }
    hpx_port_diagnostics(HPX_DIAG_DEBUG);
    hpx_rtt_init();
    hpx_phase = HPX_PHASE_TERMINAL_REPORT;
    if (hpx_fault(HPX_FAULT_TERMINAL_MISSING)) {
        return;
    }
    format_record(&text, error_code, final_phase);
    hpx_rtt_write_once(text.bytes, hpx_fault(HPX_FAULT_TERMINAL_TRUNCATED) ? text.size / 2u : text.size);
}
#endif

void hpx_finish(uint32_t error_code, uint32_t final_phase)
{
    static uint32_t finished;
    hpx_run.lines &= ~(uint32_t)HPX_LINE_GATE; /* READY stays as it was: an error is no announcement */
    hpx_port_lines(hpx_run.lines);
    hpx_run.gate_lowered = hpx_run.gate_asserted;
    if (!finished) {
        finished = 1u;
        hpx_phase = HPX_PHASE_DIAGNOSTIC_INIT;
#if HPX_DIAGNOSTICS
        report(error_code, final_phase);
#else
        (void)error_code;
        (void)final_phase;
#endif
    }
    hpx_phase = HPX_PHASE_PARK;
    for (;;) {
        hpx_port_wait();
    }
}
