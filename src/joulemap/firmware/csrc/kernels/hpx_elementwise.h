/* Addition, conversions and padding. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_ELEMENTWISE_H
#define HPX_ELEMENTWISE_H
#include "hpx_fixed.h"

/* Four dimensions; a stride of 0 repeats an input along a dimension that it lacks. Offsets are minus zero points. */
typedef struct {
    int32_t extent[4], stride1[4], stride2[4];
    int32_t offset1, multiplier1, shift1, offset2, multiplier2, shift2;
    int32_t output_offset, output_multiplier, output_shift, act_min, act_max;
} hpx_add_params;

HPX_KERNEL int8_t hpx_add_one(const hpx_add_params *p, int32_t a, int32_t b)
{
    const int32_t left = hpx_requantize((a + p->offset1) * (1 << 20), p->multiplier1, p->shift1);
    const int32_t right = hpx_requantize((b + p->offset2) * (1 << 20), p->multiplier2, p->shift2);
    const int32_t sum = hpx_requantize(left + right, p->output_multiplier, p->output_shift) + p->output_offset;
    return (int8_t)hpx_clamp(sum, p->act_min, p->act_max);
}

/* Same shapes; y may be either input. */
HPX_KERNEL void hpx_add(const hpx_add_params *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    const int32_t count = p->extent[0] * p->extent[1] * p->extent[2] * p->extent[3];
    for (int32_t i = 0; i < count; i++) {
        y[i] = hpx_add_one(p, a[i], b[i]);
    }
}

HPX_KERNEL void hpx_add_broadcast(const hpx_add_params *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    for (int32_t i = 0; i < p->extent[0]; i++) {
        for (int32_t j = 0; j < p->extent[1]; j++) {
            for (int32_t k = 0; k < p->extent[2]; k++) {
                const int8_t *a_row = a + i * p->stride1[0] + j * p->stride1[1] + k * p->stride1[2];
                const int8_t *b_row = b + i * p->stride2[0] + j * p->stride2[1] + k * p->stride2[2];
                for (int32_t l = 0; l < p->extent[3]; l++) {
                    *y++ = hpx_add_one(p, a_row[l * p->stride1[3]], b_row[l * p->stride2[3]]);
                }
            }
        }
    }
}

typedef struct {
    int32_t count;
    float scale;
    int32_t zero_point;
} hpx_affine_params;

/* Quotient rounded to nearest, halves away from zero. Beyond 2^31 the reference is undefined; this saturates. */
HPX_KERNEL void hpx_quantize(const hpx_affine_params *p, const hpx_f32 *x, int8_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        const float ratio = x[i] / p->scale;
        const float magnitude = ratio < 0.0f ? -ratio : ratio;
        int32_t rounded = 0x1000000; /* far beyond every int8, whatever the zero point */
        if (magnitude < 8388608.0f) { /* below 2^23, where a float32 can still hold a fraction */
            rounded = (int32_t)magnitude;
            rounded += magnitude - (float)rounded >= 0.5f;
        }
        y[i] = (int8_t)hpx_clamp((ratio < 0.0f ? -rounded : rounded) + p->zero_point, INT8_MIN, INT8_MAX);
    }
}

HPX_KERNEL void hpx_dequantize(const hpx_affine_params *p, const int8_t *x, hpx_f32 *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        y[i] = p->scale * (float)(x[i] - p->zero_point);
    }
}

HPX_KERNEL void hpx_dequantize_u8(const hpx_affine_params *p, const uint8_t *x, hpx_f32 *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        y[i] = p->scale * (float)(x[i] - p->zero_point);
    }
}

typedef struct {
    int32_t count, multiplier, shift, input_zero_point, output_zero_point;
} hpx_rescale_params;

HPX_KERNEL int32_t hpx_rescale_one(const hpx_rescale_params *p, int32_t x)
{
    return hpx_requantize(x - p->input_zero_point, p->multiplier, p->shift) + p->output_zero_point;
}

HPX_KERNEL void hpx_rescale(const hpx_rescale_params *p, const int8_t *x, int8_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        y[i] = (int8_t)hpx_clamp(hpx_rescale_one(p, x[i]), INT8_MIN, INT8_MAX);
    }
}

HPX_KERNEL void hpx_rescale_from_u8(const hpx_rescale_params *p, const uint8_t *x, int8_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        y[i] = (int8_t)hpx_clamp(hpx_rescale_one(p, x[i]), INT8_MIN, INT8_MAX);
    }
}

HPX_KERNEL void hpx_rescale_to_u8(const hpx_rescale_params *p, const int8_t *x, uint8_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        y[i] = (uint8_t)hpx_clamp(hpx_rescale_one(p, x[i]), 0, UINT8_MAX);
    }
}

typedef struct {
    int32_t in[4], before[4], out[4];
    int32_t value;
} hpx_pad_params;

HPX_KERNEL void hpx_pad(const hpx_pad_params *p, const int8_t *x, int8_t *y)
{
    for (int32_t i = 0; i < p->out[0]; i++) {
        for (int32_t j = 0; j < p->out[1]; j++) {
            for (int32_t k = 0; k < p->out[2]; k++) {
                const int32_t a = i - p->before[0], b = j - p->before[1], c = k - p->before[2];
                const int32_t inside = a >= 0 && a < p->in[0] && b >= 0 && b < p->in[1] && c >= 0 && c < p->in[2];
                for (int32_t l = 0; l < p->out[3]; l++) {
                    const int32_t d = l - p->before[3];
                    *y++ = inside && d >= 0 && d < p->in[3]
                               ? x[((a * p->in[1] + b) * p->in[2] + c) * p->in[3] + d]
                               : (int8_t)p->value;
                }
            }
        }
    }
}

/* Whole words, since arena and constants are aligned to them; the tail by bytes. */
HPX_KERNEL void hpx_copy(uint8_t *to, const uint8_t *from, uint32_t size)
{
    uint32_t at = 0;
    for (; at + 4 <= size; at += 4) {
        *(hpx_word *)(void *)(to + at) = *(const hpx_word *)(const void *)(from + at);
    }
    for (; at < size; at++) {
        to[at] = from[at];
    }
}

#endif
