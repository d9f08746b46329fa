"""A timeline on the clock of a trace: in order, and without the slices that reach beyond the recorded time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.mapping.keys import Grouping
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.trace import Timeline
from joulemap.trace.instants import order_slices
from joulemap.trace.sweep import GroupedSlices

__all__ = ["Placed", "place_slices"]

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """Slices ready to be swept.

    Args:
        slices: in order of start, on the trace's clock; those outside have group -1.
        order: (n,) row of the timeline of each; None when they stand as they stood.
        outside: (g,) slices of each group (name, by path) that reach beyond the recorded time.
        counted: slices inside.
    """

    slices: GroupedSlices
    order: NDArray[np.int64] | None
    outside: NDArray[np.int64]
    counted: int


def place_slices(timeline: Timeline, grouping: Grouping, clock: ClockMap, span_ns: tuple[int, int]) -> Placed:
    """Returns the slices on the trace's clock.

    Args:
        timeline: the slices.
        grouping: their keys.
        clock: from the timeline's clock to the trace's.
        span_ns: start and end of what was recorded.
    """
    start_ns, end_ns = clock.apply(timeline.start_ns), clock.apply(timeline.end_ns)
    if not clock.exact:
        np.maximum(start_ns, end_ns, out=end_ns)  # both were made here
    group, track = np.asarray(grouping.group, np.int32), timeline.track_index
    order = None
    if not _ordered(start_ns, end_ns):
        order = order_slices(start_ns, end_ns)
        start_ns, end_ns, group, track = start_ns[order], end_ns[order], group[order], track[order]
    groups = len(grouping.keys)
    outside = np.zeros(groups, np.int64)
    counted = 0
    owned = False
    for at in range(0, start_ns.size, _BLOCK):
        block = slice(at, at + _BLOCK)
        beyond = (start_ns[block] < span_ns[0]) | (end_ns[block] > span_ns[1])
        taken = group[block] >= 0
        lost = beyond & taken
        counted += int((taken & ~beyond).sum())
        if lost.any():
            if not owned:
                group, owned = group.copy(), True
            outside += np.bincount(group[block][lost], minlength=groups)
            group[block][lost] = -1
    slices = GroupedSlices(
        start_ns=start_ns,
        end_ns=end_ns,
        group=group,
        groups=groups,
        track=track,
        tracks=max(len(timeline.tracks), 1),
        by_path=grouping.by_path,
    )
    return Placed(slices=slices, order=order, outside=outside, counted=counted)


def _ordered(start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> bool:
    for at in range(0, max(start_ns.size - 1, 0), _BLOCK):
        one, two = start_ns[at : at + _BLOCK], start_ns[at + 1 : at + _BLOCK + 1]
        one = one[: two.size]
        wrong = (two < one) | ((two == one) & (end_ns[at + 1 : at + 1 + two.size] > end_ns[at : at + two.size]))
        if bool(wrong.any()):
            return False
    return True
