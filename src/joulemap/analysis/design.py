"""Samples as least squares sees them: which share of each sample falls into which cell of the layers.

A cell is a piece of a layer whose power is taken as constant. Cells are short against a sample at both ends of a
layer, where samples mix it with its neighbours, and grow towards its middle. The gap is one cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.schedule import LayerSchedule

__all__ = ["Cells", "Rows", "build_cells", "build_rows"]

_FINE = 4
"""A cell at the end of a layer is this part of a sample long, or of a layer that is shorter than a sample."""
_FINE_CELLS = 6
"""So many of them from each end; beyond, where no sample reaches the neighbour, each is twice the one before."""

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Cells of the layers, in order, and the gap as the last one.

    Args:
        region: (cells,) layer of each cell; the number of layers for the gap.
        start_s: (cells,) begin within the layer, s.
        length_s: (cells,) s.
        edges: (pieces + 1,) ends of the pieces of one inference, in inferences: cells and parts of the gap.
        cell: (pieces,) of each piece.
    """

    region: Indices
    start_s: Array
    length_s: Array
    edges: Array
    cell: Indices

    @property
    def regions(self) -> int:
        """Layers and the gap."""
        return int(self.region[-1]) + 1

    @property
    def inference_s(self) -> float:
        """Length of an inference, s."""
        return float(self.length_s.sum())

    def shares(self) -> Array:
        """Returns (regions, cells) which share of a region's time each cell has."""
        total_s = np.bincount(self.region, self.length_s, self.regions)
        count = np.bincount(self.region, minlength=self.regions)
        own = np.where(
            total_s[self.region] > 0,
            self.length_s / np.maximum(total_s[self.region], 1e-300),
            1.0 / count[self.region],
        )
        shares = np.zeros((self.regions, self.region.size))
        shares[self.region, np.arange(self.region.size)] = own
        return shares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Samples of all captures that lie wholly inside GATE.

    Args:
        cells: of the mean schedule.
        power_w: (k,) power of each sample, W.
        start: (k,) its start after GATE's rise, in inferences.
        length: (k,) its length, in inferences.
        capture: (k,) its capture, from 0, ascending.
        captures: number of captures; one may have no row.
    """

    cells: Cells
    power_w: Array
    start: Array
    length: Array
    capture: Indices
    captures: int

    def blocks(self) -> Iterator[tuple[Indices, Indices, Array]]:
        """Yields rows that reach into the same pieces: their indices, the (n,) cells, the (rows, n) shares in each.

        A cell may come more than once.
        """
        pieces = self.cells.cell.size
        whole = np.floor(self.start)
        begin = self.start - whole
        end = begin + self.length
        first = np.searchsorted(self.cells.edges[1:-1], begin, side="right")
        over = np.floor(end)
        last = np.searchsorted(self.cells.edges[1:-1], end - over, side="right") + pieces * over.astype(np.int64)
        span = last - first + 1
        reach = np.arange(int(last.max(initial=0)) + 2)
        edges = self.cells.edges[reach % pieces] + reach // pieces
        order = np.lexsort((span, first))
        breaks = np.flatnonzero(np.diff(first[order]) | np.diff(span[order])) + 1
        for rows in np.split(order, breaks) if order.size else ():
            low, high = int(first[rows[0]]), int(last[rows[0]]) + 1
            held = np.minimum(end[rows, None], edges[low + 1 : high + 1])
            held -= np.maximum(begin[rows, None], edges[low:high])
            share = np.maximum(held, 0.0) / self.length[rows, None]
            cells = self.cells.cell[reach[low:high] % pieces]
            if cells.size > pieces:
                each = np.zeros((self.cells.region.size, rows.size))
                np.add.at(each, cells, share.T)
                cells, share = np.arange(each.shape[0]), each.T
            yield rows, cells, share

    def explained(self, cell_w: Array) -> Array:
        """Returns (k,) power of each sample when the cells have these powers, W."""
        return (self._until(self.start + self.length, cell_w) - self._until(self.start, cell_w)) / self.length

    def slope(self, cell_w: Array) -> Array:
        """Returns (k,) change of what :meth:`explained` says when GATE moves to later, W per inference.

        Over a hundredth of a sample to both sides: one that begins on a boundary has the mean of two slopes.
        """
        step = self.length / 100.0
        end, start = self.start + self.length, self.start
        later = self._until(end - step, cell_w) - self._until(start - step, cell_w)
        earlier = self._until(end + step, cell_w) - self._until(start + step, cell_w)
        return (later - earlier) / (2.0 * step * self.length)

    def _until(self, at: Array, cell_w: Array) -> Array:
        """Returns the energy from GATE's rise to each instant, both in inferences, W inferences."""
        until_j = np.concatenate([[0.0], np.cumsum(np.diff(self.cells.edges) * cell_w[self.cells.cell])])
        whole = np.floor(at)
        return np.asarray(whole * until_j[-1] + np.interp(at - whole, self.cells.edges, until_j), np.float64)

    def inference(self) -> Indices:
        """Returns (k,) numbers that are equal for samples whose middle lies in the same inference of a capture."""
        inside = np.floor(self.start + 0.5 * self.length).astype(np.int64)
        return self.capture * (int(inside.max(initial=0)) + 1) + inside


def build_cells(schedule: LayerSchedule, sample_s: float) -> Cells:
    """Returns the cells that samples of a length ask for.

    Args:
        schedule: mean layer schedule.
        sample_s: length of a sample, s.
    """
    lengths = [_cut(float(duration_s), sample_s) for duration_s in schedule.duration_s]
    counts = [len(pieces) for pieces in lengths]
    starts = [np.cumsum(pieces) - pieces for pieces in lengths]
    ends_s, cell, number = [], [], 0
    gap = sum(counts)
    for start_s, pieces in zip(schedule.start_s, lengths, strict=True):
        ends_s += [start_s, *(start_s + np.cumsum(pieces))]
        cell += [gap, *range(number, number + len(pieces))]
        number += len(pieces)
    edges = np.minimum(np.array([0.0, *ends_s, schedule.period_s]) / schedule.period_s, 1.0)
    return Cells(
        region=np.append(np.repeat(np.arange(schedule.layers), counts), schedule.layers).astype(np.int64),
        start_s=np.append(np.concatenate(starts), 0.0),
        length_s=np.append(np.concatenate(lengths), schedule.gap_s),
        edges=np.maximum.accumulate(edges),
        cell=np.array([*cell, gap], np.int64),
    )


def build_rows(captures: Sequence[GatedCapture], cells: Cells, count: int) -> Rows:
    """Returns the rows of the captures: ``count`` inferences from GATE's rise on in each of them.

    Args:
        captures: at least one.
        cells: of the mean schedule, which is scaled to each capture's GATE.
        count: inferences inside GATE.
    """
    start, length, power = [], [], []
    for capture in captures:
        period_s = capture.gate_s / count
        samples = capture.inside(capture.rise_s, capture.fall_s)
        start.append(np.asarray((samples * capture.period_s - capture.rise_s) / period_s, np.float64))
        length.append(np.full(samples.size, capture.period_s / period_s))
        power.append(capture.power_w(samples))
    return Rows(
        cells=cells,
        power_w=np.concatenate(power),
        start=np.maximum(np.concatenate(start), 0.0),
        length=np.concatenate(length),
        capture=np.repeat(np.arange(len(captures)), [part.size for part in power]),
        captures=len(captures),
    )


def _cut(duration_s: float, sample_s: float) -> Array:
    """Returns the lengths of a layer's cells, s: alike from both ends."""
    fine_s = sample_s / _FINE
    if duration_s <= 2 * _FINE_CELLS * fine_s:
        number = max(math.ceil(duration_s / fine_s), _FINE)
        return np.full(number, duration_s / number)
    side, rest_s = [fine_s] * _FINE_CELLS, duration_s / 2 - _FINE_CELLS * fine_s
    while rest_s > 4 * side[-1]:
        side.append(2 * side[-1])
        rest_s -= side[-1]
    return np.array([*side, rest_s, rest_s, *side[::-1]])
