"""Exact integration in plain numpy: the reference for the compiled kernels, and the way for small work.

Samples are read once, in chunks. Between the distinct bounds they are summed by ``np.add.reduceat``; the sums are
accumulated in double-double, vectorised as a blocked scan, so that a slice of microwatts after hours of kilowatts
keeps its digits. It must not know clocks, channels or traces: positions and power come in as arrays.

References:
    D. E. Knuth, The Art of Computer Programming, vol. 2, 4.2.2 (TwoSum).
    G. E. Blelloch, Prefix sums and their applications, CMU-CS-90-190 (1990), 1.2 (blocked scan).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Positions", "Samples", "accumulate", "integrate_positions"]

_CHUNK = 1 << 18  # samples per pass: its float64 copies stay in the second-level cache and far below any memory bound

_Number = TypeVar("_Number", float, NDArray[np.float64])
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """What is integrated.

    Args:
        power_w: (n,) W.
        step_ns: length of every interval, ns (uniform); None for a non-uniform trace.
        edges_ns: (n + 1,) ns, strictly increasing (non-uniform); None for a uniform trace.
        runs: (r, 2) half-open ranges of samples that were not lost, sorted and disjoint.
        point: power is linear between samples (trapezoid) instead of constant over each interval.
    """

    power_w: NDArray[np.float32] | NDArray[np.float64]
    step_ns: float | None
    edges_ns: Ints | None
    runs: Ints
    point: bool

    def valid(self, index: Ints) -> NDArray[np.bool_]:
        """Returns (k,) True where the sample of that index exists and was not lost."""
        if not self.runs.size:
            return np.zeros(index.shape, np.bool_)
        run = np.searchsorted(self.runs[:, 0], index, side="right") - 1
        inside = (run >= 0) & (index < self.runs[np.maximum(run, 0), 1])
        return np.asarray(inside, np.bool_)

    def ends_w(self, index: Ints) -> tuple[Floats, Floats]:
        """Returns power at both ends of the intervals, (k,) W each: 0 where lost, held before a lost sample."""
        if not self.power_w.size:
            return np.zeros(index.shape), np.zeros(index.shape)
        last = self.power_w.size - 1
        valid = self.valid(index)
        here_w = np.where(valid, self.power_w[np.minimum(index, last)].astype(np.float64), 0.0)
        if not self.point:
            return here_w, here_w
        following = valid & self.valid(index + 1)
        next_w = np.where(following, self.power_w[np.minimum(index + 1, last)].astype(np.float64), here_w)
        return here_w, next_w

    def steps_ns(self, index: Ints) -> Floats:
        """Returns the lengths of the intervals, (k,) ns; 1 past the last one, where the power is 0."""
        if self.edges_ns is None:
            assert self.step_ns is not None  # exactly one of the two is given
            return np.full(index.shape, self.step_ns)
        last = self.edges_ns.size - 1
        following = np.minimum(index + 1, last)
        steps = self.edges_ns[following] - self.edges_ns[index]
        return np.where(index < last, steps, 1).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Positions:
    """Slices as positions in the samples.

    Args:
        start: (m,) interval that holds the slice's start; n at the very end.
        start_ns: (m,) ns into that interval.
        end: (m,) interval that holds the slice's end; n at the very end.
        end_ns: (m,) ns into that interval.
    """

    start: Ints
    start_ns: Floats
    end: Ints
    end_ns: Floats


def _add(high: _Number, low: _Number, term_high: _Number, term_low: _Number | float) -> tuple[_Number, _Number]:
    # (high + low) + (term_high + term_low) as a normalised double-double
    total = high + term_high
    back = total - high
    error = ((high - (total - back)) + (term_high - back)) + (low + term_low)
    result = total + error
    return result, error - (result - total)


def accumulate(terms: Floats, carry: float = 0.0) -> tuple[Floats, Floats]:
    """Returns carry + the running sums of the terms as double-doubles (high, low), each (k,).

    Args:
        terms: (k,) any unit.
        carry: what the sums start from.
    """
    rows = max(1, math.isqrt(terms.size))
    columns = -(-terms.size // rows)
    blocks = np.zeros(rows * columns)
    blocks[: terms.size] = terms
    table = np.ascontiguousarray(blocks.reshape(rows, columns).T)  # one vector operation advances every block by a term
    highs, lows = np.empty_like(table), np.empty_like(table)
    high, low = np.zeros(rows), np.zeros(rows)
    for column in range(columns):
        high, low = _add(high, low, table[column], 0.0)
        highs[column], lows[column] = high, low
    begin_high, begin_low = np.empty(rows), np.empty(rows)
    running, error = carry, 0.0
    for row in range(rows):
        begin_high[row], begin_low[row] = running, error
        running, error = _add(running, error, float(high[row]), float(low[row]))
    highs, lows = _add(np.broadcast_to(begin_high, highs.shape), np.broadcast_to(begin_low, lows.shape), highs, lows)
    return highs.T.ravel()[: terms.size], lows.T.ravel()[: terms.size]


def _pieces(samples: Samples, index: Ints, first_ns: Floats, last_ns: Floats) -> Floats:
    # energy of [first, last] inside one interval each, W ns
    here_w, next_w = samples.ends_w(index)
    if not samples.point:
        return here_w * (last_ns - first_ns)
    step_ns = samples.steps_ns(index)
    weights = here_w * ((step_ns - first_ns) + (step_ns - last_ns)) + next_w * (first_ns + last_ns)
    return np.where(here_w == next_w, here_w * (last_ns - first_ns), (last_ns - first_ns) * weights / (2.0 * step_ns))


def _chunks(first: int, last: int) -> Iterator[tuple[int, int]]:
    for begin in range(first, last, _CHUNK):
        yield begin, min(begin + _CHUNK, last)


def _lost(samples: Samples, begin: int, end: int) -> NDArray[np.bool_]:
    lost = np.ones(end - begin, np.bool_)
    first = int(np.searchsorted(samples.runs[:, 1], begin, side="right"))
    last = int(np.searchsorted(samples.runs[:, 0], end, side="left"))
    for left, right in samples.runs[first:last]:
        lost[max(left - begin, 0) : right - begin] = False
    return lost


def _areas(samples: Samples, begin: int, end: int) -> Floats:
    # energy of whole intervals begin..end: W ns when non-uniform, in units of one interval when uniform
    area = samples.power_w[begin:end].astype(np.float64)
    lost = _lost(samples, begin, end + 1)
    if samples.point:
        following = np.append(area[1:], samples.power_w[min(end, samples.power_w.size - 1)])
        area = 0.5 * (area + np.where(lost[1:], area, following))
    area[lost[:-1]] = 0.0
    if samples.edges_ns is not None:
        area *= np.diff(samples.edges_ns[begin : end + 1])
    return area


def _prefix(samples: Samples, wanted: Ints, carry: float) -> tuple[Floats, Floats]:
    # double-double energy from wanted[0] to each of the sorted, distinct wanted positions
    between = np.zeros(wanted.size)
    for begin, end in _chunks(int(wanted[0]), int(wanted[-1])):
        low = int(np.searchsorted(wanted, begin, side="right")) - 1
        high = int(np.searchsorted(wanted, end, side="left"))
        cuts = np.maximum(wanted[low:high], begin) - begin
        between[low + 1 : high + 1] += np.add.reduceat(_areas(samples, begin, end), cuts)
    return accumulate(between, carry)


def integrate_positions(samples: Samples, positions: Positions, carry: float = 0.0) -> Floats:
    """Returns the energy of every slice, (m,) W ns.

    Args:
        samples: what is integrated.
        positions: the slices; a start never lies after its end.
        carry: the prefix starts from this sum; only its rounding could ever be seen.
    """
    same = positions.start == positions.end
    energy_wns = np.empty(same.size)
    rows = np.flatnonzero(same)
    energy_wns[rows] = _pieces(samples, positions.start[rows], positions.start_ns[rows], positions.end_ns[rows])
    rows = np.flatnonzero(~same)
    if rows.size:
        start, end = positions.start[rows], positions.end[rows]
        steps_ns = samples.steps_ns(start)
        wanted, inverse = np.unique(np.concatenate([start + 1, end]), return_inverse=True)
        high, low = _prefix(samples, wanted, carry)
        begin, stop = inverse[: rows.size], inverse[rows.size :]
        whole = (high[stop] - high[begin]) + (low[stop] - low[begin])
        head_wns = _pieces(samples, start, positions.start_ns[rows], steps_ns)
        tail_wns = _pieces(samples, end, np.zeros(rows.size), positions.end_ns[rows])
        scale = 1.0 if samples.step_ns is None else samples.step_ns
        energy_wns[rows] = whole * scale + (head_wns + tail_wns)
    return energy_wns
