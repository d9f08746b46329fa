"""What a capture says, and what it does not: powers, signals, clocks, cuts, damage and deadlines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError
from joulemap.formats.ground.building import FindingLog
from joulemap.meters.live.ground.waves import PowerWave, WaveShape
from joulemap.records.live.capture_layout import MAGIC, BlockKind, encode_block
from joulemap.records.live.domain import LiveDomain
from joulemap.trace import integrate_between
from live_captures import (
    COUNTER,
    POWER,
    SIGNAL,
    STEP_UJ,
    capture_bytes,
    clocks_at,
    energy_j,
    header_block,
    header_of,
    only,
    ramp,
    read_bytes,
    rows_of,
    slugs,
)


def test_power_readings_hold_until_their_stamp(tmp_path: Path) -> None:
    raw = np.where(np.arange(40) % 2, 10.0, 30.0)
    trace = only(read_bytes(capture_bytes(raw, POWER), tmp_path))
    assert energy_j(trace, 1.0, 4.9) == pytest.approx(0.1 * float(raw[1:].sum()))


def test_power_readings_that_fail_are_gaps(tmp_path: Path) -> None:
    raw = 20.0 + 0.1 * (np.arange(40) % 7)
    raw[10:13] = np.nan
    recording = read_bytes(capture_bytes(raw, POWER), tmp_path)
    assert only(recording).lost_samples >= 1
    assert "samples_lost" in slugs(recording)


def test_a_late_power_reading_leaves_a_gap_before_it(tmp_path: Path) -> None:
    rows = rows_of(20.0 + 0.1 * (np.arange(40) % 7))
    stamps = rows.stamp_ns.copy()
    stamps[20:] += 10**9
    recording = read_bytes(capture_bytes([], POWER, rows=replace(rows, stamp_ns=stamps)), tmp_path)
    assert "time_gap" in slugs(recording)
    assert only(recording).lost_samples == 1


def test_a_power_sensor_that_stops_is_a_gap(tmp_path: Path) -> None:
    lively = 20.0 + 0.01 * np.arange(60) % 1.0
    raw = np.concatenate([lively, np.full(100, lively[-1]), lively])
    recording = read_bytes(capture_bytes(raw, POWER), tmp_path)
    assert "meter_frozen" in slugs(recording)
    trace = only(recording)
    covered_s = float(integrate_between(trace, np.array([trace.start_ns, trace.end_ns])).covered_s[0])
    assert covered_s == pytest.approx(trace.duration_s - 10.0, abs=0.11)


def test_a_signal_is_a_lane_in_its_unit(tmp_path: Path) -> None:
    raw = np.stack([ramp(20), np.full(20, 45_000.0)], axis=1)
    recording = read_bytes(capture_bytes(raw, COUNTER, SIGNAL), tmp_path)
    (lane,) = recording.lanes
    assert (lane.name, lane.unit) == ("m:temp", "degC")
    np.testing.assert_allclose(lane.value, 45.0)


def test_a_step_of_the_calendar_is_said_and_changes_nothing(tmp_path: Path) -> None:
    before = clocks_at([10**9, 2 * 10**9])
    after = clocks_at([3 * 10**9, 4 * 10**9], utc_less_ns=10**18 - 3600 * 10**9)
    plain = read_bytes(capture_bytes(ramp(50)), tmp_path)
    recording = read_bytes(capture_bytes(ramp(50), clocks=[*before, *after]), tmp_path)
    assert slugs(recording) == ["clock_stepped"]
    assert "back by 3600 s" in recording.findings[0].message
    np.testing.assert_array_equal(only(recording).power_w, only(plain).power_w)


@pytest.mark.parametrize("leap_j", [0.0, 15.0, -19.0, 1e5])
@pytest.mark.parametrize("row", [11, 15, 20])
@pytest.mark.parametrize("domain", [COUNTER, replace(COUNTER, modulus=None, largest_w=None), POWER])
def test_sleep_of_the_machine_is_a_gap_wherever_it_was(
    domain: LiveDomain, row: int, leap_j: float, tmp_path: Path
) -> None:
    """Only two readings of the clocks tell of it: what a counter did between them is no energy of the time awake."""
    awake, late, woken = clocks_at([10**9, 2 * 10**9 + 5 * 10**7, 3 * 10**9])
    later = replace(woken, utc_ns=woken.utc_ns + 60 * 10**9, boot_ns=woken.boot_ns + 60 * 10**9)
    raw = ramp(50) + 2e7 if domain is not POWER else np.full(50, 20.0)
    if domain is not POWER:
        raw[row:] += leap_j * 1e6
    recording = read_bytes(capture_bytes(raw, domain, clocks=[awake, late, later]), tmp_path)
    assert set(slugs(recording)) - {"repeats_merged"} == {"machine_slept"}
    assert "slept for 60 s" in recording.findings[0].message
    assert recording.markers == ()
    trace = only(recording)
    held = integrate_between(trace, np.array([trace.start_ns, 2 * 10**9, 3 * 10**9, trace.end_ns]))
    assert held.covered_s[1] == 0.0
    assert held.energy_j[[0, 2]] == pytest.approx(20.0 * held.covered_s[[0, 2]])
    assert held.covered_s[[0, 2]] == pytest.approx([1.0, 2.9], abs=0.11)


def test_a_capture_that_was_killed_keeps_every_whole_block(tmp_path: Path) -> None:
    whole = capture_bytes(ramp(64), end=False)
    recording = read_bytes(whole[:-5], tmp_path)
    assert "capture_unfinished" in slugs(recording)
    assert "capture_cut" in slugs(recording)
    assert only(recording).n == 47  # three blocks of 16


def test_damage_costs_its_block_only(tmp_path: Path) -> None:
    data = bytearray(capture_bytes(ramp(64)))
    at = len(data) - 600
    data[at] ^= 0xFF
    recording = read_bytes(bytes(data), tmp_path)
    assert "capture_damaged" in slugs(recording)
    assert only(recording).n == 47
    assert energy_j(only(recording), 1.0, 7.3) == pytest.approx(63 * STEP_UJ * 1e-6)  # a counter bridges it


def test_a_second_process_goes_on_in_the_same_capture(tmp_path: Path) -> None:
    data = capture_bytes(ramp(32), end=False)
    later = rows_of(ramp(32, 40 * STEP_UJ), begin_ns=10**9 + 40 * 10**8)
    second = capture_bytes([], rows=later)[len(MAGIC) :]
    recording = read_bytes(data + second, tmp_path)
    assert slugs(recording) == ["sampler_restarted"]
    assert energy_j(only(recording), 1.0, 8.1) == pytest.approx(71 * STEP_UJ * 1e-6)


def test_a_second_process_with_other_meters_is_left_out(tmp_path: Path) -> None:
    data = capture_bytes(ramp(32), end=False)
    other = header_block(header_of(POWER))
    recording = read_bytes(data + other, tmp_path)
    assert "capture_damaged" in slugs(recording)


def test_notes_of_the_sampler_become_findings(tmp_path: Path) -> None:
    note = encode_block(
        BlockKind.NOTE, json.dumps({"slug": "meter_lost", "message": "m: unplugged", "at_ns": 5}).encode()
    )
    odd = encode_block(BlockKind.NOTE, json.dumps({"slug": "later", "message": "new", "at_ns": 6}).encode())
    recording = read_bytes(capture_bytes(ramp(20), blocks=[note, odd]), tmp_path)
    assert slugs(recording) == ["meter_lost", "sampler_note"]
    assert recording.findings[0].span == "5 ns"


@pytest.mark.parametrize("body", [b"", b"\0" * 64, MAGIC, MAGIC + b"rubbish" * 9])
def test_what_is_no_capture_is_refused(body: bytes, tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        read_bytes(body, tmp_path)


def test_missed_deadlines_are_counted_from_ticks(tmp_path: Path) -> None:
    rows = rows_of(ramp(40))
    keep = np.ones(40, bool)
    keep[[10, 11, 30]] = False
    some = replace(
        rows, stamp_ns=rows.stamp_ns[keep], tick=rows.tick[keep], took_ns=rows.took_ns[keep], raw=rows.raw[keep]
    )
    recording = read_bytes(capture_bytes([], rows=some), tmp_path)
    assert recording.metadata["missed"] == "3"
    assert "deadlines_missed" in slugs(recording)
    assert float(recording.metadata["jitter_p99_s"]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("declared_s", [0.2, None])
@pytest.mark.parametrize("poll_s", [0.01, 0.05, 0.2])
def test_a_value_belongs_to_the_time_before_it_was_first_shown(
    declared_s: float | None, poll_s: float, tmp_path: Path
) -> None:
    wave = PowerWave(mean_w=20.0, swing_w=10.0, period_s=2.0, shape=WaveShape.SINE)
    rng = np.random.default_rng(3)
    n, update_ns = round(12.0 / poll_s), 200_000_000
    domain = replace(POWER, update_period_s=declared_s, window_s=declared_s)
    off_j = []
    for phase in (0.1, 0.35, 0.65, 0.9):  # of a poll after a renewal
        stamp_ns = 10**9 + np.arange(n, dtype=np.int64) * round(poll_s * 1e9) + round(phase * poll_s * 1e9)
        renewed_ns = stamp_ns - stamp_ns % update_ns
        jitter = dict(zip(np.unique(renewed_ns).tolist(), rng.normal(0.0, 1e-6, n), strict=False))
        raw = [wave.mean_power_w(at - update_ns, at) + jitter[at] for at in renewed_ns.tolist()]
        trace = only(read_bytes(capture_bytes([], domain, rows=replace(rows_of(raw), stamp_ns=stamp_ns)), tmp_path))
        spans = ((3.0, 4.0), (4.5, 5.5), (6.5, 7.5))
        truth = [wave.energy_j(round(begin * 1e9), round(end * 1e9)) for begin, end in spans]
        off_j.append([energy_j(trace, *span) - true for span, true in zip(spans, truth, strict=True)])
    known = declared_s is not None or poll_s < update_ns * 1e-9
    # half a poll at 20 W between both edges, and what a mean of 0.2 s takes off a wave; 3.8 J dated by the last poll
    assert np.abs(off_j).max() <= 0.5 * poll_s * 20.0 * (1 if known else 2) + 0.35
    assert not known or np.abs(np.mean(off_j, axis=0)).max() <= 0.35


def test_a_value_that_stays_long_by_itself_is_not_moved(tmp_path: Path) -> None:
    raw = np.repeat([10.0, 30.0] * 30, 5)  # a second each, at 5 polls a second: power itself stayed
    rows = replace(rows_of(raw), stamp_ns=10**9 + 200_000_000 * np.arange(raw.size, dtype=np.int64))
    trace = only(read_bytes(capture_bytes([], POWER, rows=rows), tmp_path))
    assert trace.edges_ns is not None
    assert trace.edges_ns[1] == 10**9 + 4 * 200_000_000


def test_a_log_keeps_few_findings_of_one_kind() -> None:
    log = FindingLog(keep=2)
    for k in range(5):
        log.add("counter_lost", f"{k}")
    assert len(log.findings()) == 3
