"""Saleae, sigrok and oscilloscope files: lanes, lines, and power by a stated map only."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import sniff
from joulemap.records.recording import Recording
from joulemap.trace import KernelKind
from recording_files import read_bytes, shared_file, slugs


def read_shared(*parts: str, **options: object) -> Recording:
    path = shared_file(*parts)
    return sniff(path).read(path, ReadOptions(**options))  # type: ignore[arg-type]


def edges(recording: Recording, name: str) -> list[tuple[int, str]]:
    track = next(track for track in recording.markers if track.name == name)
    return [(mark.time_ns, str(mark.direction)) for mark in track.markers]


def test_saleae_analog_time_is_begin_plus_the_downsampled_index() -> None:
    recording = read_shared("handmade", "saleae", "analog_0.bin")
    (lane,) = recording.lanes
    assert lane.time_ns.tolist() == [-1_000_000 + 5_000 * k for k in range(4)] or lane.value.size == 5
    assert lane.value[:3].tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert recording.traces == ()
    assert "power_not_mapped" in slugs(recording)


def test_saleae_digital_transitions_alternate_from_the_initial_state() -> None:
    recording = read_shared("handmade", "saleae", "digital_0.bin")
    assert edges(recording, "channel") == [(0, "rise"), (2_000_000, "fall"), (4_000_000, "rise")]
    assert [(one.start_ns, one.end_ns) for one in recording.timelines[0]] == [(0, 2_000_000), (4_000_000, 10_000_000)]


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        (b"<SALEAE>" + struct.pack("<ii", 1, 1) + bytes(40), "saleae-version"),
        (b"<SALEAE>" + struct.pack("<ii", 0, 2) + bytes(40), "saleae-version"),
        (b"<SALEAE>" + struct.pack("<iidQQQ", 0, 1, float("nan"), 1, 1, 1) + bytes(4), "saleae-head"),
        (b"<SALEAE>" + struct.pack("<iidQQQ", 0, 1, 0.0, 0, 1, 1) + bytes(4), "saleae-head"),
        (b"<SALEAE>" + struct.pack("<iiIddQ", 0, 0, 5, 0.0, 1.0, 0), "saleae-head"),
        (b"<SALEAE>", "saleae-head"),
    ],
)
def test_saleae_heads_that_cannot_be_are_refused(body: bytes, slug: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read_bytes("saleae", body, tmp_path)
    assert caught.value.slug == slug


def test_saleae_counts_are_checked_against_the_file(tmp_path: Path) -> None:
    body = b"<SALEAE>" + struct.pack("<iidQQQ", 0, 1, 0.0, 1000, 1, 1 << 50) + np.ones(10, "<f4").tobytes()
    recording = read_bytes("saleae", body, tmp_path)
    assert recording.lanes[0].value.size == 10
    assert "count_disagrees" in slugs(recording)


def test_saleae_csv_rows_are_changes_when_every_value_is_a_bit() -> None:
    digital = read_shared("handmade", "saleae", "digital.csv")
    assert edges(digital, "Channel 0") == [(0, "rise"), (2_000_000, "fall")]
    analog = read_shared("handmade", "saleae", "analog.csv")
    assert [lane.name for lane in analog.lanes] == ["Channel 0", "Channel 1"]
    assert analog.lanes[0].time_ns.tolist() == [-1_000_000, -996_000]


def test_a_map_with_a_probe_ratio_makes_power() -> None:
    recording = read_shared(
        "handmade", "saleae", "analog.csv",
        columns={"current": "Channel 0", "voltage": "Channel 1"}, units={"current": "100 mA/V"},
    )  # fmt: skip
    (trace,) = recording.traces
    assert trace.power_w.tolist() == pytest.approx([0.01 * 3.3, 0.02 * 3.301])
    assert trace.channel.kernel.kind is KernelKind.POINT
    assert recording.lanes == ()


@pytest.mark.parametrize(
    ("columns", "units", "slug"),
    [
        ({"current": "nope"}, {}, "column-missing"),
        ({"current": "Channel 0"}, {}, "probe-ratio-needed"),
        ({"current": "Channel 0"}, {"current": "x"}, "unit-unknown"),
        ({"current": "Channel 0"}, {"current": "1 V/V"}, "unit-unknown"),
        ({"current": "Channel 0"}, {"current": "0 A/V"}, "unit-unknown"),
        ({"current": "Channel 0"}, {"current": "1 A/V"}, "voltage-needed"),
    ],
)
def test_a_map_that_does_not_fit_is_said(columns: dict[str, str], units: dict[str, str], slug: str) -> None:
    with pytest.raises(UsageError if slug == "unit-unknown" else InputError) as caught:
        read_shared("handmade", "saleae", "analog.csv", columns=columns, units=units)
    assert caught.value.slug == slug


def test_a_sigrok_session_has_lines_and_analog_channels() -> None:
    recording = read_shared("generated", "sigrok", "demo.sr")
    assert recording.metadata["rate_hz"] == "10000"
    assert {track.name for track in recording.markers} == {"D0", "D1"}
    lanes = {lane.name: lane for lane in recording.lanes}
    assert lanes["A0"].value[:6].tolist() == pytest.approx([-10, -10, -10, -10, -10, 10])
    assert lanes["A1"].value[1] == pytest.approx(3.09017, abs=1e-5)
    assert lanes["A0"].value.size == 200
    assert lanes["A0"].time_ns[1] == 100_000


@pytest.mark.parametrize("name", ["csv.csv", "csv_label_channel.csv", "csv_time_true.csv",
                                  "csv_time_true_label_channel_dedup_true.csv", "fromsr_time.csv"])  # fmt: skip
def test_every_form_of_sigrok_csv_gives_the_same_edges(name: str) -> None:
    recording = read_shared("generated", "sigrok", name)
    timed = "time" in name
    shift = 100_000 if timed else 0  # with a time column the first row is one period, not 0
    assert edges(recording, "D0")[:2] == [(100_000 + shift, "fall"), (400_000 + shift, "rise")]
    lanes = {lane.name: lane for lane in recording.lanes}
    assert set(lanes) == {"A0", "A1"}
    assert lanes["A0"].value[0] == -10.0
    assert "stray_lines" in slugs(recording)


def test_sigrok_csv_with_analog_channels_only() -> None:
    recording = read_shared("generated", "sigrok", "analog_only_time.csv")
    lanes = {lane.name: lane for lane in recording.lanes}
    assert lanes["A1"].value.tolist() == pytest.approx([0, 3.09017, 5.87785, 8.09017, 9.51056, 10], abs=2e-5)
    assert lanes["A1"].time_ns.tolist() == [k * 10**6 for k in range(1, 7)]


def test_a_rigol_time_is_start_plus_index_times_increment() -> None:
    recording = read_shared("handmade", "scope", "rigol_ds1000z.csv")
    lanes = {lane.name: lane for lane in recording.lanes}
    assert lanes["CH1"].time_ns.tolist() == [-6000, -5000, -4000]
    assert lanes["CH2"].value.tolist() == [3.3, 3.3, 3.29]


def test_a_rigol_ds1000e_has_names_in_brackets(tmp_path: Path) -> None:
    body = "Time,X(CH1),X(CH2)\nSecond,Volt,Volt\n-1.0e-3,0.1,3.3\n0.0,0.2,3.3\n"
    recording = read_bytes("scope-csv", body, tmp_path)
    assert [lane.name for lane in recording.lanes] == ["CH1", "CH2"]


def test_keysight_columns_carry_their_units() -> None:
    recording = read_shared("handmade", "scope", "keysight.csv", columns={"current": "2", "voltage": "1"})
    assert recording.traces[0].power_w.tolist() == pytest.approx([3.3 * 0.012, 3.301 * 0.0121])
    guess = next(f for f in read_shared("handmade", "scope", "keysight.csv").findings if f.slug == "power_not_mapped")
    assert "--column current='2'" in guess.message


@pytest.mark.parametrize("name", ["siglent_old.csv", "siglent_new.csv"])
def test_siglent_forms(name: str) -> None:
    recording = read_shared("handmade", "scope", name)
    (lane,) = recording.lanes
    assert lane.value.tolist() == pytest.approx([0.1, 0.11, 0.12])
    assert lane.time_ns.tolist() == [-1000, 0, 1000]
    assert (lane.name, lane.unit) == ("CH1", "V")


def test_a_siglent_on_scope_export_and_a_record_length_that_disagrees(tmp_path: Path) -> None:
    on_scope = "Source,CH1\nSecond,Volt\n0.0,1.0\n1e-6,2.0\n"
    assert read_bytes("scope-csv", on_scope, tmp_path).lanes[0].value.tolist() == [1.0, 2.0]
    body = "Record Length,Analog:9\nSample Rate,1e6\nSecond,Volt\n0.0,1.0\n1e-6,2.0\n"
    assert "count_disagrees" in slugs(read_bytes("scope-csv", body, tmp_path))


def test_picoscope_infinity_is_out_of_range_and_missing() -> None:
    recording = read_shared("handmade", "scope", "picoscope.csv")
    lanes = {lane.name: lane for lane in recording.lanes}
    assert np.isnan(lanes["Channel A"].value).tolist() == [False, True, False]
    assert np.isnan(lanes["Channel B"].value).tolist() == [False, False, True]
    assert lanes["Channel B"].value[0] == pytest.approx(0.012)  # mA in the header
    assert lanes["Channel A"].time_ns.tolist() == [-100_000, -99_000, -98_000]
    assert "over_range" in slugs(recording)


def test_a_missing_sample_of_a_mapped_channel_is_a_gap() -> None:
    recording = read_shared(
        "handmade", "scope", "picoscope.csv", columns={"current": "Channel B", "voltage": "Channel A"}
    )
    assert recording.traces[0].gaps.tolist() == [[1, 3]]


def test_what_no_scope_writes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read_bytes("scope-csv", "a,b\n1,2\n", tmp_path)
    assert caught.value.slug == "column-missing"
