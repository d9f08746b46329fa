"""TFLite graphs: read, listed, and without any operator. Needs ``ai-edge-litert``, loaded when asked."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Final

import numpy as np

from joulemap.errors import InputError, SetupError
from joulemap.records.host.model import HostOperator, HostTensor
from joulemap.runtimes.graphs.macs import count_macs

__all__ = [
    "LiteGraph",
    "can_repeat",
    "constant_b",
    "import_litert",
    "list_operators",
    "list_tensors",
    "pack_main",
    "read_lite_graph",
]

_IDENTIFIER: Final = b"TFL3"
_DTYPES: Final = {
    "FLOAT32": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16", "FLOAT64": "fp64", "INT8": "int8", "UINT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "BOOL": "bool", "INT4": "int4",
}  # fmt: skip
_WIDTH_B: Final = {"fp32": 4, "fp16": 2, "bf16": 2, "fp64": 8, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "bool": 1}
_STATEFUL: Final = frozenset(
    {"ASSIGN_VARIABLE", "READ_VARIABLE", "VAR_HANDLE", "CALL_ONCE", "WHILE", "IF", "CUSTOM", "HASHTABLE"}
)

LiteGraph = Any
"""A ``ModelT`` of the schema's object interface."""


def import_litert() -> Any:
    """Returns the module of LiteRT's schema.

    Raises:
        SetupError: it is not installed (``missing-extra``).
    """
    try:
        from ai_edge_litert import schema_py_generated  # noqa: PLC0415  heavy, and an extra
    except ImportError as error:
        raise SetupError(
            "ai-edge-litert is not installed", hint="pip install 'joulemap[host]'", slug="missing-extra"
        ) from error
    return schema_py_generated


def read_lite_graph(path: Path) -> tuple[LiteGraph, bytes]:
    """Returns the graph of a file and the file's bytes.

    Raises:
        SetupError: LiteRT is not installed (``missing-extra``).
        InputError: the file is missing or no TFLite model (``model-unreadable``).
    """
    schema = import_litert()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    if data[4:8] != _IDENTIFIER:
        raise _unreadable(path, "the identifier TFL3 is missing")
    try:
        graph = schema.ModelT.InitFromPackedBuf(bytearray(data), 0)
    except (struct.error, ValueError, TypeError, IndexError, AttributeError, MemoryError) as error:
        raise _unreadable(path, str(error)) from error
    if not graph.subgraphs or not graph.subgraphs[0].operators:
        raise _unreadable(path, "it holds no operator")
    return graph, data


def _unreadable(path: Path, why: str) -> InputError:
    return InputError(f"{path.name}: is no TFLite model ({why})", hint="give a .tflite file", slug="model-unreadable")


def _name(table: type, value: int) -> str:
    return next((key for key, number in vars(table).items() if number == value and key.isupper()), str(value))


def list_operators(graph: LiteGraph, shapes: dict[int, tuple[int, ...]]) -> tuple[HostOperator, ...]:
    """Returns the operators of the main graph.

    Args:
        graph: read from a file.
        shapes: of the tensors, by index, as the interpreter has them.
    """
    schema = import_litert()
    main = graph.subgraphs[0]
    kinds = [_operator_name(schema, code) for code in graph.operatorCodes]
    types = [_DTYPES.get(_name(schema.TensorType, tensor.type), "") for tensor in main.tensors]
    operators = []
    unpacked: dict[int, int] = {}
    for index, operator in enumerate(main.operators):
        reads = [int(t) for t in operator.inputs if t >= 0]
        writes = [int(t) for t in operator.outputs]
        held_b = sum(_WIDTH_B.get(types[t], 0) * int(np.prod(shapes.get(t, (0,)))) for t in {*reads, *writes})
        kind = kinds[operator.opcodeIndex]
        weights_b = sum(constant_b(graph, t) or unpacked.get(t, 0) for t in set(reads))
        if kind == "DEQUANTIZE" and weights_b:  # a delegate holds what it gives as a weight
            unpacked |= {t: 4 * int(np.prod(shapes.get(t, (0,)))) for t in writes}
        operators.append(
            HostOperator(
                index=index,
                op=kind,
                name=_text(main.tensors[writes[0]].name) if writes else "",
                macs=count_macs(kind, [shapes.get(t, ()) for t in reads], [shapes.get(t, ()) for t in writes]),
                bytes=held_b,
                weights_b=weights_b,
                dtype=types[reads[0]] if reads else "",
            )
        )
    return tuple(operators)


def constant_b(graph: LiteGraph, tensor: int) -> int:
    """Returns the bytes that the file holds for a tensor of the main graph."""
    data = graph.buffers[graph.subgraphs[0].tensors[tensor].buffer].data
    return 0 if data is None else len(data)


def _operator_name(schema: Any, code: Any) -> str:
    builtin = max(int(code.builtinCode), int(code.deprecatedBuiltinCode))
    return _name(schema.BuiltinOperator, builtin)


def _text(name: bytes | str | None) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name or "")


def can_repeat(operator: HostOperator) -> bool:
    """Returns whether executing it again changes nothing but the time."""
    return operator.op not in _STATEFUL


def pack_main(graph: LiteGraph, main: Any) -> bytes:
    """Returns the model with another main graph.

    Args:
        graph: a copy: it is given the main graph.
        main: a ``SubGraphT``.
    """
    import flatbuffers  # noqa: PLC0415  comes with LiteRT

    graph.subgraphs = [main, *graph.subgraphs[1:]]
    graph.signatureDefs = None  # they name the outputs of the file
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(graph.Pack(builder), _IDENTIFIER)
    return bytes(builder.Output())


def list_tensors(graph: LiteGraph) -> tuple[HostTensor, ...]:
    """Returns the tensors of the main graph with the shapes of the file; -1 for an open dimension."""
    schema = import_litert()
    tensors = []
    for tensor in graph.subgraphs[0].tensors:
        told = tensor.shapeSignature if tensor.shapeSignature is not None else tensor.shape
        kind = _name(schema.TensorType, tensor.type).lower()
        scales = None if tensor.quantization is None else tensor.quantization.scale
        zeros = None if tensor.quantization is None else tensor.quantization.zeroPoint
        tensors.append(
            HostTensor(
                name=_text(tensor.name),
                dtype=kind,
                shape=tuple(int(d) for d in (told if told is not None else ())),
                scale=float(scales[0]) if scales is not None and len(scales) else 0.0,
                zero_point=int(zeros[0]) if zeros is not None and len(zeros) else 0,
                default=tuple(int(d) for d in tensor.shape) if tensor.shape is not None else (),
            )
        )
    return tuple(tensors)
