"""RESHAPE, PAD and PADV2 as kernel calls; SHAPE, STRIDED_SLICE and PACK as constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.firmware.engines.aot.ops.context import OpContext
from joulemap.firmware.engines.aot.program import KernelCall

__all__ = ["fold_pack", "fold_shape", "fold_strided_slice", "lower_pad", "lower_reshape"]

_PAD_RANK = 4


def lower_reshape(ctx: OpContext) -> KernelCall:
    """Returns a layer without a kernel: the output lies where the input does."""
    ctx.require_operands(range(1, 3))
    x, y = ctx.input(0), ctx.output()
    if x.dtype != y.dtype or x.elements != y.elements:
        raise ctx.error("corrupt-model", f"{x.dtype} {x.shape} cannot become {y.dtype} {y.shape}", y)
    return KernelCall(kernel=None, activations=(x.index,), in_place=(x.index,))


def lower_pad(ctx: OpContext) -> KernelCall:
    """Returns the call that pads with the zero point, or with the third operand (PADV2)."""
    has_value = ctx.operator.op == "PADV2"
    ctx.require_operands(range(2 + has_value, 3 + has_value))
    x, y = ctx.input(0, "INT8"), ctx.output("INT8")
    ctx.require_same_quantization(x, y)
    rank = len(x.shape)
    if not 1 <= rank <= _PAD_RANK:
        raise ctx.error("unsupported-op", f"padding of {rank} dimensions", x)
    paddings, amounts = ctx.constant(1, "INT32")
    if paddings.shape != (rank, 2) or np.any(amounts < 0) or np.any(amounts > 1 << 16):
        raise ctx.error("corrupt-model", f"paddings {amounts.tolist()} for {rank} dimensions", paddings)
    ctx.require_shape(y, tuple(n + int(a) + int(b) for n, (a, b) in zip(x.shape, amounts, strict=True)))
    value = ctx.quantization(y).zero_point
    if has_value:
        tensor, content = ctx.constant(2, "INT8")
        ctx.require_same_quantization(y, tensor)
        if tensor.elements != 1:
            raise ctx.error("corrupt-model", f"{tensor.elements} padding values", tensor)
        value = int(content.reshape(-1)[0])
    missing = (1,) * (_PAD_RANK - rank)
    return KernelCall(
        kernel="hpx_pad",
        params_type="hpx_pad_params",
        params={
            "in": missing + x.shape,
            "before": (0,) * len(missing) + tuple(int(a) for a, _ in amounts),
            "out": missing + y.shape,
            "value": value,
        },
        activations=(x.index,),
    )


def fold_shape(ctx: OpContext) -> NDArray[Any]:
    """Returns the shape of the input."""
    ctx.require_operands(range(1, 2))
    return np.array(ctx.input(0).shape, np.int64)


def fold_strided_slice(ctx: OpContext) -> NDArray[Any]:
    """Returns the slice of a constant vector."""
    ctx.require_operands(range(4, 5))
    tensor, values = ctx.constant(0, "INT32", "INT64", rank=1)
    begin, end, step = (int(ctx.constant(i, "INT32", rank=1)[1][0]) for i in (1, 2, 3))
    if ctx.option("ellipsisMask") or ctx.option("newAxisMask") or ctx.option("offset") or step == 0:
        raise ctx.error("unsupported-option", "ellipsis, new axis, offset or a stride of 0", tensor)
    if ctx.option("shrinkAxisMask") & 1:
        if not -len(values) <= begin < len(values):
            raise ctx.error("corrupt-model", f"index {begin} of {len(values)} values", tensor)
        picked: NDArray[Any] = values[begin]
        return np.asarray(picked)
    first = None if ctx.option("beginMask") & 1 else begin
    last = None if ctx.option("endMask") & 1 else end
    return np.asarray(values[first:last:step])


def fold_pack(ctx: OpContext) -> NDArray[Any]:
    """Returns constant scalars or vectors stacked along a new first axis."""
    count = len(ctx.operator.inputs)
    ctx.require_operands(range(1, 1 << 10))
    if ctx.option("axis") != 0 or ctx.option("valuesCount") != count:
        raise ctx.error("unsupported-option", f"axis {ctx.option('axis')}, {ctx.option('valuesCount')} values")
    parts = [ctx.constant(i, "INT32", "INT64")[1] for i in range(count)]
    if len({part.shape for part in parts}) != 1:
        raise ctx.error("corrupt-model", "its inputs differ in shape")
    return np.stack(parts)
