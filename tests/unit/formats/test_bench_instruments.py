"""Otii, Monsoon, LPM01A, EnergyTrace, Energy Probe and PowerSensor3."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.estimate import Provenance
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import reader, sniff
from joulemap.records.recording import Recording
from joulemap.trace import ClockKind, EnergyTrace
from recording_files import SEEDS, read_bytes, shared_file, slugs, write_pt4


def read_shared(*parts: str, **options: object) -> Recording:
    path = shared_file(*parts)
    return sniff(path).read(path, ReadOptions(**options))  # type: ignore[arg-type]


def energy_j(trace: EnergyTrace) -> float:
    if trace.edges_ns is not None:
        return float((trace.power_w * np.diff(trace.edges_ns)).sum()) * 1e-9
    assert trace.period_s is not None
    return float(trace.power_w.sum(dtype=np.float64)) * trace.period_s


# Otii


def test_an_otii_folder_multiplies_current_by_the_voltage_held_at_its_own_rate() -> None:
    recording = read_shared("generated", "otii")
    (trace,) = recording.traces
    t = np.arange(400) / 4000
    expected = (0.01 + 0.005 * np.sin(2 * np.pi * 50 * t)).astype(np.float32).astype(float) * 3.3
    assert trace.power_w.tolist() == pytest.approx(expected.tolist(), rel=1e-6)
    assert trace.channel.name == "Ace Main"
    assert [source.name for source in recording.sources] == ["Main current - Ace.csv", "Main voltage - Ace.csv"]


def test_a_lone_otii_current_needs_the_supply_and_a_lone_voltage_is_a_lane() -> None:
    with pytest.raises(InputError) as caught:
        read_shared("handmade", "otii", "Main current - Ace.csv")
    assert caught.value.slug == "voltage-needed"
    recording = read_shared("handmade", "otii", "Main current - Ace.csv", voltage_v=3.0)
    assert recording.traces[0].power_w.tolist() == pytest.approx([0.0370200249, 0.0370500012, -4.49999988e-05])
    volts = read_shared("generated", "otii", "Main voltage - Ace.csv")
    assert volts.traces == ()
    assert volts.lanes[0].unit == "V"


def test_an_otii_file_whose_name_says_nothing_needs_its_unit(tmp_path: Path) -> None:
    body = '"Timestamp","Value"\n0.000000,0.5\n0.000250,0.25\n'
    with pytest.raises(InputError) as caught:
        read_bytes("otii-csv", body, tmp_path)
    assert caught.value.slug == "unit-needed"
    assert read_bytes("otii-csv", body, tmp_path, units={"value": "W"}).traces[0].power_w.tolist() == [0.5, 0.25]
    with pytest.raises(UsageError) as unknown:
        read_bytes("otii-csv", body, tmp_path, units={"value": "furlong"})
    assert unknown.value.slug == "unit-unknown"


def test_two_otii_devices_stay_apart(tmp_path: Path) -> None:
    for device, amps in (("Ace", 1.0), ("Arc", 2.0)):
        for quantity, value in (("current", amps), ("voltage", 3.0)):
            (tmp_path / f"Main {quantity} - {device}.csv").write_text(
                f'"Timestamp","Value"\n0.000000,{value}\n0.001000,{value}\n'
            )
    recording = sniff(tmp_path).read(tmp_path, ReadOptions())
    assert {trace.channel.name: float(trace.power_w[0]) for trace in recording.traces} == {
        "Ace Main": 3.0,
        "Arc Main": 6.0,
    }


@pytest.mark.parametrize("form", ["folder", "stub"])
def test_an_otii_project_is_read_from_its_saved_version(form: str) -> None:
    folder = shared_file("generated", "otii", "proj")
    path = folder if form == "folder" else folder / "proj.otii3"
    recording = sniff(path).read(path, ReadOptions())
    (trace,) = recording.traces
    t = np.arange(400) / 4000
    expected = (0.01 + 0.005 * np.sin(2 * np.pi * 50 * t)).astype(np.float32).astype(float) * np.float32(3.3)
    assert np.allclose(trace.power_w, expected, rtol=1e-6)
    assert (trace.clock.kind, trace.start_ns, trace.period_s) == (ClockKind.UTC, 1767323045123 * 10**6, 1 / 4000)


def write_project(folder: Path, description: object, saved: str = "v1", number: str = "17") -> Path:
    for name in ("data/meta", f"data/versions/{saved}/data", "data/data/project/b"):
        (folder / name).mkdir(parents=True)
    (folder / "data/meta/project_format").write_text(number)
    (folder / "data/meta/saved_version").write_text(saved)
    (folder / f"data/versions/{saved}/data/project.json").write_text(json.dumps(description))
    np.ones(10, "<f4").tofile(folder / "data/data/project/b/samples.dat")
    return folder


def measurement(blob: str, kind: str = "power", rate: object = 10) -> dict[str, object]:
    source = {"type": "samples", "name": "mp", "data_type": kind, "sample_rate": rate, "device": "d"}
    return {"measurement": {"source": source}, "data": {"id": blob}}


def test_an_otii_project_refuses_paths_that_leave_it_and_impossible_rates(tmp_path: Path) -> None:
    recording = {"start_time": 0, "measurements": [measurement("../../../x"), measurement("b")]}
    read = reader("otii3").read(write_project(tmp_path / "a", {"recordings": [recording]}), ReadOptions())
    assert read.traces[0].n == 10
    assert "measurement_unreadable" in slugs(read)
    for rate in (0, -1, "x", None, 1e300):
        folder = write_project(tmp_path / f"r{rate}", {"recordings": [{"measurements": [measurement("b", rate=rate)]}]})
        with pytest.raises(FormatError) as caught:
            reader("otii3").read(folder, ReadOptions())
        assert caught.value.slug == "otii-project"
    odd = write_project(tmp_path / "odd", {"recordings": [{"measurements": [measurement("b")]}]}, number="18")
    assert "project_format_unknown" in slugs(reader("otii3").read(odd, ReadOptions()))


# Monsoon


def test_powertool_units_come_from_the_header(tmp_path: Path) -> None:
    shared = read_shared("handmade", "monsoon", "powertool5.csv")
    assert shared.traces[0].power_w.tolist() == pytest.approx([0.04566, 0.0457])
    body = "Time (s),Main Avg Current (A),Main Avg Power (W),Main Avg Voltage (V)\n0.0000,1,2.5,3\n0.0002,1,2.75,3\n"
    assert read_bytes("powertool-csv", body, tmp_path).traces[0].power_w.tolist() == [2.5, 2.75]


def test_powertool_cells_may_be_empty_and_rails_come_apart(tmp_path: Path) -> None:
    body = (
        "Time (s),Main Avg Current (mA),Main Avg Voltage (V),USB Avg Current (mA),USB Avg Voltage (V)\r\n"
        "0.0000,1000,4,100,5\r\n0.0002,,4,100,5\r\n0.0004,1000,4,,\r\n"
    )
    recording = read_bytes("powertool-csv", body, tmp_path)
    main, usb = recording.traces
    assert (main.channel.name, usb.channel.name) == ("main", "usb")
    assert main.power_w.tolist() == [4.0, 0.0, 4.0]
    assert main.gaps.tolist() == [[1, 2]]
    assert usb.gaps.tolist() == [[2, 3]]


def test_pymonsoon_says_ms_and_means_seconds_and_prints_numpy_scalars() -> None:
    recording = read_shared("generated", "monsoon", "pymonsoon.csv")
    (trace,) = recording.traces
    assert trace.period_s == 1 / 5000  # a packet's samples share one stamp: time is rebuilt
    assert trace.power_w[:3].tolist() == pytest.approx([10.5e-3 * 3.7, 11.25e-3 * 3.69, 12e-3 * 3.71])
    assert "rate_disagrees" in slugs(recording)  # this file's stamps are 0.25 s apart


def test_pymonsoon_stamps_that_agree_are_not_doubted(tmp_path: Path) -> None:
    assert "rate_disagrees" not in slugs(read_bytes("pymonsoon-csv", SEEDS["pymonsoon-csv"](), tmp_path))


def test_a_pymonsoon_aux_channel_has_no_voltage(tmp_path: Path) -> None:
    body = "Time(ms),Main(mA),Aux(mA),Main Voltage(V),\n0,1,5,3,\n0,1,5,3,\n"
    recording = read_bytes("pymonsoon-csv", body, tmp_path)
    assert [trace.channel.name for trace in recording.traces] == ["main"]
    assert "channel_without_voltage" in slugs(recording)


def test_pt4_knows_coarse_and_missing_samples() -> None:
    recording = read_shared("handmade", "monsoon", "demo.pt4")
    (trace,) = recording.traces
    assert trace.power_w.tolist() == pytest.approx([0.01234 * 3.7, 0.012 * 3.7, 0.0, 0.012342 * 3.7], rel=1e-6)
    assert trace.gaps.tolist() == [[2, 3]]
    assert trace.period_s == 1 / 5000


def test_pt4_counts_and_tails_are_checked(tmp_path: Path) -> None:
    body = write_pt4([(1000, 0x73A0)] * 5, stated=9)
    assert {"count_disagrees", "tail_cut"} <= slugs(read_bytes("pt4", body + b"x", tmp_path))
    with pytest.raises(FormatError) as caught:
        read_bytes("pt4", write_pt4([], stated=0), tmp_path)
    assert caught.value.slug == "recording-empty"


def test_pt4_markers_do_not_move_the_voltage(tmp_path: Path) -> None:
    trace = read_bytes("pt4", write_pt4([(1000, 0x73A0), (1000, 0x73A3)]), tmp_path).traces[0]
    assert trace.power_w[0] == trace.power_w[1]


# LPM01A


def test_lpm01a_samples_are_decimal_with_a_nul_now_and_then() -> None:
    recording = read_shared("handmade", "lpm01a", "ascii_dec.txt", voltage_v=3.0, rate_hz=1000.0)
    (trace,) = recording.traces
    kept = [
        watts for k, watts in enumerate(trace.power_w.tolist()) if not any(a <= k < b for a, b in trace.gaps.tolist())
    ]
    assert kept == pytest.approx([640.9e-6 * 3, 641.2e-6 * 3, 639.8e-6 * 3, 1250e-6 * 3, 0.0])
    assert trace.edges_ns is not None
    assert int(trace.edges_ns[-1]) == 1_002_000_000
    assert "time_gap" in slugs(recording)


def test_lpm01a_takes_its_rate_from_between_stamps_or_from_the_user() -> None:
    recording = read_shared("handmade", "lpm01a", "ascii_dec.txt", voltage_v=3.0)
    assert recording.metadata["period_s"] == "0.333333"
    (trace,) = recording.traces
    assert trace.edges_ns is not None
    assert int(trace.edges_ns[3]) == 1_000_000_000


def test_lpm01a_without_stamps_needs_a_rate_and_always_a_supply(tmp_path: Path) -> None:
    body = "PowerShield > ack start\n6409-07\n6410-07\n"
    with pytest.raises(InputError) as caught:
        read_bytes("lpm01a", body, tmp_path, voltage_v=3.0)
    assert caught.value.slug == "rate-needed"
    with pytest.raises(InputError) as volts:
        read_bytes("lpm01a", body, tmp_path, rate_hz=10.0)
    assert volts.value.slug == "voltage-needed"
    recording = read_bytes("lpm01a", body, tmp_path, voltage_v=1.0, rate_hz=10.0)
    assert recording.traces[0].duration_s == pytest.approx(0.2)
    assert "recording_unfinished" in slugs(recording)


def test_lpm01a_messages_and_a_full_buffer_are_said(tmp_path: Path) -> None:
    body = (
        "TimeStamp: 000s 000ms, buff 00%\n+6409-07\n6409-07\nPowerShield > error: overrun\n"
        "TimeStamp: 000s 020ms, buff 100%\n6409-07\nPowerShield > Acquisition completed\nSummary: 3 samples\n"
    )
    recording = read_bytes("lpm01a", body, tmp_path, voltage_v=1.0)
    assert {"buffer_full", "instrument_message"} <= slugs(recording)
    assert "line_unreadable" not in slugs(recording)


def test_lpm01a_binary_samples_have_a_base_of_16() -> None:
    recording = read_shared("handmade", "lpm01a", "bin_hexa.bin", voltage_v=1.0, rate_hz=1000.0)
    (trace,) = recording.traces
    assert trace.power_w[0] == pytest.approx(672 / 16**5)
    assert trace.power_w[2] == pytest.approx(291 / 16**4)
    assert "recording_unfinished" not in slugs(recording)


def test_lpm01a_binary_drops_what_comes_before_the_first_stamp(tmp_path: Path) -> None:
    stamp = b"\xf0\xf3" + struct.pack(">I", 5) + b"\x00\xff\xff"
    body = (
        b"\xf0\xf2hello\xff\xff"
        + b"\x52\xa0" * 3
        + stamp
        + b"\x52\xa0" * 2
        + b"\xf0\xf1bad\xff\xff"
        + b"\xf0\xf5\xff\xff\x52"
    )
    recording = read_bytes("lpm01a-binary", body, tmp_path, voltage_v=1.0, rate_hz=1000.0)
    assert recording.traces[0].n == 2
    assert {"samples_without_time", "instrument_message", "instrument_overcurrent", "tail_cut"} <= slugs(recording)
    with pytest.raises(FormatError):
        read_bytes("lpm01a-binary", b"\x52\xa0" * 10, tmp_path, voltage_v=1.0)


@pytest.mark.parametrize("unit", ["J", "uJ"])
def test_lpm01a_energies_of_a_period_are_divided_by_it_and_need_no_supply(unit: str, tmp_path: Path) -> None:
    body = "PowerShield > ack start\nTimeStamp: 001s 000ms, buff 00%\n" + "".join(f"{2000 + k}-09\n" for k in range(10))
    body += "TimeStamp: 002s 000ms, buff 00%\n3000-09\nPowerShield > Acquisition completed\n"
    (trace,) = read_bytes("lpm01a", body, tmp_path, units={"value": unit}).traces
    scale = {"J": 1.0, "uJ": 1e-6}[unit]
    assert trace.power_w.tolist() == pytest.approx([scale * e for e in [*(2e-5 + k * 1e-8 for k in range(10)), 3e-5]])
    assert trace.edges_ns is not None
    energy_j = float((trace.power_w * np.diff(trace.edges_ns)).sum()) * 1e-9
    assert energy_j == pytest.approx(scale * (sum(range(2000, 2010)) + 3000) * 1e-9, rel=1e-12)
    packed = b"\xf0\xf3" + struct.pack(">I", 0) + b"\x00\xff\xff" + b"\x52\xa0" * 4 + b"\xf0\xf4\xff\xff"
    (binary,) = read_bytes("lpm01a-binary", packed, tmp_path, units={"value": unit}, rate_hz=100.0).traces
    assert binary.power_w.tolist() == pytest.approx([scale * 672 / 16**5 * 100] * 4)
    with pytest.raises(UsageError) as caught:
        read_bytes("lpm01a", body, tmp_path, units={"value": "V"}, voltage_v=3.0)
    assert caught.value.slug == "unit-unknown"


def test_lpm01a_samples_before_the_first_stamp_have_no_time_in_either_form(tmp_path: Path) -> None:
    body = "PowerShield > ack start\n6409-07\n6410-07\nTimeStamp: 001s 000ms, buff 00%\n6411-07\n6412-07\n"
    recording = read_bytes("lpm01a", body, tmp_path, voltage_v=1.0, rate_hz=10.0)
    assert recording.traces[0].power_w.tolist() == pytest.approx([641.1e-6, 641.2e-6])
    assert "samples_without_time" in slugs(recording)


def test_powertool_rails_without_a_reading_or_a_voltage_do_not_stop_the_others(tmp_path: Path) -> None:
    head = "Time (s),Main Avg Current (mA),Main Avg Power (mW),USB Avg Current (mA),Aux Avg Current (mA)\n"
    recording = read_bytes("powertool-csv", head + "0,1,10,,5\n0.0002,1,11,,5\n", tmp_path)
    assert [trace.channel.name for trace in recording.traces] == ["main"]
    assert recording.traces[0].power_w.tolist() == pytest.approx([0.010, 0.011])
    assert {"channel_empty", "channel_without_voltage"} <= slugs(recording)
    stated = read_bytes("powertool-csv", head + "0,1,10,,5\n0.0002,1,11,,5\n", tmp_path, voltage_v=2.0)
    assert stated.traces[1].power_w.tolist() == pytest.approx([0.010, 0.010])
    with pytest.raises(InputError) as caught:
        read_bytes("powertool-csv", "Time (s),Main Avg Current (mA)\n0,1\n1,1\n", tmp_path)
    assert caught.value.slug == "voltage-needed"


# EnergyTrace


def test_the_published_figures_of_the_energytrace_log_come_out() -> None:
    recording = read_shared("generated", "energytrace_recording", "ledblink.etlog")
    (trace,) = recording.traces
    assert trace.channel.provenance is Provenance.MEASURED_COUNTER
    assert trace.n == 7619
    assert energy_j(trace) == pytest.approx(0.023088, abs=1e-9)  # last minus first, 0.0230 J as published
    assert f"{energy_j(trace):.4f}" == "0.0231"
    assert trace.duration_s == pytest.approx(2.014839, abs=1e-9)
    assert float(trace.power_w.mean()) == pytest.approx(11459.34e-6, rel=2e-4)
    assert float(recording.lanes[0].value.mean()) == pytest.approx(3.28995, abs=1e-5)
    assert trace.start_ns == 1_320_000


def rows(*values: tuple[int, ...]) -> str:
    return "#MSP430 x\n" + "".join(" ".join(map(str, row)) + "\n" for row in values) + "#end\n"


def test_the_energy_counter_wraps_at_32_bits(tmp_path: Path) -> None:
    body = rows((0, 0, 3300, 2147483000), (1000, 0, 3300, 2147483600), (2000, 0, 3300, -2147483096))
    recording = read_bytes("energytrace", body, tmp_path)
    assert recording.traces[0].power_w.tolist() == pytest.approx([600e-9 / 1e-3, 600e-9 / 1e-3])
    assert "counter_wrapped" in slugs(recording)


def test_energytrace_plus_plus_has_state_bits_first(tmp_path: Path) -> None:
    recording = read_bytes("energytrace", rows((7, 0, 0, 3300, 0), (7, 1000, 0, 3300, 500)), tmp_path)
    assert recording.traces[0].power_w.tolist() == pytest.approx([500e-9 / 1e-3])
    assert "state_bits_unused" in slugs(recording)


def test_an_impossible_step_of_the_counter_is_a_gap(tmp_path: Path) -> None:
    body = rows((0, 0, 3300, 0), (1000, 0, 3300, 500), (2000, 0, 3300, 90_000_000), (3000, 0, 3300, 90_000_500))
    recording = read_bytes("energytrace", body, tmp_path)
    assert recording.traces[0].gaps.tolist() == [[1, 2]]
    assert "impossible_power" in slugs(recording)


# Arm Energy Probe


def test_energy_probe_triples_are_milliwatts_first() -> None:
    recording = read_shared("handmade", "energy_probe", "0000000000")
    (trace,) = recording.traces
    assert trace.power_w.tolist() == pytest.approx([1.2, 1.201, 1.202, 1.203, 1.204])
    assert trace.period_s == 1e-4
    assert "ports_unstated" in slugs(recording)


def test_energy_probe_ports_are_stated_and_a_cut_row_is_left_out(tmp_path: Path) -> None:
    body = b"".join(struct.pack("<6I", 1000, 1000, 1000, 4000, 2000, 2000) for _ in range(5)) + b"\1\2\3"
    recording = read_bytes("energy-probe", body, tmp_path, columns={"ports": "2"}, rate_hz=1000.0)
    assert {trace.channel.name: float(trace.power_w[0]) for trace in recording.traces} == {"port0": 1.0, "port1": 4.0}
    assert slugs(recording) == {"tail_cut"}
    with pytest.raises(InputError) as caught:
        read_bytes("energy-probe", body, tmp_path, columns={"ports": "9"})
    assert caught.value.slug == "ports-impossible"


def test_energy_probe_numbers_that_do_not_multiply_are_refused(tmp_path: Path) -> None:
    body = struct.pack("<3I", 1, 5000, 5000) * 20
    with pytest.raises(FormatError) as caught:
        read_bytes("energy-probe", body, tmp_path)
    assert caught.value.slug == "energy-probe-mismatch"


# PowerSensor3


def test_powersensor3_time_is_the_sum_of_the_steps() -> None:
    recording = read_shared("handmade", "powersensor3", "dump.txt")
    (trace,) = recording.traces
    assert trace.channel.name == "pair0"
    assert trace.edges_ns is not None
    assert np.diff(trace.edges_ns).tolist() == [51_000, 51_000, 50_000]
    assert trace.power_w.tolist() == [12.2502, 12.3703, 12.36]
    assert [(mark.name, mark.time_ns) for mark in recording.markers[0].markers] == [("A", 102_000)]


def test_powersensor3_total_contains_the_pairs(tmp_path: Path) -> None:
    head = "marker time dt_micro device_timestamp current0 voltage0 power0 current1 voltage1 power1 power_total\n"
    body = head + "".join(f"S {1767323045 + k * 0.001:.6f} 1000 {k % 2} 1 12 12 2 5 10 22\n" for k in range(4))
    recording = read_bytes("powersensor3", body, tmp_path)
    assert [trace.channel.name for trace in recording.traces] == ["pair0", "pair1", "total"]
    assert recording.overlaps == (("pair0", "total"), ("pair1", "total"))
    assert recording.traces[0].clock.kind is ClockKind.UTC


def test_a_coarse_powersensor3_time_column_is_not_used_but_checked(tmp_path: Path) -> None:
    head = "marker time dt_micro device_timestamp current0 voltage0 power0 power_total\n"
    fine = head + "".join(f"S {1000 + round(k * 0.001, 2)} 1000 {k} 1 12 12 12\n" for k in range(50))
    assert "time_disagrees" not in slugs(read_bytes("powersensor3", fine, tmp_path))
    off = head + "".join(f"S {1000 + k * 0.01:.2f} 1000 {k} 1 12 12 12\n" for k in range(50))
    assert "time_disagrees" in slugs(read_bytes("powersensor3", off, tmp_path))
