"""``joulemap profile`` on the virtual bench: the result, the bundle, the score, and what a second run does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from joulemap.formats.bundle import read_bundle
from program import Called, call, leftovers
from small_models import write_small_model

QUICK = ("--count", "20", "--repeats", "3")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model") / "small.tflite")


@pytest.fixture(scope="module")
def valid(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Called, Path]:
    """Returns one valid run and its bundle."""
    target = tmp_path_factory.mktemp("valid") / "small.jm"
    called = call("profile", model, "-o", target, *QUICK, "--json")
    assert called.code == 0, called.err
    return called, target


def result_of(bundle: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((bundle / "result.json").read_text())
    return made


def test_a_valid_run_has_a_headline_with_uncertainty(valid: tuple[Called, Path]) -> None:
    document = valid[0].json
    total = document["energy_per_inference_j"]
    assert document["validity"] == "valid"
    assert (total["provenance"], total["boundary"]) == ("simulated", "rail")
    assert 0 < total["expanded"] < 0.05 * total["value"]
    assert document["latency_s"]["value"] > 0
    assert len(document["layers"]) == 4
    assert len(document["captures"]) == 3
    assert document["output_crc"]["power_image"] == document["output_crc"]["oracle"]
    assert document["output_crc"]["profile_image"] == document["output_crc"]["oracle"]


def test_layers_groups_and_gap_add_up_to_the_gate(valid: tuple[Called, Path]) -> None:
    document = valid[0].json
    parts = [*document["layers"], *document["groups"], document["gap"]]
    total = sum(part["energy_j"]["value"] or 0.0 for part in parts)
    headline = document["energy_per_inference_j"]
    assert total == pytest.approx(headline["value"], abs=headline["expanded"])


def test_stdout_and_the_bundle_hold_one_document(valid: tuple[Called, Path]) -> None:
    called, bundle = valid
    shown, kept = called.json, result_of(bundle)
    assert shown.pop("bundle") == str(bundle)
    assert kept.pop("bundle") == "small.jm"
    assert shown == kept


def test_the_bundle_is_whole_and_nothing_lies_beside_it(valid: tuple[Called, Path]) -> None:
    bundle = read_bundle(valid[1])
    assert (bundle.kind, bundle.validity) == ("profile", "valid")
    for path in (
        "run.json",
        "layers.parquet",
        "timeline.parquet",
        "truth/truth.json",
        "log.txt",
        "traces/rail-1.parquet",
    ):
        assert bundle.has(path), path
    assert leftovers(valid[1].parent) == ["small.jm"]


def test_checkpoints_are_those_of_the_pipeline_document(valid: tuple[Called, Path]) -> None:
    phases = [checkpoint["phase"] for checkpoint in valid[0].json["checkpoints"]]
    assert set(phases) == {"setup", "profile", "power"}
    assert phases == sorted(phases, key=["setup", "profile", "power"].index)
    assert len(phases) >= 10


def test_run_json_holds_every_stage_in_order(valid: tuple[Called, Path]) -> None:
    run = json.loads((valid[1] / "run.json").read_text())
    assert [stage["stage"] for stage in run["stages"]] == [
        "preflight", "ensure_board_powered", "resolve_platform", "resolve_probe", "prepare_engine", "analyze_model",
        "plan_memory", "render_profile_firmware", "build_profile_firmware", "verify_profile_placement",
        "deploy_profile_firmware", "capture_profile", "plan_power_run", "render_power_firmware", "build_power_firmware",
        "verify_power_placement", "deploy_power_firmware", "capture_power_observation", "collect_power_terminal",
        "reconcile_power_run", "attribute_energy",
    ]  # fmt: skip


def test_people_see_where_the_run_is_and_a_table_with_the_word_simulated(model: Path, tmp_path: Path) -> None:
    called = call("profile", model, "-o", tmp_path / "s.jm", *QUICK)
    assert called.code == 0
    assert "simulated" in called.out
    assert "per inference" in called.out
    assert f"bundle  {tmp_path / 's.jm'}" in called.out
    assert "[ 1/22] setup   preflight" in called.err
    assert "[22/22] report  generate report" in called.err


def test_quiet_leaves_stderr_empty_and_json_leaves_stdout_to_the_document(model: Path, tmp_path: Path) -> None:
    called = call("profile", model, "-o", tmp_path / "s.jm", *QUICK, "--quiet", "--json")
    assert (called.code, called.err) == (0, "")
    assert called.json["schema"] == "joulemap.profile"


def test_a_second_identical_run_rebuilds_nothing(valid: tuple[Called, Path], model: Path, tmp_path: Path) -> None:
    second = tmp_path / "again.jm"
    assert call("profile", model, "-o", second, *QUICK).code == 0
    for role in ("hpx_profiler", "hpx_profiler_power"):
        first = json.loads((valid[1] / "firmware" / f"{role}.json").read_text())
        again = json.loads((second / "firmware" / f"{role}.json").read_text())
        assert again["reused"] is True
        assert again["elf_sha256"] == first["elf_sha256"]


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(
    valid: tuple[Called, Path], model: Path, tmp_path: Path
) -> None:
    first = valid[0].json
    same = call("profile", model, "-o", tmp_path / "a.jm", *QUICK, "--json").json
    other = call("profile", model, "-o", tmp_path / "b.jm", *QUICK, "--json", "--seed", "1").json
    assert same["energy_per_inference_j"] == first["energy_per_inference_j"]
    assert same["layers"] == first["layers"]
    assert other["energy_per_inference_j"] != first["energy_per_inference_j"]


def test_a_run_without_power_builds_the_profile_image_only(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "cycles.jm"
    called = call("profile", model, "-o", target, "--no-power", "--json")
    assert called.code == 0
    assert leftovers(target / "firmware") == ["hpx_profiler.json"]
    document = called.json
    assert document["energy_per_inference_j"]["reason"] == "power_not_run"
    assert document["latency_s"]["provenance"] == "modelled"
    assert not (target / "traces").exists()
    assert "[13/13]" in called.err


def test_contrast_moves_layers_and_not_the_time(valid: tuple[Called, Path], model: Path, tmp_path: Path) -> None:
    plain = valid[0].json
    planted = call("profile", model, "-o", tmp_path / "c.jm", *QUICK, "--json", "--contrast").json
    assert planted["latency_s"]["value"] == pytest.approx(plain["latency_s"]["value"], rel=1e-4)
    moved = planted["energy_per_inference_j"]["value"] / plain["energy_per_inference_j"]["value"]
    assert abs(moved - 1) > 0.01


def test_an_instrument_that_is_too_slow_leaves_no_headline(model: Path, tmp_path: Path) -> None:
    flags = ("--count", "20", "--repeats", "2", "--instrument", "virtual-10hz", "--json")
    called = call("profile", model, "-o", tmp_path / "slow.jm", *flags)
    assert called.code == 4
    document = called.json
    assert document["validity"] == "degraded"
    assert document["energy_per_inference_j"]["reason"] == "gate_unresolved"
    assert document["latency_s"]["value"] > 0
    assert "docs/errors.md#gate-unresolved (exit 4)" in called.err
    assert read_bundle(tmp_path / "slow.jm").validity == "degraded"


def test_an_existing_bundle_is_replaced_by_force_alone(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "s.jm"
    assert call("profile", model, "-o", target, "--no-power").code == 0
    first = result_of(target)["run_id"]
    refused = call("profile", model, "-o", target, "--no-power")
    assert refused.code == 2
    assert "--force" in refused.err
    assert result_of(target)["run_id"] == first
    assert call("profile", model, "-o", target, "--no-power", "--force").code == 0
    assert result_of(target)["run_id"] != first


def test_the_default_bundle_is_named_after_model_and_time(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("profile", model, "--no-power").code == 0
    (name,) = leftovers(tmp_path)
    assert name.startswith("small-")
    assert name.endswith("Z.jm")


def test_score_finds_the_truth_inside_the_interval(valid: tuple[Called, Path]) -> None:
    scored = call("score", valid[1], "--json")
    assert scored.code == 0, scored.err
    total = scored.json["total"]
    assert abs(total["error_rel"]) < 0.02
    assert len(scored.json["layers"]) == 4
    assert call("score", valid[1], "--max-error", "0.02").code == 0
    failed = call("score", valid[1], "--max-error", "0")
    assert failed.code == 1
    assert "fail: limit" in failed.out


def test_without_its_truth_a_bundle_still_reads_and_cannot_be_scored(
    valid: tuple[Called, Path], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.jm"
    shutil.copytree(valid[1], copy)
    shutil.rmtree(copy / "truth")
    assert read_bundle(copy).run_id == read_bundle(valid[1]).run_id
    scored = call("score", copy)
    assert scored.code == 6
    assert "docs/errors.md#no-truth" in scored.err


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_score_of_what_is_no_bundle_is_rejected(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x.jm"
    if what == "file":
        path.write_text("no")
    elif what == "empty":
        path.mkdir()
    called = call("score", path)
    assert called.code == 6
    assert "x.jm" in called.err


def test_score_of_a_changed_bundle_is_rejected(valid: tuple[Called, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy.jm"
    shutil.copytree(valid[1], copy)
    with (copy / "truth" / "truth.json").open("r+b") as file:
        file.write(b"{ ")
        file.seek(10)
        file.write(b"9")
    assert call("score", copy).code == 6
