"""The slices of a map on the trace's clock, each with its energy: what an export writes. It must not know a format."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
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

__all__ = ["Counters", "PlacedPart", "PlacedSlices", "bin_power", "list_nesting", "place_energies"]

_BINS = 200_000
"""Points of a counter at most; above it each point is the mean of a bin, which keeps the energy."""

Counters = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Starts of bins (ns), mean power (W; NaN where nothing was seen), energy so far (J)."""


_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedPart:
    """Some slices that follow each other, with everything that is told of them.

    Args:
        start_ns: (k,) ns on the trace's clock.
        end_ns: (k,) ns.
        row: (k,) row of the timeline.
        energy_j: (k,) NaN where refused.
        self_j: (k,) NaN where refused.
        expanded_j: (k,) by the relative uncertainty of the slice's row.
        resolution: (k,) index into the words.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    row: NDArray[np.int64]
    energy_j: NDArray[np.float64]
    self_j: NDArray[np.float64]
    expanded_j: NDArray[np.float64]
    resolution: NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedSlices:
    """Slices on the trace's clock with their energies.

    Args:
        slices: in order.
        energy_j: (n,) NaN where refused.
        self_j: (n,) NaN where refused.
        relative: (names,) expanded uncertainty of a name's row over its energy.
        way: (names,) how the energy of a name's row was had, index into ``words``.
        words: how energies were had.
        timeline: the names.
        row_order: (n,) row of the timeline; None when they stand as they stood.
    """

    slices: GroupedSlices
    energy_j: NDArray[np.float64]
    self_j: NDArray[np.float64]
    relative: NDArray[np.float64]
    way: NDArray[np.int8]
    words: tuple[str, ...]
    timeline: Timeline
    row_order: NDArray[np.int64] | None

    @property
    def order(self) -> NDArray[np.int64]:
        """(n,) row of the timeline."""
        return np.arange(len(self.timeline)) if self.row_order is None else self.row_order

    @property
    def resolution(self) -> NDArray[np.int8]:
        """(n,) index into ``words``."""
        return np.concatenate([part.resolution for part in self.parts()] or [np.empty(0, np.int8)])

    @property
    def expanded_j(self) -> NDArray[np.float64]:
        """(n,) by the relative uncertainty of the slice's row."""
        return np.concatenate([part.expanded_j for part in self.parts()] or [np.empty(0)])

    def take(self, some: slice | NDArray[np.int64]) -> PlacedPart:
        """Returns what is told of some slices."""
        start_ns = self.slices.start_ns[some]
        if self.row_order is not None:
            row = self.row_order[some]
        elif isinstance(some, slice):
            row = np.arange(some.start, some.start + start_ns.size)
        else:
            row = some
        name, inside = self.timeline.name_index[row], self.slices.group[some] >= 0
        return PlacedPart(
            start_ns=start_ns,
            end_ns=self.slices.end_ns[some],
            row=row,
            energy_j=self.energy_j[some],
            self_j=self.self_j[some],
            expanded_j=np.abs(self.energy_j[some]) * self.relative[name],
            resolution=np.where(inside, self.way[name], np.int8(self.words.index("outside"))).astype(np.int8),
        )

    def parts(self) -> Iterator[PlacedPart]:
        """Yields all slices in order, some at a time."""
        for at in range(0, self.slices.start_ns.size, _BLOCK):
            yield self.take(slice(at, at + _BLOCK))


def place_energies(mapped: MappedRecording, split: Split) -> PlacedSlices | None:
    """Returns the slices with their energies; None without a timeline."""
    timeline, clock = mapped.timeline, mapped.clock
    if timeline is None or clock is None:
        return None
    grouping = group_slices(timeline, MapKey.NAME)
    span = max(t.start_ns for t in mapped.traces), min(t.end_ns for t in mapped.traces)
    placed = place_slices(timeline, grouping, clock, span)
    energy_j, self_j = np.empty(0), np.empty(0)
    for number, trace in enumerate(mapped.traces):
        swept = sweep_trace(trace, placed.slices, split=split, per_slice=True)
        if number:
            energy_j += swept.slice_energy_j
            self_j += swept.slice_self_j
        else:
            energy_j, self_j = swept.slice_energy_j, swept.slice_self_j
    rows = {row.key: row for row in mapped.map.rows}
    words = ("overlap", "least_squares", "in_place", "refused", "outside")
    names = len(timeline.names)
    relative, way = np.full(names, np.nan), np.full(names, words.index("refused"), np.int8)
    power_w = np.full((2, names), np.nan)
    for index, key in enumerate(timeline.names):
        row = rows.get(key)
        if row is not None and isinstance(row.energy_j, Estimate):
            if row.energy_j.value:  # of nothing no share is known
                relative[index] = row.energy_j.expanded / abs(row.energy_j.value)
            way[index] = words.index(str(row.resolution))
            if row.resolution is Resolution.LEAST_SQUARES:  # samples do not tell its slices apart: by their duration
                power_w[0, index] = row.energy_j.value / row.duration_s
                if isinstance(row.self_j, Estimate):
                    power_w[1, index] = row.self_j.value / row.duration_s
    found = PlacedSlices(
        slices=placed.slices,
        energy_j=energy_j,
        self_j=self_j,
        relative=relative,
        way=way,
        words=words,
        timeline=timeline,
        row_order=placed.order,
    )
    _give_back(found, [rows.get(key) for key in timeline.names])
    _tell(found, power_w)
    return found


def _give_back(placed: PlacedSlices, rows: Sequence[MapRow | None]) -> None:
    """Gives each slice its part of what samples on edges took from its row by overlap: slices add up to the row.

    Every slice has two edges, so that each of a name gets the same. A name inside itself is counted once in its row and
    twice in its slices: what it holds stays as the samples have it.
    """
    names = len(rows)
    held = np.zeros((4, names))
    for at in range(0, placed.energy_j.size, _BLOCK):
        part, name, inside = _block(placed, at)
        time_s = (part.end_ns - part.start_ns) * 1e-9
        for line, values in enumerate((part.energy_j, part.self_j, time_s, np.ones(time_s.size))):
            held[line] += np.bincount(name[inside], values[inside], names)
    each = np.zeros((2, names))
    for index, row in enumerate(rows):
        if row is None or row.resolution is not Resolution.OVERLAP or not held[3, index]:
            continue
        once = abs(held[2, index] - row.duration_s) <= 1e-9 * row.duration_s
        for column, told in enumerate((row.energy_j if once else None, row.self_j)):
            if isinstance(told, Estimate):
                each[column, index] = (told.value - held[column, index]) / held[3, index]
    for at in range(0, placed.energy_j.size, _BLOCK):
        part, name, inside = _block(placed, at)
        part.energy_j[inside] += each[0, name[inside]]  # views of the whole
        part.self_j[inside] += each[1, name[inside]]


def _block(placed: PlacedSlices, at: int) -> tuple[PlacedPart, NDArray[np.int64], NDArray[np.bool_]]:
    block = slice(at, at + _BLOCK)
    part = placed.take(block)
    return part, placed.timeline.name_index[part.row].astype(np.int64), placed.slices.group[block] >= 0


def _tell(placed: PlacedSlices, power_w: NDArray[np.float64]) -> None:
    """Sets energies that are not told to NaN, and gives slices of rows by least squares their row's power."""
    overlap = placed.words.index("overlap")
    for at in range(0, placed.energy_j.size, _BLOCK):
        block = slice(at, at + _BLOCK)
        part = placed.take(block)
        by_power = power_w[:, placed.timeline.name_index[part.row]] * ((part.end_ns - part.start_ns) * 1e-9)
        spread = ~np.isnan(by_power[0]) & (placed.slices.group[block] >= 0)
        silent = (part.resolution != overlap) & ~spread
        for energies, spread_j in zip((part.energy_j, part.self_j), by_power, strict=True):  # views of the whole
            energies[spread] = spread_j[spread]
            energies[silent] = np.nan


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
    kept: array[int] = array("q")
    rest: array[int] = array("q")
    stack: list[int] = []
    for at in range(0, rows.size, _BLOCK):  # a list of ten million numbers takes four hundred megabytes
        block = rows[at : at + _BLOCK]
        columns = (block.tolist(), slices.start_ns[block].tolist(), slices.end_ns[block].tolist())
        for row, begin, end in zip(*columns, strict=True):
            while stack and stack[-1] <= begin:
                stack.pop()
            if stack and stack[-1] < end:
                rest.append(row)
                continue
            kept.append(row)
            if end > begin:
                stack.append(end)
    return np.array(kept, np.int64), np.array(rest, np.int64)
