/* Port for the register map of virtual-m33. Copyright joulemap contributors, Apache-2.0. */
#include "hpx_port.h"

#include "hpx_wire.h"

#define HPX_MMIO __attribute__((naked, noinline, used, section(".text.mmio")))

/* GPIO_OUT 0x40002000, GPIO_IN 0x40002004, DIAG_ENABLE 0x40004000, WAKE_AFTER_US 0x40005000, FAULT_SELECT 0x40006000,
 * FAULT_ARGUMENT 0x40006004, DWT_CYCCNT 0xE0001004. */
HPX_MMIO uint32_t hpx_mmio_cyccnt(void)
{
    __asm volatile("movw r0, #0x1004\n movt r0, #0xE000\n ldr r0, [r0]\n bx lr");
}

HPX_MMIO static uint32_t hpx_mmio_gpio_in(void)
{
    __asm volatile("movw r0, #0x2004\n movt r0, #0x4000\n ldr r0, [r0]\n bx lr");
}

HPX_MMIO static void hpx_mmio_gpio_out(uint32_t lines)
{
    __asm volatile("movw r1, #0x2000\n movt r1, #0x4000\n str r0, [r1]\n bx lr");
}

HPX_MMIO static void hpx_mmio_diagnostics(uint32_t domains)
{
    __asm volatile("movw r1, #0x4000\n movt r1, #0x4000\n str r0, [r1]\n bx lr");
}

HPX_MMIO static void hpx_mmio_wake_after_us(uint32_t us)
{
    __asm volatile("movw r1, #0x5000\n movt r1, #0x4000\n str r0, [r1]\n bx lr");
}

#if HPX_FAULTS
HPX_MMIO static uint32_t hpx_mmio_fault_select(void)
{
    __asm volatile("movw r0, #0x6000\n movt r0, #0x4000\n ldr r0, [r0]\n bx lr");
}

HPX_MMIO static uint32_t hpx_mmio_fault_argument(void)
{
    __asm volatile("movw r0, #0x6004\n movt r0, #0x4000\n ldr r0, [r0]\n bx lr");
}
#endif

volatile uint32_t hpx_phase;

#if HPX_FAULTS
static uint32_t fault_bits;
static uint32_t fault_inference;
static uint32_t gate_raised;

uint32_t hpx_fault(uint32_t bits)
{
    return fault_bits & bits;
}

uint32_t hpx_fault_before_inference(uint32_t i)
{
    if (fault_bits == 0u || i != fault_inference) {
        return 0u;
    }
    if (hpx_fault(HPX_FAULT_SHORT_PULSE)) {
        hpx_mmio_gpio_out(HPX_LINE_READY); /* the pin falls; the firmware does not know */
    }
    if (hpx_fault(HPX_FAULT_HARD_FAULT)) {
        *(volatile uint32_t *)0x100u = 1u; /* flash is not writable */
    }
    while (hpx_fault(HPX_FAULT_STUCK_LOOP)) {
        __asm volatile("nop");
    }
    return hpx_fault(HPX_FAULT_INFER_ERROR) ? HPX_ERROR_INFERENCE : 0u;
}

/* Pins that do not follow: the state machine above them stays as it is. */
static uint32_t at_the_pins(uint32_t lines)
{
    gate_raised |= lines & HPX_LINE_GATE;
    if (hpx_fault(HPX_FAULT_NO_READY)) {
        lines &= ~(uint32_t)HPX_LINE_READY;
    }
    if (hpx_fault(HPX_FAULT_NO_GATE_RISE)) {
        lines &= ~(uint32_t)HPX_LINE_GATE;
    } else if (hpx_fault(HPX_FAULT_NO_GATE_FALL)) {
        lines |= gate_raised;
    }
    return lines;
}
#else
static inline uint32_t at_the_pins(uint32_t lines)
{
    return lines;
}
#endif

void hpx_port_init(void)
{
#if HPX_FAULTS
    fault_bits = hpx_mmio_fault_select();
    fault_inference = hpx_mmio_fault_argument();
#endif
}

uint32_t hpx_port_go(void)
{
    return hpx_mmio_gpio_in() & 1u;
}

void hpx_port_lines(uint32_t lines)
{
    hpx_mmio_gpio_out(at_the_pins(lines));
}

void hpx_port_diagnostics(uint32_t domains)
{
    hpx_mmio_diagnostics(domains);
}

void hpx_port_wake_after_us(uint32_t us)
{
    hpx_mmio_wake_after_us(us);
}

void hpx_port_sleep_us(uint32_t us)
{
    const uint32_t cycles_per_us = HPX_CORE_HZ / 1000000u;
    const uint32_t start = hpx_mmio_cyccnt();
    for (;;) {
        const uint32_t slept_us = (hpx_mmio_cyccnt() - start) / cycles_per_us;
        if (slept_us >= us) {
            break;
        }
        hpx_mmio_wake_after_us(us - slept_us); /* something else may have woken the core */
        hpx_port_wait();
    }
    hpx_mmio_wake_after_us(0u);
}
