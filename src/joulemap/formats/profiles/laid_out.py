"""Profiles that hold only how long each operator takes on average, laid end to end as one mean inference.

Such a profile has an order and durations but no instants: the timeline made of it is a schedule, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.slices import SliceColumns
from joulemap.records.finding import Severity
from joulemap.trace import Clock, ClockKind, Timeline

__all__ = ["MEAN_CLOCK", "lay_out"]

MEAN_CLOCK = Clock(name="mean inference", kind=ClockKind.MONOTONIC)


def lay_out(
    rows: Iterable[tuple[str, str, int | None, int]], log: FindingLog, *, kind: str = "operator"
) -> tuple[Timeline, ...]:
    """Returns the rows as a timeline.

    Args:
        rows: (track, name, start ns or None for "after the row before", duration ns) in order.
        log: takes ``profile_of_means``.
        kind: of the slices.
    """
    slices = SliceColumns(MEAN_CLOCK, log)
    ends: dict[str, int] = {}
    for track, name, start_ns, duration_ns in rows:
        begin_ns = ends.get(track, 0) if start_ns is None else start_ns
        slices.add(track, name, (begin_ns, begin_ns + duration_ns), kind)
        ends[track] = max(begin_ns + duration_ns, ends.get(track, 0))
    timelines = slices.timelines()
    if timelines:
        log.add(
            "profile_of_means",
            "the durations are means over many inferences: a schedule of one mean inference, not a recorded run",
            severity=Severity.INFO,
        )
    return timelines
