"""Faults that people reported in public, as inputs made here, where no test of a reader shows them already.

The number in a name is that of the report in FORMATS 4.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from host_reading import energy_j, read, slugs, total, trace
from joulemap.records.published import MlperfRun
from recording_files import write_ppk2

T0_MS = 1767323045000


def scrapes(*lines: str, count: int = 6) -> str:
    return "".join(line.format(k=k, t=T0_MS + 1000 * k) + "\n" for k in range(count) for line in lines)


def test_report_5_a_counter_that_wraps_every_minute_never_gives_negative_energy(tmp_path: Path) -> None:
    joules = [60.0, 120.0, 180.0, 20.0, 80.0, 140.0]
    text = "".join(f"node_rapl_package_joules_total {j} {T0_MS + 1000 * k}\n" for k, j in enumerate(joules))
    found = read("prometheus", text, tmp_path)
    package = trace(found, "rapl package")
    assert float(package.power_w.min()) >= 0.0
    assert energy_j(package) == pytest.approx(4 * 60.0)  # the step of the fall is a gap and no energy
    assert slugs(found) & {"counter_fell", "counter_lost"}


def test_report_14_a_step_below_zero_is_no_huge_unsigned_number(tmp_path: Path) -> None:
    rows = [f"{T0_MS * 1000 + 1000000 * k} {uj} Package_0" for k, uj in enumerate((9_000_000, -5_000_000, 9_000_000))]
    found = read("green-metrics", "\n".join(rows) + "\n", tmp_path, units={"energy": "uJ"})
    (one,) = found.traces
    assert float(one.power_w.max()) == pytest.approx(9.0)
    assert float(one.power_w.min()) >= 0.0
    assert "impossible_power" in slugs(found)


def test_report_32_a_card_at_0_w_all_the_time_is_doubted(tmp_path: Path) -> None:
    found = read("prometheus", scrapes('nv_gpu_power_usage{{gpu_uuid="GPU-x"}} 0 {t}'), tmp_path)
    assert "power_always_zero" in slugs(found)
    drawn = read("prometheus", scrapes('nv_gpu_power_usage{{gpu_uuid="GPU-x"}} {k} {t}'), tmp_path)
    assert "power_always_zero" not in slugs(drawn)


@pytest.mark.parametrize("tail", [1, 2, 3, 5])
def test_report_38_bytes_after_the_last_whole_sample_shift_nothing(tail: int, tmp_path: Path) -> None:
    whole = write_ppk2([100.0 + k for k in range(50)])
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["session.raw"] += struct.pack("<f", 900.0)[:tail].ljust(tail, b"\1")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    found = read("ppk2", out.getvalue(), tmp_path, voltage_v=2.0)
    assert found.traces[0].power_w.tolist() == pytest.approx([2e-6 * (100 + k) for k in range(50)])
    assert "tail_cut" in slugs(found)


def test_report_39_samples_that_were_never_taken_are_not_counted(tmp_path: Path) -> None:
    currents = [56.0, float("nan"), float("nan"), 56.0, 56.0, float("nan"), 56.0, 56.0]
    (one,) = read("ppk2", write_ppk2(currents, rate=1000), tmp_path, voltage_v=1.0).traces
    kept = np.ones(one.n, np.bool_)
    for a, b in one.gaps.tolist():
        kept[a:b] = False
    assert one.power_w[kept].tolist() == pytest.approx([56e-6] * 5)


def test_report_40_data_that_was_dropped_does_not_shorten_the_recording(tmp_path: Path) -> None:
    rows = [f"{ms},1000.0" for ms in [*range(6000), *range(39_000, 40_000)]]
    found = read("ppk2-csv", "Timestamp(ms),Current(uA)\n" + "\n".join(rows) + "\n", tmp_path, voltage_v=3.0)
    (one,) = found.traces
    assert one.duration_s == pytest.approx(40.0, abs=0.002)
    assert energy_j(one) == pytest.approx(7.0 * 1000e-6 * 3.0, rel=1e-3)
    assert "time_gap" in slugs(found)


def test_report_41_a_mean_of_raw_samples_lies_between_their_extremes(tmp_path: Path) -> None:
    currents = [10.0] * 99 + [5000.0]
    (one,) = read("ppk2", write_ppk2(currents), tmp_path, voltage_v=1.0).traces
    mean_w = float(one.power_w.mean())
    assert mean_w == pytest.approx((99 * 10e-6 + 5000e-6) / 100)
    assert float(one.power_w.min()) <= mean_w <= float(one.power_w.max())


def test_report_42_an_accumulated_energy_that_jumps_is_not_believed(tmp_path: Path) -> None:
    joules = [0.0, 1000.0, 2144.0, 6143.0, 7143.0]
    watts = [2000.0, 2000.0, 2288.0, 2000.0, 2000.0]
    rows = [f"{k * 0.5},1,1,{w:g},0,{j:g}" for k, (w, j) in enumerate(zip(watts, joules, strict=True))]
    found = read("joulescope-csv", "#time,current,voltage,power,charge,energy\n" + "\n".join(rows) + "\n", tmp_path)
    (said,) = [finding for finding in found.findings if finding.slug == "energy_disagrees"]
    assert said.span == "line 5"
    assert "1 of 4 steps" in said.message
    assert float(found.traces[0].power_w[1:].sum()) * 0.5 == pytest.approx(0.5 * sum(watts[1:]))
    assert total(found, "energy_j") == 7143.0
    sound = ["0,1,1,2,0,0", "0.5,1,1,2,0,1", "1,1,1,2,0,2"]
    fine = read("joulescope-csv", "#time,current,voltage,power,charge,energy\n" + "\n".join(sound) + "\n", tmp_path)
    assert "energy_disagrees" not in slugs(fine)


def test_report_48_a_row_that_a_filter_dropped_is_a_gap_and_no_shift(tmp_path: Path) -> None:
    rows = [f"{n},{n % 7}" for n in range(200, 240) if n not in {221, 223, 224, 225}]
    found = read("csv", "time [ms],power [mW]\n" + "\n".join(rows) + "\n", tmp_path)
    (one,) = found.traces
    assert "time_gap" in slugs(found)
    assert one.edges_ns is not None
    at = np.searchsorted(one.edges_ns, 230_000_000, "left") - 1  # the sample that ends at 230 ms is that of row 230
    assert float(one.power_w[at]) == pytest.approx(1e-3 * (230 % 7))


@pytest.mark.parametrize("west_s", [25200, 28800, -3600])
def test_report_49_a_host_whose_zone_moved_by_an_hour_is_compared_in_utc(west_s: int, tmp_path: Path) -> None:
    (tmp_path / "run_1").mkdir()
    (tmp_path / "power").mkdir()
    rows = [
        f"Time,02-17-2022 13:17:{10 + k:02d}.000,Watts,20.0,Volts,1,Amps,1,PF,1,Mark,run_testing" for k in range(10)
    ]
    (tmp_path / "run_1" / "spl.txt").write_text("\n".join(rows) + "\n")
    window = {"power_begin": "02-17-2022 13:17:12.000", "power_end": "02-17-2022 13:17:15.000"}
    lines = [f":::MLLOG {json.dumps({'key': key, 'value': value})}\n" for key, value in window.items()]
    (tmp_path / "run_1" / "mlperf_log_detail.txt").write_text("".join(lines))
    moments = [[1645103832.0 + k, 10.0 + k] for k in range(4)]
    for host, zone in (("client", west_s), ("server", 0)):
        document = {"timezone": zone, "phases": {"ranging": moments, "testing": moments}}
        (tmp_path / "power" / f"{host}.json").write_text(json.dumps(document))
    found = read("mlperf-inference", tmp_path, tmp_path)
    assert not slugs(found) & {"window_outside", "clock_skew"}
    assert isinstance(found.published, MlperfRun)
    inside = (found.published.time_ns >= found.published.begin_ns) & (found.published.time_ns <= found.published.end_ns)
    assert int(inside.sum()) == 4


def test_report_53_joules_and_seconds_of_a_window_are_of_one_window(tmp_path: Path) -> None:
    text = "start_time,window_name,elapsed_time,gpu0_energy\n1767323045.000,decode,2.000,100.0\n"
    found = read("zeus-energy", text, tmp_path)
    (timeline,) = found.timelines
    (piece,) = list(timeline)
    (one,) = found.traces
    assert (one.start_ns, one.end_ns) == (piece.start_ns, piece.end_ns)
    assert energy_j(one) == pytest.approx(100.0)
    assert float(one.power_w[0]) == pytest.approx(50.0)


def test_report_60_a_counter_slower_than_the_poll_is_spread_and_never_0_and_double(tmp_path: Path) -> None:
    found = read("prometheus", scrapes("node_rapl_package_joules_total {k} {t}", count=1), tmp_path)
    assert not found.traces
    joules = [0, 0, 20, 20, 40, 40, 60, 60, 80]
    text = "".join(f"node_rapl_package_joules_total {j} {T0_MS + 500 * k}\n" for k, j in enumerate(joules))
    package = trace(read("prometheus", text, tmp_path), "rapl package")
    assert set(np.round(package.power_w, 9).tolist()) == {20.0}
