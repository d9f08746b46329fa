"""Writes ``.tflite`` models through the schema's object API: for the examples, and to try an op alone.

Must not know the kernels, and checks nothing: what it writes is what the caller asks for, sound or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.firmware.engines.aot.tflite.schema import FILE_IDENTIFIER, OPTIONS, load_schema

__all__ = ["ModelWriter"]

_DEPRECATED_CODE_LIMIT = 127


class ModelWriter:
    """Collects tensors and operators of one subgraph; ``build`` returns the file."""

    def __init__(self) -> None:
        self._schema: Any = load_schema()
        self._model = self._schema.ModelT()
        self._model.version = 3
        self._model.description = b"joulemap"
        self._model.buffers = [self._schema.BufferT()]
        self._model.operatorCodes = []
        self._graph = self._schema.SubGraphT()
        self._graph.tensors, self._graph.operators = [], []
        self._graph.inputs, self._graph.outputs = [], []
        self._model.subgraphs = [self._graph]

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str = "INT8",
        *,
        scale: ArrayLike | None = None,
        zero_point: ArrayLike = 0,
        dimension: int = 0,
        data: NDArray[Any] | None = None,
    ) -> int:
        """Returns the index of a new tensor.

        Args:
            name: its name.
            shape: its dimensions.
            dtype: schema name of the element type.
            scale: one quantisation scale, or one per channel; None for a tensor that is not quantised.
            zero_point: one zero point, or one per channel.
            dimension: axis of the channels.
            data: constant content; None for an activation.
        """
        tensor = self._schema.TensorT()
        tensor.name, tensor.shape = name.encode(), list(shape)
        tensor.type = getattr(self._schema.TensorType, dtype)
        tensor.buffer = 0
        if data is not None:
            buffer = self._schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            self._model.buffers.append(buffer)
            tensor.buffer = len(self._model.buffers) - 1
        if scale is not None:
            quantization = self._schema.QuantizationParametersT()
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            quantization.scale = scales
            quantization.zeroPoint = np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape).copy()
            quantization.quantizedDimension = dimension
            tensor.quantization = quantization
        self._graph.tensors.append(tensor)
        return len(self._graph.tensors) - 1

    def input(self, index: int) -> int:
        """Declares a tensor as the next model input and returns its index."""
        self._graph.inputs.append(index)
        return index

    def output(self, index: int) -> int:
        """Declares a tensor as the next model output and returns its index."""
        self._graph.outputs.append(index)
        return index

    def operator(
        self, op: str, inputs: Sequence[int], outputs: Sequence[int], options: Mapping[str, Any] | None = None
    ) -> None:
        """Appends an operator.

        Args:
            op: builtin name, for example ``CONV_2D``.
            inputs: tensor indices, -1 for an absent optional input.
            outputs: tensor indices.
            options: fields of its options table by schema name; None leaves the table out.
        """
        number = getattr(self._schema.BuiltinOperator, op)
        code = self._schema.OperatorCodeT()
        code.builtinCode, code.version = number, 1
        code.deprecatedBuiltinCode = min(number, _DEPRECATED_CODE_LIMIT)
        self._model.operatorCodes.append(code)
        operator = self._schema.OperatorT()
        operator.opcodeIndex = len(self._model.operatorCodes) - 1
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        if options is not None:
            kind = OPTIONS[op]
            table = getattr(self._schema, f"{kind}T")()
            for name, value in options.items():
                setattr(table, name, value)
            operator.builtinOptionsType = getattr(self._schema.BuiltinOptions, kind)
            operator.builtinOptions = table
        self._graph.operators.append(operator)

    def build(self) -> bytes:
        """Returns the file."""
        import flatbuffers  # noqa: PLC0415  (comes with every schema package)

        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(self._model.Pack(builder), FILE_IDENTIFIER)
        return bytes(builder.Output())
