"""The outcome table through the program: each planted fault with its validity, exit code and failure report."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.formats.bundle import read_bundle
from joulemap.records.fault import FaultSlug
from program import call
from small_models import write_small_model

QUICK = ("--count", "20", "--repeats", "2", "--json")

# fault -> (validity, slug of why there is no headline, phase that the firmware was in)
WITHOUT_HEADLINE = {
    "no_ready": ("invalid", "no_ready", "WAIT_GO"),
    "no_go": ("invalid", "terminal_error", "WAIT_GO"),
    "no_gate_rise": ("degraded", "no_gate_rise", None),
    "no_gate_fall": ("degraded", "no_gate_fall", None),
    "gate_disconnected": ("degraded", "no_gate_rise", None),
    "short_pulse": ("invalid", "gate_disagrees", None),
    "init_error": ("invalid", "terminal_error", "MODEL_INIT"),
    "infer_error": ("invalid", "terminal_error", "RUN_FIXED_N"),
    "stuck_loop": ("invalid", "firmware_stuck", "RUN_FIXED_N"),
    "hard_fault": ("invalid", "hard_fault", "RUN_FIXED_N"),
    "terminal_counts": ("invalid", "count_mismatch", None),
    "capture_empty": ("invalid", "capture_empty", None),
    "instrument_lost": ("invalid", "instrument_lost", None),
    "output_wrong": ("invalid", "output_differs", None),
    "brown_out": ("invalid", "brown_out", "RUN_FIXED_N"),
    "throttle": ("degraded", "throttled", None),
}
WITH_HEADLINE = {
    "counter_overflow": {"counter_overflow"},
    "terminal_missing": {"terminal_missing", "count_inferred", "output_unchecked"},
    "terminal_truncated": {"terminal_truncated", "count_inferred", "output_unchecked"},
    "terminal_version": {"terminal_version", "count_inferred", "output_unchecked"},
    "terminal_late": {"terminal_late", "count_inferred", "output_unchecked"},
    "no_diagnostics": {"terminal_missing", "count_inferred", "output_unchecked"},
    "capture_lossy": {"samples_lost"},
    "transport_on": set[str](),
}
WITHOUT_BUNDLE = {
    "profile_truncated": "profile-truncated",
    "profile_corrupt": "profile-corrupt",
    "probe_lost": "probe-lost",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model") / "small.tflite")


def test_every_fault_has_its_row() -> None:
    assert WITHOUT_HEADLINE.keys() | WITH_HEADLINE.keys() | WITHOUT_BUNDLE.keys() == set(FaultSlug)


@pytest.mark.parametrize("fault", WITHOUT_HEADLINE)
def test_a_run_without_headline_writes_a_labelled_bundle_and_ends_with_4(
    fault: str, model: Path, tmp_path: Path
) -> None:
    validity, reason, firmware_phase = WITHOUT_HEADLINE[fault]
    called = call("profile", model, "-o", tmp_path / "x.jm", *QUICK, "--fault", fault)
    assert called.code == 4, called.err
    document = called.json
    assert document["validity"] == validity
    missing = {"value": None, "provenance": "unavailable", "reason": reason}
    for key in ("energy_per_inference_j", "inferences_per_j", "ops_per_j", "average_power_w"):
        assert document[key] == missing
    assert all(layer["energy_j"] == missing for layer in document["layers"])
    assert reason in {finding["slug"] for finding in document["findings"]}
    assert ("trace_statistics" in document) == (validity == "degraded")
    assert read_bundle(tmp_path / "x.jm").validity == validity
    assert f"docs/errors.md#{reason.replace('_', '-')} (exit 4)" in called.err
    assert "  failed in   power\n" in called.err
    assert "  firmware    hpx_profiler_power\n" in called.err
    assert "  next        " in called.err
    if firmware_phase is not None:
        assert f"  its phase   {firmware_phase}\n" in called.err


@pytest.mark.parametrize("fault", WITH_HEADLINE)
def test_a_fault_that_the_run_survives_is_a_finding_beside_the_headline(
    fault: str, model: Path, tmp_path: Path
) -> None:
    called = call("profile", model, "-o", tmp_path / "x.jm", *QUICK, "--fault", fault)
    assert called.code == 0, called.err
    document = called.json
    assert document["validity"] == "valid"
    assert document["energy_per_inference_j"]["value"] > 0
    assert {finding["slug"] for finding in document["findings"]} >= WITH_HEADLINE[fault]


@pytest.mark.parametrize("fault", WITHOUT_BUNDLE)
def test_a_broken_profile_stream_ends_the_run_without_a_bundle(fault: str, model: Path, tmp_path: Path) -> None:
    called = call("profile", model, "-o", tmp_path / "x.jm", *QUICK, "--fault", fault)
    assert called.code == 4
    error = called.json["error"]
    assert error["slug"] == WITHOUT_BUNDLE[fault]
    assert (error["phase"], error["stage"]) == ("profile", "capture_profile")
    assert error["completed"][-1] == "deploy_profile_firmware"
    assert error["last_checkpoint"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", ["no_gate_fall@1", "instrument_lost@3", "output_wrong@2"])
def test_one_bad_capture_of_three_is_kept_and_the_headline_stands(fault: str, model: Path, tmp_path: Path) -> None:
    called = call(
        "profile", model, "-o", tmp_path / "x.jm", "--count", "20", "--repeats", "3", "--json", "--fault", fault
    )
    assert called.code == 0, called.err
    document = called.json
    assert document["validity"] == "valid"
    assert document["energy_per_inference_j"]["value"] > 0
    assert "captures_dropped" in {finding["slug"] for finding in document["findings"]}
    integrities = [capture["observation"]["integrity"] for capture in document["captures"]]
    assert integrities.count("valid") == 2
    assert len(integrities) == 3


def test_two_bad_captures_of_three_leave_no_headline(model: Path, tmp_path: Path) -> None:
    flags = ("--count", "20", "--repeats", "3", "--json", "--fault", "output_wrong@1", "--fault", "no_gate_fall@2")
    called = call("profile", model, "-o", tmp_path / "x.jm", *flags)
    assert called.code == 4
    assert called.json["energy_per_inference_j"]["value"] is None


def test_a_transport_left_on_raises_the_energy_beyond_its_uncertainty(model: Path, tmp_path: Path) -> None:
    energies = [
        call("profile", model, "-o", tmp_path / f"{k}.jm", *QUICK, *extra).json["energy_per_inference_j"]
        for k, extra in enumerate(((), ("--fault", "transport_on"), ("--fault", "no_diagnostics")))
    ]
    clean, left_on, silent = energies
    assert left_on["value"] - clean["value"] > 5 * (left_on["expanded"] + clean["expanded"])
    assert abs(silent["value"] - clean["value"]) < silent["expanded"] + clean["expanded"]
