/* A stand-in for a network: two layers that share a kernel, one from flash, one from RAM, and one that does nothing. */
#include "board.h"

#ifndef INFERENCES
#define INFERENCES 5
#endif
volatile uint32_t result;
static const uint8_t weights[256] = {1, 2, 3, 5, 8, 13};
static uint8_t activations[4096];

__attribute__((noinline)) static uint32_t kernel(const uint8_t *from, uint32_t count) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        activations[i] = (uint8_t)(activations[i] + from[i & 255]);
        sum += activations[i];
    }
    return sum;
}
__attribute__((noinline)) void layer_000(void) { result += kernel(weights, 4096); }
__attribute__((noinline)) void layer_001(void) { result += kernel(activations, 2000); }
__attribute__((noinline, naked)) void layer_002(void) { __asm volatile("nop\n nop\n nop\n bx lr"); }

int main(void) {
    outputs(READY);
    while (!(inputs() & GO)) sleep_once();
    outputs(READY | GATE);
    for (int i = 0; i < INFERENCES; i++) {
        layer_000();
        layer_001();
        layer_002();
    }
    outputs(READY);
    park();
}
