"""Runs on this very machine: real runtimes under a meter whose power is known, and the simulated one, end to end."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from joulemap.errors import InputError, SetupError, UsageError
from joulemap.estimate import Estimate, Unavailable
from joulemap.formats.bundle import read_bundle
from joulemap.formats.registry import list_traces, load_table, load_timeline
from joulemap.meters.live.kit.fake_tree import FakeTree, TreePlan
from joulemap.records.host.request import HostRequest, SessionRequest
from joulemap.records.progress import ProgressUpdate
from joulemap.runtimes.simulated.virtual_host import VirtualHost
from joulemap.workflow.host.generator import measure_generator
from joulemap.workflow.host.meter_access import simulated_access
from joulemap.workflow.host.profile_host import profile_host
from joulemap.workflow.host.services import open_services
from joulemap.workflow.journal import RunJournal
from program import call

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "models" / "mlperf_tiny"
LIGHT = Path("backend/test/data/light")


def light_model(name: str) -> Path:
    path = Path(onnx.__file__).parent / LIGHT / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"this onnx package has no {name}")
    return path


def made_model(name: str, folder: Path) -> Path:
    spec = importlib.util.spec_from_file_location("make_onnx", ROOT / "examples" / "make_onnx.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = folder / f"{name}.onnx"
    path.write_bytes(getattr(module, f"build_{name}")().SerializeToString())
    return path


def shared_model(name: str) -> Path:
    path = SHARED / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"{name}.tflite is not beside the repository")
    return path


def find_model(name: str, folder: Path) -> Path:
    if name in ("attention", "lstm"):
        return made_model(name, folder)
    if name.startswith("light_"):
        return light_model(name)
    return shared_model(name)


def request(model: Path, **given: Any) -> HostRequest:
    session = SessionRequest(model=model, threads=1, batch=1)
    asked: dict[str, Any] = {"meters": ("simulated",), "window_s": 0.1, "repeats": 3, "operators": 3, "warm_up_s": 1.0}
    return HostRequest(session=session, **(asked | given))


@pytest.mark.parametrize("name", ["light_squeezenet", "attention", "lstm", "kws_ref_model", "pretrainedResnet"])
def test_operators_gap_and_idle_close_to_the_window(name: str, tmp_path: Path) -> None:
    """The power follows what runs; real runtimes, real times. Twice U, since one run in twenty lies beyond U.

    U holds noise and the declared error of repetition, and nothing that is made of the difference itself.
    """
    outcome = profile_host(request(find_model(name, tmp_path)), tmp_path / "run.jm")
    document: dict[str, Any] = outcome.document
    assert document["validity"] == "valid"
    closure = document["host"]["closure"]
    assert closure["independent"]
    parts_j = closure["operators_above_idle_j"] + closure["gap_above_idle_j"] + closure["idle_j"]
    off = closure["difference_j"]
    assert parts_j - closure["window_j"] == pytest.approx(off["value"], rel=1e-6, abs=1e-12)
    assert abs(off["value"]) <= 2.0 * off["expanded"]
    power_w = document["average_power_w"]
    # what the meter was told to show under load, less what a busy machine lets pass around the calls
    assert 15.0 < power_w["value"] < 30.0 * 1.02
    assert document["idle_power_w"]["value"] == pytest.approx(4.0, rel=0.02)
    assert document["energy_per_inference_j"]["provenance"] == "simulated"
    assert document["latency_s"]["provenance"] == "measured_counter"
    assert all(layer["modelled_j"]["provenance"] == "modelled" for layer in document["layers"])


def test_operators_whose_weights_come_from_a_cache_are_not_repeated(tmp_path: Path) -> None:
    """Dense layers at batch 1: copies would change what the cache holds. Shares and gap hold the window's energy.

    Another program on the core may slow them down to where they look like operators that read from memory.
    """
    for turn in range(5):
        asked = request(find_model("ad01_int8", tmp_path))
        document: dict[str, Any] = profile_host(asked, tmp_path / f"{turn}.jm").document
        shared = [layer for layer in document["layers"] if layer["resolution"] == "time_share"]
        if shared:
            break
    assert document["validity"] == "valid"
    assert sum(layer["duration_s"] for layer in shared) > 0.5 * sum(layer["duration_s"] for layer in document["layers"])
    assert {layer["energy_j"]["provenance"] for layer in shared} == {"modelled"}
    said = next(f["message"] for f in document["findings"] if f["slug"] == "operators_modelled")
    assert said.startswith(f"{len(shared)} of {len(document['layers'])} operators read weights")
    assert document["host"]["closure"] is None  # what is a share of it cannot test it
    whole_j = document["energy_per_inference_j"]["value"]
    parts_j = sum(layer["modelled_j"]["value"] for layer in document["layers"]) + document["gap"]["energy_j"]["value"]
    assert parts_j == pytest.approx(whole_j, rel=1e-9)


def test_the_kits_tree_is_read_like_a_machines_counters(tmp_path: Path) -> None:
    model = find_model("kws_ref_model", tmp_path)
    with FakeTree(TreePlan()) as tree:
        asked = request(model, meters=(f"powercap:root={tree.root}",), window_s=0.3, operators=1, repeats=2)
        outcome = profile_host(asked, tmp_path / "run.jm")
        document: dict[str, Any] = outcome.document
        for capture in document["captures"]:
            measured = capture["observation"]["result"]
            gate = measured["gate"]
            truth_j = tree.energy_j("package-0", gate["rise_ns"], gate["fall_ns"])
            assert measured["energy_j"] == pytest.approx(truth_j, rel=0.02)
    assert document["target"]["boundary"] == "package"
    assert {f["slug"] for f in document["findings"]} >= {"gain_assumed", "domains_chosen"}
    names = {d["name"] for d in document["host"]["meter"]["domains"] if d["in_headline"]}
    assert names == {"powercap:package-0"}


def test_no_usable_meter_is_refused_before_anything_starts(tmp_path: Path) -> None:
    model = find_model("kws_ref_model", tmp_path)
    updates: list[ProgressUpdate] = []
    asked = request(model, meters=(f"powercap:root={tmp_path}",))
    with pytest.raises(SetupError) as refused:
        profile_host(asked, tmp_path / "run.jm", journal=RunJournal(updates.append))
    assert refused.value.exit_code == 3
    assert not updates
    assert not (tmp_path / "run.jm").exists()


def test_a_split_by_time_is_modelled_and_says_so(tmp_path: Path) -> None:
    model = find_model("attention", tmp_path)
    document: dict[str, Any] = profile_host(request(model, operators=0), tmp_path / "run.jm").document
    assert {layer["resolution"] for layer in document["layers"]} == {"time_share"}
    assert {layer["energy_j"]["provenance"] for layer in document["layers"]} == {"modelled"}
    assert document["energy_per_inference_j"]["provenance"] == "simulated"
    assert document["host"]["closure"] is None
    assert "operators_modelled" in {f["slug"] for f in document["findings"]}
    told = call("map", tmp_path / "run.jm", "--json").json
    assert told["rows"][0]["resolution"] == "time_share"
    page = call("report", tmp_path / "run.jm", "--markdown", tmp_path / "run.md")
    assert page.code == 0
    assert "by time (modelled)" in (tmp_path / "run.md").read_text()


def test_the_audit_counts_what_ran_where_and_in_what(tmp_path: Path) -> None:
    model = find_model("kws_ref_model", tmp_path)
    asked = HostRequest(
        session=SessionRequest(model=model, threads=1, provider="xnnpack", precision="fp32"),
        meters=("simulated",), window_s=0.05, repeats=2, operators=1, warm_up_s=0.5,
    )  # fmt: skip
    document: dict[str, Any] = profile_host(asked, tmp_path / "run.jm").document
    audit = document["host"]["audit"]
    assert sum(provider["nodes"] for provider in audit["providers"]) == len(document["layers"])
    assert sum(provider["macs"] for provider in audit["providers"]) * 2 == document["ops_per_inference"]
    assert sum(provider["time_share"] for provider in audit["providers"]) == pytest.approx(1.0)
    assert audit["fallback_nodes"] == sum(layer["provider"] != "xnnpack" for layer in document["layers"])
    assert audit["precision_share"] == 0.0  # the model is int8
    slugs = {f["slug"] for f in document["findings"]}
    assert "precision_fallback" in slugs
    assert ("provider_fallback" in slugs) == (audit["fallback_nodes"] > 0)


@pytest.fixture(scope="module")
def simulated_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("simulated")
    model = find_model("attention", folder)
    bundle = folder / "sim.jm"
    called = call("profile", model, "--target", "host", "--runtime", "simulated", "--batch", "1", "--window-s", "0.2",
                  "--repeats", "3", "--operators", "5", "--tokens", "16", "-o", bundle, "--json")  # fmt: skip
    assert called.code == 0
    return bundle, called.json


def test_the_simulated_machine_runs_from_the_command_line(simulated_run: tuple[Path, dict[str, Any]]) -> None:
    bundle, document = simulated_run
    assert document["energy_per_inference_j"]["provenance"] == "simulated"
    assert document["latency_s"]["provenance"] == "simulated"
    assert document["target"]["provenance"] == "simulated"
    per_token = document["energy_per_token_j"]
    assert per_token["value"] * 16 == pytest.approx(document["energy_per_inference_j"]["value"])
    assert [q["probability"] for q in document["host"]["latency_quantiles"]] == [0.5, 0.95, 0.99]
    opened = read_bundle(bundle)
    assert opened.kind == "profile"
    windows = load_table(opened, "windows.parquet", schema="joulemap.windows")
    assert windows["load"].count("base") == 3
    assert windows["load"].count("idle") == 4
    assert len(list_traces(opened)) == 3
    timeline = load_timeline(opened)
    assert set(timeline.kinds) == {"run", "inference", "layer"}
    assert bool(np.all(timeline.end_ns >= timeline.start_ns))
    run = json.loads((bundle / "run.json").read_text())
    assert "state" in run["environment"]
    assert run["request"]["model"] == "attention.onnx"


@pytest.mark.parametrize(
    "arguments",
    [
        ["map", "{run}"],
        ["map", "{run}", "--by", "op"],
        ["score", "{run}", "--max-error", "0.05"],
        ["report", "{run}", "--html", "{out}/p.html"],
        ["report", "{run}", "--markdown", "{out}/p.md"],
        ["export", "{run}", "--to", "perfetto", "-o", "{out}/p.pftrace"],
        ["export", "{run}", "--to", "csv", "-o", "{out}/p.csv"],
    ],
)
def test_the_bundle_is_read_by_every_command(
    simulated_run: tuple[Path, dict[str, Any]], tmp_path: Path, arguments: list[str]
) -> None:
    bundle, _ = simulated_run
    called = call(*(text.format(run=bundle, out=tmp_path) for text in arguments))
    assert called.code == 0, called.err


def test_the_result_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    model = find_model("attention", tmp_path)
    asked = request(model, runtime="simulated", meters=(), window_s=0.05, seed=7)
    first, second = (profile_host(asked, tmp_path / f"{k}.jm").document for k in (1, 2))
    assert first["layers"] == second["layers"]
    assert first["energy_per_inference_j"] == second["energy_per_inference_j"]
    other = profile_host(request(model, runtime="simulated", meters=(), window_s=0.05, seed=8), tmp_path / "3.jm")
    assert other.document["energy_per_inference_j"] != first["energy_per_inference_j"]


def test_the_terminal_says_what_was_measured(tmp_path: Path) -> None:
    model = find_model("attention", tmp_path)
    called = call("profile", model, "--target", "host", "--runtime", "simulated", "--batch", "1", "--window-s", "0.1",
                  "--repeats", "2", "-o", tmp_path / "run.jm")  # fmt: skip
    assert called.code == 0
    for text in ("attention on host", "per inference", "latency quantiles", "closure", "energies simulated"):
        assert text in called.out


@pytest.mark.parametrize(
    ("flags", "code", "slug"),
    [
        (["--target", "host", "--count", "5"], 2, "flags-contradict"),
        (["--target", "host", "--no-power"], 2, "flags-contradict"),
        ([], 2, "runtime-file"),
        (["--runtime", "litert"], 2, "flags-contradict"),
        (["--meter", "powercap"], 2, "flags-contradict"),
        (["--target", "host", "--repeats", "1"], 2, "too-few-repeats"),
        (["--target", "host", "--runtime", "nonsense"], 2, "unknown-runtime"),
        (["--target", "host", "--runtime", "litert"], 2, "runtime-file"),
        (["--target", "host", "--runtime", "simulated"], 6, "model-unreadable"),
        (["--target", "host", "--meter", "nonsense"], 2, ""),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, flags: list[str], code: int, slug: str) -> None:
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    called = call("profile", tmp_path / "m.onnx", *flags, "-o", tmp_path / "x.jm", "--json")
    assert called.code == code, called.err
    if slug:
        assert called.json["error"]["slug"] == slug
    assert not (tmp_path / "x.jm").exists()


def test_inputs_of_a_file_are_taken_and_wrong_ones_refused(tmp_path: Path) -> None:
    model = find_model("attention", tmp_path)
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    np.savez(good, x=np.zeros((2, 16, 64), np.float32))
    np.savez(bad, x=np.zeros((2, 16, 63), np.float32))
    flags: list[str | Path] = ["profile", model, "--target", "host", "--meter", "simulated", "--json"]
    flags += ["--window-s", "0.1", "--repeats", "2", "--operators", "0"]
    taken = call(*flags, "--input", good, "-o", tmp_path / "a.jm")
    assert taken.code == 0, taken.err
    refused = call(*flags, "--input", bad, "-o", tmp_path / "b.jm")
    assert (refused.code, refused.json["error"]["slug"]) == (6, "input-mismatch")
    opened = call(*flags, "-o", tmp_path / "c.jm")
    assert (opened.code, opened.json["error"]["slug"]) == (6, "open-dimension")


def test_an_existing_bundle_is_not_replaced(tmp_path: Path) -> None:
    model = find_model("attention", tmp_path)
    (tmp_path / "run.jm").mkdir()
    with pytest.raises(UsageError) as refused:
        profile_host(request(model), tmp_path / "run.jm")
    assert refused.value.slug == "bundle-exists"


def test_tokens_cost_what_the_meter_says() -> None:
    host = VirtualHost(idle_w=4.0)

    def generate() -> Any:
        host.work(np.array([0.5]), np.array([40.0]))  # the prompt
        yield 0
        for token in range(9):
            host.work(np.array([0.1]), np.array([20.0]))
            yield token

    found = measure_generator(generate, repeats=4, access=simulated_access(host, seed=1, rest=host.rest))
    assert found.tokens == 10
    assert isinstance(found.per_token_j, Estimate)
    assert found.per_token_j.value == pytest.approx((0.5 * 40 + 0.9 * 20) / 10, rel=0.01)
    assert found.per_token_j.provenance == "simulated"
    for figure, truth_j in ((found.prefill_j, 20.0), (found.decode_per_token_j, 2.0)):
        assert figure.to_json()["value"] == pytest.approx(truth_j, rel=0.01)
    assert found.tokens_per_s == pytest.approx(10 / 1.4, rel=1e-6)


def test_calls_too_short_for_the_meter_have_no_joules_per_token() -> None:
    host = VirtualHost(idle_w=4.0)

    def generate() -> Any:
        host.work(np.array([1e-5]), np.array([40.0]))  # the meter renews its value a hundred times as seldom
        yield 0

    found = measure_generator(generate, repeats=4, access=simulated_access(host, seed=1, rest=host.rest))
    assert found.per_token_j == Unavailable(reason="meter_too_slow")
    assert found.tokens == 1


def test_a_generator_that_yields_nothing_or_is_called_once_is_refused_and_the_meter_let_go() -> None:
    host, closed = VirtualHost(idle_w=4.0), []
    access = replace(simulated_access(host, seed=1, rest=host.rest), close=lambda: closed.append(True))
    with pytest.raises(InputError) as caught:
        measure_generator(lambda: iter(()), access=access)
    assert caught.value.slug == "no-token"
    assert closed == [True]
    with pytest.raises(UsageError) as single:
        measure_generator(lambda: iter((1,)), repeats=1, access=access)
    assert single.value.slug == "too-few-repeats"


def test_a_simulated_runtime_needs_no_meter(tmp_path: Path) -> None:
    runtime, access = open_services(request(tmp_path / "x.onnx", runtime="simulated", meters=()))
    assert runtime.traits.simulated
    assert access.simulated


def test_nothing_is_left_behind_when_the_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = find_model("attention", tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    with FakeTree(TreePlan(), root=tmp_path / "tree") as tree:
        session = SessionRequest(model=model)  # its batch is open
        with pytest.raises(InputError):
            profile_host(HostRequest(session=session, meters=(f"powercap:root={tree.root}",)), tmp_path / "run.jm")
    assert not list(scratch.iterdir())
    assert not list(tmp_path.glob("*.jm*"))
    assert not list(tmp_path.glob(".run*"))
