/* Registers of the board under test, each access a naked leaf in .text.mmio. */
#include <stdint.h>

uint32_t cycle_counter(void);
void set_cycle_counter(uint32_t value);
void set_cycle_counter_control(uint32_t value);
uint32_t inputs(void);
void outputs(uint32_t levels);
void diagnostics(uint32_t domains);
void wake_after_us(uint32_t us);
uint32_t fault_select(void);
uint32_t fault_argument(void);
enum { READY = 1, GATE = 2, GO = 1 };
static inline void sleep_once(void) { __asm volatile("wfi" ::: "memory"); }
static inline void park(void) { for (;;) sleep_once(); }
