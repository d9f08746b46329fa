"""A recording on the monotonic clock is related to what others stamped in UTC, as well as two calendars agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from joulemap.analysis.clocks.solve import AlignRequest, solve_clock
from joulemap.errors import NotComparableError
from joulemap.records.mapping.clock_map import AlignMethod
from joulemap.trace import Clock, ClockKind, Slice, Timeline
from live_captures import capture_bytes, clocks_at, read_bytes

OFFSET_NS = 1_700_000_000 * 10**9
OTHERS = Clock(name="server", kind=ClockKind.UTC)


def test_slices_in_utc_are_laid_over_a_capture(tmp_path: Path) -> None:
    clocks = clocks_at(range(10**9, 6 * 10**9, 10**8), utc_less_ns=OFFSET_NS)
    recording = read_bytes(capture_bytes(np.arange(50) * 2e6, clocks=clocks), tmp_path)
    timeline = Timeline.from_slices(
        OTHERS, [Slice(name="request", start_ns=OFFSET_NS + 2 * 10**9, end_ns=OFFSET_NS + 3 * 10**9)]
    )
    relation, findings = solve_clock(recording.traces[0], timeline, recording.markers, AlignRequest())
    assert relation.method is AlignMethod.UTC
    moved = relation.apply(timeline.start_ns)
    assert abs(int(moved[0]) - 2 * 10**9) < 1000
    assert relation.std_s >= 1e-3
    assert [finding.slug for finding in findings] == ["clocks_taken_as_utc"]


def test_a_calendar_that_was_set_relates_nothing(tmp_path: Path) -> None:
    clocks = [*clocks_at([10**9, 2 * 10**9], utc_less_ns=OFFSET_NS), *clocks_at([3 * 10**9], utc_less_ns=0)]
    recording = read_bytes(capture_bytes(np.arange(50) * 2e6, clocks=clocks), tmp_path)
    assert recording.markers == ()
    timeline = Timeline.from_slices(OTHERS, [Slice(name="request", start_ns=OFFSET_NS, end_ns=OFFSET_NS + 1)])
    with pytest.raises(NotComparableError):
        solve_clock(recording.traces[0], timeline, recording.markers, AlignRequest())
