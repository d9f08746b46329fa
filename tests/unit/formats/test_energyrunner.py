"""EnergyRunner captures of MLPerf Tiny, both generations."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from joulemap.analysis.mapping.published import published_figures
from joulemap.errors import FormatError, InputError
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import reader, sniff
from joulemap.records.published import EnergyrunnerRun
from recording_files import read_bytes, shared_file, slugs

RUNS = ["v0.7_STM_NUCLEO-U575ZI-Q/kws", "v1.0_OctoML_NUCLEO_L4R5ZI/ad", "v1.1_Krai_NUCLEO-H7A3ZI-Q/ic"]


def capture(energy_uj: np.ndarray[tuple[int], np.dtype[np.float64]], rate_hz: float = 1000.0) -> bytes:
    return b"\xf1" + struct.pack("<f", rate_hz) + energy_uj.astype("<f4").tobytes()


def write_session(folder: Path, stamps: object, log: str = "") -> Path:
    (folder / "trace1-energy.bin").write_bytes(capture(np.full(100, 20.0)))
    (folder / "trace1-timestamps.json").write_text(json.dumps(stamps))
    (folder / "log.txt").write_text(log)
    return folder


@pytest.mark.parametrize("run", RUNS)
def test_every_published_window_is_reproduced_to_the_last_digit(run: str) -> None:
    folder = shared_file("mlperf_tiny", *run.split("/"))
    found = sniff(folder)
    assert found.name == "energyrunner"
    recording = found.read(folder, ReadOptions())
    figures = published_figures(recording.published)  # type: ignore[arg-type]
    said = (folder / "results.txt").read_text()
    energies = re.findall(r"Energy\s+:\s+([\d.]+) uJ", said)
    powers = re.findall(r"Power\s+:\s+([\d.]+) uW", said)
    assert [f"{window.energy_j * 1e6:.3f}" for window in figures.windows] == energies
    assert [f"{window.average_power_w * 1e6:.3f}" for window in figures.windows] == powers
    median = re.search(r"Median energy cost is ([\d.]+) uJ", said)
    assert median is not None
    assert f"{figures.value:.3f}" == median[1]
    speed = re.search(r"Median throughput is\s+([\d.]+) inf", said)
    assert speed is not None
    assert figures.throughput_hz is not None
    assert f"{figures.throughput_hz:.3f}" == speed[1]
    assert len(recording.timelines[0]) == 5


def test_samples_are_microjoules_and_the_trace_holds_their_energy(tmp_path: Path) -> None:
    recording = read_bytes("energyrunner", capture(np.array([20.0, 30.0, 40.0]), 500.0), tmp_path)
    trace = recording.traces[0]
    assert trace.period_s == 1 / 500
    assert float(trace.power_w.sum()) * trace.period_s == pytest.approx(90e-6)
    assert recording.published is None  # a lone capture has no windows


def test_the_window_edge_is_set_by_accumulated_time() -> None:
    # 0.001 added 1e5 times is not 100.0: the sample at the edge moves
    energy_uj = np.zeros(100_010, np.float32)
    energy_uj[100_000] = 1.0
    time_s = np.add.accumulate(np.concatenate(([0.0], np.full(100_009, 0.001))))
    assert time_s[100_000] != 100.0
    energy_uj[99_000] = 1.0
    run = EnergyrunnerRun(
        energy_uj=energy_uj, rate_hz=1000.0, stamps_s=(0.0, 50.0, float(time_s[100_000])), iterations=1
    )
    assert published_figures(run).windows[0].energy_j == 1e-6  # half open: the sample at the stop is out


def test_iterations_come_from_the_log(tmp_path: Path) -> None:
    log = "00037.595 parser: m-bm-cfg-name[ulp-ml]-key[iterInfer]-val[10]\r\n"
    recording = reader("energyrunner").read(write_session(tmp_path, [0.0, 0.01, 0.05, 0.06, 0.09], log), ReadOptions())
    figures = published_figures(recording.published)  # type: ignore[arg-type]
    assert len(figures.windows) == 2
    assert recording.metadata["config_iterInfer"] == "10"
    assert figures.windows[0].energy_per_query_j == pytest.approx(40 * 20e-6 / 10)


def test_no_iterations_leave_the_energy_of_an_inference_unavailable(tmp_path: Path) -> None:
    recording = reader("energyrunner").read(write_session(tmp_path, [0.0, 0.01, 0.05]), ReadOptions())
    assert "iterations_unstated" in slugs(recording)
    assert published_figures(recording.published).energy_per_query_j is None  # type: ignore[arg-type]


def test_too_few_stamps_say_that_the_mode_may_be_wrong(tmp_path: Path) -> None:
    recording = reader("energyrunner").read(write_session(tmp_path, [0.01]), ReadOptions())
    assert "too_few_timestamps" in slugs(recording)
    assert recording.published is None


@pytest.mark.parametrize("stamps", [{}, ["x"], [None], [1e300], "x", [True]])
def test_stamps_that_are_none_are_refused(stamps: object, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        reader("energyrunner").read(write_session(tmp_path, stamps), ReadOptions())
    assert caught.value.slug == "energyrunner-stamps"


def test_extra_zero_samples_of_a_supply_are_found(tmp_path: Path) -> None:
    energy_uj = np.full(300, 20.0)
    energy_uj[1::2] = 0.0
    recording = read_bytes("energyrunner", capture(energy_uj), tmp_path)
    finding = next(finding for finding in recording.findings if finding.slug == "alternate_zeros")
    assert "2.00 times" in finding.message
    energy_uj = np.full(400, 20.0)
    energy_uj[3::4] = 0.0
    stretched = read_bytes("energyrunner", capture(energy_uj), tmp_path)
    assert any("1.33 times" in finding.message for finding in stretched.findings)
    assert "alternate_zeros" not in slugs(read_bytes("energyrunner", capture(np.full(300, 20.0)), tmp_path))


def test_a_cut_tail_and_a_damaged_head(tmp_path: Path) -> None:
    body = capture(np.full(50, 20.0))
    assert "tail_cut" in slugs(read_bytes("energyrunner", body[:-3], tmp_path))
    for head, slug in ((b"\xf2" + body[1:], "energyrunner-head"), (b"\xf1" + bytes(4) + body[5:], "rate-impossible")):
        with pytest.raises(FormatError) as caught:
            read_bytes("energyrunner", head, tmp_path)
        assert caught.value.slug == slug
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        reader("energyrunner").read(tmp_path / "empty", ReadOptions())


def test_the_results_of_the_v13_runner_are_reproduced() -> None:
    path = shared_file("mlperf_tiny", "v1.3_STM_NUCLEO-U575ZI-Q", "kws", "energy_results.json")
    recording = sniff(path).read(path, ReadOptions())
    figures = published_figures(recording.published)  # type: ignore[arg-type]
    said = (path.parent / "energy_results.txt").read_text()
    energies = re.findall(r"Total Energy\s+: ([\d.]+) uJ", said)
    costs = re.findall(r"Energy/Inf\s+: ([\d.]+) uJ", said)
    powers = re.findall(r"Power\s+: ([\d.]+) mW", said)
    assert len(energies) == 5
    assert [f"{window.energy_j * 1e6:.3f}" for window in figures.windows] == energies
    assert [f"{(window.energy_per_query_j or 0) * 1e6:.3f}" for window in figures.windows] == costs
    assert [f"{window.average_power_w * 1e3:.4f}" for window in figures.windows] == powers
    assert f"{figures.value:.4f}" == "664.4239"


def trials(**power: object) -> str:
    entry = {
        "infer": {"iterations": 4},
        "power": {"samples": [1e-5] * 20, "timestamps": [["00", 5], ["01", 15]], "voltage": 1.8},
    }
    entry["power"].update(power)  # type: ignore[attr-defined]
    return json.dumps([entry])


def test_the_voltage_beside_the_joules_is_not_multiplied(tmp_path: Path) -> None:
    recording = read_bytes("energyrunner-json", trials(), tmp_path)
    assert recording.traces[0].power_w[0] == pytest.approx(1e-2)
    figures = published_figures(recording.published)  # type: ignore[arg-type]
    assert figures.windows[0].energy_j == pytest.approx(1e-4)
    assert figures.energy_per_query_j == pytest.approx(2.5e-5)


@pytest.mark.parametrize(
    ("power", "slug"),
    [
        ({"timestamps": [["00", 15], ["01", 5]]}, "too_few_timestamps"),
        ({"timestamps": [["00", 5]]}, "too_few_timestamps"),
        ({"timestamps": [["00", 5], ["01", 99]]}, "too_few_timestamps"),
        ({"timestamps": None}, "too_few_timestamps"),
        ({"samples": None}, "trial_without_power"),
    ],
)
def test_a_trial_without_a_window_is_left_out(power: dict[str, object], slug: str, tmp_path: Path) -> None:
    whole = json.loads(trials())
    broken = json.loads(trials(**power))
    recording = read_bytes("energyrunner-json", json.dumps(broken + whole), tmp_path)
    assert slug in slugs(recording)
    assert len(recording.traces) == 1


def test_a_performance_result_has_no_power(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read_bytes("energyrunner-json", '[{"infer": {"iterations": 4}, "mode": "p"}]', tmp_path)
    assert caught.value.slug == "energyrunner-no-power"
    for body in ("{}", "nope", '[{"power": {"samples": ["x"]}, "infer": {}}]'):
        with pytest.raises(FormatError):
            read_bytes("energyrunner-json", body, tmp_path)
