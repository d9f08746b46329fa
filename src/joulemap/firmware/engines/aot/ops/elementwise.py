"""ADD, QUANTIZE, DEQUANTIZE, SOFTMAX and LOGISTIC."""

from __future__ import annotations

import math

from joulemap.firmware.engines.aot.arithmetic import INT8_MIN, input_radius, quantize_multiplier, round_half_away
from joulemap.firmware.engines.aot.ops.context import OpContext
from joulemap.firmware.engines.aot.program import KernelCall
from joulemap.firmware.engines.aot.tflite.graph import Tensor

__all__ = ["lower_add", "lower_dequantize", "lower_logistic", "lower_quantize", "lower_softmax"]

_ADD_LEFT_SHIFT = 20
_BROADCAST_RANK = 4
_SOFTMAX_INTEGER_BITS = 5
_SOFTMAX_DEPTH_LIMIT = 4095  # beyond, the sum of exponentials may leave its 12 integer bits
_LOGISTIC_INTEGER_BITS = 4
_PROBABILITY_SCALE = 1 / 256


def lower_add(ctx: OpContext) -> KernelCall:
    """Returns the call of an addition, with broadcasting up to four dimensions."""
    ctx.require_operands(range(2, 3))
    a, b, y = ctx.input(0, "INT8"), ctx.input(1, "INT8"), ctx.output("INT8")
    extents, strides_a, strides_b = _broadcast(ctx, a, b, y)
    of_a, of_b, of_y = ctx.quantization(a), ctx.quantization(b), ctx.quantization(y)
    twice_largest = 2 * max(of_a.scale, of_b.scale)
    rescale = twice_largest / ((1 << _ADD_LEFT_SHIFT) * of_y.scale)
    if rescale >= 1:
        raise ctx.error("unsupported-quantization", "an output step far below the inputs' steps", y)
    first = ctx.multiplier(of_a.scale / twice_largest, a)
    second = ctx.multiplier(of_b.scale / twice_largest, b)
    result = ctx.multiplier(rescale, y)
    act_min, act_max = ctx.clamp(y)
    same_shape = a.shape == b.shape
    return KernelCall(
        kernel="hpx_add" if same_shape else "hpx_add_broadcast",
        params_type="hpx_add_params",
        params={
            "extent": extents,
            "stride1": strides_a,
            "stride2": strides_b,
            "offset1": -of_a.zero_point,
            "multiplier1": first.multiplier,
            "shift1": first.shift,
            "offset2": -of_b.zero_point,
            "multiplier2": second.multiplier,
            "shift2": second.shift,
            "output_offset": of_y.zero_point,
            "output_multiplier": result.multiplier,
            "output_shift": result.shift,
            "act_min": act_min,
            "act_max": act_max,
        },
        activations=(a.index, b.index),
        in_place=(a.index, b.index) if same_shape else (),
    )


def _broadcast(
    ctx: OpContext, a: Tensor, b: Tensor, y: Tensor
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Returns extents, and the strides of both inputs, over four dimensions; a repeated one has stride 0."""
    if a.shape == b.shape:
        ctx.require_shape(y, a.shape)
        return (1, 1, 1, y.elements), (0, 0, 0, 1), (0, 0, 0, 1)
    rank = max(len(a.shape), len(b.shape))
    if rank > _BROADCAST_RANK:
        raise ctx.error("unsupported-op", f"broadcasting over {rank} dimensions", y)
    padded = [(1,) * (_BROADCAST_RANK - len(t.shape)) + t.shape for t in (a, b)]
    if any(m not in (1, n) and n != 1 for m, n in zip(*padded, strict=True)):
        raise ctx.error("corrupt-model", f"shapes {a.shape} and {b.shape} do not broadcast", y)
    extents = tuple(max(pair) for pair in zip(*padded, strict=True))
    ctx.require_shape(y, extents[_BROADCAST_RANK - rank :])
    strides = [tuple(0 if n == 1 else math.prod(shape[axis + 1 :]) for axis, n in enumerate(shape)) for shape in padded]
    return extents, strides[0], strides[1]


def lower_quantize(ctx: OpContext) -> KernelCall:
    """Returns the call of float32 -> int8, or of a change of scale between int8 and uint8."""
    ctx.require_operands(range(1, 2))
    x, y = ctx.input(0, "FLOAT32", "INT8", "UINT8"), ctx.output("INT8", "UINT8")
    ctx.require_shape(y, x.shape)
    of_y = ctx.quantization(y)
    kernels = {
        ("FLOAT32", "INT8"): "hpx_quantize",
        ("INT8", "INT8"): "hpx_rescale",
        ("INT8", "UINT8"): "hpx_rescale_to_u8",
        ("UINT8", "INT8"): "hpx_rescale_from_u8",
    }
    kernel = kernels.get((x.dtype, y.dtype))
    if kernel is None:
        raise ctx.error("unsupported-dtype", f"from {x.dtype} to {y.dtype}", y)
    if x.dtype == "FLOAT32":
        return KernelCall(
            kernel=kernel,
            params_type="hpx_affine_params",
            params={"count": y.elements, "scale": of_y.scale, "zero_point": of_y.zero_point},
            activations=(x.index,),
        )
    of_x = ctx.quantization(x)
    ratio = ctx.multiplier(of_x.scale / of_y.scale, y)
    return KernelCall(
        kernel=kernel,
        params_type="hpx_rescale_params",
        params={
            "count": y.elements,
            "multiplier": ratio.multiplier,
            "shift": ratio.shift,
            "input_zero_point": of_x.zero_point,
            "output_zero_point": of_y.zero_point,
        },
        activations=(x.index,),
        in_place=(x.index,),
    )


def lower_dequantize(ctx: OpContext) -> KernelCall:
    """Returns the call of int8 or uint8 -> float32."""
    ctx.require_operands(range(1, 2))
    x, y = ctx.input(0, "INT8", "UINT8"), ctx.output("FLOAT32")
    ctx.require_shape(y, x.shape)
    of_x = ctx.quantization(x)
    return KernelCall(
        kernel="hpx_dequantize" if x.dtype == "INT8" else "hpx_dequantize_u8",
        params_type="hpx_affine_params",
        params={"count": y.elements, "scale": of_x.scale, "zero_point": of_x.zero_point},
        activations=(x.index,),
    )


def _require_probabilities(ctx: OpContext, y: Tensor) -> None:
    of_y = ctx.quantization(y)
    if of_y.scale != _PROBABILITY_SCALE or of_y.zero_point != INT8_MIN:
        raise ctx.error(
            "unsupported-quantization",
            f"scale {of_y.scale:g} and zero point {of_y.zero_point}; only 1/256 and {INT8_MIN} are taken",
            y,
        )


def lower_softmax(ctx: OpContext) -> KernelCall:
    """Returns the call of a softmax over the last dimension."""
    ctx.require_operands(range(1, 2))
    x, y = ctx.input(0, "INT8"), ctx.output("INT8")
    ctx.require_shape(y, x.shape)
    _require_probabilities(ctx, y)
    if not 1 <= len(x.shape) <= 4:
        raise ctx.error("unsupported-op", f"a softmax of {len(x.shape)} dimensions", x)
    depth = x.shape[-1]
    if depth > _SOFTMAX_DEPTH_LIMIT:
        raise ctx.error("unsupported-op", f"a softmax over {depth} classes, at most {_SOFTMAX_DEPTH_LIMIT}", x)
    step = float(ctx.option("beta")) * ctx.quantization(x).scale * (1 << (31 - _SOFTMAX_INTEGER_BITS))
    if not 1.0 < step < math.inf:
        raise ctx.error("unsupported-quantization", f"beta times scale is {step / (1 << 26):g}", x)
    fixed = quantize_multiplier(min(step, (1 << 31) - 1.0))
    return KernelCall(
        kernel="hpx_softmax",
        params_type="hpx_softmax_params",
        params={
            "rows": x.elements // depth,
            "depth": depth,
            "multiplier": fixed.multiplier,
            "left_shift": fixed.shift,
            "diff_min": -input_radius(_SOFTMAX_INTEGER_BITS, fixed.shift),
        },
        activations=(x.index,),
        in_place=(x.index,),
    )


def lower_logistic(ctx: OpContext) -> KernelCall:
    """Returns the call of a logistic function."""
    ctx.require_operands(range(1, 2))
    x, y = ctx.input(0, "INT8"), ctx.output("INT8")
    ctx.require_shape(y, x.shape)
    _require_probabilities(ctx, y)
    of_x = ctx.quantization(x)
    fraction, left_shift = math.frexp(of_x.scale * (1 << (31 - _LOGISTIC_INTEGER_BITS)))
    multiplier = round_half_away(fraction * (1 << 31))
    if not 0 <= left_shift <= 30 or multiplier >= 1 << 31:
        raise ctx.error("unsupported-quantization", f"scale {of_x.scale:g}", x)
    return KernelCall(
        kernel="hpx_logistic",
        params_type="hpx_logistic_params",
        params={
            "count": x.elements,
            "zero_point": of_x.zero_point,
            "multiplier": multiplier,
            "left_shift": left_shift,
            "radius": input_radius(_LOGISTIC_INTEGER_BITS, left_shift),
        },
        activations=(x.index,),
        in_place=(x.index,),
    )
