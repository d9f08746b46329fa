"""Compiled streaming sums for exact integration: one pass over the samples, double-double carry, bounded memory.

Both kernels visit the sorted bounds of all slices once and sum every sample once, whatever the number of slices. A
slice is made of a head (the rest of its first interval), whole intervals, and a tail (the start of its last one):
head and tail are computed directly and the whole intervals as the difference of two double-double prefixes, so that
nothing cancels. Segments are summed in blocks and each block is added by TwoSum.

Imported late, by ``integrate`` alone. Its twin in plain numpy is ``reference``. It must not know clocks, channels or
traces: positions and power come in as arrays.

References:
    T. J. Dekker, A floating-point technique for extending the available precision, Numer. Math. 18 (1971).
    D. E. Knuth, The Art of Computer Programming, vol. 2, 4.2.2 (TwoSum).
"""

# ruff: noqa: D103, PLR0913, PLR0915, PLR0917  compiled functions take plain positional arrays, not records
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.kernels.compiling import borrowed, prefetch_row, vectorised

__all__ = ["BLOCK", "add", "integrate_edges", "integrate_uniform", "piece", "run_at"]

_Power = NDArray[np.float32] | NDArray[np.float64]

_AHEAD = 16  # bounds: a row of a large table takes as long to arrive as so many bounds to pass
BLOCK = 4096  # samples per plain partial sum: its rounding error stays near 1e-15 whatever the length of a segment


@vectorised
def _span_sum(power_w: _Power, begin: int, end: int) -> float:
    # unsigned indices: the wrap-around check of negative ones would keep SIMD away (7 times slower), and a view costs
    # as much as the few samples between two bounds do
    total = 0.0
    for k in range(np.uint64(begin), np.uint64(end)):
        total += np.float64(power_w[k])
    return total


@vectorised
def _span_sum_mean(power_w: _Power, edges_ns: NDArray[np.int64]) -> float:
    left_ns, right_ns = edges_ns[:-1], edges_ns[1:]
    total = 0.0
    for k in range(len(power_w)):
        total += np.float64(power_w[k]) * np.float64(right_ns[k] - left_ns[k])
    return total


@vectorised
def _span_sum_point(power_w: _Power, edges_ns: NDArray[np.int64]) -> float:
    left_w, right_w = power_w[:-1], power_w[1:]
    left_ns, right_ns = edges_ns[:-1], edges_ns[1:]
    total = 0.0
    for k in range(len(left_w)):
        total += (np.float64(left_w[k]) + np.float64(right_w[k])) * np.float64(right_ns[k] - left_ns[k])
    return 0.5 * total


@borrowed
def add(high: float, low: float, term: float) -> tuple[float, float]:
    # (high + low) + term as a normalised double-double
    total = high + term
    back = total - high
    low += (high - (total - back)) + (term - back)
    high = total + low
    return high, low - (high - total)


@borrowed
def piece(here_w: float, next_w: float, span_ns: tuple[float, float], step_ns: float) -> float:
    # energy of [a, b] inside one interval of length step, power linear from here to next (equal for a mean)
    a, b = span_ns
    if here_w == next_w:
        return here_w * (b - a)
    return (b - a) * (here_w * ((step_ns - a) + (step_ns - b)) + next_w * (a + b)) / (2.0 * step_ns)


@borrowed
def run_at(runs: NDArray[np.int64], run: int, k: int) -> tuple[int, int, int]:
    # the run that holds sample k, else the next one, with its bounds; an empty one when there is none
    while run < len(runs) and runs[run, 1] <= k:
        run += 1
    if run == len(runs):
        return run, k, k
    return run, runs[run, 0], runs[run, 1]


@borrowed
def _advance_uniform(
    power_w: _Power,
    span: tuple[int, int],
    run: int,
    runs: NDArray[np.int64],
    point: bool,
    prefix: tuple[float, float],
) -> tuple[float, float]:
    # adds the intervals of the span to the prefix, in units of one interval
    position, end = span
    high, low = prefix
    while position < end:
        run, run_begin, run_end = run_at(runs, run, position)
        first = max(position, run_begin)
        if run == len(runs) or first >= end:
            break
        position = min(end, run_end, first + BLOCK)
        total = _span_sum(power_w, first, position)
        if point:
            following = position if position < run_end else position - 1
            total += 0.5 * (np.float64(power_w[following]) - np.float64(power_w[first]))
        high, low = add(high, low, total)
    return high, low


@borrowed
def integrate_uniform(
    power_w: _Power,
    step_ns: float,
    index: NDArray[np.int64],
    offset_ns: NDArray[np.float64],
    order: NDArray[np.int64],
    runs: NDArray[np.int64],
    point: bool,
    carry_w: float,
    opened: NDArray[np.float64],
    energy_wns: NDArray[np.float64],
) -> None:
    """Fills the energy of every slice of a uniform trace, in W ns.

    Args:
        power_w: (n,) W.
        step_ns: length of an interval, ns.
        index: (2 m,) interval of every bound in order of time; n for a bound at the very end.
        offset_ns: (2 m,) ns into that interval.
        order: (2 m,) which bound each is: k < m is the start of slice k, m + k its end.
        runs: (r, 2) half-open ranges of samples that were not lost, sorted and disjoint.
        point: power is linear between samples (trapezoid) instead of constant over each interval.
        carry_w: the prefix starts from this sum of samples; only its rounding could ever be seen.
        opened: (m, 4) scratch, half a cache line each: prefix past the first interval, head, rank of the start; then
            the energy, so that the end of a slice touches one line.
        energy_wns: (m,) out.
    """
    m = len(energy_wns)
    position = index[0] if m else 0
    high, low = carry_w, 0.0  # sum of the samples before position
    past_high, past_low = high, low  # the same with position's own, kept apart: a head must not cancel against it
    started = False
    entered = 0  # rank of the first bound inside the interval at position
    run, run_begin, run_end = run_at(runs, 0, position)
    for j in range(len(order)):
        if j + _AHEAD < len(order):
            soon = order[j + _AHEAD]
            prefetch_row(opened, soon if soon < m else soon - m)
        here, here_ns = index[j], offset_ns[j]
        if here > position:
            if started:
                high, low, position, started = past_high, past_low, position + 1, False
            if not point and run_begin <= position and here < run_end and here - position <= BLOCK:
                high, low = add(high, low, _span_sum(power_w, position, here))  # the common case, without a call
            else:
                high, low = _advance_uniform(power_w, (position, here), run, runs, point, (high, low))
                run, run_begin, run_end = run_at(runs, run, here)
            position, entered = here, j
        here_w = np.float64(power_w[here]) if run_begin <= here < run_end else 0.0
        next_w = np.float64(power_w[here + 1]) if point and run_begin <= here and here + 1 < run_end else here_w
        row = order[j]
        if row < m:
            if not started:
                past_high, past_low = add(high, low, 0.5 * (here_w + next_w))
                started = True
            head_wns = piece(here_w, next_w, (here_ns, step_ns), step_ns)
            opened[row, 0], opened[row, 1], opened[row, 2], opened[row, 3] = past_high, past_low, head_wns, j
        else:
            row -= m
            begin = int(opened[row, 3])
            if entered <= begin < j:  # an empty slice may end before it starts; its row says nothing yet
                opened[row, 0] = piece(here_w, next_w, (offset_ns[begin], here_ns), step_ns)
            else:
                whole_w = (high - opened[row, 0]) + (low - opened[row, 1])
                tail_wns = piece(here_w, next_w, (0.0, here_ns), step_ns)
                opened[row, 0] = whole_w * step_ns + (opened[row, 2] + tail_wns)
    for row in range(m):
        energy_wns[row] = opened[row, 0]


@borrowed
def _seek(edges_ns: NDArray[np.int64], low: int, bound_ns: int) -> int:
    # last edge at or before the bound, galloping from low: bounds arrive in order
    n = len(edges_ns)
    step = 1
    while low + step < n and edges_ns[low + step] <= bound_ns:
        low += step
        step *= 2
    high = min(low + step, n)
    while high - low > 1:
        middle = (low + high) >> 1
        if edges_ns[middle] <= bound_ns:
            low = middle
        else:
            high = middle
    return low


@borrowed
def _advance_edges(
    power_w: _Power,
    edges_ns: NDArray[np.int64],
    span: tuple[int, int],
    run: int,
    runs: NDArray[np.int64],
    point: bool,
    prefix: tuple[float, float],
) -> tuple[float, float]:
    # adds the intervals of the span to the prefix, in W ns
    position, end = span
    high, low = prefix
    while position < end:
        run, run_begin, run_end = run_at(runs, run, position)
        first = max(position, run_begin)
        if run == len(runs) or first >= end:
            break
        position = min(end, run_end, first + BLOCK)
        inner = position - 1 if point and position == run_end else position
        if point:
            total = _span_sum_point(power_w[first : inner + 1], edges_ns[first : inner + 1])
        else:
            total = _span_sum_mean(power_w[first:inner], edges_ns[first : inner + 1])
        if inner < position:
            total += np.float64(power_w[inner]) * np.float64(edges_ns[position] - edges_ns[inner])
        high, low = add(high, low, total)
    return high, low


@borrowed
def _offset(whole_ns: NDArray[np.int64], part_ns: NDArray[np.float64], j: int, edge_ns: int) -> float:
    offset_ns = np.float64(whole_ns[j] - edge_ns)
    return offset_ns + part_ns[j] if len(part_ns) else offset_ns


@borrowed
def integrate_edges(
    power_w: _Power,
    edges_ns: NDArray[np.int64],
    whole_ns: NDArray[np.int64],
    part_ns: NDArray[np.float64],
    order: NDArray[np.int64],
    runs: NDArray[np.int64],
    point: bool,
    carry_wns: float,
    opened: NDArray[np.float64],
    energy_wns: NDArray[np.float64],
) -> None:
    """Fills the energy of every slice of a non-uniform trace, in W ns.

    Args:
        power_w: (n,) W.
        edges_ns: (n + 1,) ns, strictly increasing.
        whole_ns: (2 m,) ns, every bound rounded down, in order of time; none outside the edges.
        part_ns: (2 m,) or (0,) ns, what rounding took away; empty when all bounds are whole.
        order: (2 m,) which bound each is: k < m is the start of slice k, m + k its end.
        runs: (r, 2) half-open ranges of samples that were not lost, sorted and disjoint.
        point: power is linear between samples (trapezoid) instead of constant over each interval.
        carry_wns: the prefix starts from this energy; only its rounding could ever be seen.
        opened: (m, 4) scratch, half a cache line each: prefix past the first interval, head, rank of the start; then
            the energy, so that the end of a slice touches one line.
        energy_wns: (m,) out.
    """
    m = len(energy_wns)
    position = _seek(edges_ns, 0, whole_ns[0]) if m else 0
    high, low = carry_wns, 0.0  # energy before position
    past_high, past_low = high, low  # the same with position's own, kept apart: a head must not cancel against it
    started = False
    entered = 0  # rank of the first bound inside the interval at position
    run, run_begin, run_end = run_at(runs, 0, position)
    for j in range(len(order)):
        if j + _AHEAD < len(order):
            soon = order[j + _AHEAD]
            prefetch_row(opened, soon if soon < m else soon - m)
        here = _seek(edges_ns, position, whole_ns[j])
        if here > position:
            if started:
                high, low, position, started = past_high, past_low, position + 1, False
            if not point and run_begin <= position and here < run_end and here - position <= BLOCK:
                high, low = add(high, low, _span_sum_mean(power_w[position:here], edges_ns[position : here + 1]))
            else:
                high, low = _advance_edges(power_w, edges_ns, (position, here), run, runs, point, (high, low))
                run, run_begin, run_end = run_at(runs, run, here)
            position, entered = here, j
        here_w = np.float64(power_w[here]) if run_begin <= here < run_end else 0.0
        next_w = np.float64(power_w[here + 1]) if point and run_begin <= here and here + 1 < run_end else here_w
        step_ns = np.float64(edges_ns[here + 1] - edges_ns[here]) if here < len(power_w) else 1.0
        here_ns = _offset(whole_ns, part_ns, j, edges_ns[here])
        row = order[j]
        if row < m:
            if not started:
                past_high, past_low = add(high, low, 0.5 * (here_w + next_w) * step_ns)
                started = True
            head_wns = piece(here_w, next_w, (here_ns, step_ns), step_ns)
            opened[row, 0], opened[row, 1], opened[row, 2], opened[row, 3] = past_high, past_low, head_wns, j
        else:
            row -= m
            begin = int(opened[row, 3])
            if entered <= begin < j:  # an empty slice may end before it starts; its row says nothing yet
                begin_ns = _offset(whole_ns, part_ns, begin, edges_ns[here])
                opened[row, 0] = piece(here_w, next_w, (begin_ns, here_ns), step_ns)
            else:
                whole_wns = (high - opened[row, 0]) + (low - opened[row, 1])
                tail_wns = piece(here_w, next_w, (0.0, here_ns), step_ns)
                opened[row, 0] = whole_wns + (opened[row, 2] + tail_wns)
    for row in range(m):
        energy_wns[row] = opened[row, 0]
