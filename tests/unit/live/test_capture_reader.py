"""What a capture says, and what it does not: wraps, glitches, gaps, clocks, cuts and damage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.overlaps import list_overlaps, list_twins
from joulemap.meters.live.ground.waves import PowerWave, WaveShape
from joulemap.meters.live.sampling.writer import encode_note
from joulemap.records.live.capture_header import CaptureHeader, CaptureStream
from joulemap.records.live.capture_layout import MAGIC, BlockKind, encode_block, encode_clocks
from joulemap.records.live.domain import LiveDomain
from joulemap.records.recording import Recording
from joulemap.trace import EnergyTrace, integrate_between
from live_captures import (
    COUNTER,
    POWER,
    SIGNAL,
    capture_bytes,
    clocks_at,
    header_block,
    header_of,
    read_bytes,
    rows_of,
    slugs,
)

STEP_UJ = 2_000_000.0  # 20 W at 10 Hz


def ramp(n: int, start: float = 0.0, step: float = STEP_UJ) -> np.ndarray:
    return start + step * np.arange(n)


def only(recording: Recording) -> EnergyTrace:
    (trace,) = recording.traces
    return trace


def energy_j(trace: EnergyTrace, begin_s: float, end_s: float) -> float:
    bounds = np.array([round(begin_s * 1e9), round(end_s * 1e9)], np.int64)
    return float(integrate_between(trace, bounds).energy_j[0])


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


def two_meters(first: CaptureStream, second: CaptureStream) -> CaptureHeader:
    return CaptureHeader(session="s", rate_hz=10.0, streams=(first, second))


def test_overlaps_are_declared_or_follow_from_the_whole_machine() -> None:
    core = replace(COUNTER, name="package-0/core", inside=("package-0",))
    rapl = CaptureStream(meter="powercap", driver="powercap", period_s=0.1, domains=(COUNTER, core))
    battery = replace(POWER, name="BAT0", boundary=Boundary.NODE)
    wall = replace(battery, name="plug", boundary=Boundary.WALL)
    node = CaptureStream(meter="battery", driver="battery", period_s=0.1, domains=(battery,))
    plug = CaptureStream(meter="shelly", driver="prometheus", period_s=0.1, domains=(wall,))
    assert ("powercap:package-0/core", "powercap:package-0") in list_overlaps(two_meters(rapl, node))
    assert ("powercap:package-0", "battery:BAT0") in list_overlaps(two_meters(rapl, node))
    assert list_overlaps(two_meters(node, plug)) == (("battery:BAT0", "shelly:plug"),)


def test_of_two_views_of_one_counter_the_declared_one_is_inside_whatever_their_order() -> None:
    perf = CaptureStream(
        meter="perf", driver="perf", period_s=0.1, domains=(replace(COUNTER, inside=("powercap:package-0",)),)
    )
    rapl = CaptureStream(meter="powercap", driver="powercap", period_s=0.1, domains=(COUNTER,))
    for first, second in ((perf, rapl), (rapl, perf)):
        assert list_overlaps(two_meters(first, second)) == (("perf:package-0", "powercap:package-0"),)


def test_two_meters_of_one_thing_are_compared_and_one_counts(tmp_path: Path) -> None:
    first = CaptureStream(meter="powercap", driver="powercap", period_s=0.1, domains=(COUNTER,))
    second = CaptureStream(meter="perf", driver="perf", period_s=0.1, domains=(replace(COUNTER, inside=()),))
    header = two_meters(first, second)
    assert list_twins(header) == (("powercap:package-0", "perf:package-0"),)
    assert list_overlaps(header) == (("perf:package-0", "powercap:package-0"),)
    from joulemap.records.live.capture_layout import encode_samples

    data = b"".join(
        [
            MAGIC,
            header_block(header),
            encode_clocks(clocks_at([10**9])[0]),
            encode_samples(rows_of(ramp(40)), 0),
            encode_samples(rows_of(ramp(40, step=1.5 * STEP_UJ)), 1),
            encode_block(BlockKind.END, b"{}"),
        ]
    )
    recording = read_bytes(data, tmp_path)
    assert slugs(recording) == ["meters_disagree"]
    assert recording.metadata["began"].startswith("2001-09-09")


def test_two_devices_of_one_driver_are_added_and_never_taken_as_one() -> None:
    cards = [
        CaptureStream(meter=f"nvml:{at}", driver="nvml", period_s=0.1, domains=(replace(COUNTER, name="energy"),))
        for at in range(2)
    ]
    header = two_meters(*cards)
    assert list_twins(header) == ()
    assert list_overlaps(header) == ()


@pytest.mark.parametrize("declared_s", [0.2, None])
@pytest.mark.parametrize("poll_s", [0.01, 0.05, 0.2])
def test_a_value_belongs_to_the_time_before_it_was_first_shown(
    declared_s: float | None, poll_s: float, tmp_path: Path
) -> None:
    wave = PowerWave(mean_w=20.0, swing_w=10.0, period_s=2.0, shape=WaveShape.SINE)
    rng = np.random.default_rng(3)
    n, update_ns = round(12.0 / poll_s), 200_000_000
    stamp_ns = 10**9 + np.arange(n, dtype=np.int64) * round(poll_s * 1e9) + 3_000_000
    renewed_ns = stamp_ns - stamp_ns % update_ns
    jitter = dict(zip(np.unique(renewed_ns).tolist(), rng.normal(0.0, 1e-6, n), strict=False))
    raw = [wave.mean_power_w(at - update_ns, at) + jitter[at] for at in renewed_ns.tolist()]
    rows = replace(rows_of(raw), stamp_ns=stamp_ns)
    domain = replace(POWER, update_period_s=declared_s, window_s=declared_s)
    trace = only(read_bytes(capture_bytes([], domain, rows=rows), tmp_path))
    for begin_s, end_s in ((3.0, 4.0), (4.5, 5.5), (6.5, 7.5)):  # a shift of 0.19 s costs up to 3.8 J
        truth_j = wave.energy_j(round(begin_s * 1e9), round(end_s * 1e9))
        assert energy_j(trace, begin_s, end_s) == pytest.approx(truth_j, abs=0.6 if poll_s < 0.1 else 1.2)


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
