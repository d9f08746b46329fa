"""Counters of a capture: wraps, glitches, resets and standstills; a gap, never a wrong number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError
from joulemap.meters.live.sampling.writer import encode_note
from live_captures import COUNTER, STEP_UJ, capture_bytes, energy_j, only, ramp, read_bytes, rows_of, slugs


def test_a_counter_is_differenced(tmp_path: Path) -> None:
    trace = only(read_bytes(capture_bytes(ramp(50)), tmp_path))
    assert trace.channel.name == "m:package-0"
    assert trace.n == 49
    np.testing.assert_allclose(trace.power_w, 20.0)
    assert trace.lost_samples == 0


def test_a_wrap_adds_the_modulus_and_is_said(tmp_path: Path) -> None:
    raw = (ramp(50, 2.0**32 - 10.5 * STEP_UJ)) % 2.0**32
    recording = read_bytes(capture_bytes(raw), tmp_path)
    np.testing.assert_allclose(only(recording).power_w, 20.0)
    assert slugs(recording) == ["counter_wrapped"]
    assert "4.295\u2009kJ was added" in recording.findings[0].message


def test_readings_that_fail_are_bridged_exactly(tmp_path: Path) -> None:
    raw = ramp(50)
    raw[20:30] = np.nan
    recording = read_bytes(capture_bytes(raw), tmp_path)
    trace = only(recording)
    assert energy_j(trace, 1.0, 5.9) == pytest.approx(49 * STEP_UJ * 1e-6)
    assert slugs(recording) == ["readings_failed"]
    assert trace.lost_samples == 0


BACK = encode_note("meter_back", "m was opened again", 4 * 10**9 - 5000, 0)
OTHER = encode_note("meter_back", "n was opened again", 4 * 10**9 - 5000, 1)


@pytest.mark.parametrize(
    ("before_uj", "after_uj", "note", "lost"),
    [
        (0.0, 0.0, BACK, False),  # it went on counting
        (2.0**32 - 25.5 * STEP_UJ, 2.0**32 - 25.5 * STEP_UJ, BACK, False),  # it passed its end meanwhile
        (2.0**32 - 150 * STEP_UJ, -30 * STEP_UJ, BACK, True),  # it began anew: 267 W as a wrap, where 20 W are usual
        (2.0**32 - 150 * STEP_UJ, -30 * STEP_UJ, b"", True),  # the same, by a file that was looked for again
        (0.0, -10 * STEP_UJ, BACK, True),  # it began anew and is above what it was: 2 W
        (0.0, -10 * STEP_UJ, b"", False),  # nobody lost it: it may have drawn little
        (0.0, -10 * STEP_UJ, OTHER, False),
    ],
)
def test_a_counter_that_comes_back_is_bridged_when_it_went_on_and_a_gap_when_it_began_anew(
    before_uj: float, after_uj: float, note: bytes, lost: bool, tmp_path: Path
) -> None:
    raw = ramp(60)
    raw[:20] += before_uj
    raw[20:] += after_uj
    raw %= 2.0**32
    raw[20:30] = np.nan
    recording = read_bytes(capture_bytes(raw, blocks=[note] if note else []), tmp_path)
    assert ("counter_lost" in slugs(recording)) == lost
    trace = only(recording)
    assert trace.lost_samples == int(lost)
    assert float(trace.power_w.max()) == pytest.approx(20.0)


def test_a_counter_that_is_reset_leaves_a_gap_and_never_a_number(tmp_path: Path) -> None:
    raw = ramp(50)
    raw[25:] -= raw[25] - 7.0
    recording = read_bytes(capture_bytes(raw), tmp_path)
    trace = only(recording)
    assert slugs(recording).count("counter_lost") == 1
    assert trace.lost_samples == 1
    assert float(trace.power_w.max()) == pytest.approx(20.0)


def test_a_reset_without_a_limit_of_power_is_no_wrap(tmp_path: Path) -> None:
    raw = ramp(50)
    raw[25:] -= raw[25] - 7.0
    recording = read_bytes(capture_bytes(raw, replace(COUNTER, largest_w=None)), tmp_path)
    assert "counter_lost" in slugs(recording)
    assert float(only(recording).power_w.max()) == pytest.approx(20.0)


@pytest.mark.parametrize("odd", [5.0, 4e9])
def test_one_reading_that_fits_neither_neighbour_is_left_out(odd: float, tmp_path: Path) -> None:
    raw = ramp(50)
    raw[25] = odd
    recording = read_bytes(capture_bytes(raw), tmp_path)
    trace = only(recording)
    assert slugs(recording) == ["counter_glitch"]
    assert energy_j(trace, 1.0, 5.9) == pytest.approx(49 * STEP_UJ * 1e-6)


def test_a_jump_beyond_any_power_is_a_gap(tmp_path: Path) -> None:
    raw = ramp(50)
    raw[25:] += 1e9
    recording = read_bytes(capture_bytes(raw), tmp_path)
    assert slugs(recording) == ["counter_lost", "samples_lost"]
    assert only(recording).lost_samples == 1


def test_two_wraps_cannot_be_told_and_are_a_gap(tmp_path: Path) -> None:
    domain = replace(COUNTER, modulus=1e8)  # 0.2 s at 500 W
    rows = rows_of(ramp(40) % 1e8)
    stamps = rows.stamp_ns.copy()
    stamps[20:] += 30 * 10**9
    recording = read_bytes(capture_bytes([], domain, rows=replace(rows, stamp_ns=stamps)), tmp_path)
    assert "counter_lost" in slugs(recording)
    assert energy_j(only(recording), 2.0, 33.0) == pytest.approx(energy_j(only(recording), 2.0, 2.9))


def test_a_counter_that_stands_still_and_goes_on_is_a_gap(tmp_path: Path) -> None:
    raw = np.concatenate([ramp(40), np.full(40, 39 * STEP_UJ), ramp(40, 40 * STEP_UJ)])
    recording = read_bytes(capture_bytes(raw), tmp_path)
    assert "meter_frozen" in slugs(recording)
    trace = only(recording)
    assert trace.lost_samples == 1
    assert float(trace.power_w[trace.power_w > 0].min()) == pytest.approx(20.0)


def test_a_counter_that_catches_up_loses_nothing(tmp_path: Path) -> None:
    raw = ramp(120)
    raw[40:80] = raw[39]
    recording = read_bytes(capture_bytes(raw), tmp_path)
    assert "meter_frozen" not in slugs(recording)
    assert energy_j(only(recording), 1.0, 12.9) == pytest.approx(119 * STEP_UJ * 1e-6)


def test_a_counter_that_stops_before_the_end_is_a_gap_to_the_end(tmp_path: Path) -> None:
    raw = np.concatenate([ramp(40), np.full(40, 39 * STEP_UJ)])
    recording = read_bytes(capture_bytes(raw), tmp_path)
    trace = only(recording)
    assert "meter_frozen" in slugs(recording)
    assert trace.end_ns == 10**9 + 79 * 10**8
    assert trace.lost_samples == 1


def test_a_meter_that_is_lost_for_good_is_a_gap_to_the_end(tmp_path: Path) -> None:
    raw = ramp(80)
    raw[40:] = np.nan
    recording = read_bytes(capture_bytes(raw), tmp_path)
    assert "meter_lost" in slugs(recording)
    assert only(recording).lost_samples == 1


def test_a_counter_that_never_moves_gives_no_energy(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read_bytes(capture_bytes(np.full(50, 7.0)), tmp_path)
    assert caught.value.slug == "recording-empty"


def test_a_counter_of_few_counts_may_stand_still(tmp_path: Path) -> None:
    raw = np.repeat(np.arange(12.0), np.r_[np.full(11, 3), 30])
    recording = read_bytes(capture_bytes(raw, replace(COUNTER, scale=3.6)), tmp_path)
    assert "repeats_merged" not in slugs(recording)
    assert only(recording).channel.name == "m:package-0"
