"""The slices of a recording as lanes: one by one where a reader looks first, folded where there are too many. Pure.

A page holds ``SLICE_LIMIT`` slices, or fewer where other things need the room. Of more, those that touch the windows
which the page opens on stay, then the longest. A lane of which slices are missing has a folded lane below it: one slice
for each stretch of it, named by what took most of that stretch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.records.finding import Finding, Severity
from joulemap.report.view.colors import NEUTRAL
from joulemap.report.view.recording.folding import fold_slices, list_lanes, take_rows
from joulemap.report.view.recording.sections import PlacedWork, PowerLine
from joulemap.report.view.scene import SliceName, SliceTable
from joulemap.report.view.slices import FOLDED, SLICE_LIMIT, stack_lanes
from joulemap.report.view.text import printable, shorten
from joulemap.trace import Timeline, integrate_energy
from joulemap.units import format_count

__all__ = ["LANE_LIMIT", "NAME_LIMIT", "PAGE_B", "LaidWork", "lay_work", "plan_slices"]

LANE_LIMIT = 60
"""Lanes that a page holds; those with the least work are left out."""

NAME_LIMIT = 250
"""Names that a page holds; slices of others share one grey name."""

PAGE_B = 1_000_000
"""Size that a page stays below."""

_SCRIPT_B = 68_000  # script, style, findings, provenance
_NAME_B, _ROW_B, _ROWS, _BOX_B, _BOXES = 175, 540, 50, 350, 100
_FEWEST = 2_000
_COVERAGE = 1.959963984540054
_KEPT = 0.7  # share of the limit that slices shown one by one take when others are folded

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LaidWork:
    """Lanes and how to find what is in them.

    Args:
        slices: for the scene.
        shown: name -> names of the scene that stand for it.
        findings: what is not shown one by one.
    """

    slices: SliceTable
    shown: Mapping[str, tuple[int, ...]]
    findings: tuple[Finding, ...]


def plan_slices(work: PlacedWork, *, tracks: int, bins: int, samples: int) -> int:
    """Returns how many slices leave the page below ``PAGE_B``.

    Args:
        work: what ran.
        tracks: of the map.
        bins: of each.
        samples: in excerpts.
    """
    lengths = sorted((min(len(name), 80) for name in work.timeline.names), reverse=True)
    names_b = sum(length + _NAME_B for length in lengths[:NAME_LIMIT])
    rows_b = 2 * sum(3 * length + _ROW_B for length in lengths[:_ROWS])  # by name, and by path or operator
    rows_b += sum(4 * length + _BOX_B for length in lengths[:_BOXES])  # of the icicle
    arrays_b = (6 * tracks * bins + 2 * samples) * 4 // 3
    slice_b = (15 if work.shift_s == 0 else 17) * 4 / 3
    return max(_FEWEST, min(SLICE_LIMIT, int((PAGE_B - _SCRIPT_B - arrays_b - names_b - rows_b) / slice_b)))


def lay_work(
    work: PlacedWork,
    lines: Sequence[PowerLine],
    span_ns: tuple[int, int],
    *,
    windows_ns: Sequence[tuple[int, int]],
    known: Mapping[str, SliceName],
    limit: int = SLICE_LIMIT,
) -> LaidWork:
    """Returns the lanes.

    Args:
        work: what ran.
        lines: traces that the slices are charged with; empty for none.
        span_ns: start and end of the scene, ns.
        windows_ns: what must stay whole where it can.
        known: what is known of a name.
        limit: slices at most.
    """
    timeline, energy_j, left_out = _keep_lanes(*_clip(work, span_ns))
    kept = _choose(timeline, windows_ns, limit)
    folded, folded_j = take_rows(timeline, kept[:0]), np.empty(0)
    if kept.size < len(timeline):
        folded, folded_j = fold_slices(timeline, energy_j, kept, span_ns, limit=limit - kept.size)
    findings = _remarks(len(timeline), kept.size, len(folded), left_out)
    joined = _join(timeline, kept, folded)
    lane_index, lanes = stack_lanes(joined)
    all_j = np.concatenate([energy_j[kept], folded_j])
    std_j = np.full(all_j.size, np.nan)
    moved = bool(lines) and work.shift_s > 0  # else U of a slice follows from the limits of the first track
    if moved and kept.size:
        std_j[: kept.size] = _stds(take_rows(timeline, kept), energy_j[kept], lines, shift_s=work.shift_s)
    names, index, shown = _name(joined, kept.size, known)
    order = np.lexsort((-joined.end_ns, joined.start_ns))
    start_s = (joined.start_ns - span_ns[0]) * 1e-9
    table = SliceTable(
        start_s=np.asarray(start_s[order], np.float64),
        duration_s=np.asarray((joined.end_ns - joined.start_ns)[order] * 1e-9, np.float64),
        energy_j=all_j[order],
        name_index=index[order],
        lane_index=lane_index[order],
        names=names,
        lanes=lanes,
        expanded_j=_COVERAGE * std_j[order] if moved else None,
    )
    return LaidWork(slices=table, shown=shown, findings=findings)


def _clip(work: PlacedWork, span_ns: tuple[int, int]) -> tuple[Timeline, NDArray[np.float64]]:
    """Returns what lies in the scene; slices that reach out of it end at its edge and have no energy."""
    timeline = work.timeline
    if not len(timeline) or (timeline.start_ns.min() >= span_ns[0] and timeline.end_ns.max() <= span_ns[1]):
        return timeline, work.energy_j
    rows = np.flatnonzero((timeline.start_ns < span_ns[1]) & (timeline.end_ns >= span_ns[0]))
    inside = take_rows(timeline, rows)
    cut = (inside.start_ns < span_ns[0]) | (inside.end_ns > span_ns[1])
    clipped = replace(inside, start_ns=np.clip(inside.start_ns, *span_ns), end_ns=np.clip(inside.end_ns, *span_ns))
    return clipped, np.where(cut, np.nan, work.energy_j[rows])


def _keep_lanes(timeline: Timeline, energy_j: NDArray[np.float64]) -> tuple[Timeline, NDArray[np.float64], int]:
    """Returns what lies in the lanes with most work, and how many lanes were left out."""
    lanes, lane = list_lanes(timeline)
    if lanes.size <= LANE_LIMIT:
        return timeline, energy_j, 0
    busy = np.bincount(lane, weights=(timeline.end_ns - timeline.start_ns).astype(np.float64))
    wanted = np.zeros(lanes.size, np.bool_)
    wanted[np.argsort(-busy, kind="stable")[:LANE_LIMIT]] = True
    rows = np.flatnonzero(wanted[lane])
    return take_rows(timeline, rows), energy_j[rows], int(lanes.size - LANE_LIMIT)


def _choose(timeline: Timeline, windows_ns: Sequence[tuple[int, int]], limit: int) -> Ints:
    """Returns the rows that are shown one by one: of the windows, then the longest."""
    n = len(timeline)
    if n <= limit:
        return np.arange(n)
    room = int(limit * _KEPT)
    wanted = np.zeros(n, np.bool_)
    for left, right in windows_ns:
        wanted |= (timeline.start_ns < right) & (timeline.end_ns > left)
    rank_ns = timeline.end_ns - timeline.start_ns
    rank_ns[wanted] += np.int64(rank_ns.max()) + 1
    return np.sort(np.argpartition(rank_ns, n - room)[n - room :])


def _join(timeline: Timeline, kept: Ints, folded: Timeline) -> Timeline:
    """Returns both as one timeline; folded slices have kinds of their own, so that they lie in lanes of their own."""
    part = take_rows(timeline, kept)
    if not len(folded):
        return part
    kinds = len(timeline.kinds)
    return Timeline(
        clock=timeline.clock,
        start_ns=np.concatenate([part.start_ns, folded.start_ns]),
        end_ns=np.concatenate([part.end_ns, folded.end_ns]),
        name_index=np.concatenate([part.name_index, folded.name_index]),
        names=timeline.names,
        track_index=np.concatenate([part.track_index, folded.track_index]),
        tracks=timeline.tracks,
        kind_index=np.concatenate([part.kind_index, folded.kind_index + np.int32(kinds)]),
        kinds=(*timeline.kinds, *(f"{kind or 'slices'}{FOLDED}" for kind in timeline.kinds)),
    )


def _stds(
    part: Timeline, energy_j: NDArray[np.float64], lines: Sequence[PowerLine], *, shift_s: float
) -> NDArray[np.float64]:
    """Returns the standard uncertainty of single slices, (n,) J: the meter's limits, and edges that may be shifted."""
    start_ns, end_ns = part.start_ns, part.end_ns
    duration_s = (end_ns - start_ns) * 1e-9
    limits = lines[0].limits
    variance = (energy_j * limits.gain_std) ** 2 + (energy_j * limits.clock_std) ** 2
    variance += (duration_s * limits.offset_std_w) ** 2 + limits.noise_std_w**2 * duration_s / limits.rate_hz
    shift_ns = round(shift_s * 1e9)
    traces = [line.trace for line in lines if line.trace is not None]
    if shift_ns and traces:
        moved = [
            sum(integrate_energy(trace, start_ns + by, end_ns + by).energy_j for trace in traces)
            for by in (shift_ns, -shift_ns)
        ]
        variance += (0.5 * (moved[0] - moved[1])) ** 2
    return np.sqrt(variance)


def _name(
    joined: Timeline, kept: int, known: Mapping[str, SliceName]
) -> tuple[tuple[SliceName, ...], NDArray[np.int32], dict[str, tuple[int, ...]]]:
    """Returns the names that are used, the index of each slice, and where each name of the timeline is found."""
    lengths_ns = (joined.end_ns - joined.start_ns).astype(np.float64)
    weight = np.bincount(joined.name_index, weights=lengths_ns, minlength=len(joined.names))
    used = np.flatnonzero(np.bincount(joined.name_index, minlength=len(joined.names)))
    told = sorted(used.tolist(), key=lambda k: (joined.names[k] not in known, -weight[k]))[:NAME_LIMIT]
    names: list[SliceName] = []
    table = np.full((2, len(joined.names)), -1, np.int64)
    shown: dict[str, tuple[int, ...]] = {}
    for folded, rows in enumerate((slice(None, kept), slice(kept, None))):
        present = set(joined.name_index[rows].tolist())
        for k in told:
            if k not in present:
                continue
            name = joined.names[k]
            plain = known.get(name, SliceName(name=shorten(printable(name)), op="", color=NEUTRAL))
            table[folded, k] = len(names)
            shown[name] = (*shown.get(name, ()), len(names))
            names.append(_folded_name(plain) if folded else plain)
        others = present - set(told)
        if others:
            table[folded, sorted(others)] = len(names)
            text = f"one of {format_count(len(others))} further names"
            names.append(SliceName(name=text, op="", color=NEUTRAL))
    index = np.concatenate([table[0, joined.name_index[:kept]], table[1, joined.name_index[kept:]]])
    return tuple(names), index.astype(np.int32), shown


def _folded_name(plain: SliceName) -> SliceName:
    return SliceName(
        name=f"mostly {plain.name}",
        op=plain.op,
        color=plain.color,
        facts=("all slices of this stretch drawn as one",),
        no_energy="not told for all of them",
    )


def _remarks(slices: int, kept: int, folded: int, lanes: int) -> tuple[Finding, ...]:
    if not folded and not lanes:
        return ()
    message = f"the map shows {format_count(kept)} of {format_count(slices)} slices one by one"
    if folded:
        message += (
            f": those of the windows that it opens on and the longest; lanes that miss some are drawn folded too, in"
            f" {format_count(folded)} stretches, each named by what took most of it"
        )
    if lanes:
        message += f"; {lanes} lanes with the least work are left out"
    return (Finding(slug="slices_thinned", severity=Severity.INFO, message=message),)
