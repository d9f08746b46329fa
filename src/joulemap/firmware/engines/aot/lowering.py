"""Turns a graph into a program: ops become kernel calls or constants, activations get places in the arena.

An op is added by one function in ``ops`` and one line in a table here. Must not know the text of C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from joulemap.firmware.engines.aot.arena import ArenaBuffer, plan_arena
from joulemap.firmware.engines.aot.ops.context import OpContext
from joulemap.firmware.engines.aot.ops.convolution import (
    lower_conv_2d,
    lower_depthwise_conv_2d,
    lower_fully_connected,
)
from joulemap.firmware.engines.aot.ops.elementwise import (
    lower_add,
    lower_dequantize,
    lower_logistic,
    lower_quantize,
    lower_softmax,
)
from joulemap.firmware.engines.aot.ops.pooling import lower_average_pool_2d, lower_max_pool_2d, lower_mean
from joulemap.firmware.engines.aot.ops.shape import (
    fold_pack,
    fold_shape,
    fold_strided_slice,
    lower_pad,
    lower_reshape,
)
from joulemap.firmware.engines.aot.program import KernelCall, LayerCall, Program
from joulemap.firmware.engines.aot.tflite.graph import DTYPES, Graph, Operator, Tensor, engine_error

__all__ = ["FOLDED_OPS", "LOWERED_OPS", "lower_graph"]

ACTIVATIONS_LIMIT_B = 64 << 20
MACS_LIMIT = 4_000_000_000

LOWERED_OPS: Mapping[str, Callable[[OpContext], KernelCall]] = MappingProxyType(
    {
        "ADD": lower_add,
        "AVERAGE_POOL_2D": lower_average_pool_2d,
        "CONV_2D": lower_conv_2d,
        "DEPTHWISE_CONV_2D": lower_depthwise_conv_2d,
        "DEQUANTIZE": lower_dequantize,
        "FULLY_CONNECTED": lower_fully_connected,
        "LOGISTIC": lower_logistic,
        "MAX_POOL_2D": lower_max_pool_2d,
        "MEAN": lower_mean,
        "PAD": lower_pad,
        "PADV2": lower_pad,
        "QUANTIZE": lower_quantize,
        "RESHAPE": lower_reshape,
        "SOFTMAX": lower_softmax,
    }
)
FOLDED_OPS: Mapping[str, Callable[[OpContext], NDArray[Any]]] = MappingProxyType(
    {"PACK": fold_pack, "SHAPE": fold_shape, "STRIDED_SLICE": fold_strided_slice}
)


def lower_graph(graph: Graph) -> Program:
    """Returns the program of a graph.

    Raises:
        EngineError: an op, type, quantisation or option that is not taken; names operator and tensor.
    """
    tensors = list(graph.tensors)
    layers: list[LayerCall] = []
    folded: list[str] = []
    for operator in graph.operators:
        ctx = OpContext(operator, tensors)
        if operator.op in FOLDED_OPS:
            _fold(ctx, tensors)
            folded.append(operator.op)
        elif operator.op in LOWERED_OPS:
            call = LOWERED_OPS[operator.op](ctx)
            if operator.op == "RESHAPE" and tensors[call.activations[0]].data is not None:
                _fold_reshape(operator, tensors)
                folded.append(operator.op)
                continue
            layers.append(_layer(len(layers), operator, call))
        else:
            taken = ", ".join(sorted([*LOWERED_OPS, *FOLDED_OPS]))
            raise engine_error(
                "unsupported-op",
                "this op is not taken",
                operator=operator,
                tensor=_first_output(operator, tensors),
                hint=f"the engine takes {taken}",
            )
    folded_graph = replace(graph, tensors=tuple(tensors))
    _check_sizes(folded_graph, layers)
    offsets, arena_b = _place(folded_graph, layers)
    return Program(graph=folded_graph, layers=tuple(layers), folded=tuple(folded), offsets_b=offsets, arena_b=arena_b)


def _first_output(operator: Operator, tensors: list[Tensor]) -> Tensor:
    return tensors[operator.outputs[0]]


def _layer(index: int, operator: Operator, call: KernelCall) -> LayerCall:
    return LayerCall(index=index, operator_index=operator.index, op=operator.op, call=call, output=operator.outputs[0])


def _fold(ctx: OpContext, tensors: list[Tensor]) -> None:
    values = FOLDED_OPS[ctx.operator.op](ctx)
    output = ctx.output("INT32", "INT64")
    ctx.require_shape(output, values.shape)
    tensors[output.index] = replace(output, data=values.astype(DTYPES[output.dtype]))


def _fold_reshape(operator: Operator, tensors: list[Tensor]) -> None:
    source, output = tensors[operator.inputs[0]], tensors[operator.outputs[0]]
    assert source.data is not None
    tensors[output.index] = replace(output, data=source.data.reshape(output.shape))


def _check_sizes(graph: Graph, layers: list[LayerCall]) -> None:
    """Raises EngineError for what no board could run, before anything of that size is allocated."""
    if not layers:
        raise engine_error("unsupported-op", "nothing is left to run: every operator is constant")
    for index in (*graph.inputs, *graph.outputs):
        tensor = graph.tensors[index]
        if tensor.dtype not in DTYPES:
            raise engine_error("unsupported-dtype", f"{tensor.dtype} as input or output", tensor=tensor)
    activations_b = sum(graph.tensors[i].size_b for i in {*graph.inputs, *(layer.output for layer in layers)})
    macs = sum(layer.call.macs for layer in layers)
    if activations_b > ACTIVATIONS_LIMIT_B or macs > MACS_LIMIT:
        raise engine_error(
            "model-too-large",
            f"{activations_b} bytes of activations and {macs} MAC; at most {ACTIVATIONS_LIMIT_B} and {MACS_LIMIT} are"
            " taken",
        )


def _place(graph: Graph, layers: list[LayerCall]) -> tuple[dict[int, int], int]:
    """Returns the arena offset of every activation and the arena's bytes.

    Step 0 loads the inputs, step k + 1 runs layer k, the last step reads the outputs. Tensors that share memory form a
    group, which is placed as one buffer.
    """
    first = dict.fromkeys(graph.inputs, 0) | {layer.output: layer.index + 1 for layer in layers}
    last = dict(first)
    for layer in layers:
        for index in layer.call.activations:
            if index in last:
                last[index] = layer.index + 1
    last.update({index: len(layers) + 1 for index in graph.outputs if index in last})
    group_of = {index: [index] for index in first}
    for layer in layers:
        host = _in_place_operand(graph, layer, group_of, last)
        if host is not None:
            group_of[host].append(layer.output)
            group_of[layer.output] = group_of[host]
    groups = list({id(group): group for group in group_of.values()}.values())
    plan = plan_arena(
        [
            ArenaBuffer(
                size_b=max(graph.tensors[i].size_b for i in group),
                first=min(first[i] for i in group),
                last=max(last[i] for i in group),
            )
            for group in groups
        ]
    )
    offsets = {i: offset for group, offset in zip(groups, plan.offsets_b, strict=True) for i in group}
    return offsets, plan.size_b


def _in_place_operand(
    graph: Graph, layer: LayerCall, group_of: Mapping[int, list[int]], last: Mapping[int, int]
) -> int | None:
    """Returns the operand whose memory the output takes over, or None.

    A layer that moves nothing always shares. Another may overwrite an operand only when nothing in its memory is read
    afterwards.
    """
    if layer.call.kernel is None:
        return layer.call.activations[0]
    step = layer.index + 1
    for index in layer.call.in_place:
        same_size = graph.tensors[index].size_b == graph.tensors[layer.output].size_b
        if index in group_of and same_size and all(last[i] <= step for i in group_of[index]):
            return index
    return None
