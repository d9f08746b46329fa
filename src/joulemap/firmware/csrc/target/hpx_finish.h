/* How every run of the power image ends. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_FINISH_H
#define HPX_FINISH_H
#include <stdint.h>

/* What the run has reached; kept in RAM, so that a host can read it without a reset. */
struct hpx_run {
    uint32_t lines;         /* as last driven */
    uint32_t gate_asserted; /* GATE was raised */
    uint32_t gate_lowered;  /* and lowered again */
    uint32_t elapsed_valid; /* the loop's elapsed cycles mean something */
};
extern struct hpx_run hpx_run;

/* GATE low, then diagnostics, then one terminal record, then park. May be called at any time and more than once: it
 * never raises GATE and powers no transport before GATE is low. Does not return. */
__attribute__((noreturn)) void hpx_finish(uint32_t error_code, uint32_t final_phase);

#endif
