/* Fixed-point arithmetic of the kernels, bit for bit that of TensorFlow Lite Micro's reference kernels.
 * Copyright joulemap contributors, Apache-2.0.
 *
 * A requantisation rounds twice: once in the doubling high multiplication, once in the shift. Sums wrap modulo 2^32,
 * as the reference's do on every machine that runs it, but without undefined behaviour.
 *
 * References: Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
 * Inference, CVPR 2018, section 2.2; gemmlowp, fixedpoint/fixedpoint.h (exponential, reciprocal, logistic).
 */
#ifndef HPX_FIXED_H
#define HPX_FIXED_H
#include <stddef.h>
#include <stdint.h>

/* Kernels are inlined into each layer's function, so that its constants specialise them. */
#define HPX_KERNEL static inline __attribute__((always_inline))

/* The arena is bytes; other element types are read and written through aliases that the compiler must respect. */
typedef float __attribute__((may_alias)) hpx_f32;
typedef uint32_t __attribute__((may_alias)) hpx_word;

static inline int32_t hpx_min(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t hpx_max(int32_t a, int32_t b) { return a > b ? a : b; }
static inline int32_t hpx_clamp(int32_t value, int32_t low, int32_t high) { return hpx_min(hpx_max(value, low), high); }

/* round(a b / 2^31), halves towards plus infinity; saturates the one product that does not fit. */
static inline int32_t hpx_high_mul(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN) {
        return INT32_MAX;
    }
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

/* round(x / 2^exponent), halves away from zero; exponent 0..31. */
static inline int32_t hpx_round_shift(int32_t x, int32_t exponent)
{
    const int32_t mask = (int32_t)((1u << exponent) - 1u);
    const int32_t threshold = (mask >> 1) + (x < 0);
    return (x >> exponent) + ((x & mask) > threshold);
}

static inline int32_t hpx_saturating_shift_left(int32_t x, int32_t exponent)
{
    const int64_t wide = (int64_t)x * ((int64_t)1 << exponent);
    return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
}

/* x times multiplier 2^(shift - 31), rounded twice. The multiplier is 0 or in [2^30, 2^31). */
static inline int32_t hpx_requantize(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = shift > 0 ? 0 : -shift;
    const int64_t product = (int64_t)(int32_t)((uint32_t)x << left) * multiplier;
    return hpx_round_shift((int32_t)((product + (1 << 30)) >> 31), right);
}

/* exp of a <= 0 with `integer_bits` integer bits, in Q0.31: within a quarter by Taylor series, quarters from a table. */
static inline int32_t hpx_exp_on_negative(int32_t a, int32_t integer_bits)
{
    /* exp(-2^k) in Q0.31 for k = -2 .. 4 */
    static const int32_t factors[7] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    const int32_t quarter_bit = 29 - integer_bits;
    const int32_t quarter = 1 << quarter_bit;
    const int32_t a_mod_quarter = (a & (quarter - 1)) - quarter;
    const int32_t x = hpx_saturating_shift_left(a_mod_quarter, integer_bits) + (1 << 28); /* distance from -1/8 */
    const int32_t x2 = hpx_high_mul(x, x);
    const int32_t x3 = hpx_high_mul(x2, x);
    const int32_t x4 = hpx_high_mul(x2, x2);
    const int32_t tail = hpx_round_shift(hpx_high_mul(hpx_round_shift(x4, 2) + x3, 715827883) + x2, 1);
    const int32_t quarters = a_mod_quarter - a;
    int32_t result = 1895147668 + hpx_high_mul(1895147668, x + tail); /* exp(-1/8) (1 + x + x^2/2 + ...) */
    for (int32_t k = 0; k < integer_bits + 2; k++) {
        if (quarters & (1 << (quarter_bit + k))) {
            result = hpx_high_mul(result, factors[k]);
        }
    }
    return a == 0 ? INT32_MAX : result;
}

/* 1 / (1 + a) in Q0.31 for a in [0, 1] in Q0.31: three Newton-Raphson steps on the halved denominator. */
static inline int32_t hpx_one_over_one_plus(int32_t a)
{
    const int64_t sum = (int64_t)a + INT32_MAX;
    const int32_t half_denominator = (int32_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
    int32_t x = 1515870810 + hpx_high_mul(half_denominator, -1010580540); /* 48/17 - 32/17 d, Q2.29 */
    for (int32_t step = 0; step < 3; step++) {
        const int32_t error = (1 << 29) - hpx_high_mul(half_denominator, x);
        x += hpx_saturating_shift_left(hpx_high_mul(x, error), 2);
    }
    return hpx_saturating_shift_left(x, 1);
}

#endif
