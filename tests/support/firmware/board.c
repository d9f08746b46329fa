#include "board.h"
#define MMIO __attribute__((naked, noinline, used, section(".text.mmio")))
#define READ(low, high) __asm volatile("movw r0, #" low "\n movt r0, #" high "\n ldr r0, [r0]\n bx lr")
#define WRITE(low, high) __asm volatile("movw r1, #" low "\n movt r1, #" high "\n str r0, [r1]\n bx lr")
MMIO uint32_t cycle_counter(void) { READ("0x1004", "0xE000"); }
MMIO void set_cycle_counter(uint32_t value) { WRITE("0x1004", "0xE000"); }
MMIO void set_cycle_counter_control(uint32_t value) { WRITE("0x1000", "0xE000"); }
MMIO uint32_t inputs(void) { READ("0x2004", "0x4000"); }
MMIO void outputs(uint32_t levels) { WRITE("0x2000", "0x4000"); }
MMIO void diagnostics(uint32_t domains) { WRITE("0x4000", "0x4000"); }
MMIO void wake_after_us(uint32_t us) { WRITE("0x5000", "0x4000"); }
MMIO uint32_t fault_select(void) { READ("0x6000", "0x4000"); }
MMIO uint32_t fault_argument(void) { READ("0x6004", "0x4000"); }
