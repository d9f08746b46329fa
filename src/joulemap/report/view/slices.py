"""A timeline as the lanes of a scene: nested slices side by side, thinned where there are too many. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.records.finding import Finding, Severity
from joulemap.report.view.colors import NEUTRAL
from joulemap.report.view.scene import SliceName, SliceTable
from joulemap.report.view.text import printable
from joulemap.trace import EnergyTrace, Timeline, integrate_energy

__all__ = ["FOLDED", "SLICE_LIMIT", "build_slices", "empty_slices", "stack_lanes", "thin_slices"]

SLICE_LIMIT = 10_000
"""Slices that a page holds; more are thinned."""

FOLDED = ", folded"
"""Ends the kind of slices that stand for several."""

_COVERED = 1e-9  # relative; a slice that was seen but for rounding was seen


def empty_slices() -> SliceTable:
    """Returns a table without slices."""
    none, index = np.empty(0), np.empty(0, np.int32)
    return SliceTable(
        start_s=none, duration_s=none, energy_j=none, name_index=index, lane_index=index, names=(), lanes=()
    )


def build_slices(
    timeline: Timeline, trace: EnergyTrace | None, *, origin_ns: int, known: Mapping[str, SliceName]
) -> SliceTable:
    """Returns the slices in order of start, one lane per track and kind; slices of one lane that overlap go deeper.

    Args:
        timeline: what happened when.
        trace: power that the slices are charged with, on the same clock; None for no energies.
        origin_ns: start of the scene, ns.
        known: what is known of a name; others are shown as they are, in grey.
    """
    order = np.lexsort((-timeline.end_ns, timeline.start_ns))
    start_ns, end_ns = timeline.start_ns[order], timeline.end_ns[order]
    energy_j = np.full(order.size, np.nan)
    if trace is not None and order.size:
        integrated = integrate_energy(trace, start_ns, end_ns)
        whole = integrated.covered_s >= (end_ns - start_ns) * (1e-9 * (1 - _COVERED))
        energy_j = np.where(whole, integrated.energy_j, np.nan)
    lane_index, lanes = _stack(timeline, order)
    return SliceTable(
        start_s=np.asarray((start_ns - np.int64(origin_ns)) * 1e-9, np.float64),
        duration_s=np.asarray((end_ns - start_ns) * 1e-9, np.float64),
        energy_j=energy_j,
        name_index=timeline.name_index[order],
        lane_index=lane_index,
        names=tuple(known.get(name, SliceName(name=printable(name), op="", color=NEUTRAL)) for name in timeline.names),
        lanes=lanes,
    )


def thin_slices(
    slices: SliceTable, windows_s: Sequence[tuple[float, float]], *, limit: int = SLICE_LIMIT
) -> tuple[SliceTable, Finding | None]:
    """Returns at most ``limit`` slices, and a finding when some were left out.

    Slices that touch the first window stay first (the page opens there), then those of the next ones, then the longest.

    Args:
        slices: all of them.
        windows_s: what should stay whole, the most important first, s.
        limit: how many may stay.
    """
    n = len(slices)
    if n <= limit:
        return slices, None
    end_s = slices.start_s + slices.duration_s
    rank = np.full(n, len(windows_s))
    for place, (left, right) in reversed(list(enumerate(windows_s))):
        rank[(slices.start_s < right) & (end_s > left)] = place
    keep = np.sort(np.lexsort((-slices.duration_s, rank))[:limit])
    finding = Finding(
        slug="slices_thinned",
        severity=Severity.INFO,
        message=f"the map shows {limit} of {n} slices: outside the window that it opens on the shortest were left out",
    )
    thinned = SliceTable(
        start_s=slices.start_s[keep],
        duration_s=slices.duration_s[keep],
        energy_j=slices.energy_j[keep],
        name_index=slices.name_index[keep],
        lane_index=slices.lane_index[keep],
        names=slices.names,
        lanes=slices.lanes,
    )
    return thinned, finding


def stack_lanes(timeline: Timeline) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Returns the lane of each slice of a timeline, (n,), and the names of the lanes: one per track, kind and depth."""
    order = np.lexsort((-timeline.end_ns, timeline.start_ns))
    lane_index = np.empty(order.size, np.int32)
    lane_index[order], lanes = _stack(timeline, order)
    return lane_index, lanes


def _stack(timeline: Timeline, order: NDArray[np.intp]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Returns the lane of each slice in the order, and the lanes by name."""
    kinds = len(timeline.kinds)
    group = timeline.track_index[order].astype(np.int64) * kinds + timeline.kind_index[order]
    depth = np.zeros(order.size, np.int64)
    start_ns, end_ns = timeline.start_ns[order], timeline.end_ns[order]
    present = sorted(set(group.tolist()))
    for key in present:
        rows = np.flatnonzero(group == key)
        ends = np.maximum.accumulate(end_ns[rows])
        if rows.size < 2 or not bool(np.any(start_ns[rows][1:] < ends[:-1])):  # none overlaps its forerunners
            continue
        open_ends: list[int] = []
        for row in rows.tolist():
            level = next((k for k, end in enumerate(open_ends) if end <= start_ns[row]), len(open_ends))
            open_ends[level : level + 1] = [int(end_ns[row])]
            depth[row] = level
    lanes = [(key, level) for key in present for level in sorted(set(depth[group == key].tolist()))]
    index = {lane: k for k, lane in enumerate(lanes)}
    lane_index = np.fromiter((index[g, d] for g, d in zip(group.tolist(), depth.tolist(), strict=True)), np.int32)
    several = len(timeline.tracks) > 1
    names = [_lane_name(timeline, key // kinds, key % kinds, several=several) for key, _ in lanes]
    return lane_index, tuple(name if level == 0 else "" for name, (_, level) in zip(names, lanes, strict=True))


def _lane_name(timeline: Timeline, track: int, kind: int, *, several: bool) -> str:
    if timeline.kinds[kind].endswith(FOLDED):
        return printable(f"folded {timeline.kinds[kind].removesuffix(FOLDED)}")  # below the lanes of its track
    words = [timeline.tracks[track]] if several else []
    word = timeline.kinds[kind] or timeline.tracks[track]
    return printable(" ".join([*words, word[:1].upper() + word[1:]]))
