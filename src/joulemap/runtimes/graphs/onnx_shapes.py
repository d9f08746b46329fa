"""What an ONNX file says of its operators without a runtime: kinds, shapes by inference, multiply-accumulates."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any, Final

from joulemap.records.host.model import HostOperator, HostTensor
from joulemap.runtimes.graphs.macs import Shape, count_macs
from joulemap.runtimes.graphs.onnx_graph import import_onnx, read_graph

__all__ = ["describe_graph"]

_DTYPES: Final = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "int8": "int8", "uint8": "int8",
}  # fmt: skip
_FREE: Final = frozenset({"Constant", "ConstantOfShape", "Identity", "Shape"})
"""Kinds that a runtime folds away when it loads the model."""


def describe_graph(
    path: Path, batch: int | None
) -> tuple[tuple[HostTensor, ...], tuple[HostTensor, ...], tuple[HostOperator, ...], int]:
    """Returns inputs, outputs, operators, and bytes of the weights that the file holds or declares.

    Args:
        path: of the file.
        batch: value of open dimensions; 1 when None.

    Raises:
        SetupError, InputError: as :func:`joulemap.runtimes.graphs.onnx_graph.read_graph`.
    """
    onnx = import_onnx()
    model = read_graph(path)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    inputs = tuple(_tensor(onnx, v) for v in model.graph.input if v.name not in constants)
    outputs = tuple(_tensor(onnx, v) for v in model.graph.output)
    for value in model.graph.input:
        for dimension in value.type.tensor_type.shape.dim:
            if not dimension.HasField("dim_value"):
                dimension.dim_value = batch or 1
    with contextlib.suppress(RuntimeError, ValueError, onnx.shape_inference.InferenceError):
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)  # without shapes no operations are counted
    known = {v.name: _tensor(onnx, v) for v in (*model.graph.value_info, *model.graph.input, *model.graph.output)}
    shapes: dict[str, Shape] = {
        name: tuple(d if isinstance(d, int) and d > 0 else 1 for d in tensor.shape) for name, tensor in known.items()
    }
    shapes |= {name: tuple(tensor.dims) for name, tensor in constants.items()}
    operators: list[HostOperator] = []
    for node in model.graph.node:
        if node.op_type in _FREE:
            continue
        reads = [shapes[name] for name in node.input if name in shapes]
        writes = [shapes[name] for name in node.output if name in shapes]
        first = next((known[name].dtype for name in node.input if name in known), "float32")
        operators.append(
            HostOperator(
                index=len(operators),
                op=node.op_type,
                name=str(node.name) or (str(node.output[0]) if node.output else ""),
                macs=count_macs(node.op_type, reads, writes),
                bytes=4 * sum(math.prod(shape) for shape in (*reads, *writes)),
                provider="simulated",
                dtype=_DTYPES.get(first, first),
            )
        )
    constants_b = sum(4 * math.prod(tensor.dims) for tensor in constants.values())
    return inputs, outputs, tuple(operators), constants_b


def _tensor(onnx: Any, value: Any) -> HostTensor:
    kind = value.type.tensor_type
    shape = tuple(d.dim_value if d.HasField("dim_value") else (d.dim_param or -1) for d in kind.shape.dim)
    dtype = str(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)) if kind.elem_type else "float32"
    return HostTensor(name=value.name, dtype=dtype, shape=shape)
