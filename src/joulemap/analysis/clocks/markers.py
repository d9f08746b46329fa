"""Instants that two sources both stamped, found by their names: marks of equal name, edges that a slice stands for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.clocks.regression import fit_clock
from joulemap.errors import InputError
from joulemap.records.mapping.clock_map import AlignMethod, ClockMap
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, EdgeDirection, Timeline

__all__ = ["MarkerPair", "match_edges", "match_marks", "relate_hosts"]

Ints = NDArray[np.int64]
MarkerPair = tuple[Ints, Ints]


def _times(track: MarkerTrack) -> dict[tuple[str, EdgeDirection], list[int]]:
    times: dict[tuple[str, EdgeDirection], list[int]] = defaultdict(list)
    for mark in track.markers:
        times[mark.name, mark.direction].append(mark.time_ns)
    return times


def match_marks(source: Sequence[MarkerTrack], target: Sequence[MarkerTrack]) -> MarkerPair:
    """Returns the instants that both sides stamped under one name, (n,) ns each.

    A name counts when both sides have it equally often: the k-th of one is the k-th of the other.
    """
    first: dict[tuple[str, EdgeDirection], list[int]] = {}
    second: dict[tuple[str, EdgeDirection], list[int]] = {}
    for tracks, table in ((source, first), (target, second)):
        for track in tracks:
            for key, times in _times(track).items():
                table.setdefault(key, times)
    pairs = [
        pair
        for key, times in first.items()
        if len(times) == len(second.get(key, ()))
        for pair in zip(times, second[key], strict=True)
    ]
    pairs.sort()
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


def match_edges(tracks: Sequence[MarkerTrack], timeline: Timeline, *, line: str, name: str) -> MarkerPair:
    """Returns starts and ends of the slices of a name, and the edges of the line that stands for them, (n,) ns each.

    Args:
        tracks: markers on the trace's clock.
        timeline: slices.
        line: name of the edges; rises are starts, falls are ends. The last fall may lie beyond the record.
        name: of the slices.

    Raises:
        InputError: line or slices are not there, or there are more of one than of the other (``markers-differ``).
    """
    rises = sorted(m.time_ns for t in tracks for m in t.markers if m.name == line and m.direction is EdgeDirection.RISE)
    falls = sorted(m.time_ns for t in tracks for m in t.markers if m.name == line and m.direction is EdgeDirection.FALL)
    rows = np.flatnonzero(timeline.name_index == timeline.names.index(name)) if name in timeline.names else np.empty(0)
    rows = rows.astype(np.int64)
    starts, ends = np.sort(timeline.start_ns[rows]), np.sort(timeline.end_ns[rows])
    cut = len(falls) == rows.size - 1 and bool(falls) and rises[-1] > falls[-1]  # the record ended before the last fall
    if not rows.size or len(rises) != rows.size or not (cut or len(falls) in (0, rows.size)):
        raise InputError(
            f"{len(rises)} rises and {len(falls)} falls of {line!r} do not stand for {rows.size} slices {name!r}",
            hint=f"name a line and slices that are equally many: --marker LINE=SLICE{_lines(tracks)}",
            slug="markers-differ",
        )
    source, target = [starts], [np.array(rises, np.int64)]
    if falls:
        source.append(ends[: len(falls)])
        target.append(np.array(falls, np.int64))
    return np.concatenate(source), np.concatenate(target)


def _lines(tracks: Sequence[MarkerTrack]) -> str:
    """Returns the lines that have rises, as the end of a hint."""
    found = dict.fromkeys(m.name for t in tracks for m in t.markers if m.direction is EdgeDirection.RISE)
    return f"; lines here: {', '.join(list(found)[:8])}" if found else "; no line was recorded beside the power"


def relate_hosts(tracks: Sequence[MarkerTrack]) -> tuple[ClockMap, ...]:
    """Returns how the clocks of sources that stamped the same marks are related, each against the first of them.

    MLPerf's client and server both write [wall, monotonic] at each phase: four clocks, related here.
    """
    clocks: dict[Clock, list[MarkerTrack]] = {}
    for track in tracks:
        clocks.setdefault(track.clock, []).append(track)
    if len(clocks) < 2:
        return ()
    (first, base), *others = clocks.items()
    maps = []
    for clock, group in others:
        source_ns, target_ns = match_marks(group, base)
        if source_ns.size >= 2:
            maps.append(fit_clock((clock, source_ns), (first, target_ns), method=AlignMethod.PAIRS))
    return tuple(maps)
