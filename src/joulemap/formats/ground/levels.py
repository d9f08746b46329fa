"""Levels: what a slower channel held at an instant; a digital line as slices of its high times, and its edges.

It must not know any format.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.ground.building import FindingLog
from joulemap.records.finding import Severity
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, EdgeDirection, Marker, Timeline

__all__ = ["MARKER_LIMIT", "hold_value", "level_records"]

MARKER_LIMIT: Final = 20_000
"""Edges of one file that become markers; a line that toggles more often is kept as slices only."""


def hold_value(time_ns: NDArray[np.int64], value: NDArray[np.float64], at_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns what a channel held at each instant: its sample at or before it; its first one before it begins.

    Args:
        time_ns: (n,) ns in any order, n > 0.
        value: (n,) of those instants.
        at_ns: (m,) ns.
    """
    order = np.argsort(time_ns, kind="stable")
    where = np.searchsorted(time_ns[order], at_ns, side="right") - 1
    held: NDArray[np.float64] = value[order][np.clip(where, 0, None)]
    return held


def level_records(
    name: str, changes: tuple[NDArray[np.int64], NDArray[np.int64]], *, clock: Clock, end_ns: int, log: FindingLog
) -> tuple[Timeline | None, MarkerTrack | None]:
    """Returns a digital line as slices of its high times, and as edge markers when there are few enough.

    Args:
        name: of the line; also the track of the slices.
        changes: times (k,) ns and levels (k,) 0 or 1 from each time on; the first is the state at the beginning.
        clock: of the times.
        end_ns: end of the recording; a line that is still high is cut there.
        log: takes ``line_high_at_edge`` and ``edges_as_slices``.
    """
    time_ns, level = changes
    if time_ns.size == 0:
        return None, None
    turns = np.flatnonzero(np.diff(level)) + 1
    starts = time_ns[turns[level[turns] == 1]]
    ends = time_ns[turns[level[turns] == 0]]
    clipped = []
    if level[0] == 1:
        starts = np.insert(starts, 0, time_ns[0])
        clipped.append("begins")
    if level[-1] == 1:
        ends = np.append(ends, max(end_ns, int(time_ns[-1])))
        clipped.append("ends")
    if clipped:
        log.add(
            "line_high_at_edge", f"{name} is high where the recording {' and '.join(clipped)}", severity=Severity.INFO
        )
    timeline = None
    if starts.size:
        zero = np.zeros(starts.size, np.int32)
        timeline = Timeline(
            clock=clock, start_ns=starts, end_ns=ends, name_index=zero, names=(f"{name} high",), track_index=zero,
            tracks=(name,), kind_index=zero, kinds=("level",),
        )  # fmt: skip
    if turns.size > MARKER_LIMIT:
        log.add(
            "edges_as_slices",
            f"{name} toggles {turns.size} times: kept as slices, not as markers",
            severity=Severity.INFO,
        )
        return timeline, None
    if not turns.size:
        return timeline, None
    markers = tuple(
        Marker(time_ns=int(time_ns[k]), name=name, direction=EdgeDirection.RISE if level[k] else EdgeDirection.FALL)
        for k in turns
    )
    return timeline, MarkerTrack(name=name, clock=clock, markers=markers)
