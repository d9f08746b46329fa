"""The slices of a map on the trace's clock, each with its energy: what an export writes. It must not know a format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.mapping.keys import MapKey, group_slices
from joulemap.analysis.mapping.placement import place_slices
from joulemap.estimate import Estimate
from joulemap.records.energy import Resolution
from joulemap.records.mapping.energy_map import MapRow
from joulemap.trace import Timeline
from joulemap.trace.passes import sum_between
from joulemap.trace.streamed import Trace
from joulemap.trace.sweep import GroupedSlices, Split, sweep_trace
from joulemap.workflow.recordings.map_bundle import MappedRecording

__all__ = ["Counters", "PlacedSlices", "bin_power", "list_nesting", "place_energies"]

_BINS = 200_000
"""Points of a counter at most; above it each point is the mean of a bin, which keeps the energy."""

Counters = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Starts of bins (ns), mean power (W; NaN where nothing was seen), energy so far (J)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedSlices:
    """Slices on the trace's clock with their energies.

    Args:
        slices: in order.
        energy_j: (n,) NaN where refused.
        self_j: (n,) NaN where refused.
        expanded_j: (n,) by the relative uncertainty of the slice's row.
        resolution: (n,) index into ``words``.
        words: how energies were had.
        timeline: the names.
        order: (n,) row of the timeline.
    """

    slices: GroupedSlices
    energy_j: NDArray[np.float64]
    self_j: NDArray[np.float64]
    expanded_j: NDArray[np.float64]
    resolution: NDArray[np.int64]
    words: tuple[str, ...]
    timeline: Timeline
    order: NDArray[np.int64]


def place_energies(mapped: MappedRecording, split: Split) -> PlacedSlices | None:
    """Returns the slices with their energies; None without a timeline."""
    timeline, clock = mapped.timeline, mapped.clock
    if timeline is None or clock is None:
        return None
    grouping = group_slices(timeline, MapKey.NAME)
    span = max(t.start_ns for t in mapped.traces), min(t.end_ns for t in mapped.traces)
    placed = place_slices(timeline, grouping, clock, span)
    swept = [sweep_trace(t, placed.slices, split=split, per_slice=True) for t in mapped.traces]
    energy_j = np.sum([s.slice_energy_j for s in swept], axis=0)
    self_j = np.sum([s.slice_self_j for s in swept], axis=0)
    order = np.arange(len(timeline)) if placed.order is None else placed.order
    name = timeline.name_index[order]
    rows = {row.key: row for row in mapped.map.rows}
    words = ("overlap", "least_squares", "in_place", "refused", "outside")
    relative, way = np.full(len(timeline.names), np.nan), np.full(len(timeline.names), words.index("refused"))
    for index, key in enumerate(timeline.names):
        row = rows.get(key)
        if row is not None and isinstance(row.energy_j, Estimate) and row.energy_j.value:
            relative[index] = row.energy_j.expanded / abs(row.energy_j.value)
            way[index] = words.index(str(row.resolution))
    told = np.asarray((way == words.index("overlap"))[name] & (placed.slices.group >= 0), np.bool_)
    _spread(mapped, placed.slices, (name, energy_j, self_j, told), rows)
    resolution = np.where(placed.slices.group >= 0, way[name], words.index("outside")).astype(np.int64)
    energy_j, self_j = np.where(told, energy_j, np.nan), np.where(told, self_j, np.nan)
    return PlacedSlices(
        slices=placed.slices,
        energy_j=energy_j,
        self_j=self_j,
        expanded_j=np.abs(energy_j) * relative[name],
        resolution=resolution,
        words=words,
        timeline=timeline,
        order=order,
    )


def _spread(
    mapped: MappedRecording,
    slices: GroupedSlices,
    columns: tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]],
    rows: dict[str, MapRow],
) -> None:
    """Gives slices of rows by least squares their row's power times their duration: samples do not tell them apart."""
    name, energy_j, self_j, told = columns
    assert mapped.timeline is not None  # the caller has slices
    duration_s = (slices.end_ns - slices.start_ns) * 1e-9
    for index, key in enumerate(mapped.timeline.names):
        row = rows.get(key)
        if row is None or row.resolution is not Resolution.LEAST_SQUARES or not isinstance(row.energy_j, Estimate):
            continue
        own = np.flatnonzero((name == index) & (slices.group >= 0))
        energy_j[own] = self_j[own] = duration_s[own] * (row.energy_j.value / row.duration_s)
        told[own] = True


def bin_power(
    traces: tuple[Trace, ...],
) -> tuple[Counters, float]:
    """Returns the counters and the length of a bin, s."""
    begin, end = max(t.start_ns for t in traces), min(t.end_ns for t in traces)
    first = traces[0]
    if len(traces) == 1 and first.n <= _BINS:
        edges = first.edges_ns
        edges_ns = (
            np.asarray(edges, np.int64)
            if edges is not None
            else first.start_ns + np.rint(np.arange(first.n + 1) * first.step_ns).astype(np.int64)
        )
    else:
        count = min(_BINS, max(t.n for t in traces))
        edges_ns = begin + np.rint(np.linspace(0.0, float(end - begin), count + 1)).astype(np.int64)
    held = [sum_between(trace, edges_ns) for trace in traces]
    energy_j = np.sum([h.energy_j for h in held], axis=0)
    covered_s = np.min([h.covered_s for h in held], axis=0)
    power_w = np.divide(energy_j, covered_s, out=np.full(energy_j.size, np.nan), where=covered_s > 0)
    bin_s = float(edges_ns[-1] - edges_ns[0]) * 1e-9 / max(energy_j.size, 1)
    return (edges_ns[:-1], power_w, np.cumsum(energy_j)), bin_s


def list_nesting(placed: PlacedSlices) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yields track names with the rows (in order) of slices that nest; what overlaps goes to a track of its own."""
    for track, name in enumerate(placed.timeline.tracks):
        rows = np.flatnonzero(placed.slices.track == track)
        number = 1
        while rows.size:
            kept, rest = _nesting(rows, placed.slices)
            yield (name or "slices") + (f" ({number})" if number > 1 else ""), kept
            rows, number = rest, number + 1


def _nesting(rows: NDArray[np.int64], slices: GroupedSlices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    end_ns = slices.end_ns[rows]
    start_ns = slices.start_ns[rows]
    if bool(np.all(start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1])):
        return rows, rows[:0]
    kept: list[int] = []
    rest: list[int] = []
    stack: list[int] = []
    for row, begin, end in zip(rows.tolist(), start_ns.tolist(), end_ns.tolist(), strict=True):
        while stack and stack[-1] <= begin:
            stack.pop()
        if stack and stack[-1] < end:
            rest.append(row)
            continue
        kept.append(row)
        if end > begin:
            stack.append(end)
    return np.array(kept, np.int64), np.array(rest, np.int64)
