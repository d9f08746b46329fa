/* Vector table and reset. Copyright joulemap contributors, Apache-2.0. */
#include <stdint.h>

extern uint32_t hpx_data_load, hpx_data_start, hpx_data_end, hpx_bss_start, hpx_bss_end, hpx_stack_top;

int main(void);
void Reset_Handler(void);

/* No interrupt is used; a fault stops where it is, and the host's deadline finds it with the phase word. */
__attribute__((used)) static void hpx_unexpected(void)
{
    for (;;) {
        __asm volatile("bkpt #1");
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &hpx_stack_top, (const void *)Reset_Handler,  (const void *)hpx_unexpected, (const void *)hpx_unexpected,
    (const void *)hpx_unexpected, (const void *)hpx_unexpected, (const void *)hpx_unexpected, 0, 0, 0, 0,
    (const void *)hpx_unexpected, (const void *)hpx_unexpected, 0, (const void *)hpx_unexpected,
    (const void *)hpx_unexpected,
};

__attribute__((used, noreturn)) void Reset_Handler(void)
{
    const volatile uint32_t *from = &hpx_data_load;
#if defined(__ARM_FP) && __ARM_FP
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: full access to CP10 and CP11 */
    __asm volatile("dsb\n isb");
#endif
    for (volatile uint32_t *to = &hpx_data_start; to < &hpx_data_end;) {
        *to++ = *from++;
    }
    for (volatile uint32_t *to = &hpx_bss_start; to < &hpx_bss_end;) {
        *to++ = 0u;
    }
    main();
    hpx_unexpected();
    for (;;) {
    }
}
