"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from joulemap.firmware.engines.aot.arithmetic import FixedMultiplier, padding_before, windowed_extent
from joulemap.firmware.engines.aot.ops.context import OpContext
from joulemap.firmware.engines.aot.program import ConstantArray, KernelCall
from joulemap.firmware.engines.aot.tflite.graph import Quantization, Tensor

__all__ = ["lower_conv_2d", "lower_depthwise_conv_2d", "lower_fully_connected"]

_BIAS_MISMATCH_LIMIT = 0.02  # the reference refuses a bias scale further off than this part of the output step


def _multipliers(ctx: OpContext, filter_: Quantization, channels: int) -> list[FixedMultiplier]:
    """Returns input scale x filter scale / output scale of every channel, products in double."""
    x, y = ctx.input(0), ctx.output()
    scales = np.broadcast_to(filter_.scales, (channels,))
    of_input, of_output = ctx.quantization(x).scale, ctx.quantization(y).scale
    return [ctx.multiplier(of_input * float(scale) / of_output, y) for scale in scales]


def _window(ctx: OpContext, x: Tensor, y: Tensor, filter_hw: tuple[int, int]) -> dict[str, int]:
    """Returns strides, dilations and paddings; raises EngineError when they do not make the output's shape."""
    stride_h, stride_w = ctx.positive("strideH", "strideW")
    dilation_h, dilation_w = ctx.positive("dilationHFactor", "dilationWFactor")
    same = ctx.same_padding()
    axes = ((x.shape[1], filter_hw[0], stride_h, dilation_h), (x.shape[2], filter_hw[1], stride_w, dilation_w))
    extents = tuple(windowed_extent(n, k, stride=s, dilation=d, same=same) for n, k, s, d in axes)
    ctx.require_shape(y, (x.shape[0], *extents, y.shape[3]))
    before = [padding_before(n, k, stride=s, dilation=d, same=same) for n, k, s, d in axes]
    return {
        "filter_h": filter_hw[0],
        "filter_w": filter_hw[1],
        "stride_h": stride_h,
        "stride_w": stride_w,
        "dilation_h": dilation_h,
        "dilation_w": dilation_w,
        "pad_h": before[0],
        "pad_w": before[1],
    }


def _image(x: Tensor, y: Tensor) -> dict[str, int]:
    return {
        "batches": x.shape[0],
        "in_h": x.shape[1],
        "in_w": x.shape[2],
        "in_c": x.shape[3],
        "out_h": y.shape[1],
        "out_w": y.shape[2],
        "out_c": y.shape[3],
    }


def _output_stage(ctx: OpContext, x: Tensor, y: Tensor) -> dict[str, int]:
    act_min, act_max = ctx.clamp(y)
    return {
        "input_offset": -ctx.quantization(x).zero_point,
        "output_offset": ctx.quantization(y).zero_point,
        "act_min": act_min,
        "act_max": act_max,
    }


def _require_symmetric(ctx: OpContext, filter_: Quantization, tensor: Tensor) -> None:
    if np.any(filter_.zero_points):
        raise ctx.error("unsupported-quantization", "the filter has a zero point that is not 0", tensor)


def _filter_table(values: NDArray[np.int8]) -> ConstantArray:
    return ConstantArray(role="filter", values=np.ascontiguousarray(values, np.int8).reshape(-1))


def lower_conv_2d(ctx: OpContext) -> KernelCall:
    """Returns the call of a 2-D convolution, grouped when the filter is shallower than the image."""
    ctx.require_operands(range(2, 4))
    x, y = ctx.input(0, "INT8", rank=4), ctx.output("INT8", rank=4)
    filter_, weights = ctx.constant(1, "INT8", rank=4)
    out_c, filter_h, filter_w, filter_c = filter_.shape
    if x.shape[3] % filter_c or out_c % (x.shape[3] // filter_c) or y.shape[3] != out_c:
        raise ctx.error("corrupt-model", f"filter {filter_.shape} for {x.shape[3]} channels", filter_)
    quantization = ctx.filter_scales(filter_, dimension=0, channels=out_c)
    _require_symmetric(ctx, quantization, filter_)
    return KernelCall(
        kernel="hpx_conv_2d",
        params_type="hpx_conv_params",
        params=_image(x, y)
        | {"filter_c": filter_c}
        | _window(ctx, x, y, (filter_h, filter_w))
        | _output_stage(ctx, x, y),
        activations=(x.index,),
        constants=(
            _filter_table(weights),
            *ctx.channel_tables(_multipliers(ctx, quantization, out_c), ctx.bias(2, out_c)),
        ),
        macs=y.elements * filter_h * filter_w * filter_c,
    )


def lower_depthwise_conv_2d(ctx: OpContext) -> KernelCall:
    """Returns the call of a depthwise convolution."""
    ctx.require_operands(range(2, 4))
    x, y = ctx.input(0, "INT8", rank=4), ctx.output("INT8", rank=4)
    filter_, weights = ctx.constant(1, "INT8", rank=4)
    (multiplier,) = ctx.positive("depthMultiplier")
    _, filter_h, filter_w, out_c = filter_.shape
    if filter_.shape[0] != 1 or out_c != x.shape[3] * multiplier or y.shape[3] != out_c:
        raise ctx.error(
            "corrupt-model", f"filter {filter_.shape} for {x.shape[3]} channels times {multiplier}", filter_
        )
    quantization = ctx.filter_scales(filter_, dimension=3, channels=out_c)
    _require_symmetric(ctx, quantization, filter_)
    return KernelCall(
        kernel="hpx_depthwise_conv_2d",
        params_type="hpx_depthwise_params",
        params=_image(x, y)
        | {"multiplier": multiplier}
        | _window(ctx, x, y, (filter_h, filter_w))
        | _output_stage(ctx, x, y),
        activations=(x.index,),
        constants=(
            _filter_table(weights),
            *ctx.channel_tables(_multipliers(ctx, quantization, out_c), ctx.bias(2, out_c)),
        ),
        macs=y.elements * filter_h * filter_w,
    )


def lower_fully_connected(ctx: OpContext) -> KernelCall:
    """Returns the call of a fully connected layer; the input is taken flat."""
    ctx.require_operands(range(2, 4))
    x, y = ctx.input(0, "INT8"), ctx.output("INT8")
    filter_, weights = ctx.constant(1, "INT8", rank=2)
    if ctx.option("weightsFormat") != 0:
        raise ctx.error("unsupported-option", "shuffled weights", filter_)
    out_c, in_c = filter_.shape
    batches = math.prod(y.shape[:-1])
    if not y.shape or y.shape[-1] != out_c or x.elements != batches * in_c:
        raise ctx.error("corrupt-model", f"input {x.shape} and filter {filter_.shape} make no {y.shape}", y)
    quantization = ctx.filter_scales(filter_, dimension=0, channels=out_c)
    if len(quantization.scales) > 1:
        _require_symmetric(ctx, quantization, filter_)
    else:
        ctx.quantization(filter_)  # a zero point in range, a scale that is not 0
        _require_bias_scale(ctx, quantization)
    return KernelCall(
        kernel="hpx_fully_connected",
        params_type="hpx_dense_params",
        params={"batches": batches, "in_c": in_c, "out_c": out_c, "filter_offset": -quantization.zero_point}
        | _output_stage(ctx, x, y),
        activations=(x.index,),
        constants=(
            _filter_table(weights),
            *ctx.channel_tables(_multipliers(ctx, quantization, out_c), ctx.bias(2, out_c)),
        ),
        macs=y.elements * in_c,
    )


def _require_bias_scale(ctx: OpContext, filter_: Quantization) -> None:
    """Raises EngineError when the bias counts in other steps than the products, as the reference does."""
    bias = ctx.optional_input(2)
    if bias is None:
        return
    of_bias = 0.0 if bias.quantization is None else bias.quantization.scale
    product = ctx.quantization(ctx.input(0)).scale * filter_.scale
    mismatch = abs(product - of_bias) / ctx.quantization(ctx.output()).scale
    if mismatch > _BIAS_MISMATCH_LIMIT:
        raise ctx.error("unsupported-quantization", "the bias scale is not input scale times filter scale", bias)
