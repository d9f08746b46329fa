"""AVERAGE_POOL_2D, MAX_POOL_2D and MEAN."""

from __future__ import annotations

import math

from joulemap.firmware.engines.aot.arithmetic import FixedMultiplier, padding_before, windowed_extent
from joulemap.firmware.engines.aot.ops.context import OpContext
from joulemap.firmware.engines.aot.program import KernelCall
from joulemap.firmware.engines.aot.tflite.graph import Tensor

__all__ = ["lower_average_pool_2d", "lower_max_pool_2d", "lower_mean"]

_MEAN_RANK = 4


def lower_average_pool_2d(ctx: OpContext) -> KernelCall:
    """Returns the call of an average pooling."""
    return _pool(ctx, "hpx_average_pool_2d")


def lower_max_pool_2d(ctx: OpContext) -> KernelCall:
    """Returns the call of a maximum pooling."""
    return _pool(ctx, "hpx_max_pool_2d")


def _pool(ctx: OpContext, kernel: str) -> KernelCall:
    ctx.require_operands(range(1, 2))
    x, y = ctx.input(0, "INT8", rank=4), ctx.output("INT8", rank=4)
    ctx.require_same_quantization(x, y)
    same = ctx.same_padding()
    filter_h, filter_w, stride_h, stride_w = ctx.positive("filterHeight", "filterWidth", "strideH", "strideW")
    axes = ((x.shape[1], filter_h, stride_h), (x.shape[2], filter_w, stride_w))
    extents = tuple(windowed_extent(n, k, stride=s, dilation=1, same=same) for n, k, s in axes)
    ctx.require_shape(y, (x.shape[0], *extents, x.shape[3]))
    before = [padding_before(n, k, stride=s, dilation=1, same=same) for n, k, s in axes]
    act_min, act_max = ctx.clamp(y)
    return KernelCall(
        kernel=kernel,
        params_type="hpx_pool_params",
        params={
            "batches": x.shape[0],
            "in_h": x.shape[1],
            "in_w": x.shape[2],
            "channels": x.shape[3],
            "out_h": y.shape[1],
            "out_w": y.shape[2],
            "filter_h": filter_h,
            "filter_w": filter_w,
            "stride_h": stride_h,
            "stride_w": stride_w,
            "pad_h": before[0],
            "pad_w": before[1],
            "act_min": act_min,
            "act_max": act_max,
        },
        activations=(x.index,),
    )


def lower_mean(ctx: OpContext) -> KernelCall:
    """Returns the call of a mean over any of at most four axes."""
    ctx.require_operands(range(2, 3))
    x, y = ctx.input(0, "INT8"), ctx.output("INT8")
    reduced = _mean_axes(ctx, x)
    kept = tuple(n for axis, n in enumerate(x.shape) if axis not in reduced)
    with_ones = tuple(1 if axis in reduced else n for axis, n in enumerate(x.shape))
    ctx.require_shape(y, with_ones if ctx.option("keepDims") else kept)
    of_input, of_output = ctx.quantization(x), ctx.quantization(y)
    ratio = ctx.multiplier(of_input.scale / of_output.scale, y)
    scaled = _over_count(ratio, math.prod(x.shape[axis] for axis in reduced))
    return KernelCall(
        kernel="hpx_mean",
        params_type="hpx_mean_params",
        params=_mean_strides(x, reduced)
        | {
            "input_zero_point": of_input.zero_point,
            "output_zero_point": of_output.zero_point,
            "multiplier": scaled.multiplier,
            "shift": scaled.shift,
        },
        activations=(x.index,),
    )


def _mean_axes(ctx: OpContext, x: Tensor) -> frozenset[int]:
    axes, values = ctx.constant(1, "INT32")
    rank = len(x.shape)
    if not 1 <= rank <= _MEAN_RANK:
        raise ctx.error("unsupported-op", f"the mean of a tensor of {rank} dimensions", x)
    if any(not -rank <= int(axis) < rank for axis in values.reshape(-1)):
        raise ctx.error("corrupt-model", f"axes {values.reshape(-1).tolist()} of {rank} dimensions", axes)
    reduced = frozenset(int(axis) % rank for axis in values.reshape(-1))
    if not 1 <= values.size <= _MEAN_RANK:
        raise ctx.error("unsupported-op", f"a mean over {values.size} axes", axes)
    return reduced


def _mean_strides(x: Tensor, reduced: frozenset[int]) -> dict[str, int]:
    """Returns extents and strides of at most two kept and two reduced axes, after neighbours of a kind are merged."""
    groups: list[list[int]] = []  # [is reduced, extent, stride in elements]
    stride = x.elements
    for axis, extent in enumerate(x.shape):
        stride //= extent
        if groups and groups[-1][0] == (axis in reduced):
            groups[-1][1:] = [groups[-1][1] * extent, stride]
        else:
            groups.append([axis in reduced, extent, stride])
    params: dict[str, int] = {}
    for kind, name in ((False, "keep"), (True, "sum")):
        of_kind = [(extent, step) for is_reduced, extent, step in groups if is_reduced == kind]
        (outer, outer_step), (inner, inner_step) = ([(1, 0)] * 2 + of_kind)[-2:]
        params |= {f"{name}_outer": outer, f"{name}_inner": inner}
        params |= {f"{name}_outer_stride": outer_step, f"{name}_inner_stride": inner_step}
    return params


def _over_count(ratio: FixedMultiplier, count: int) -> FixedMultiplier:
    """Returns the multiplier divided by the number of summed elements, cut as the reference cuts it."""
    shift = min(count.bit_length() - 1, 32, 31 + ratio.shift)
    return FixedMultiplier(multiplier=(ratio.multiplier << shift) // count, shift=ratio.shift - shift)
