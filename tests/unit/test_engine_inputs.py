"""The engine's edges: names, files that are no models, inputs, summaries, sharing of memory, the emitted C."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joulemap.errors import EngineError, InputError, UsageError
from joulemap.firmware.engines.aot.hostcheck import load_program
from joulemap.firmware.engines.aot.inputs import check_inputs, draw_inputs
from joulemap.firmware.engines.aot.program import Program
from joulemap.firmware.engines.aot.tflite.writer import ModelWriter
from joulemap.firmware.engines.registry import engine, engine_names


def float_model() -> bytes:
    """Two float inputs, quantised and added; the first through a RESHAPE."""
    w = ModelWriter()
    a = w.input(w.tensor("a", [2, 3], "FLOAT32"))
    b = w.input(w.tensor("b", [6], "FLOAT32"))
    flat = w.tensor("flat", [6], "FLOAT32")
    w.operator("RESHAPE", [a], [flat], {"newShape": [6]})
    qa, qb = w.tensor("qa", [6], scale=0.5, zero_point=28), w.tensor("qb", [6], scale=0.25)
    w.operator("QUANTIZE", [flat], [qa], {})
    w.operator("QUANTIZE", [b], [qb], {})
    y = w.output(w.tensor("y", [6], scale=1.0))
    w.operator("ADD", [qa, qb], [y], {"fusedActivationFunction": 0})
    return w.build()


def logistic_chain() -> ModelWriter:
    """x -> logistic -> flat -> logistic; returned unbuilt, its tensors are 0 to 3."""
    w = ModelWriter()
    x = w.input(w.tensor("x", [2, 4], scale=0.1))
    first = w.tensor("first", [2, 4], scale=1 / 256, zero_point=-128)
    flat = w.tensor("flat", [8], scale=1 / 256, zero_point=-128)
    last = w.tensor("last", [8], scale=1 / 256, zero_point=-128)
    w.operator("LOGISTIC", [x], [first])
    w.operator("RESHAPE", [first], [flat], {"newShape": [8]})
    w.operator("LOGISTIC", [flat], [last])
    return w


@pytest.fixture
def program() -> Program:
    return load_program(float_model())


def int8_program() -> Program:
    w = logistic_chain()
    w.output(3)
    return load_program(w.build())


def test_the_registry_knows_its_names() -> None:
    assert "aot" in engine_names()
    assert engine("aot").name == "aot"


def test_an_unknown_engine_is_a_usage_error_that_names_the_others() -> None:
    with pytest.raises(UsageError) as caught:
        engine("tosa")
    assert caught.value.slug == "unknown-engine"
    assert caught.value.exit_code == 2
    assert "aot" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "slug", "kind"),
    [
        (b"", "model-empty", InputError),
        (b"a text file, not a model at all\n", "not-a-tflite", EngineError),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "not-a-tflite", EngineError),
        (b"\0\0\0\0TFL3", "corrupt-model", EngineError),
        (b"\x08\0\0\0TFL3" + bytes(8), "corrupt-model", EngineError),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, content: bytes, slug: str, kind: type[Any]) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    with pytest.raises(kind) as caught:
        engine("aot").prepare(path, inputs=None, seed=0)
    assert caught.value.slug == slug
    assert caught.value.exit_code == 6


def test_a_missing_file_a_folder_and_a_device(tmp_path: Path) -> None:
    device = Path("/dev/null")
    for path, slug in (
        (tmp_path / "none.tflite", "model-missing"),
        (tmp_path, "model-unreadable"),
        (device, "model-unreadable"),
    ):
        with pytest.raises(InputError) as caught:
            engine("aot").prepare(path, inputs=None, seed=0)
        assert caught.value.slug == slug


def test_drawn_reals_cover_what_quantize_can_tell_apart(program: Program) -> None:
    drawn = draw_inputs(program, seed=1)
    assert drawn["a"].min() >= -128 * 0.5 - 14 - 0.001
    assert drawn["a"].max() <= (127 - 28) * 0.5
    assert drawn["a"].shape == (2, 3)
    assert np.abs(drawn["b"]).max() <= 32
    assert not np.array_equal(drawn["b"], draw_inputs(program, seed=2)["b"])
    assert np.array_equal(drawn["b"], draw_inputs(program, seed=1)["b"])


def test_drawn_integers_cover_the_whole_range() -> None:
    w = ModelWriter()
    x = w.input(w.tensor("x", [4096], scale=0.1))
    w.operator("LOGISTIC", [x], [w.output(w.tensor("y", [4096], scale=1 / 256, zero_point=-128))])
    drawn = draw_inputs(load_program(w.build()), seed=0)["x"]
    assert (drawn.min(), drawn.max(), drawn.dtype.name) == (-128, 127, "int8")


def test_one_input_takes_one_array_of_any_name() -> None:
    values = np.arange(8, dtype=np.int8).reshape(2, 4)
    assert np.array_equal(check_inputs(int8_program(), {"whatever": values})["x"], values)


@pytest.mark.parametrize(
    ("given", "slug", "hint"),
    [
        ({"a": np.zeros((2, 3), np.float32)}, "input-names", "inputs"),
        ({"a": np.zeros((2, 3), np.float32), "c": np.zeros(6, np.float32)}, "input-names", "inputs"),
        ({"a": np.zeros((3, 2), np.float32), "b": np.zeros(6, np.float32)}, "input-shape", "(2, 3)"),
        ({"a": np.zeros((2, 3)), "b": np.zeros(6, np.float32)}, "input-dtype", "float32"),
        ({"a": np.full((2, 3), np.nan, np.float32), "b": np.zeros(6, np.float32)}, "input-range", "clip"),
        ({"a": np.full((2, 3), 3e9, np.float32), "b": np.zeros(6, np.float32)}, "input-range", "clip"),
    ],
)
def test_wrong_inputs_are_refused_with_the_fix(program: Program, given: dict[str, Any], slug: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        check_inputs(program, given)
    assert caught.value.slug == slug
    assert hint in caught.value.hint


def test_reals_for_a_quantised_input_are_refused_with_the_formula() -> None:
    with pytest.raises(InputError) as caught:
        check_inputs(int8_program(), {"x": np.zeros((2, 4), np.float32)})
    assert caught.value.slug == "input-dtype"
    assert "x / 0.1" in caught.value.hint


def test_names_that_two_inputs_share_are_told_apart() -> None:
    w = ModelWriter()
    a, b = (w.input(w.tensor("same", [4], scale=0.1)) for _ in range(2))
    w.operator("ADD", [a, b], [w.output(w.tensor("y", [4], scale=0.1))], {"fusedActivationFunction": 0})
    assert list(load_program(w.build()).input_names.values()) == ["same:0", "same:1"]


def test_elementwise_ops_run_in_place() -> None:
    program = int8_program()
    assert len({program.offsets_b[i] for i in range(4)}) == 1
    assert program.arena_b == 8


def test_an_operand_that_is_read_later_keeps_its_memory() -> None:
    w = logistic_chain()
    y = w.output(w.tensor("y", [8], scale=0.1))
    w.operator("ADD", [2, 3], [y], {"fusedActivationFunction": 0})
    program = load_program(w.build())
    assert program.offsets_b[2] == program.offsets_b[1]
    assert program.offsets_b[3] != program.offsets_b[2]


def test_an_output_of_the_model_is_never_overwritten() -> None:
    w = logistic_chain()
    w.output(1)
    w.output(3)
    program = load_program(w.build())
    assert program.offsets_b[3] != program.offsets_b[1]


def test_the_summary_counts_layers_macs_and_bytes(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.input(w.tensor("x", [1, 4, 4, 2], scale=0.1))
    f = w.tensor("f", [3, 2, 2, 2], scale=0.01, data=np.ones((3, 2, 2, 2), np.int8))
    y = w.tensor("y", [1, 3, 3, 3], scale=0.1)
    options = {"padding": 1, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    w.operator("CONV_2D", [x, f], [y], options | {"fusedActivationFunction": 0})
    flat = w.output(w.tensor("flat", [1, 27], scale=0.1))
    w.operator("RESHAPE", [y], [flat], {"newShape": [1, 27]})
    path = tmp_path / "tiny.tflite"
    path.write_bytes(w.build())
    prepared = engine("aot").prepare(path, inputs=None, seed=0)
    conv, reshape = prepared.summary.layers
    assert (conv.op, conv.name, conv.symbol, conv.index) == ("CONV_2D", "y", "hpx_layer_000", 0)
    assert conv.macs == 27 * 8
    assert conv.bytes == 32 + 27 + 24 + 3 * 4 + 3 * 4 + 3
    assert (reshape.macs, reshape.bytes, reshape.symbol) == (0, 0, "hpx_layer_001")
    assert prepared.summary.constants_b == 24 + 27
    assert prepared.summary.inputs[0].size_b == 32
    assert prepared.reference_output is not None
    assert len(prepared.reference_output) == 27


def test_the_emitted_model_is_freestanding_and_has_one_function_per_layer(tmp_path: Path) -> None:
    path = tmp_path / "chain.tflite"
    path.write_bytes(float_model())
    prepared = engine("aot").prepare(path, inputs=None, seed=0)
    source = prepared.files["hpx_model.c"]
    for layer in prepared.summary.layers:
        assert source.count(f"HPX_LAYER void {layer.symbol}(void)\n") == 1
    included = {name for text in prepared.files.values() for name in re.findall(r'#include [<"]([^>"]+)', text)}
    assert included <= {"stdint.h", "stddef.h", "hpx_model.h", *prepared.files}


def test_the_input_is_copied_byte_for_byte_into_the_source(tmp_path: Path) -> None:
    path = tmp_path / "chain.tflite"
    path.write_bytes(float_model())
    given = {"a": np.array([[0.1, -0.0, 1e-40], [3.5, -7.25, 63.0]], np.float32), "b": np.zeros(6, np.float32)}
    source = engine("aot").prepare(path, inputs=given, seed=0).files["hpx_model.c"]
    words = ", ".join(str(v) for v in given["a"].reshape(-1).view(np.uint32))
    assert words in source
