"""Reads a ``.tflite`` file into a ``Graph``, or says what is wrong with it.

Every file that is not a sound model ends in a typed error: bounds are proven first (``flatbuffer``), sizes are limited,
and indices, shapes, types, quantisation and execution order are checked here. Must not know the kernels.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import EngineError, InputError
from joulemap.firmware.engines.aot.tflite.flatbuffer import FlatBufferError, verify_flatbuffer
from joulemap.firmware.engines.aot.tflite.graph import DTYPES, Graph, Operator, Quantization, Tensor, engine_error
from joulemap.firmware.engines.aot.tflite.schema import (
    FILE_IDENTIFIER,
    OPTIONS,
    OPTIONS_REQUIRED,
    enum_names,
    load_schema,
    model_table,
)

__all__ = ["parse_model", "read_model_bytes"]

FILE_LIMIT_B = 64 << 20
TENSOR_LIMIT_B = 64 << 20
_SCHEMA_VERSION = 3
_NO_TENSOR = -1


def read_model_bytes(path: Path) -> bytes:
    """Returns the content of a model file.

    Raises:
        InputError: missing, a folder, unreadable or empty.
        EngineError: larger than 64 MiB.
    """
    try:
        if path.exists() and not path.is_file():  # a folder, a pipe, a device
            kind = "a folder" if path.is_dir() else "no regular file"
            raise InputError(f"{path} is {kind}, not a model", hint="name a .tflite file", slug="model-unreadable")
        size_b = path.stat().st_size
        if size_b > FILE_LIMIT_B:
            raise engine_error("model-too-large", f"{path}: {size_b} bytes, at most {FILE_LIMIT_B} are taken")
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist", hint="check the path", slug="model-missing") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", slug="model-unreadable") from error
    if not content:
        raise InputError(f"{path} is empty", hint="the file has no bytes; copy it again", slug="model-empty")
    return content


def parse_model(content: bytes) -> Graph:
    """Returns the graph of a model file's bytes.

    Raises:
        EngineError: not a ``.tflite`` file, corrupt, too large, or with several subgraphs; names operator and tensor.
        SetupError: no schema package is installed.
    """
    if content[4:8] != FILE_IDENTIFIER:
        raise engine_error(
            "not-a-tflite",
            f"no .tflite model: the identifier at byte 4 is {content[4:8]!r}, not {FILE_IDENTIFIER!r}",
            hint="convert the model to TensorFlow Lite with int8 quantisation",
        )
    try:
        verify_flatbuffer(content, model_table())
    except FlatBufferError as error:
        raise _corrupt(str(error)) from error
    model = load_schema().Model.GetRootAsModel(content, 0)
    if model.Version() != _SCHEMA_VERSION:
        raise _corrupt(f"schema version {model.Version()}, only {_SCHEMA_VERSION} is known")
    if model.SubgraphsLength() != 1:
        raise engine_error(
            "unsupported-op", f"{model.SubgraphsLength()} subgraphs; only one is taken (no control flow)"
        )
    subgraph = model.Subgraphs(0)
    if subgraph.OperatorsLength() == 0:
        raise _corrupt("the model has no operators")
    graph = Graph(
        tensors=tuple(_tensor(model, subgraph.Tensors(i), i) for i in range(subgraph.TensorsLength())),
        operators=tuple(_operator(model, subgraph.Operators(i), i) for i in range(subgraph.OperatorsLength())),
        inputs=_indices(subgraph.InputsAsNumpy()),
        outputs=_indices(subgraph.OutputsAsNumpy()),
    )
    _check_wiring(graph)
    return graph


def _corrupt(message: str) -> EngineError:
    return engine_error("corrupt-model", f"corrupt model: {message}", hint="copy or export the model again")


def _indices(vector: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in vector) if isinstance(vector, np.ndarray) else ()


def _tensor(model: Any, table: Any, index: int) -> Tensor:
    name = (table.Name() or b"").decode("utf-8", "replace")
    shape = _indices(table.ShapeAsNumpy())
    dtype = enum_names("TensorType").get(table.Type(), f"type {table.Type()}")
    tensor = Tensor(index=index, name=name, dtype=dtype, shape=shape, quantization=None, data=None)
    if any(extent <= 0 for extent in shape):
        raise engine_error("corrupt-model", f"shape {shape} has an extent that is not positive", tensor=tensor)
    if math.prod(shape) > TENSOR_LIMIT_B:
        raise engine_error("model-too-large", f"shape {shape} has over {TENSOR_LIMIT_B} elements", tensor=tensor)
    if table.IsVariable():
        raise engine_error("unsupported-op", "variable tensors (state between inferences) are not taken", tensor=tensor)
    return Tensor(
        index=index,
        name=name,
        dtype=dtype,
        shape=shape,
        quantization=_quantization(table.Quantization(), tensor),
        data=_constant(model, table.Buffer(), tensor),
    )


def _quantization(table: Any, tensor: Tensor) -> Quantization | None:
    if table is None or table.ScaleLength() == 0:
        return None
    scales = np.array(table.ScaleAsNumpy(), dtype=np.float32)
    zero_points = (
        np.array(table.ZeroPointAsNumpy(), dtype=np.int64)
        if table.ZeroPointLength()
        else np.zeros(len(scales), dtype=np.int64)
    )
    dimension = table.QuantizedDimension()
    if len(zero_points) != len(scales):
        raise engine_error("corrupt-model", f"{len(scales)} scales but {len(zero_points)} zero points", tensor=tensor)
    if len(scales) > 1 and (not 0 <= dimension < len(tensor.shape) or tensor.shape[dimension] != len(scales)):
        raise engine_error(
            "corrupt-model", f"{len(scales)} scales do not fit dimension {dimension} of {tensor.shape}", tensor=tensor
        )
    if not np.all(np.isfinite(scales)) or np.any(scales < 0):
        raise engine_error("corrupt-model", "a quantisation scale is negative or not finite", tensor=tensor)
    return Quantization(scales=scales, zero_points=zero_points, dimension=dimension)


def _constant(model: Any, buffer_index: int, tensor: Tensor) -> NDArray[Any] | None:
    if buffer_index >= model.BuffersLength():
        raise engine_error("corrupt-model", f"buffer {buffer_index} does not exist", tensor=tensor)
    buffer = model.Buffers(buffer_index)
    if buffer.Offset() > 1 or buffer.Size() > 1:
        raise engine_error("unsupported-dtype", "its content lies outside the flatbuffer", tensor=tensor)
    if buffer.DataLength() == 0:
        return None
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        return None  # refused by name once an operator reads it
    content = buffer.DataAsNumpy()
    if content.nbytes != tensor.elements * dtype.itemsize:
        raise engine_error(
            "corrupt-model",
            f"{content.nbytes} bytes of content for shape {tensor.shape} of {tensor.dtype}",
            tensor=tensor,
        )
    data: NDArray[Any] = np.frombuffer(content.tobytes(), dtype).reshape(tensor.shape)
    return data


def _operator(model: Any, table: Any, index: int) -> Operator:
    code_index = table.OpcodeIndex()
    if code_index >= model.OperatorCodesLength():
        raise _corrupt(f"operator {index}: operator code {code_index} does not exist")
    code = model.OperatorCodes(code_index)
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    op = enum_names("BuiltinOperator").get(number, f"builtin {number}")
    operator = Operator(
        index=index,
        op=op,
        inputs=_indices(table.InputsAsNumpy()),
        outputs=_indices(table.OutputsAsNumpy()),
        options={},
    )
    if op not in OPTIONS:
        return operator
    kind = enum_names("BuiltinOptions").get(table.BuiltinOptionsType(), "unknown")
    options = table.BuiltinOptions()
    if options is None or kind == "NONE":
        if op in OPTIONS_REQUIRED:
            raise engine_error("corrupt-model", "it has no options", operator=operator)
        return operator
    if kind != OPTIONS[op]:
        raise engine_error("corrupt-model", f"it carries {kind} in place of {OPTIONS[op]}", operator=operator)
    accessor = getattr(load_schema(), kind)()
    accessor.Init(options.Bytes, options.Pos)
    unpacked = getattr(load_schema(), f"{kind}T").InitFromObj(accessor)
    return Operator(index=index, op=op, inputs=operator.inputs, outputs=operator.outputs, options=dict(vars(unpacked)))


def _check_wiring(graph: Graph) -> None:
    """Raises EngineError unless every tensor is in range, written once, and written before it is read."""
    written = {tensor.index for tensor in graph.tensors if tensor.data is not None}
    for index in graph.inputs:
        tensor = _require_tensor(graph, index, "the model's inputs", None)
        if index in written:
            raise engine_error("corrupt-model", "an input twice or with content", tensor=tensor)
        written.add(index)
    for operator in graph.operators:
        for index in operator.inputs:
            if index != _NO_TENSOR:
                tensor = _require_tensor(graph, index, "an input", operator)
                if index not in written:
                    message = "it is read before anything writes it"
                    raise engine_error("corrupt-model", message, operator=operator, tensor=tensor)
        if not operator.outputs:
            raise engine_error("corrupt-model", "it has no output", operator=operator)
        for index in operator.outputs:
            tensor = _require_tensor(graph, index, "an output", operator)
            if index in written:
                raise engine_error("corrupt-model", "it is written twice", operator=operator, tensor=tensor)
            written.add(index)
    _check_outputs(graph, written)


def _check_outputs(graph: Graph, written: set[int]) -> None:
    if not graph.outputs:
        raise _corrupt("the model has no outputs")
    for index in graph.outputs:
        tensor = _require_tensor(graph, index, "the model's outputs", None)
        if index not in written:
            raise engine_error("corrupt-model", "nothing writes this output", tensor=tensor)


def _require_tensor(graph: Graph, index: int, role: str, operator: Operator | None) -> Tensor:
    if not 0 <= index < len(graph.tensors):
        raise engine_error(
            "corrupt-model", f"{role}: tensor {index} does not exist, there are {len(graph.tensors)}", operator=operator
        )
    return graph.tensors[index]
