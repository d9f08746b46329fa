"""Pauses that were ordered: gaps of every trace, no loss, and nothing is claimed of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.analysis.recorded.pauses import stated_pause_s
from joulemap.formats.base import ReadOptions
from joulemap.formats.live.capture import CaptureReader
from joulemap.records.finding import Severity
from joulemap.records.live.capture_layout import EXTRA_TICK, MAGIC, BlockKind, SampleRows, encode_block, encode_pause
from joulemap.records.live.domain import LiveDomain
from joulemap.records.recording import Recording
from joulemap.trace import EnergyTrace, integrate_between
from live_captures import (
    COUNTER,
    POWER,
    STEP_UJ,
    capture_bytes,
    header_block,
    header_of,
    only,
    read_bytes,
    rows_of,
    slugs,
)

S = 10**9
PAUSE = (6 * S + 1000, 9 * S - 1000)  # between the readings at 6 s and at 9 s


def list_paused(rows: SampleRows) -> np.ndarray:
    return (rows.stamp_ns > PAUSE[0]) & (rows.stamp_ns < PAUSE[1])


def paused_rows(raw: np.ndarray, *, resting: bool = False) -> SampleRows:
    """Readings from 1 s to 12 s at 10 Hz, none in the pause but one a second where a counter rests."""
    rows = rows_of(raw)
    ticks = np.where(rows.stamp_ns >= PAUSE[1], rows.tick - 78, rows.tick)  # they start anew after a pause
    rows = replace(rows, tick=np.where(list_paused(rows), EXTRA_TICK, ticks).astype(np.uint32))
    kept = (rows.stamp_ns <= PAUSE[0]) | (rows.stamp_ns >= PAUSE[1])
    if resting:
        kept |= rows.stamp_ns % S == 0
    return replace(
        rows, stamp_ns=rows.stamp_ns[kept], tick=rows.tick[kept], took_ns=rows.took_ns[kept], raw=rows.raw[kept]
    )


def read_paused(
    raw: np.ndarray, domain: LiveDomain, tmp_path: Path, *, resting: bool = False, pause: bytes | None = None
) -> Recording:
    block = encode_pause(PAUSE[0], None) + encode_pause(*PAUSE) if pause is None else pause
    return read_bytes(capture_bytes(raw, domain, rows=paused_rows(raw, resting=resting), blocks=[block]), tmp_path)


def held(trace: EnergyTrace, begin_s: float, end_s: float) -> tuple[float, float]:
    found = integrate_between(trace, np.array([round(begin_s * S), round(end_s * S)], np.int64))
    return float(found.energy_j[0]), float(found.covered_s[0])


def counts(n: int = 111) -> np.ndarray:
    return STEP_UJ * np.arange(n)


@pytest.mark.parametrize("resting", [True, False])
@pytest.mark.parametrize("domain", [COUNTER, POWER])
def test_a_pause_is_a_gap_that_is_no_loss(domain: LiveDomain, resting: bool, tmp_path: Path) -> None:
    raw = counts() if domain is COUNTER else 20.0 + np.arange(111) % 2
    recording = read_paused(raw, domain, tmp_path, resting=resting)
    trace = only(recording)
    before, inside, after = held(trace, 1, 6), held(trace, 6.1, 8.9), held(trace, 9.0, 12)
    level_w = 20.0 if domain is COUNTER else 20.5
    assert before == pytest.approx((5 * level_w, 5.0), rel=0.01)
    assert inside == (0.0, 0.0)
    assert after == pytest.approx((3 * level_w, 3.0), rel=0.02)
    (said,) = recording.findings
    assert (said.slug, said.severity) == ("sampling_paused", Severity.INFO)
    assert "1 times, 3 s in all" in said.message
    assert stated_pause_s(recording.metadata, trace.channel.name) == pytest.approx(3.0, abs=1e-3)


def test_nothing_is_claimed_of_a_counter_that_passed_its_end_or_began_anew_in_a_pause(tmp_path: Path) -> None:
    wrapping = replace(COUNTER, modulus=13.0 * STEP_UJ, largest_w=40.0)  # twice around in the pause
    for domain, raw in (
        (wrapping, counts() % (13.0 * STEP_UJ)),
        (replace(COUNTER, modulus=None), np.where(np.arange(111) < 60, counts() + 1e9, counts() - 70 * STEP_UJ)),
    ):
        recording = read_paused(raw, domain, tmp_path)
        trace = only(recording)
        assert held(trace, 6.1, 8.9) == (0.0, 0.0)
        assert held(trace, 1, 6)[0] == pytest.approx(100.0)
        assert held(trace, 9, 12)[0] == pytest.approx(60.0)
        assert {f.severity for f in recording.findings} == {Severity.INFO}


def test_a_constant_power_is_neither_frozen_nor_one_sample_across_a_pause(tmp_path: Path) -> None:
    raw = np.full(111, 20.0)
    raw[1:30:2] = raw[90::2] = 21.0  # the same for 6.1 s, of which nothing was sampled for 3 s
    recording = read_paused(raw, POWER, tmp_path)
    assert held(only(recording), 6.1, 8.9) == (0.0, 0.0)
    assert "meter_frozen" not in slugs(recording)


def test_a_sensor_that_shows_late_loses_what_it_had_not_shown(tmp_path: Path) -> None:
    late = replace(POWER, update_period_s=0.4, window_s=0.4)
    raw = 20.0 + np.arange(111) // 4 % 5
    recording = read_paused(raw, late, tmp_path)
    trace = only(recording)
    # what a poll shows is of the time up to a renewal before it, and half a poll later
    assert held(trace, 1.0, 5.65)[1] == pytest.approx(4.65)
    assert held(trace, 5.66, 9.0 - 1e-5) == (0.0, 0.0)
    assert held(trace, 9.0, 11.65)[1] == pytest.approx(2.65)
    assert slugs(recording) == ["repeats_merged", "sampling_paused"]


def test_a_pause_that_lasts_ends_with_the_recording_or_with_the_next_process(tmp_path: Path) -> None:
    begun = encode_pause(PAUSE[0], None)
    whole = read_paused(counts(), COUNTER, tmp_path, pause=begun)  # killed while it was paused
    assert held(only(whole), 6.1, 12)[1] == 0.0
    raw = rows_of(counts())
    first = capture_bytes(counts(51), COUNTER, blocks=[begun], end=False)
    later = replace(raw, stamp_ns=raw.stamp_ns[80:], tick=raw.tick[80:], took_ns=raw.took_ns[80:], raw=raw.raw[80:])
    second = capture_bytes(counts(), COUNTER, rows=later)[len(MAGIC) :]
    replaced = read_bytes(first + second, tmp_path)
    assert held(only(replaced), 6.1, 8.9) == (0.0, 0.0)
    assert held(only(replaced), 9, 12)[0] == pytest.approx(60.0)
    assert "counter_lost" not in slugs(replaced)


def test_a_process_that_begins_paused_goes_on_with_the_pause_of_the_killed_one(tmp_path: Path) -> None:
    raw = rows_of(counts())
    first = capture_bytes(counts(51), COUNTER, blocks=[encode_pause(PAUSE[0], None)], end=False)
    begun = 7 * S
    later = replace(raw, stamp_ns=raw.stamp_ns[60:], tick=raw.tick[60:], took_ns=raw.took_ns[60:], raw=raw.raw[60:])
    blocks = [encode_pause(begun, None), encode_pause(begun, PAUSE[1])]
    whole = capture_bytes(counts(), COUNTER, rows=later)[len(MAGIC) :]
    head = header_block(header_of(COUNTER))
    second = head + b"".join(blocks) + whole[len(head) :]
    replaced = read_bytes(first + second, tmp_path)
    assert held(only(replaced), 6.1, 8.9) == (0.0, 0.0)
    assert held(only(replaced), 9, 12)[0] == pytest.approx(60.0)
    assert "1 times, 3 s in all" in next(f.message for f in replaced.findings if f.slug == "sampling_paused")


def test_counters_tell_of_a_pause_when_they_are_asked_to(tmp_path: Path) -> None:
    read_paused(counts(), COUNTER, tmp_path)
    through = CaptureReader(through_pauses=True).read(tmp_path / "capture.jmc", ReadOptions())
    assert held(only(through), 6, 9) == pytest.approx((60.0, 3.0))
    assert through.findings == ()
    assert stated_pause_s(through.metadata, "m:package-0") == 0.0


def test_a_map_takes_no_pause_for_a_loss(tmp_path: Path) -> None:
    recording = read_paused(counts(), COUNTER, tmp_path)
    trace = only(recording)
    errors = MeterErrors(name="m", gain_std=0.01, source="test")
    plain = map_energy([trace], None, None, errors, request=MapRequest())
    assert "samples_lost" in [finding.slug for finding in plain.findings]
    paused_s = stated_pause_s(recording.metadata, trace.channel.name)
    told = map_energy([trace], None, None, errors, request=MapRequest(paused_s=paused_s))
    assert [finding.slug for finding in told.findings] == []
    assert told.total_j.value == pytest.approx(8 * 20.0)  # type: ignore[union-attr]
    half = map_energy([trace], None, None, errors, request=MapRequest(paused_s=paused_s - 1.0))
    assert "1 s of the trace" in next(f.message for f in half.findings if f.slug == "samples_lost")


@pytest.mark.parametrize("payload", [b"", b"1234567", encode_pause(9, 8)[-16:], encode_pause(1 << 62, None)[-16:]])
def test_a_damaged_pause_is_said(payload: bytes, tmp_path: Path) -> None:
    recording = read_paused(counts(), COUNTER, tmp_path, pause=encode_block(BlockKind.PAUSE, payload))
    assert "capture_damaged" in slugs(recording)
    assert "sampling_paused" not in slugs(recording)


def test_the_fact_of_a_pause_that_is_no_number_is_none() -> None:
    for text in ("", "nan", "-1", "x"):
        assert stated_pause_s({"paused_s m": text}, "m") == 0.0


def test_a_capture_without_readings_has_no_pause(tmp_path: Path) -> None:
    data = MAGIC + header_block(header_of(COUNTER)) + encode_pause(5, None) + encode_block(BlockKind.END, b"{}")
    with pytest.raises(Exception, match="holds no energy"):
        read_bytes(data, tmp_path)
