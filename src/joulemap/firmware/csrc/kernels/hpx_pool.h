/* Pooling and mean, int8. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_POOL_H
#define HPX_POOL_H
#include "hpx_conv.h"

typedef struct {
    int32_t batches, in_h, in_w, channels, out_h, out_w;
    int32_t filter_h, filter_w, stride_h, stride_w, pad_h, pad_w;
    int32_t act_min, act_max;
} hpx_pool_params;

/* Quotient rounded to nearest, halves away from zero; count > 0. */
static inline int32_t hpx_divide_rounded(int32_t sum, int32_t count)
{
    return sum > 0 ? (sum + count / 2) / count : (sum - count / 2) / count;
}

/* One output position: the average or the largest of the taps that lie inside the image, channel by channel. */
HPX_KERNEL void hpx_pool_position(const hpx_pool_params *p, int32_t average, const int8_t *image, int32_t oy,
                                  int32_t ox, int8_t *y)
{
    const int32_t origin_y = oy * p->stride_h - p->pad_h;
    const int32_t origin_x = ox * p->stride_w - p->pad_w;
    const hpx_taps rows = hpx_taps_inside(origin_y, p->in_h, p->filter_h, 1);
    const hpx_taps columns = hpx_taps_inside(origin_x, p->in_w, p->filter_w, 1);
    const int32_t count = (rows.last - rows.first) * (columns.last - columns.first);
    for (int32_t c = 0; c < p->channels; c++) {
        int32_t result = average ? 0 : INT8_MIN;
        for (int32_t fy = rows.first; fy < rows.last; fy++) {
            const int8_t *x = image + ((origin_y + fy) * p->in_w + origin_x + columns.first) * p->channels + c;
            for (int32_t fx = columns.first; fx < columns.last; fx++, x += p->channels) {
                result = average ? result + *x : hpx_max(result, *x);
            }
        }
        if (average) {
            result = hpx_divide_rounded(result, count);
        }
        y[c] = (int8_t)hpx_clamp(result, p->act_min, p->act_max);
    }
}

HPX_KERNEL void hpx_pool_2d(const hpx_pool_params *p, int32_t average, const int8_t *x, int8_t *y)
{
    for (int32_t batch = 0; batch < p->batches; batch++, x += p->in_h * p->in_w * p->channels) {
        for (int32_t oy = 0; oy < p->out_h; oy++) {
            for (int32_t ox = 0; ox < p->out_w; ox++, y += p->channels) {
                hpx_pool_position(p, average, x, oy, ox, y);
            }
        }
    }
}

HPX_KERNEL void hpx_average_pool_2d(const hpx_pool_params *p, const int8_t *x, int8_t *y) { hpx_pool_2d(p, 1, x, y); }
HPX_KERNEL void hpx_max_pool_2d(const hpx_pool_params *p, const int8_t *x, int8_t *y) { hpx_pool_2d(p, 0, x, y); }

/* Every reduction over at most four axes is two kept extents and two reduced ones, with strides in elements. */
typedef struct {
    int32_t keep_outer, keep_inner, keep_outer_stride, keep_inner_stride;
    int32_t sum_outer, sum_inner, sum_outer_stride, sum_inner_stride;
    int32_t input_zero_point, output_zero_point;
    int32_t multiplier, shift;
} hpx_mean_params;

HPX_KERNEL int32_t hpx_mean_sum(const hpx_mean_params *p, const int8_t *x)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < p->sum_outer; i++) {
        for (int32_t j = 0; j < p->sum_inner; j++) {
            sum += x[i * p->sum_outer_stride + j * p->sum_inner_stride];
        }
    }
    return sum;
}

/* The multiplier carries the ratio of the scales and one over the count. */
HPX_KERNEL void hpx_mean(const hpx_mean_params *p, const int8_t *x, int8_t *y)
{
    const int32_t bias = -p->input_zero_point * p->sum_outer * p->sum_inner;
    for (int32_t i = 0; i < p->keep_outer; i++) {
        for (int32_t j = 0; j < p->keep_inner; j++) {
            const int32_t sum = bias + hpx_mean_sum(p, x + i * p->keep_outer_stride + j * p->keep_inner_stride);
            const int32_t mean = hpx_requantize(sum, p->multiplier, p->shift) + p->output_zero_point;
            *y++ = (int8_t)hpx_clamp(mean, INT8_MIN, INT8_MAX);
        }
    }
}

#endif
