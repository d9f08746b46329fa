"""JLS version 1 and the CSV exports of the Joulescope UI."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError, InputError
from joulemap.estimate import Provenance
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import sniff
from joulemap.trace import ClockKind
from recording_files import read_bytes, shared_file, slugs, write_jls_v1

CALIBRATION: dict[str, object] = {
    "current": {"offset": [1.0] * 7, "gain": [1e-6, 2e-6, 3e-6, 4e-6, 5e-6, 6e-6, 7e-6]},
    "voltage": {"offset": [0.0, 0.0], "gain": [1e-3, 2e-3]},
}


def pairs(samples: list[tuple[int, int, int]]) -> bytes:
    """Returns raw samples of (current counts, voltage counts, range), with a toggle that never fails."""
    words = []
    for k, (current, voltage, selected) in enumerate(samples):
        words += [(current << 2) | (selected & 3), (voltage << 2) | ((k & 1) << 1) | (selected >> 2)]
    return np.array(words, "<u2").tobytes()


def test_raw_counts_become_watts_by_the_calibration_of_the_range(tmp_path: Path) -> None:
    raw = pairs([(99, 3300, 0), (99, 3300, 4), (0x3FFF, 0x3FFF, 7), (99, 3300, 0)])
    recording = read_bytes("jls-v1", write_jls_v1(raw, calibration=CALIBRATION), tmp_path)
    trace = recording.traces[0]
    assert trace.power_w.tolist() == pytest.approx([100e-6 * 3.3, 500e-6 * 3.3, 0.0, 100e-6 * 3.3])
    assert trace.gaps.tolist() == [[2, 3]]
    assert trace.period_s == 1e-3
    assert trace.channel.provenance is Provenance.MEASURED_SAMPLED
    assert "range_glitches_kept" in slugs(recording)


def test_without_a_calibration_the_figures_are_counts_and_said_so() -> None:
    path = shared_file("generated", "jls", "v1.jls")
    recording = sniff(path).read(path, ReadOptions())
    assert recording.traces[0].n == 25200
    # the package's own synthetic packets count up: current 2k, voltage 2k + 1, unit gain
    assert recording.traces[0].power_w[:4].tolist() == [0.0, 6.0, 20.0, 42.0]
    assert recording.traces[0].channel.provenance is Provenance.ESTIMATED
    assert next(f for f in recording.findings if f.slug == "calibration_missing").severity.value == "error"


def test_float_blocks_hold_power_or_current_and_voltage(tmp_path: Path) -> None:
    def block(arrays: dict[int, list[float]]) -> bytes:
        head = 16 + 8 * len(arrays)
        table, body = b"", b""
        for key, values in arrays.items():
            raw = np.array(values, "<f4").tobytes()
            table += np.array([(key << 8) | 2, len(raw)], "<u4").tobytes()
            body += raw + b"\0" * (-len(raw) % 8)
        count = len(next(iter(arrays.values())))
        return b"ARRY" + np.array([head + len(body), head, (len(arrays) << 24) | count], "<u4").tobytes() + table + body

    both = write_jls_v1(block({0x01: [1.0, 2.0], 0x11: [3.0, 4.0]}), "float32_v2")
    assert read_bytes("jls-v1", both, tmp_path).traces[0].power_w.tolist() == [3.0, 8.0]
    own = write_jls_v1(block({0x01: [1.0, 2.0], 0x11: [3.0, 4.0], 0x21: [5.0, 6.0]}), "float32_v2")
    assert read_bytes("jls-v1", own, tmp_path).traces[0].power_w.tolist() == [5.0, 6.0]


def test_lost_packets_a_cut_end_and_a_wrong_checksum_are_said(tmp_path: Path) -> None:
    raw = pairs([(99, 3300, 0)] * 8)
    slipped = raw[:16] + raw[20:]
    assert "samples_skipped" in slugs(read_bytes("jls-v1", write_jls_v1(slipped, calibration=CALIBRATION), tmp_path))
    whole = write_jls_v1(raw, calibration=CALIBRATION)
    cut = read_bytes("jls-v1", whole[:-20], tmp_path)
    assert {"tail_cut", "recording_unfinished"} <= slugs(cut)
    body = bytearray(whole)
    at = whole.index(b"ABN") + 12
    body[at] ^= 1
    assert "checksum_wrong" in slugs(read_bytes("jls-v1", bytes(body), tmp_path))
    assert "recording_unfinished" in slugs(
        read_bytes("jls-v1", write_jls_v1(raw, calibration=CALIBRATION, closed=False), tmp_path)
    )
    with pytest.raises(FormatError) as caught:
        read_bytes("jls-v1", write_jls_v1(raw, "other"), tmp_path)
    assert caught.value.slug == "jls-unreadable"


def test_the_screen_export_is_averages_and_says_so() -> None:
    path = shared_file("handmade", "joulescope", "waveform_visible.csv")
    recording = sniff(path).read(path, ReadOptions())
    assert recording.traces[0].power_w.tolist() == pytest.approx([0.033, 0.03333])
    assert recording.traces[0].channel.name == "JS220-000001"
    assert recording.traces[0].clock.kind is ClockKind.MONOTONIC
    assert "decimated_export" in slugs(recording)


def test_the_statistics_export_has_its_own_energy_beside_it() -> None:
    path = shared_file("handmade", "joulescope", "statistics.csv")
    recording = sniff(path).read(path, ReadOptions())
    trace = recording.traces[0]
    assert trace.edges_ns is not None
    assert trace.edges_ns.tolist() == [-500_000_000, 0, 500_000_000]
    totals = {total.key: total.value for total in recording.totals}
    assert totals == {"energy_j": 0.0165172, "charge_c": 0.00500505}
    # the second row covers the half second before it: its mean power gives the stated energy
    assert float(trace.power_w[1]) * 0.5 == pytest.approx(totals["energy_j"], rel=1e-4)


def test_statistics_may_have_utc_or_no_time(tmp_path: Path) -> None:
    head = "#time,current,voltage,power,charge,energy\n"
    utc = read_bytes(
        "joulescope-csv",
        head + "20260102T030405.50Z,1,1,1,0,0\n20260102T030406.00Z,1,1,1,0,0\n",
        tmp_path,
    )
    assert utc.traces[0].clock.kind is ClockKind.UTC
    assert utc.traces[0].end_ns == 1767323046 * 10**9
    without = "#current,voltage,power,charge,energy\n1,1,2,0,0\n1,1,3,0,0\n"
    with pytest.raises(InputError) as caught:
        read_bytes("joulescope-csv", without, tmp_path)
    assert caught.value.slug == "rate-needed"
    assert read_bytes("joulescope-csv", without, tmp_path, rate_hz=2.0).traces[0].period_s == 0.5


def test_a_trace_that_had_no_data_has_a_name_and_no_column(tmp_path: Path) -> None:
    body = "# time,A.current,A.voltage,B.current\n0.0,1.0,2.0\n1.0,1.0,2.0\n"
    recording = read_bytes("joulescope-csv", body, tmp_path)
    assert [trace.channel.name for trace in recording.traces] == ["A"]
    assert "column_empty" in slugs(recording)


@pytest.mark.parametrize("value", [{}, [], "1", 1 << 400, None, 2])
def test_a_configuration_of_another_form_is_typed_and_an_unknown_range_is_the_first(
    value: object, tmp_path: Path
) -> None:
    raw = pairs([(99, 3300, 0)] * 8)
    with pytest.raises(FormatError) as caught:
        read_bytes("jls-v1", write_jls_v1(raw, value, CALIBRATION), tmp_path)
    assert caught.value.slug == "jls-unreadable"
    known, other = (write_jls_v1(raw, calibration=CALIBRATION, v_range=v_range) for v_range in (0, value))
    powers = [read_bytes("jls-v1", body, tmp_path).traces[0].power_w.tolist() for body in (known, other)]
    assert powers[0] == powers[1]
    huge: dict[str, object] = {
        "current": {"offset": [0] * 7, "gain": [10**400] * 7},
        "voltage": {"offset": [0, 0], "gain": [1, 1]},
    }
    assert "calibration_missing" in slugs(read_bytes("jls-v1", write_jls_v1(raw, calibration=huge), tmp_path))
