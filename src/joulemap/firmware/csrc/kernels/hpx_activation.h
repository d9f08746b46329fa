/* Softmax and logistic, int8 to int8, in fixed point. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_ACTIVATION_H
#define HPX_ACTIVATION_H
#include "hpx_fixed.h"

typedef struct {
    int32_t rows, depth;
    int32_t multiplier, left_shift; /* from input steps to Q5.26 */
    int32_t diff_min;               /* below it the exponential is nothing */
} hpx_softmax_params;

HPX_KERNEL int32_t hpx_softmax_exp(const hpx_softmax_params *p, int32_t diff)
{
    return hpx_exp_on_negative(hpx_high_mul((int32_t)((uint32_t)diff << p->left_shift), p->multiplier), 5);
}

/* y may be x. */
HPX_KERNEL void hpx_softmax(const hpx_softmax_params *p, const int8_t *x, int8_t *y)
{
    for (int32_t row = 0; row < p->rows; row++, x += p->depth, y += p->depth) {
        int32_t largest = INT8_MIN;
        for (int32_t i = 0; i < p->depth; i++) {
            largest = hpx_max(largest, x[i]);
        }
        int32_t sum = 0; /* Q12.19 */
        for (int32_t i = 0; i < p->depth; i++) {
            const int32_t diff = x[i] - largest;
            if (diff >= p->diff_min) {
                sum += hpx_round_shift(hpx_softmax_exp(p, diff), 12);
            }
        }
        const int32_t headroom = __builtin_clz((uint32_t)sum);
        const int32_t shifted_sum_minus_one = (int32_t)(((uint32_t)sum << headroom) - (1u << 31));
        const int32_t scale = hpx_one_over_one_plus(shifted_sum_minus_one);
        const int32_t exponent = 12 - headroom + 31 - 8;
        for (int32_t i = 0; i < p->depth; i++) {
            const int32_t diff = x[i] - largest;
            int32_t value = 0;
            if (diff >= p->diff_min && exponent <= 31) { /* beyond, the quotient rounds to nothing */
                value = hpx_round_shift(hpx_high_mul(scale, hpx_softmax_exp(p, diff)), exponent);
            }
            y[i] = (int8_t)hpx_clamp(value + INT8_MIN, INT8_MIN, INT8_MAX);
        }
    }
}

typedef struct {
    int32_t count, zero_point;
    int32_t multiplier, left_shift; /* from input steps to Q4.27 */
    int32_t radius;                 /* inputs from here on are 0 or 1 */
} hpx_logistic_params;

/* y may be x. */
HPX_KERNEL void hpx_logistic(const hpx_logistic_params *p, const int8_t *x, int8_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t step = x[i] - p->zero_point;
        if (step <= -p->radius || step >= p->radius) {
            y[i] = step < 0 ? INT8_MIN : INT8_MAX;
            continue;
        }
        const int32_t input = hpx_requantize(step, p->multiplier, p->left_shift); /* Q4.27 */
        const int32_t negative = input > 0 ? -input : input;
        const int32_t of_magnitude = hpx_one_over_one_plus(hpx_exp_on_negative(negative, 4));
        const int32_t value = input > 0 ? of_magnitude : input < 0 ? INT32_MAX - of_magnitude : 1 << 30;
        y[i] = (int8_t)hpx_clamp(hpx_round_shift(value, 23) + INT8_MIN, INT8_MIN, INT8_MAX);
    }
}

#endif
