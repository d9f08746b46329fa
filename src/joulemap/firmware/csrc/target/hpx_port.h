/* The board seen by both images: lines, cycle counter, wake-up timer, diagnostic domains.
 * Copyright joulemap contributors, Apache-2.0.
 *
 * Every access to a device register is a naked leaf function in .text.mmio: its basic block starts at the entry of the
 * function, so a board that stamps accesses with the counter at block entry stamps them exactly. The firmware uses no
 * interrupt: a core that waits executes WFI and looks again. */
#ifndef HPX_PORT_H
#define HPX_PORT_H
#include <stdint.h>

#ifndef HPX_CORE_HZ
#error "HPX_CORE_HZ must be defined by the build"
#endif
#ifndef HPX_FAULTS
#define HPX_FAULTS 0
#endif

enum { HPX_LINE_READY = 1u, HPX_LINE_GATE = 2u };
enum { HPX_DIAG_UART = 1u, HPX_DIAG_DEBUG = 2u, HPX_DIAG_SWO = 4u, HPX_DIAG_USB = 8u };

/* Position in the state machine (enum hpx_phase_number); a host reads it without a reset. */
extern volatile uint32_t hpx_phase;

void hpx_port_init(void);
/* Free-running cycle counter, modulo 2^32. */
uint32_t hpx_mmio_cyccnt(void);
/* 1 when the host gives GO. */
uint32_t hpx_port_go(void);
/* Drives READY and GATE together; lines is an OR of HPX_LINE_*. */
void hpx_port_lines(uint32_t lines);
/* Powers the diagnostic domains, an OR of HPX_DIAG_*; 0 powers all of them down. */
void hpx_port_diagnostics(uint32_t domains);
/* Wakes the core once after that time; 0 cancels. */
void hpx_port_wake_after_us(uint32_t us);
/* Sleeps for at least that time. */
void hpx_port_sleep_us(uint32_t us);

static inline void hpx_port_wait(void)
{
    __asm volatile("wfi" ::: "memory");
}

static inline void hpx_port_barrier(void)
{
    __asm volatile("dmb" ::: "memory");
}

#if HPX_FAULTS
/* Planted faults, chosen at run time, so that one deployed image serves every repeat. Bits are HPX_FAULT_*. */
uint32_t hpx_fault(uint32_t bits);
/* Effects at the start of inference i; nonzero is its error code. */
uint32_t hpx_fault_before_inference(uint32_t i);
#else
static inline uint32_t hpx_fault(uint32_t bits)
{
    (void)bits;
    return 0u;
}
static inline uint32_t hpx_fault_before_inference(uint32_t i)
{
    (void)i;
    return 0u;
}
#endif

#endif
