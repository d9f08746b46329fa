"""Nordic PPK2: the archive and the CSV exports of several years."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError, InputError
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import sniff
from joulemap.trace import ClockKind
from recording_files import read_bytes, shared_file, slugs, write_ppk2

LOW, HIGH, BOTH, INVALID = 1, 2, 3, 0


def word(*pairs: int) -> int:
    """Returns the raw word of the pairs of D0, D1, ...; the rest are low."""
    filled = [*pairs, *[LOW] * (8 - len(pairs))]
    return sum(pair << (2 * bit) for bit, pair in enumerate(filled))


def test_current_is_little_endian_and_bits_are_big_endian() -> None:
    path = shared_file("handmade", "ppk2", "demo.ppk2")
    recording = sniff(path).read(path, ReadOptions(voltage_v=3.0))
    (trace,) = recording.traces
    expected = np.array([100.0 + k for k in range(20)]) * 3e-6
    expected[8:10] = 0
    assert trace.power_w.tolist() == pytest.approx(expected.tolist(), rel=1e-6)
    assert trace.gaps.tolist() == [[8, 10]]
    assert trace.period_s == 1e-5
    assert (trace.clock.kind, trace.start_ns) == (ClockKind.UTC, 1767323045123 * 10**6)
    assert [(one.start_ns - trace.start_ns, one.end_ns - trace.start_ns) for one in recording.timelines[0]] == [
        (50_000, 200_000)
    ]


def test_a_pair_may_be_low_high_both_or_invalid(tmp_path: Path) -> None:
    bits = [word(LOW), word(HIGH), word(INVALID), word(HIGH), word(LOW), word(BOTH), word(LOW)]
    recording = read_bytes("ppk2", write_ppk2([1.0] * 7, bits), tmp_path, voltage_v=1.0)
    start = recording.traces[0].start_ns
    (line,) = recording.timelines
    assert [((one.start_ns - start) // 10_000, (one.end_ns - start) // 10_000) for one in line] == [(1, 4), (5, 6)]
    assert "line_both_levels" in slugs(recording)


def test_the_supply_must_be_stated(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_bytes("ppk2", write_ppk2([1.0, 2.0]), tmp_path)
    assert caught.value.slug == "voltage-needed"


def test_a_start_time_may_be_missing(tmp_path: Path) -> None:
    recording = read_bytes("ppk2", write_ppk2([1.0, 2.0], start=None), tmp_path, voltage_v=1.0)
    assert recording.traces[0].clock.kind is ClockKind.SAMPLE_INDEX
    assert "start_unstated" in slugs(recording)


@pytest.mark.parametrize(
    ("rate", "start", "slug"),
    [(0, None, "rate-impossible"), (-5, None, "rate-impossible"), (10**9, None, "rate-impossible"),
     ("fast", None, "rate-impossible"), (True, None, "rate-impossible"), (1000, "noon", "ppk2-metadata"),
     (1000, 1e300, "ppk2-metadata")],
)  # fmt: skip
def test_impossible_metadata_are_refused(rate: object, start: object, slug: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read_bytes("ppk2", write_ppk2([1.0, 2.0], rate=rate, start=start), tmp_path, voltage_v=1.0)
    assert caught.value.slug == slug


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    whole = write_ppk2([float(k) for k in range(5000)])
    body = bytearray(whole)
    body[len(body) // 3] ^= 0xFF
    for damaged in (bytes(body), whole[:-30]):
        with pytest.raises(FormatError) as caught:
            read_bytes("ppk2", damaged, tmp_path, voltage_v=1.0)
        assert caught.value.slug == "archive-damaged"


def test_lost_samples_keep_their_time(tmp_path: Path) -> None:
    # a recording of 40 s must not be shown as shorter because data were dropped
    currents = [100.0] * 400
    currents[50:350] = [float("nan")] * 300
    recording = read_bytes("ppk2", write_ppk2(currents, rate=10), tmp_path, voltage_v=1.0)
    assert recording.traces[0].duration_s == pytest.approx(40.0)
    assert recording.traces[0].lost_samples == 300


def test_rows_that_the_app_left_out_are_gaps() -> None:
    path = shared_file("handmade", "ppk2", "plain.csv")
    recording = sniff(path).read(path, ReadOptions(voltage_v=2.0))
    (trace,) = recording.traces
    assert trace.edges_ns is not None
    assert trace.edges_ns.tolist() == [0, 10_000, 20_000, 40_000, 50_000]
    assert trace.power_w.tolist() == pytest.approx([200e-6, 202e-6, 0.0, 208e-6])
    assert trace.gaps.tolist() == [[2, 3]]
    assert "time_gap" in slugs(recording)


def test_both_bit_forms_may_stand_together_and_d0_comes_first() -> None:
    path = shared_file("handmade", "ppk2", "both_bit_columns.csv")
    recording = sniff(path).read(path, ReadOptions(voltage_v=3.0))
    assert [timeline.tracks for timeline in recording.timelines] == [("D0",), ("D7",)]


def test_old_bits_are_read_with_a_warning() -> None:
    path = shared_file("handmade", "ppk2", "old_bits.csv")
    recording = sniff(path).read(path, ReadOptions(voltage_v=3.0, rate_hz=100_000))
    assert recording.traces[0].power_w.tolist() == pytest.approx([300e-6])
    assert "bit_order_old" in slugs(recording)


def test_an_invalid_bit_keeps_the_level_and_an_x_is_high(tmp_path: Path) -> None:
    rows = "Timestamp(ms),Current(uA),D0\n0,1,0\n0.01,1,-\n0.02,1,X\n0.03,1,-\n0.04,1,0\n"
    recording = read_bytes("ppk2-csv", rows, tmp_path, voltage_v=1.0)
    assert [(one.start_ns, one.end_ns) for one in recording.timelines[0]] == [(20_000, 40_000)]


def test_an_export_without_time_needs_a_rate(tmp_path: Path) -> None:
    body = "Current(uA),D0-D7\n1,00000000\n2,10000000\n"
    with pytest.raises(InputError) as caught:
        read_bytes("ppk2-csv", body, tmp_path, voltage_v=1.0)
    assert caught.value.slug == "rate-needed"
    recording = read_bytes("ppk2-csv", body, tmp_path, voltage_v=1.0, rate_hz=1000.0)
    assert recording.traces[0].period_s == 1e-3
    assert "rows_may_be_missing" in slugs(recording)


@pytest.mark.parametrize(
    "body", ["Timestamp(ms),Current(uA)\r\n0,1\r\n0.01,2\r\n", "\ufeffTimestamp(ms);Current(µA)\n0,00;1,0\n0,01;2,0\n"]
)
def test_spreadsheet_habits_do_not_matter(body: str, tmp_path: Path) -> None:
    recording = read_bytes("ppk2-csv", body, tmp_path, voltage_v=1.0)
    assert recording.traces[0].power_w.tolist() == pytest.approx([1e-6, 2e-6])
    assert recording.traces[0].edges_ns is not None
    assert recording.traces[0].edges_ns.tolist() == [0, 10_000, 20_000]


def test_a_known_charge_and_energy_come_out(tmp_path: Path) -> None:
    # 167 samples of 10 us: charge is the sum of the currents times 10 us, energy that times 3.7 V
    current_ua = [385105.0 + k for k in range(167)]
    body = "Timestamp(ms),Current(uA)\n" + "".join(
        f"{2183.78 + k / 100:.2f},{ua:.3f}\n" for k, ua in enumerate(current_ua)
    )
    trace = read_bytes("ppk2-csv", body, tmp_path, voltage_v=3.7).traces[0]
    assert trace.edges_ns is not None
    energy_j = float((trace.power_w * np.diff(trace.edges_ns)).sum()) * 1e-9
    assert energy_j == pytest.approx(sum(current_ua) * 1e-6 * 1e-5 * 3.7, rel=1e-12)
    assert trace.start_ns == 2_183_780_000
