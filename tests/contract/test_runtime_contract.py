"""One suite over every runtime: what a session promises, whatever runs underneath."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import InputError, SetupError, UsageError
from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.base import Runtime, RuntimeSession
from joulemap.runtimes.registry import choose_runtime, runtime, runtime_names
from joulemap.workflow.host.inputs import build_inputs

ROOT = Path(__file__).parents[2]
_PACKAGES = {"onnxruntime": "onnxruntime", "litert": "ai_edge_litert", "torch": "torch", "simulated": "onnx"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small models by suffix, made by the examples."""
    folder = tmp_path_factory.mktemp("models")
    found: dict[str, Path] = {}
    for script, names in (("make_onnx", ("attention.onnx", "lstm.onnx")), ("make_ds_cnn", ("ds_cnn.tflite",))):
        spec = importlib.util.spec_from_file_location(script, ROOT / "examples" / f"{script}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        if script == "make_onnx":
            pytest.importorskip("onnx")
            spec.loader.exec_module(module)
            for name, model in (("attention", module.build_attention()), ("lstm", module.build_lstm())):
                (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
        else:
            import subprocess
            import sys

            subprocess.run(
                [sys.executable, ROOT / "examples" / "make_ds_cnn.py", folder / names[0]],
                check=True,
                capture_output=True,
            )
        found |= {name: folder / name for name in names}
    return found


def request_for(name: str, models: dict[str, Path], tmp_path: Path) -> SessionRequest:
    if name == "litert":
        return SessionRequest(model=models["ds_cnn.tflite"], threads=1)
    if name == "torch":
        return SessionRequest(model=write_torch(tmp_path / "tiny.pt2"), threads=1)
    return SessionRequest(model=models["attention.onnx"], threads=1, batch=1)


def write_torch(path: Path) -> Path:
    torch = pytest.importorskip("torch")
    layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    torch.export.save(torch.export.export(layers, (torch.zeros(1, 8),)), str(path))
    return path


@pytest.fixture(params=runtime_names())
def kind(request: pytest.FixtureRequest) -> Runtime:
    if importlib.util.find_spec(_PACKAGES[request.param]) is None:
        pytest.skip(f"{_PACKAGES[request.param]} is not installed")
    return runtime(request.param)


@pytest.fixture
def session(kind: Runtime, models: dict[str, Path], tmp_path: Path) -> Iterator[RuntimeSession]:
    asked = request_for(kind.traits.name, models, tmp_path)
    opened = kind.open(asked, time.monotonic_ns)
    opened.feed(build_inputs(opened.model.inputs, batch=asked.batch, file=None, seed=1))
    yield opened
    opened.close()
    opened.close()  # idempotent


def test_a_session_lists_its_operators_in_order_and_runs(session: RuntimeSession) -> None:
    model = session.model
    assert [operator.index for operator in model.operators] == list(range(len(model.operators)))
    assert model.macs > 0 or "torch" in model.runtime
    assert len(model.sha256) == 64
    latency_s = session.run(7)
    assert latency_s.shape == (7,)
    assert bool(np.all(latency_s > 0))


def test_a_profile_tells_each_operator_or_is_none(kind: Runtime, session: RuntimeSession) -> None:
    times = session.profile(6)
    if not kind.traits.profiles:
        assert times is None
        return
    assert times is not None
    assert times.duration_s.shape[1] == len(session.model.operators)
    assert times.latency_s.size > 0
    assert float(times.duration_s.sum(axis=1).mean()) <= float(times.latency_s.mean()) * 1.01


def test_a_repeated_operator_takes_its_time_again(kind: Runtime, session: RuntimeSession) -> None:
    if not kind.traits.repeats:
        assert not session.repeatable
        with pytest.raises(InputError, match="does not repeat"):
            session.repeated((0,), 2)
        return
    largest = max(session.model.operators, key=lambda o: o.macs).index
    assert largest in session.repeatable
    more = session.repeated((largest,), 60)
    more.run(30), session.run(30)
    assert float(np.median(more.run(60))) > 1.5 * float(np.median(session.run(60)))
    more.close()


def test_a_bare_session_takes_less_than_the_model(kind: Runtime, session: RuntimeSession) -> None:
    bare = session.bare()
    if bare is None:
        assert not kind.traits.repeats
        return
    bare.run(30), session.run(30)
    assert float(np.median(bare.run(100))) < float(np.median(session.run(100)))


def test_wrong_inputs_are_refused_by_name_type_and_shape(session: RuntimeSession) -> None:
    good = build_inputs(session.model.inputs, batch=1, file=None, seed=1)
    name = next(iter(good))
    for arrays in ({}, {**good, "surplus": np.zeros(1)}, {**good, name: good[name].astype(np.complex64)},
                   {**good, name: good[name][None]}):  # fmt: skip
        with pytest.raises(InputError) as refused:
            session.feed(arrays)
        assert refused.value.slug == "input-mismatch"


def test_what_is_no_model_is_refused(kind: Runtime, tmp_path: Path) -> None:
    path = tmp_path / f"broken{kind.traits.suffixes[0]}"
    for content in (b"", b"no model at all", b"\x00\x00\x00\x00TFL3" + bytes(64)):
        path.write_bytes(content)
        with pytest.raises(InputError):
            kind.open(SessionRequest(model=path), time.monotonic_ns).feed({})


def test_options_that_a_runtime_does_not_have_are_usage(kind: Runtime, models: dict[str, Path], tmp_path: Path) -> None:
    if not kind.traits.precisions:
        return
    asked = request_for(kind.traits.name, models, tmp_path)
    for bad in (replace(asked, precision="fp3"), replace(asked, provider="abacus")):
        with pytest.raises(UsageError) as refused:
            kind.open(bad, time.monotonic_ns)
        assert refused.value.slug == "runtime-option"


def test_an_open_dimension_asks_for_a_batch(models: dict[str, Path]) -> None:
    pytest.importorskip("onnxruntime")
    opened = runtime("onnxruntime").open(SessionRequest(model=models["attention.onnx"]), time.monotonic_ns)
    with pytest.raises(InputError, match="open") as refused:
        build_inputs(opened.model.inputs, batch=None, file=None, seed=0)
    assert (refused.value.slug, refused.value.hint) == ("open-dimension", "give --batch N")


def test_recurrence_and_attention_have_their_operations_counted(models: dict[str, Path]) -> None:
    pytest.importorskip("onnxruntime")
    for name, expected in (("attention.onnx", 4 * 16 * 64 * 64 + 2 * 16 * 16 * 64 + 2 * 16 * 64 * 256),
                           ("lstm.onnx", 20 * 4 * 64 * (32 + 64) + 640)):  # fmt: skip
        opened = runtime("onnxruntime").open(SessionRequest(model=models[name], batch=1, threads=1), time.monotonic_ns)
        opened.feed(build_inputs(opened.model.inputs, batch=1, file=None, seed=0))
        assert opened.model.macs == expected
        given = runtime("simulated").open(SessionRequest(model=models[name], batch=1), time.monotonic_ns)
        assert given.model.macs == expected  # by shape inference alone


def test_files_choose_their_runtime(tmp_path: Path) -> None:
    assert choose_runtime("", tmp_path / "a.onnx").traits.name == "onnxruntime"
    assert choose_runtime("", tmp_path / "a.tflite").traits.name == "litert"
    for name, file, slug in (("nonsense", "a.onnx", "unknown-runtime"), ("litert", "a.onnx", "runtime-file"),
                             ("", "a.bin", "runtime-file")):  # fmt: skip
        with pytest.raises(UsageError) as refused:
            choose_runtime(name, tmp_path / file)
        assert refused.value.slug == slug


def test_a_runtime_that_is_not_installed_says_the_install_line() -> None:
    missing = [name for name in runtime_names() if importlib.util.find_spec(_PACKAGES[name]) is None]
    for name in missing:
        with pytest.raises(SetupError) as refused:
            runtime(name).version()
        assert refused.value.slug == "missing-extra"
        assert refused.value.hint.startswith("pip install 'joulemap[")


def test_another_session_of_the_same_model_runs_on_its_own(session: RuntimeSession) -> None:
    other = session.again()
    assert [t.name for t in other.model.inputs] == [t.name for t in session.model.inputs]
    assert other.run(3).shape == (3,)
    other.close()
    assert session.run(3).shape == (3,)


def test_every_operator_that_can_be_repeated_runs_repeated(kind: Runtime, session: RuntimeSession) -> None:
    if not kind.traits.repeats:
        return
    everything = sorted(session.repeatable)
    for load, copies in [*(((k,), 3) for k in everything), (tuple(everything), 2)]:
        again = session.repeated(load, copies)
        assert again.run(2).shape == (2,)
        again.close()
