"""Traces from columns: gaps, duplicates, backward times; findings that stay few; levels of lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.estimate import Boundary
from joulemap.formats.ground import building, sample_store
from joulemap.formats.ground.building import (
    FindingLog,
    TimedColumns,
    boundary_of,
    gap_ranges,
    sampled_channel,
    source_file,
    timed_trace,
    uniform_trace,
    voltage_of,
)
from joulemap.formats.ground.levels import MARKER_LIMIT, level_records
from joulemap.trace import Clock, ClockKind, EdgeDirection, EnergyTrace

CLOCK = Clock(name="c", kind=ClockKind.MONOTONIC)
CHANNEL = sampled_channel("rail", Boundary.RAIL, 1e-3)


def timed(time_ns: list[int], value: list[float], log: FindingLog | None = None, **more: object) -> EnergyTrace:
    columns = TimedColumns(time_ns=np.array(time_ns), value=np.array(value), **more)  # type: ignore[arg-type]
    return timed_trace(columns, channel=CHANNEL, clock=CLOCK, log=log or FindingLog())


def energy_j(trace: EnergyTrace) -> float:
    if trace.edges_ns is not None:
        return float((trace.power_w * np.diff(trace.edges_ns)).sum() * 1e-9)
    assert trace.period_s is not None
    return float(trace.power_w.sum()) * trace.period_s


def test_a_stamp_ends_its_interval_unless_it_starts_it() -> None:
    end = timed([10, 20, 30], [1.0, 2.0, 3.0])
    assert end.edges_ns is not None
    assert end.edges_ns.tolist() == [0, 10, 20, 30]
    start = timed([10, 20, 30], [1.0, 2.0, 3.0], stamp="start")
    assert start.edges_ns is not None
    assert start.edges_ns.tolist() == [10, 20, 30, 40]
    centre = timed([10, 20, 30], [1.0, 2.0, 3.0], stamp="centre")
    assert centre.edges_ns is not None
    assert centre.edges_ns.tolist()[1:3] == [15, 25]


def test_duplicate_and_backward_stamps_are_left_out_and_said() -> None:
    log = FindingLog()
    trace = timed([10, 20, 20, 15, 30], [1.0, 2.0, 9.0, 9.0, 3.0], log, line=[2, 3, 4, 5, 6])
    assert trace.power_w.tolist() == [1.0, 2.0, 3.0]
    found = {finding.slug: finding.span for finding in log.findings()}
    assert found == {"duplicate_stamp": "line 4", "backward_stamp": "line 5"}


def test_a_long_step_is_a_gap_and_its_sample_keeps_one_step() -> None:
    log = FindingLog()
    trace = timed([10, 20, 30, 70, 80], [1.0, 1.0, 1.0, 1.0, 1.0], log)
    assert trace.edges_ns is not None
    assert trace.edges_ns.tolist() == [0, 10, 20, 30, 60, 70, 80]
    assert trace.gaps.tolist() == [[3, 4]]
    assert trace.power_w.tolist() == [1, 1, 1, 0, 1, 1]
    assert [finding.slug for finding in log.findings()] == ["time_gap"]
    start = timed([10, 20, 30, 70, 80], [1.0, 2.0, 3.0, 4.0, 5.0], stamp="start")
    assert start.power_w.tolist() == [1, 2, 3, 0, 4, 5]
    assert timed([10, 20, 30, 70], [1.0] * 4, gap_factor=None).gaps.size == 0


def test_a_missing_sample_is_a_gap_and_never_zero_energy() -> None:
    log = FindingLog()
    trace = timed([10, 20, 30], [1.0, float("nan"), 3.0], log)
    assert trace.gaps.tolist() == [[1, 2]]
    assert trace.lost_samples == 1
    assert log.count("samples_lost") == 1


def test_one_sample_needs_a_stated_step() -> None:
    with pytest.raises(FormatError) as caught:
        timed([10], [1.0])
    assert caught.value.slug == "recording-empty"
    assert timed([10], [1.0], period_ns=5).edges_ns is not None
    assert timed_trace(
        TimedColumns(time_ns=[10], value=[1.0]), channel=CHANNEL, clock=CLOCK, log=FindingLog(), first_ns=4
    ).duration_s == pytest.approx(6e-9)


def test_times_beyond_the_range_are_refused() -> None:
    with pytest.raises(FormatError) as caught:
        timed([0, 1 << 62], [1.0, 1.0])
    assert caught.value.slug == "time-out-of-range"


@given(st.lists(st.tuples(st.integers(1, 1000), st.floats(0, 100)), min_size=2, max_size=60))
def test_energy_is_the_sum_over_intervals_when_nothing_is_lost(rows: list[tuple[int, float]]) -> None:
    time_ns = np.cumsum([step for step, _ in rows])
    trace = timed_trace(
        TimedColumns(time_ns=time_ns, value=[value for _, value in rows], gap_factor=None),
        channel=CHANNEL,
        clock=CLOCK,
        log=FindingLog(),
        first_ns=0,
    )
    assert energy_j(trace) == pytest.approx(sum(step * value for step, value in rows) * 1e-9, abs=1e-15)
    assert trace.end_ns == int(time_ns[-1])


@given(st.lists(st.booleans(), max_size=80))
def test_gap_ranges_say_the_same_as_the_mask(mask: list[bool]) -> None:
    rebuilt = np.zeros(len(mask), bool)
    for first, last in gap_ranges(np.array(mask, bool)).tolist():
        rebuilt[first:last] = True
    assert rebuilt.tolist() == mask


def test_a_uniform_trace_finds_gaps_across_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_BLOCK", 4)
    power_w = np.arange(12, dtype=np.float32)
    power_w[[2, 3, 4, 5, 9]] = np.nan
    log = FindingLog()
    trace = uniform_trace(power_w, channel=CHANNEL, clock=CLOCK, start_ns=5, period_s=1e-3, log=log)
    assert trace.gaps.tolist() == [[2, 6], [9, 10]]
    assert "5 of 12" in log.findings()[0].message


@pytest.mark.parametrize("period_s", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_an_impossible_period_is_refused(period_s: float) -> None:
    with pytest.raises(FormatError) as caught:
        uniform_trace(np.ones(10**1 * 5), channel=CHANNEL, clock=CLOCK, start_ns=0, period_s=period_s, log=FindingLog())
    assert caught.value.slug == "rate-impossible"


def test_no_sample_is_refused() -> None:
    with pytest.raises(FormatError) as caught:
        uniform_trace(np.zeros(0), channel=CHANNEL, clock=CLOCK, start_ns=0, period_s=1.0, log=FindingLog())
    assert caught.value.slug == "recording-empty"


def test_a_finding_that_repeats_is_counted() -> None:
    log = FindingLog(keep=2)
    for number in range(10):
        log.add("row_ragged", f"row {number}", f"line {number}")
    found = log.findings()
    assert len(found) == 3
    assert found[-1].message.startswith("8 more")
    assert found[-1].span == "line 9"
    assert log.count("row_ragged") == 10


def test_what_the_user_says_is_checked(tmp_path: Path) -> None:
    assert boundary_of(None, Boundary.WALL) is Boundary.WALL
    assert boundary_of("soc", Boundary.WALL) is Boundary.SOC
    with pytest.raises(UsageError) as unknown:
        boundary_of("desk", Boundary.WALL)
    assert unknown.value.slug == "boundary-unknown"
    for stated in (None, 0.0, -3.3, float("nan")):
        with pytest.raises(InputError) as needed:
            voltage_of(stated, "x")
        assert needed.value.slug == "voltage-needed"
    with pytest.raises(InputError):
        source_file(tmp_path / "absent")


def test_a_source_is_named_relative_to_the_imported_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.csv").write_bytes(b"abc")
    source = source_file(tmp_path / "a" / "b.csv", tmp_path)
    assert (source.name, source.size_b) == ("a/b.csv", 3)
    assert source.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def levels(
    changes: list[tuple[int, int]], end_ns: int = 100
) -> tuple[list[tuple[int, int]], list[tuple[int, str]], set[str]]:
    log = FindingLog()
    times, values = (np.array(column, np.int64) for column in zip(*changes, strict=True))
    timeline, track = level_records("gate", (times, values), clock=CLOCK, end_ns=end_ns, log=log)
    slices = [(one.start_ns, one.end_ns) for one in timeline] if timeline is not None else []
    marks = [(m.time_ns, str(m.direction)) for m in track.markers] if track is not None else []
    return slices, marks, {finding.slug for finding in log.findings()}


def test_a_line_becomes_slices_of_its_high_times_and_edges() -> None:
    slices, marks, found = levels([(0, 0), (10, 1), (20, 0), (30, 1), (40, 0)])
    assert slices == [(10, 20), (30, 40)]
    assert marks == [(10, "rise"), (20, "fall"), (30, "rise"), (40, "fall")]
    assert not found


def test_a_line_that_is_high_at_the_edges_is_cut_there_and_said() -> None:
    slices, marks, found = levels([(0, 1), (10, 0), (90, 1)])
    assert slices == [(0, 10), (90, 100)]
    assert marks == [(10, "fall"), (90, "rise")]
    assert found == {"line_high_at_edge"}


def test_a_line_that_never_changes_has_no_edges() -> None:
    assert levels([(0, 0)]) == ([], [], set())
    assert levels([(0, 1)])[0] == [(0, 100)]


def test_a_busy_line_is_kept_as_slices_only() -> None:
    changes = [(k, k % 2) for k in range(MARKER_LIMIT + 2)]
    slices, marks, found = levels(changes, MARKER_LIMIT + 2)
    assert len(slices) == (MARKER_LIMIT + 2) // 2
    assert marks == []
    assert "edges_as_slices" in found
    assert EdgeDirection.RISE.value == "rise"


def test_many_samples_lie_in_an_unnamed_file_and_keep_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_store, "_STORE_B", 64)
    store = sample_store.sample_store(1000)
    store[:] = np.arange(1000)
    sample_store.release_pages(store)
    assert float(store.sum()) == 499500.0
    assert isinstance(store, np.memmap)
    small = sample_store.sample_store(4)
    sample_store.release_pages(small)
    assert not isinstance(small, np.memmap)
