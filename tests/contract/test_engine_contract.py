"""What every engine of the registry must do with one small model."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import EngineError, InputError
from joulemap.firmware.engines.aot.tflite.writer import ModelWriter
from joulemap.firmware.engines.base import PreparedModel
from joulemap.firmware.engines.registry import engine, engine_names


def write_model(path: Path) -> Path:
    w = ModelWriter()
    x = w.input(w.tensor("x", [1, 6], scale=0.1, zero_point=-3))
    f = w.tensor("f", [4, 6], scale=0.02, data=np.arange(24, dtype=np.int8).reshape(4, 6))
    y = w.tensor("y", [1, 4], scale=0.3, zero_point=7)
    w.operator("FULLY_CONNECTED", [x, f], [y], {"fusedActivationFunction": 0})
    scores = w.output(w.tensor("scores", [1, 4], scale=1 / 256, zero_point=-128))
    w.operator("SOFTMAX", [y], [scores], {"beta": 1.0})
    path.write_bytes(w.build())
    return path


@pytest.fixture(params=engine_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def prepared(name: str, tmp_path: Path) -> PreparedModel:
    return engine(name).prepare(write_model(tmp_path / "small.tflite"), inputs=None, seed=3)


def test_the_engine_bears_its_name(name: str, prepared: PreparedModel) -> None:
    assert engine(name).name == name
    assert prepared.summary.engine == name


def test_layers_are_dense_and_each_has_its_symbol(prepared: PreparedModel) -> None:
    layers = prepared.summary.layers
    assert [layer.index for layer in layers] == list(range(len(layers)))
    assert [layer.symbol for layer in layers] == [f"hpx_layer_{i:03d}" for i in range(len(layers))]


def test_the_sources_define_the_whole_interface(prepared: PreparedModel) -> None:
    text = "\n".join(prepared.files.values())
    for symbol in (
        "hpx_layer_count",
        "hpx_layers",
        "hpx_model_init",
        "hpx_model_load_input",
        "hpx_model_run",
        "hpx_model_output_crc32",
    ):
        assert symbol in text
    assert not any(name.endswith("hpx_model.h") for name in prepared.files)


def test_the_reference_is_the_checksum_of_all_outputs(prepared: PreparedModel) -> None:
    if prepared.oracle is None:
        assert prepared.reference_output is None
        assert prepared.reference_crc32 is None
        return
    assert prepared.reference_output is not None
    assert len(prepared.reference_output) == sum(spec.size_b for spec in prepared.summary.outputs)
    assert prepared.reference_crc32 == zlib.crc32(prepared.reference_output)


def test_the_same_seed_gives_the_same_sources(name: str, tmp_path: Path) -> None:
    path = write_model(tmp_path / "small.tflite")
    first, second, other = (engine(name).prepare(path, inputs=None, seed=seed) for seed in (3, 3, 4))
    assert first.files == second.files
    assert first.files != other.files


def test_the_callers_input_is_used(name: str, tmp_path: Path) -> None:
    given = np.array([[1, 2, 3, 4, 5, 6]], np.int8)
    prepared = engine(name).prepare(write_model(tmp_path / "small.tflite"), inputs={"x": given}, seed=0)
    assert np.array_equal(prepared.inputs["x"], given)


def test_bad_files_and_bad_inputs_are_typed(name: str, tmp_path: Path) -> None:
    path = write_model(tmp_path / "small.tflite")
    with pytest.raises(InputError):
        engine(name).prepare(path, inputs={"x": np.zeros((1, 7), np.int8)}, seed=0)
    with pytest.raises(InputError):
        engine(name).prepare(tmp_path / "none", inputs=None, seed=0)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(EngineError):
        engine(name).prepare(path, inputs=None, seed=0)
