"""The ``.tflite`` schema: the generated accessors, and which of their fields this engine reads.

The only module that imports the generated schema, late, from ``tflite_micro`` or else from ``ai_edge_litert``. It knows
no op's meaning.

References:
    TensorFlow Lite schema version 3, tensorflow/compiler/mlir/lite/schema/schema.fbs (field slots below).
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

from joulemap.errors import SetupError
from joulemap.firmware.engines.aot.tflite.flatbuffer import Absent, Reference, Scalar, Sequence, Table, Text, Union

__all__ = ["FILE_IDENTIFIER", "OPTIONS", "OPTIONS_REQUIRED", "enum_names", "load_schema", "model_table"]

FILE_IDENTIFIER = b"TFL3"

OPTIONS = {
    "ADD": "AddOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "DEQUANTIZE": "DequantizeOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions",
    "PACK": "PackOptions",
    "PAD": "PadOptions",
    "PADV2": "PadV2Options",
    "QUANTIZE": "QuantizeOptions",
    "RESHAPE": "ReshapeOptions",
    "SHAPE": "ShapeOptions",
    "SOFTMAX": "SoftmaxOptions",
    "STRIDED_SLICE": "StridedSliceOptions",
}
"""Options table of each op. LOGISTIC has none."""

OPTIONS_REQUIRED = frozenset(OPTIONS) - {"DEQUANTIZE", "PAD", "PADV2", "QUANTIZE", "RESHAPE", "SHAPE"}
"""Ops whose meaning hangs on their options; the others may leave them out."""

_BYTE, _INT, _LONG = Scalar(1), Scalar(4), Scalar(8)
_BYTES, _INTS, _LONGS = Sequence(1), Sequence(4), Sequence(8)

_OPTION_SLOTS = {
    "AddOptions": (_BYTE, _BYTE),
    "Conv2DOptions": (_BYTE, _INT, _INT, _BYTE, _INT, _INT, _BYTE),
    "DepthwiseConv2DOptions": (_BYTE, _INT, _INT, _INT, _BYTE, _INT, _INT),
    "DequantizeOptions": (),
    "FullyConnectedOptions": (_BYTE, _BYTE, _BYTE, _BYTE, _BYTE, Absent("a quantisation specification")),
    "PackOptions": (_INT, _INT),
    "PadOptions": (),
    "PadV2Options": (),
    "Pool2DOptions": (_BYTE, _INT, _INT, _INT, _INT, _BYTE),
    "QuantizeOptions": (),
    "ReducerOptions": (_BYTE,),
    "ReshapeOptions": (Sequence(4, limit=8),),
    "ShapeOptions": (_BYTE,),
    "SoftmaxOptions": (Scalar(4),),
    "StridedSliceOptions": (_INT, _INT, _INT, _INT, _INT, _BYTE),
}


@cache
def load_schema() -> ModuleType:
    """Returns the generated schema module.

    Raises:
        SetupError: neither package is installed.
    """
    try:
        from tflite_micro.tensorflow.lite.micro.python import schema_py_generated  # noqa: PLC0415
    except ImportError:
        try:
            from ai_edge_litert import schema_py_generated  # noqa: PLC0415
        except ImportError as error:
            raise SetupError(
                "reading a .tflite model needs the schema of the package tflite-micro",
                hint="pip install 'joulemap[virtual]'",
                slug="missing-extra",
            ) from error
    module: ModuleType = schema_py_generated
    return module


@cache
def enum_names(enum: str) -> dict[int, str]:
    """Returns number -> name of a schema enumeration, for example ``BuiltinOperator``."""
    members = vars(getattr(load_schema(), enum))
    return {value: name for name, value in members.items() if isinstance(value, int)}


def _numbered(name: str, *slots: Scalar | Text | Absent | Sequence | Reference | Union | None) -> Table:
    return Table(name, {number: kind for number, kind in enumerate(slots) if kind is not None})


@cache
def model_table() -> Table:
    """Returns the description of a model file that ``verify_flatbuffer`` checks; unknown options are not followed."""
    kinds = vars(load_schema().BuiltinOptions)
    options = Union({kinds[name]: _numbered(name, *slots) for name, slots in _OPTION_SLOTS.items()})
    quantization = _numbered(
        "quantization", _INTS, _INTS, _INTS, _LONGS, _BYTE, Absent("custom quantisation details"), _INT
    )
    tensor = _numbered(
        "tensor",
        Sequence(4, limit=8),
        _BYTE,
        _INT,
        Text(),
        Reference(quantization),
        _BYTE,
        Absent("sparsity"),
        Sequence(4, limit=8),
        _BYTE,
        Absent("variant tensors"),
        Absent("an external buffer"),
    )
    operator = _numbered(
        "operator",
        _INT,
        _INTS,
        _INTS,
        _BYTE,
        options,
        _BYTES,
        _BYTE,
        _BYTES,
        _INTS,
        Absent("large custom options"),
        Absent("large custom options"),
        _BYTE,
        Absent("second-generation options"),
        _INT,
    )
    subgraph = _numbered("subgraph", Sequence(tensor), _INTS, _INTS, Sequence(operator, limit=4096), Text(), _INT)
    tensor_map = _numbered("signature tensor", Text(), _INT)
    signature = _numbered("signature", Sequence(tensor_map), Sequence(tensor_map), Text(), None, _INT)
    return _numbered(
        "model",
        _INT,
        Sequence(_numbered("operator code", _BYTE, Text(), _INT, _INT)),
        Sequence(subgraph),
        Text(),
        Sequence(_numbered("buffer", _BYTES, Scalar(8), Scalar(8))),
        _INTS,
        Sequence(_numbered("metadata", Text(), _INT)),
        Sequence(signature),
        Absent("external buffers"),
        Absent("external buffers"),
    )
