"""What the engine does not take is refused by a typed error that names operator, index and tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from joulemap.errors import EngineError
from joulemap.firmware.engines.aot.hostcheck import load_program
from joulemap.firmware.engines.aot.tflite.schema import load_schema
from joulemap.firmware.engines.aot.tflite.writer import ModelWriter

CONV = {"padding": 0, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}


def conv(
    *,
    x_dtype: str = "INT8",
    x_scale: Any = 0.1,
    x_zero: Any = 0,
    x_axis: int = 0,
    f_scale: Any = 0.01,
    f_zero: Any = 0,
    f_axis: int = 0,
    y_shape: tuple[int, ...] = (1, 4, 4, 3),
    bias: int | None = 3,
    **options: int,
) -> bytes:
    w = ModelWriter()
    x = w.input(w.tensor("x", [1, 4, 4, 2], x_dtype, scale=x_scale, zero_point=x_zero, dimension=x_axis))
    f = w.tensor(
        "f", [3, 1, 1, 2], scale=f_scale, zero_point=f_zero, dimension=f_axis, data=np.ones((3, 1, 1, 2), np.int8)
    )
    y = w.output(w.tensor("y", y_shape, scale=0.1))
    more = [] if bias is None else [w.tensor("b", [bias], "INT32", data=np.zeros(bias, np.int32))]
    w.operator("CONV_2D", [x, f, *more], [y], CONV | {"fusedActivationFunction": 0} | options)
    return w.build()


def softmax(scale: float = 1 / 256, zero_point: int = -128, beta: float = 1.0, depth: int = 4) -> bytes:
    w = ModelWriter()
    x = w.input(w.tensor("x", [1, depth], scale=0.1))
    y = w.output(w.tensor("y", [1, depth], scale=scale, zero_point=zero_point))
    w.operator("SOFTMAX", [x], [y], {"beta": beta})
    return w.build()


def pool(y_scale: float = 0.1, filter_h: int = 2) -> bytes:
    w = ModelWriter()
    x = w.input(w.tensor("x", [1, 4, 4, 2], scale=0.1))
    y = w.output(w.tensor("y", [1, 2, 2, 2], scale=y_scale))
    options = {"padding": 0, "strideH": 2, "strideW": 2, "filterHeight": filter_h, "filterWidth": 2}
    w.operator("MAX_POOL_2D", [x], [y], options)
    return w.build()


def unary(op: str) -> bytes:
    w = ModelWriter()
    x, y = w.input(w.tensor("x", [1, 4], scale=0.1)), w.output(w.tensor("y", [1, 4], scale=1 / 128))
    w.operator(op, [x], [y])
    return w.build()


def dense(bias_scale: float | None = 0.001, shuffled: int = 0, in_c: int = 4) -> bytes:
    w = ModelWriter()
    x = w.input(w.tensor("x", [1, 4], scale=0.1))
    f = w.tensor("f", [2, in_c], scale=0.01, data=np.ones((2, in_c), np.int8))
    b = w.tensor("b", [2], "INT32", scale=bias_scale, data=np.zeros(2, np.int32))
    y = w.output(w.tensor("y", [1, 2], scale=0.01))
    w.operator("FULLY_CONNECTED", [x, f, b], [y], {"fusedActivationFunction": 0, "weightsFormat": shuffled})
    return w.build()


def pad(amounts: list[list[int]]) -> bytes:
    w = ModelWriter()
    x = w.input(w.tensor("x", [2, 2], scale=0.1))
    p = w.tensor("p", [len(amounts), 2], "INT32", data=np.array(amounts, np.int32))
    w.operator("PAD", [x, p], [w.output(w.tensor("y", [3, 3], scale=0.1))], {})
    return w.build()


def mean(axes: list[int]) -> bytes:
    w = ModelWriter()
    x = w.input(w.tensor("x", [2, 2], scale=0.1))
    a = w.tensor("a", [len(axes)], "INT32", data=np.array(axes, np.int32))
    w.operator("MEAN", [x, a], [w.output(w.tensor("y", [2, 1], scale=0.1))], {"keepDims": True})
    return w.build()


def edited(content: bytes, edit: Callable[[Any], None]) -> bytes:
    """The model after ``edit`` has changed its object form."""
    import flatbuffers

    schema = load_schema()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
    edit(model)
    builder = flatbuffers.Builder(1 << 12)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


REFUSED: dict[str, tuple[bytes, str, str]] = {
    "an op that is not taken": (unary("TANH"), "unsupported-op", "operator 0 (TANH), tensor 1 ('y')"),
    "a float convolution": (conv(x_dtype="FLOAT32"), "unsupported-dtype", "operator 0 (CONV_2D), tensor 0 ('x')"),
    "a fused TANH": (conv(fusedActivationFunction=4), "unsupported-option", "fused activation TANH"),
    "an unknown activation": (conv(fusedActivationFunction=99), "unsupported-option", "activation 99"),
    "an unknown padding": (conv(padding=7), "unsupported-option", "padding 7"),
    "a stride of 0": (conv(strideH=0), "corrupt-model", "strideH is 0"),
    "a negative dilation": (conv(dilationWFactor=-1), "corrupt-model", "dilationWFactor is -1"),
    "a shape that the op does not make": (conv(y_shape=(1, 4, 5, 3)), "corrupt-model", "the operator makes"),
    "an output of another rank": (conv(y_shape=(48,)), "corrupt-model", "4 dimensions"),
    "an activation without scale": (conv(x_scale=None), "unsupported-quantization", "tensor 0 ('x')"),
    "an activation per channel": (
        conv(x_scale=[0.1, 0.1, 0.1, 0.1], x_axis=1),
        "unsupported-quantization",
        "per channel",
    ),
    "a scale of 0": (conv(x_scale=0.0), "unsupported-quantization", "scale 0"),
    "a scale that is not finite": (conv(x_scale=np.inf), "corrupt-model", "not finite"),
    "a zero point outside int8": (conv(x_zero=200), "unsupported-quantization", "zero point 200"),
    "a filter with a zero point": (conv(f_zero=1), "unsupported-quantization", "tensor 1 ('f')"),
    "filter scales along another axis": (conv(f_scale=[0.1, 0.1], f_axis=3), "unsupported-quantization", "('f')"),
    "filter scales that fit no axis": (conv(f_scale=[0.1] * 5), "corrupt-model", "5 scales"),
    "a bias of the wrong length": (conv(bias=4), "corrupt-model", "4 biases"),
    "a ratio that no shift reaches": (conv(f_scale=1e20), "unsupported-quantization", "ratio"),
    "a softmax output of another scale": (softmax(scale=1 / 255), "unsupported-quantization", "1/256"),
    "a softmax output of another zero point": (softmax(zero_point=0), "unsupported-quantization", "tensor 1 ('y')"),
    "a softmax that is flat": (softmax(beta=1e-12), "unsupported-quantization", "beta"),
    "a softmax over too many classes": (softmax(depth=4096), "unsupported-op", "4096 classes"),
    "a pooling that changes the scale": (pool(y_scale=0.2), "unsupported-quantization", "input and output differ"),
    "a pooling of no height": (pool(filter_h=0), "corrupt-model", "filterHeight is 0"),
    "a bias in other steps": (dense(bias_scale=0.5), "unsupported-quantization", "tensor 2 ('b')"),
    "a bias without steps": (dense(bias_scale=None), "unsupported-quantization", "tensor 2 ('b')"),
    "shuffled weights": (dense(shuffled=1), "unsupported-option", "shuffled"),
    "a filter of another depth": (dense(in_c=5), "corrupt-model", "make no (1, 2)"),
    "a negative padding": (pad([[0, 1], [-1, 2]]), "corrupt-model", "paddings"),
    "paddings for other dimensions": (pad([[0, 1]]), "corrupt-model", "paddings"),
    "an axis outside": (mean([2]), "corrupt-model", "axes [2]"),
    "another schema version": (edited(softmax(), lambda m: setattr(m, "version", 2)), "corrupt-model", "version 2"),
    "two subgraphs": (edited(softmax(), lambda m: m.subgraphs.append(m.subgraphs[0])), "unsupported-op", "2 subgraphs"),
    "no operators": (edited(softmax(), lambda m: setattr(m.subgraphs[0], "operators", [])), "corrupt-model", "no op"),
    "no outputs": (edited(softmax(), lambda m: setattr(m.subgraphs[0], "outputs", [])), "corrupt-model", "no outputs"),
    "a tensor index outside": (
        edited(softmax(), lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [7])),
        "corrupt-model",
        "operator 0 (SOFTMAX): an input: tensor 7",
    ),
    "a tensor read before it is written": (
        edited(softmax(), lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [1])),
        "corrupt-model",
        "before anything writes it",
    ),
    "a tensor written twice": (
        edited(softmax(), lambda m: setattr(m.subgraphs[0].operators[0], "outputs", [0])),
        "corrupt-model",
        "written twice",
    ),
    "an operator code outside": (
        edited(softmax(), lambda m: setattr(m.subgraphs[0].operators[0], "opcodeIndex", 9)),
        "corrupt-model",
        "operator code 9",
    ),
    "a buffer outside": (
        edited(softmax(), lambda m: setattr(m.subgraphs[0].tensors[0], "buffer", 9)),
        "corrupt-model",
        "buffer 9",
    ),
    "a buffer of the wrong length": (
        edited(conv(), lambda m: setattr(m.buffers[1], "data", m.buffers[1].data[:-1])),
        "corrupt-model",
        "5 bytes of content",
    ),
    "options of another op": (
        edited(softmax(), lambda m: vars(m.operatorCodes[0]).update(builtinCode=0, deprecatedBuiltinCode=0)),
        "corrupt-model",
        "SoftmaxOptions in place of AddOptions",
    ),
    "no options": (
        edited(softmax(), lambda m: setattr(m.subgraphs[0].operators[0], "builtinOptions", None)),
        "corrupt-model",
        "no options",
    ),
    "a dimension of 0": (
        edited(softmax(), lambda m: setattr(m.subgraphs[0].tensors[0], "shape", [1, 0])),
        "corrupt-model",
        "not positive",
    ),
    "an absurd dimension": (
        edited(softmax(), lambda m: setattr(m.subgraphs[0].tensors[0], "shape", [1 << 30, 1 << 30])),
        "model-too-large",
        "tensor 0 ('x')",
    ),
    "a variable": (
        edited(softmax(), lambda m: setattr(m.subgraphs[0].tensors[0], "isVariable", True)),
        "unsupported-op",
        "variable",
    ),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_refused_with_place_and_reason(case: str) -> None:
    content, slug, words = REFUSED[case]
    with pytest.raises(EngineError) as caught:
        load_program(content)
    assert caught.value.slug == slug
    assert words in caught.value.message
    assert caught.value.phase == "setup"
    assert caught.value.exit_code == 6


def test_the_details_name_op_index_and_tensor() -> None:
    with pytest.raises(EngineError) as caught:
        load_program(unary("TANH"))
    assert dict(caught.value.details) == {"op": "TANH", "op_index": 0, "tensor": "y", "tensor_index": 1}
    assert "CONV_2D" in caught.value.hint


def test_the_larger_of_both_operator_codes_counts() -> None:
    old = edited(softmax(), lambda m: setattr(m.operatorCodes[0], "builtinCode", 0))
    assert load_program(old).layers[0].op == "SOFTMAX"
