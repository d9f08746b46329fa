"""Sections of a bundle: all there, readable, and the truth a thing apart."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError, InputError
from joulemap.formats.bundle import read_bundle
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.formats.registry import LAYERS, list_traces, load_table, load_timeline, load_trace
from joulemap.records.progress import Phase
from joulemap.records.rail import BoardTruth
from joulemap.records.run import ProfileRequest
from joulemap.workflow.journal import StageTiming
from joulemap.workflow.result import ProfileFacts
from joulemap.workflow.save import write_sections
from joulemap.workflow.score import score_bundle
from profile_facts import COUNT, LAYER_J, TOTAL_J, degraded_facts, facts, profile_only_facts

REQUEST = ProfileRequest(model=Path("/home/someone/secret/three.tflite"), instrument="/etc/meters/mine.toml")
TRUTH = BoardTruth(
    gate_j=TOTAL_J * COUNT * 1.001,
    layer_j=np.array(LAYER_J) * COUNT,
    gap_j=(TOTAL_J * 1.001 - sum(LAYER_J)) * COUNT,
    layer_cycles=np.array([1, 2, 3]),
    layer_entries=np.full(3, COUNT),
    gate_cycles=16_000_060,
    run_factor=1.002,
)


def saved(folder: Path, run: ProfileFacts, truths: dict[int, BoardTruth] | None = None) -> Path:
    target = folder / "three.jm"
    timings = (StageTiming(phase=Phase.SETUP, stage="preflight", duration_s=0.25),)
    made = {"kind": "profile", "run_id": run.run_id, "tool": {"name": "joulemap", "version": "x"}, "created": "now"}
    with BundleWriter(target, **made) as writer:  # type: ignore[arg-type]
        write_sections(
            writer, run, REQUEST, truths=truths or {}, timings=timings, log=("a line", "another"), name="three.jm"
        )
        writer.commit(validity=str(run.validity))
    return target


def test_a_valid_run_holds_every_section_of_the_contract(tmp_path: Path) -> None:
    bundle = read_bundle(saved(tmp_path, facts(), dict.fromkeys(range(1, 6), TRUTH)))
    wanted = {"run.json", "result.json", "layers.parquet", "timeline.parquet", "log.txt", "truth/truth.json"}
    wanted |= {f"traces/rail-{k}.{suffix}" for k in range(1, 6) for suffix in ("parquet", "json")}
    wanted |= {"firmware/hpx_profiler.json", "firmware/hpx_profiler_power.json"}
    assert bundle.sections.keys() == wanted
    assert bundle.validity == "valid"


def test_layers_timeline_and_traces_come_back(tmp_path: Path) -> None:
    bundle = read_bundle(saved(tmp_path, facts()))
    layers = load_table(bundle, LAYERS, schema="joulemap.layers")
    assert layers["energy_j"] == list(LAYER_J)
    assert layers["provenance"] == ["simulated"] * 3
    assert len(load_timeline(bundle)) == 1 + COUNT * 4
    assert list_traces(bundle) == tuple(f"rail-{k}" for k in range(1, 6))
    trace, markers = load_trace(bundle, "rail-1")
    assert trace.n == 2600
    assert [str(marker.direction) for marker in markers] == ["rise", "fall"]


def test_a_run_without_power_has_neither_traces_nor_power_firmware(tmp_path: Path) -> None:
    bundle = read_bundle(saved(tmp_path, profile_only_facts()))
    assert bundle.sections.keys() == {
        "run.json", "result.json", "layers.parquet", "log.txt", "firmware/hpx_profiler.json",
    }  # fmt: skip
    layers = load_table(bundle, LAYERS, schema="joulemap.layers")
    assert layers["energy_j"] == [None] * 3


def test_a_degraded_run_keeps_its_waveforms_and_has_no_timeline(tmp_path: Path) -> None:
    bundle = read_bundle(saved(tmp_path, degraded_facts()))
    assert bundle.validity == "degraded"
    assert len(list_traces(bundle)) == 5
    assert not bundle.has("timeline.parquet")


def test_no_host_name_and_no_path_of_the_machine_is_written(tmp_path: Path) -> None:
    target = saved(tmp_path, facts(), {1: TRUTH})
    for file in [*sorted(target.rglob("*.json")), target / "log.txt"]:
        text = file.read_text()
        for secret in ("/home", "/etc", str(tmp_path), "/nowhere", socket.gethostname() + '"'):
            assert secret not in text, f"{secret} in {file.name}"
    run = json.loads((target / "run.json").read_text())
    assert run["request"]["model"] == "three.tflite"
    assert run["request"]["instrument"] == "mine.toml"
    assert run["environment"]["python"] == platform.python_version()
    assert run["stages"] == [{"phase": "setup", "stage": "preflight", "duration_s": 0.25}]


def test_with_the_truth_deleted_every_other_byte_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with_truth = saved(tmp_path / "a", facts(), dict.fromkeys(range(1, 6), TRUTH))
    without = saved(tmp_path / "b", facts())
    shutil.rmtree(with_truth / "truth")
    names = sorted(p.relative_to(without) for p in without.rglob("*") if p.is_file() and p.name != "manifest.json")
    kept = sorted(p.relative_to(with_truth) for p in with_truth.rglob("*") if p.is_file() and p.name != "manifest.json")
    assert names == kept
    assert all((with_truth / n).read_bytes() == (without / n).read_bytes() for n in names)
    assert read_bundle(with_truth).sections.keys() == read_bundle(without).sections.keys()


def test_score_compares_with_the_truth_per_inference(tmp_path: Path) -> None:
    target = saved(tmp_path, facts(), dict.fromkeys(range(1, 6), TRUTH))
    score = score_bundle(target)
    total = score.document["total"]
    assert isinstance(total, dict)
    assert total["truth_j"] == pytest.approx(TOTAL_J * 1.001)
    assert total["estimate_j"] == TOTAL_J
    assert total["error_rel"] == pytest.approx(-0.001, rel=1e-2)
    assert total["covered"] is True
    layers = score.document["layers"]
    assert isinstance(layers, list)
    assert [layer["error_rel"] for layer in layers] == pytest.approx([0.0] * 3, abs=1e-12)
    assert not any(layer["refused"] for layer in layers)


@pytest.mark.parametrize(("limit", "passed"), [(None, True), (0.01, True), (0.0005, False)])
def test_score_fails_beyond_the_limit(tmp_path: Path, limit: float | None, passed: bool) -> None:
    target = saved(tmp_path, facts(), {1: TRUTH})
    assert score_bundle(target, max_error=limit).passed is passed


def test_a_run_without_headline_never_passes_a_limit(tmp_path: Path) -> None:
    target = saved(tmp_path, degraded_facts(), {1: TRUTH})
    assert score_bundle(target).passed
    assert not score_bundle(target, max_error=1.0).passed


@pytest.mark.parametrize("count", [0, -5, 10**400, "1", None, 0.5])
def test_a_truth_that_makes_no_sense_is_damage(tmp_path: Path, count: object) -> None:
    target = saved(tmp_path, facts(), {1: TRUTH})
    path = target / "truth" / "truth.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"count": count}))
    manifest = json.loads((target / "manifest.json").read_text())
    for section in manifest["sections"]:
        if section["path"] == "truth/truth.json":
            section |= {"size_b": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    (target / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FormatError) as caught:
        score_bundle(target)
    assert caught.value.slug == "bundle-damaged"


def test_a_bundle_without_truth_cannot_be_scored(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no truth"):
        score_bundle(saved(tmp_path, facts()))
