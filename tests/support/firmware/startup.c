#include <stdint.h>
extern uint32_t data_load, data_start, data_end, bss_start, bss_end, stack_top;
int main(void);
void Reset_Handler(void);
__attribute__((section(".vectors"), used)) void *const vectors[16] = {&stack_top, (void *)Reset_Handler};
__attribute__((used, noreturn)) void Reset_Handler(void) {
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: FPU on */
    __asm volatile("dsb\n isb");
    for (uint32_t *from = &data_load, *to = &data_start; to < &data_end;) *to++ = *from++;
    for (uint32_t *to = &bss_start; to < &bss_end;) *to++ = 0;
    main();
    for (;;) __asm volatile("wfi");
}
