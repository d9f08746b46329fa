/* Convolutions and the fully connected layer, int8. Copyright joulemap contributors, Apache-2.0. */
#ifndef HPX_CONV_H
#define HPX_CONV_H
#include "hpx_fixed.h"

/* Tensors are NHWC. Filters: [out_c][h][w][filter_c]; filter_c < in_c means groups. Offsets are minus zero points. */
typedef struct {
    int32_t batches, in_h, in_w, in_c;
    int32_t out_h, out_w, out_c;
    int32_t filter_h, filter_w, filter_c;
    int32_t stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    int32_t input_offset, output_offset, act_min, act_max;
} hpx_conv_params;

/* Filters: [h][w][out_c], out_c = in_c * multiplier. */
typedef struct {
    int32_t batches, in_h, in_w, in_c;
    int32_t out_h, out_w, out_c;
    int32_t filter_h, filter_w, multiplier;
    int32_t stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    int32_t input_offset, output_offset, act_min, act_max;
} hpx_depthwise_params;

typedef struct {
    int32_t batches, in_c, out_c;
    int32_t input_offset, filter_offset, output_offset, act_min, act_max;
} hpx_dense_params;

/* The filter taps [first, last) that fall inside [0, extent) when tap 0 lies at origin. */
typedef struct {
    int32_t first, last;
} hpx_taps;

static inline hpx_taps hpx_taps_inside(int32_t origin, int32_t extent, int32_t taps, int32_t dilation)
{
    hpx_taps inside = {0, taps};
    while (inside.first < taps && origin + inside.first * dilation < 0) {
        inside.first++;
    }
    while (inside.last > inside.first && origin + (inside.last - 1) * dilation >= extent) {
        inside.last--;
    }
    return inside;
}

/* Four output channels side by side share every input that they load. */
enum { HPX_LANES = 4 };

/* sum[k] += dot(x + input_offset, w[k * pitch ...] + filter_offset) for k < lanes; wraps modulo 2^32. */
HPX_KERNEL void hpx_dot(uint32_t *sum, int32_t lanes, const int8_t *x, int32_t input_offset, const int8_t *w,
                        int32_t pitch, int32_t filter_offset, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = x[i] + input_offset;
        for (int32_t k = 0; k < lanes; k++) {
            sum[k] += (uint32_t)((w[k * pitch + i] + filter_offset) * value);
        }
    }
}

HPX_KERNEL int8_t hpx_output(uint32_t sum, int32_t multiplier, int32_t shift, int32_t offset, int32_t low, int32_t high)
{
    return (int8_t)hpx_clamp(hpx_requantize((int32_t)sum, multiplier, shift) + offset, low, high);
}

/* `lanes` output channels from `channel` on, at one output position. */
HPX_KERNEL void hpx_conv_lanes(const hpx_conv_params *p, int32_t lanes, int32_t channel, const int8_t *image,
                               int32_t origin_y, int32_t origin_x, hpx_taps rows, hpx_taps columns,
                               const int8_t *filter, const int32_t *bias, const int32_t *multiplier,
                               const int8_t *shift, int8_t *y)
{
    const int32_t pitch = p->filter_h * p->filter_w * p->filter_c;
    const int32_t groups = p->in_c / p->filter_c;
    const int32_t group_c = groups > 1 ? channel / (p->out_c / groups) * p->filter_c : 0;
    uint32_t sum[HPX_LANES];
    for (int32_t k = 0; k < lanes; k++) {
        sum[k] = (uint32_t)bias[channel + k];
    }
    for (int32_t fy = rows.first; fy < rows.last; fy++) {
        const int8_t *x_row = image + (origin_y + fy * p->dilation_h) * p->in_w * p->in_c + group_c;
        const int8_t *w_row = filter + channel * pitch + fy * p->filter_w * p->filter_c;
        if (p->dilation_w == 1 && groups == 1) { /* the row's taps lie side by side in image and filter */
            hpx_dot(sum, lanes, x_row + (origin_x + columns.first) * p->in_c, p->input_offset,
                    w_row + columns.first * p->in_c, pitch, 0, (columns.last - columns.first) * p->in_c);
            continue;
        }
        for (int32_t fx = columns.first; fx < columns.last; fx++) {
            hpx_dot(sum, lanes, x_row + (origin_x + fx * p->dilation_w) * p->in_c, p->input_offset,
                    w_row + fx * p->filter_c, pitch, 0, p->filter_c);
        }
    }
    for (int32_t k = 0; k < lanes; k++) {
        const int32_t c = channel + k;
        y[c] = hpx_output(sum[k], multiplier[c], shift[c], p->output_offset, p->act_min, p->act_max);
    }
}

HPX_KERNEL void hpx_conv_2d(const hpx_conv_params *p, const int8_t *x, const int8_t *filter, const int32_t *bias,
                            const int32_t *multiplier, const int8_t *shift, int8_t *y)
{
    const int32_t groups = p->in_c / p->filter_c;
    const int32_t in_lanes = groups == 1 || p->out_c / groups % HPX_LANES == 0; /* lanes must share their group */
    const int32_t whole = in_lanes ? p->out_c / HPX_LANES * HPX_LANES : 0;
    for (int32_t batch = 0; batch < p->batches; batch++, x += p->in_h * p->in_w * p->in_c) {
        for (int32_t oy = 0; oy < p->out_h; oy++) {
            const int32_t origin_y = oy * p->stride_h - p->pad_h;
            const hpx_taps rows = hpx_taps_inside(origin_y, p->in_h, p->filter_h, p->dilation_h);
            for (int32_t ox = 0; ox < p->out_w; ox++, y += p->out_c) {
                const int32_t origin_x = ox * p->stride_w - p->pad_w;
                const hpx_taps columns = hpx_taps_inside(origin_x, p->in_w, p->filter_w, p->dilation_w);
                int32_t channel = 0;
                for (; channel < whole; channel += HPX_LANES) {
                    hpx_conv_lanes(p, HPX_LANES, channel, x, origin_y, origin_x, rows, columns, filter, bias,
                                   multiplier, shift, y);
                }
                for (; channel < p->out_c; channel++) {
                    hpx_conv_lanes(p, 1, channel, x, origin_y, origin_x, rows, columns, filter, bias, multiplier,
                                   shift, y);
                }
            }
        }
    }
}

HPX_KERNEL void hpx_depthwise_lanes(const hpx_depthwise_params *p, int32_t lanes, int32_t channel, const int8_t *image,
                                    int32_t origin_y, int32_t origin_x, hpx_taps rows, hpx_taps columns,
                                    const int8_t *filter, const int32_t *bias, const int32_t *multiplier,
                                    const int8_t *shift, int8_t *y)
{
    uint32_t sum[HPX_LANES];
    for (int32_t k = 0; k < lanes; k++) {
        sum[k] = (uint32_t)bias[channel + k];
    }
    for (int32_t fy = rows.first; fy < rows.last; fy++) {
        const int8_t *x_row = image + (origin_y + fy * p->dilation_h) * p->in_w * p->in_c;
        const int8_t *w_row = filter + fy * p->filter_w * p->out_c + channel;
        for (int32_t fx = columns.first; fx < columns.last; fx++) {
            const int8_t *x = x_row + (origin_x + fx * p->dilation_w) * p->in_c;
            const int8_t *w = w_row + fx * p->out_c;
            for (int32_t k = 0; k < lanes; k++) {
                sum[k] += (uint32_t)(w[k] * (x[(channel + k) / p->multiplier] + p->input_offset));
            }
        }
    }
    for (int32_t k = 0; k < lanes; k++) {
        const int32_t c = channel + k;
        y[c] = hpx_output(sum[k], multiplier[c], shift[c], p->output_offset, p->act_min, p->act_max);
    }
}

HPX_KERNEL void hpx_depthwise_conv_2d(const hpx_depthwise_params *p, const int8_t *x, const int8_t *filter,
                                      const int32_t *bias, const int32_t *multiplier, const int8_t *shift, int8_t *y)
{
    const int32_t whole = p->out_c / HPX_LANES * HPX_LANES;
    for (int32_t batch = 0; batch < p->batches; batch++, x += p->in_h * p->in_w * p->in_c) {
        for (int32_t oy = 0; oy < p->out_h; oy++) {
            const int32_t origin_y = oy * p->stride_h - p->pad_h;
            const hpx_taps rows = hpx_taps_inside(origin_y, p->in_h, p->filter_h, p->dilation_h);
            for (int32_t ox = 0; ox < p->out_w; ox++, y += p->out_c) {
                const int32_t origin_x = ox * p->stride_w - p->pad_w;
                const hpx_taps columns = hpx_taps_inside(origin_x, p->in_w, p->filter_w, p->dilation_w);
                int32_t channel = 0;
                for (; channel < whole; channel += HPX_LANES) {
                    hpx_depthwise_lanes(p, HPX_LANES, channel, x, origin_y, origin_x, rows, columns, filter, bias,
                                        multiplier, shift, y);
                }
                for (; channel < p->out_c; channel++) {
                    hpx_depthwise_lanes(p, 1, channel, x, origin_y, origin_x, rows, columns, filter, bias, multiplier,
                                        shift, y);
                }
            }
        }
    }
}

/* Filter [out_c][in_c], one multiplier per output channel. */
HPX_KERNEL void hpx_fully_connected(const hpx_dense_params *p, const int8_t *x, const int8_t *filter,
                                    const int32_t *bias, const int32_t *multiplier, const int8_t *shift, int8_t *y)
{
    for (int32_t batch = 0; batch < p->batches; batch++, x += p->in_c, y += p->out_c) {
        for (int32_t channel = 0; channel < p->out_c;) {
            const int32_t lanes = p->out_c - channel < HPX_LANES ? 1 : HPX_LANES;
            uint32_t sum[HPX_LANES];
            for (int32_t k = 0; k < lanes; k++) {
                sum[k] = (uint32_t)bias[channel + k];
            }
            if (lanes == HPX_LANES) {
                hpx_dot(sum, HPX_LANES, x, p->input_offset, filter + channel * p->in_c, p->in_c, p->filter_offset,
                        p->in_c);
            } else {
                hpx_dot(sum, 1, x, p->input_offset, filter + channel * p->in_c, p->in_c, p->filter_offset, p->in_c);
            }
            for (int32_t k = 0; k < lanes; k++, channel++) {
                y[channel] = hpx_output(sum[k], multiplier[channel], shift[channel], p->output_offset, p->act_min,
                                        p->act_max);
            }
        }
    }
}

#endif
