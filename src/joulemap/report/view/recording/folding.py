"""Many slices as a few: those of one lane whose middles lie in one stretch of the scene become one. Pure.

Ten million slices are gone through a block at a time; what grows with them is one index each and no more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joulemap.trace import Timeline

__all__ = ["fold_slices", "list_lanes", "take_rows"]

_BLOCK = 1 << 20

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def take_rows(timeline: Timeline, rows: Ints) -> Timeline:
    """Returns those rows of a timeline, in their order."""
    return replace(
        timeline,
        start_ns=timeline.start_ns[rows],
        end_ns=timeline.end_ns[rows],
        name_index=timeline.name_index[rows],
        track_index=timeline.track_index[rows],
        kind_index=timeline.kind_index[rows],
    )


def list_lanes(timeline: Timeline) -> tuple[Ints, NDArray[np.int32]]:
    """Returns the lanes that a timeline has slices in (track times kinds plus kind), and the lane of each slice."""
    kinds = len(timeline.kinds)
    seen = np.zeros(len(timeline.tracks) * kinds, np.bool_)
    lane = np.empty(len(timeline), np.int32)
    for at in range(0, len(timeline), _BLOCK):
        part = slice(at, at + _BLOCK)
        lane[part] = timeline.track_index[part] * np.int32(kinds) + timeline.kind_index[part]
        seen[lane[part]] = True
    lanes = np.flatnonzero(seen)
    place = np.zeros(seen.size, np.int32)
    place[lanes] = np.arange(lanes.size)
    for at in range(0, len(timeline), _BLOCK):
        lane[at : at + _BLOCK] = place[lane[at : at + _BLOCK]]
    return lanes, lane


def fold_slices(
    timeline: Timeline, energy_j: Floats, kept: Ints, span_ns: tuple[int, int], *, limit: int
) -> tuple[Timeline, Floats]:
    """Returns the folded slices and their energies, J; NaN in a lane whose slices overlap or have none themselves.

    A lane is folded whole when a slice of it is not shown by itself, so that its colours do not depend on which are.

    Args:
        timeline: in order of start, inside the span.
        energy_j: (n,) of each slice.
        kept: rows that are shown one by one.
        span_ns: start and end of the scene, ns.
        limit: folded slices at most.
    """
    lanes, lane = list_lanes(timeline)
    alone = np.bincount(lane[kept], minlength=lanes.size)
    missing = np.bincount(lane, minlength=lanes.size) > alone
    bins = max(1, limit // max(lanes.size, 1))
    cells, names = lanes.size * bins, len(timeline.names)
    start_ns = np.full(cells, np.iinfo(np.int64).max)
    end_ns = np.full(cells, np.iinfo(np.int64).min)
    sums_j, reach_ns, overlaps = np.zeros(cells), np.full(lanes.size, span_ns[0]), np.zeros(lanes.size, np.bool_)
    pairs: list[tuple[Ints, Floats]] = []
    scale = bins / max(span_ns[1] - span_ns[0], 1)
    for at in range(0, len(timeline), _BLOCK):
        rows = at + np.flatnonzero(missing[lane[at : at + _BLOCK]])
        begin, end = timeline.start_ns[rows], timeline.end_ns[rows]
        middle = (begin - np.int64(span_ns[0])) + (end - begin) // 2
        cell = lane[rows].astype(np.int64) * bins + np.clip((middle * scale).astype(np.int64), 0, bins - 1)
        np.minimum.at(start_ns, cell, begin)
        np.maximum.at(end_ns, cell, end)
        sums_j += np.bincount(cell, weights=energy_j[rows], minlength=cells)
        pairs.append(_sum_pairs(cell * names + timeline.name_index[rows], (end - begin).astype(np.float64)))
        _mark_overlaps((lane[rows], begin, end), reach_ns, overlaps)
    full = np.flatnonzero(end_ns >= start_ns)
    whole = lanes[full // bins]
    kinds = len(timeline.kinds)
    folded = replace(
        timeline,
        start_ns=start_ns[full],
        end_ns=end_ns[full],
        name_index=_dominant(pairs, names),
        track_index=(whole // kinds).astype(np.int32),
        kind_index=(whole % kinds).astype(np.int32),
    )
    return folded, np.where(overlaps[full // bins], np.nan, sums_j[full])


def _sum_pairs(pair: Ints, took: Floats) -> tuple[Ints, Floats]:
    distinct, home = np.unique(pair, return_inverse=True)
    return distinct, np.bincount(home, weights=took).astype(np.float64)


def _dominant(pairs: list[tuple[Ints, Floats]], names: int) -> NDArray[np.int32]:
    """Returns the name that took most time in each cell that has any, in order of the cells."""
    if not pairs:
        return np.empty(0, np.int32)
    pair, took = _sum_pairs(np.concatenate([p for p, _ in pairs]), np.concatenate([t for _, t in pairs]))
    cell = pair // names
    ranked = np.lexsort((took, cell))
    last = np.append(np.flatnonzero(np.diff(cell[ranked])), ranked.size - 1) if ranked.size else ranked
    return np.asarray(pair[ranked[last]] % names, np.int32)


def _mark_overlaps(columns: tuple[NDArray[np.int32], Ints, Ints], reach_ns: Ints, overlaps: NDArray[np.bool_]) -> None:
    """Marks lanes in which a slice begins before one before it has ended; ``reach_ns`` goes from block to block."""
    lane, begin, end = columns
    order = np.argsort(lane, kind="stable")
    edges = np.searchsorted(lane[order], np.arange(reach_ns.size + 1))
    for k in range(reach_ns.size):
        rows = order[edges[k] : edges[k + 1]]
        if not rows.size:
            continue
        before = np.maximum.accumulate(np.concatenate([reach_ns[k : k + 1], end[rows]]))
        overlaps[k] |= bool(np.any(begin[rows] < before[:-1]))
        reach_ns[k] = before[-1]
