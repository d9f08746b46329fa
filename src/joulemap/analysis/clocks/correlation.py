"""The offset at which activity explains power best: cross-correlation on a grid, then least squares between its points.

The peak is that of activity against power: of all of it, or where an outer slice covers all, of its innermost slices,
as one or each of their names with a power of its own, whichever stands out most. Between the grid's points each name
has a power of its own, and the noise may be correlated in time. Starts and ends of the slices must ask for one and the
same offset: as far as they do not, the power inside the slices is not what the model says, and half of their difference
goes into the uncertainty.
Where another offset explains the samples almost as well (a periodic load without a beginning) there is no answer, and
none is given.

References:
    METHODS 1.4 in docs/methods.md (parabolic peak; 62 us at 1 kHz). W. K. Newey and K. D. West, Econometrica 55
    (1987) (variance under correlation, here by blocks).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import NotComparableError
from joulemap.trace import Timeline
from joulemap.trace.passes import sum_between
from joulemap.trace.streamed import Trace

__all__ = ["Correlated", "correlate_activity"]

_GRID = 1 << 17
"""Points of the grid at most: 1 s of power at 100 kHz, a day at 1 Hz."""
_DISTINCT = 12.0
"""Least gain in -2 log likelihood over the next peak: 5e-4 for a chance of being wrong."""
_BLOCK = 32
_NAMES = 24
"""Names that have a power of their own; the others share one."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlated:
    """Where the activity lies.

    Args:
        offset_ns: trace less timeline, ns.
        std_s: standard uncertainty, s.
        step_w: power of the activity above idle, W.
        share: of the power's variance that the activity explains.
        points: of the grid.
    """

    offset_ns: int
    std_s: float
    step_w: float
    share: float
    points: int


def correlate_activity(trace: Trace, timeline: Timeline) -> Correlated:
    """Returns the offset of a timeline whose slices draw more power than the time between them.

    Args:
        trace: power.
        timeline: slices on another clock.

    Raises:
        NotComparableError: nothing stands out, or two offsets do alike (``alignment-ambiguous``).
    """
    span_ns = trace.end_ns - trace.start_ns
    activity_ns = int(timeline.end_ns.max()) - int(timeline.start_ns.min())
    step_ns = max(_sample_ns(trace), math.ceil((span_ns + activity_ns) / _GRID), 1)
    power_w = _mean_power(trace, step_ns)
    begin_ns = int(timeline.start_ns.min())
    grid = begin_ns, step_ns, math.ceil(activity_ns / step_ns) + 1
    lag, gain = max((_peak(power_w, columns) for columns in _activities(timeline, grid)), key=lambda peak: peak[1])
    fine = float(lag) * step_ns
    told = gain >= _DISTINCT
    source = timeline, begin_ns, step_ns
    offset_ns, std_s, step_w, share = _refine(power_w, source, fine) if told else (0, math.inf, 0.0, 0.0)
    if not math.isfinite(std_s):
        raise NotComparableError(
            f"power and activity fit at more than one offset, or at none (best against next: {gain:.3g})",
            hint="give a mark that both saw (--marker LINE=SLICE) or state the offset (--offset)",
            slug="alignment-ambiguous",
        )
    return Correlated(
        offset_ns=trace.start_ns - begin_ns + offset_ns,
        std_s=std_s,
        step_w=step_w,
        share=share,
        points=int(power_w.size),
    )


def _sample_ns(trace: Trace) -> int:
    if trace.period_s is not None:
        return max(round(trace.step_ns), 1)
    assert trace.edges_ns is not None  # exactly one of the two is given
    return max(int(np.median(np.diff(trace.edges_ns))), 1)


def _mean_power(trace: Trace, step_ns: int) -> Floats:
    count = max((trace.end_ns - trace.start_ns) // step_ns, 1)
    edges_ns = trace.start_ns + np.arange(count + 1, dtype=np.int64) * step_ns
    held = sum_between(trace, edges_ns)
    power_w = np.divide(held.energy_j, held.covered_s, out=np.full(count, np.nan), where=held.covered_s > 0)
    power_w[np.isnan(power_w)] = float(np.nanmean(power_w)) if np.isfinite(power_w).any() else 0.0
    return np.asarray(power_w, np.float64)


def _activities(timeline: Timeline, grid: tuple[int, int, int]) -> list[Floats]:
    """Returns what may explain power: all slices as one, the innermost ones as one, and each of their names.

    Args:
        timeline: the slices.
        grid: first instant, ns; length of an interval, ns; intervals.
    """
    lasting = np.flatnonzero(timeline.end_ns > timeline.start_ns)
    if not lasting.size:
        return [np.zeros((1, grid[2]))]
    inner = _innermost(timeline, lasting, timeline.track_index[lasting])
    deepest = _innermost(timeline, lasting, np.zeros_like(lasting))  # an outer slice may have a track of its own
    known = {rows.size: rows for rows in (lasting, inner, deepest)}
    tried = [_busy(timeline, rows, grid)[None, :] for rows in known.values()]
    named = [_busy(timeline, rows, grid) for rows in _named_rows(timeline, inner)]
    if len(named) > 1:
        tried.append(np.stack(named))
    return tried


def _innermost(timeline: Timeline, rows: NDArray[np.int64], track: NDArray[np.integer]) -> NDArray[np.int64]:
    """Returns those of the slices that hold the start of no other one of their track, (rows,) each."""
    start_ns, end_ns = timeline.start_ns[rows], timeline.end_ns[rows]
    order = np.lexsort((-end_ns, start_ns, track))
    start_ns, end_ns, track = start_ns[order], end_ns[order], track[order]
    alone = np.ones(rows.size, np.bool_)
    alone[:-1] = (track[1:] != track[:-1]) | (start_ns[1:] >= end_ns[:-1])
    return rows[order[alone]]


def _busy(timeline: Timeline, rows: NDArray[np.int64], grid: tuple[int, int, int]) -> Floats:
    """Returns the share of each grid interval in which at least one of the slices is open, (count,)."""
    begin_ns, step_ns, count = grid
    start, end = _stretches(timeline, rows, begin_ns)
    return np.asarray(
        np.diff(_elapsed(start, end, np.arange(count + 1, dtype=np.float64) * step_ns)) / step_ns, np.float64
    )


def _peak(power_w: Floats, activity: Floats) -> tuple[int, float]:
    """Returns the lag in grid steps that explains most, and its gain over the next one in -2 log likelihood.

    Args:
        power_w: (n,) W.
        activity: (k, m) shares of the grid's intervals: one column draws more than none, of several each has a power.
    """
    n, m = power_w.size, activity.shape[1]
    size = 1 << (n + m).bit_length()
    centred = power_w - power_w.mean()
    # activity outside its record is unknown: lags keep it inside the trace where it fits, else at least half of it
    lags = np.arange(-(m // 2), max(n - m // 2, 1))
    lags = lags[(lags >= 0) & (lags <= n - m)] if m <= n else lags
    cross = _slide(centred, activity, size)[:, lags]
    if activity.shape[0] == 1:
        sums, squares = (_slide(np.ones(n), part, size)[0, lags] for part in (activity, activity**2))
        variance = squares - sums**2 / n
        explained = np.where(variance > 1e-9 * m, np.maximum(cross[0], 0.0) ** 2 / np.maximum(variance, 1e-300), 0.0)
    elif m <= n:
        mean = activity.sum(axis=1)
        gram = activity @ activity.T - np.outer(mean, mean) / n  # the same at every lag: all of it is inside
        explained = np.einsum("kl,kl->l", cross, np.linalg.pinv(gram, rcond=1e-9, hermitian=True) @ cross)
    else:
        return int(lags[0]), 0.0
    total = float(centred @ centred)
    best = int(np.argmax(explained))
    if total <= 0 or explained[best] <= 0:
        return int(lags[best]), 0.0
    rest = max(total - float(explained[best]), 1e-12 * total)
    width = best
    while width > 0 and explained[width - 1] < explained[width]:
        width -= 1
    right = best
    while right + 1 < explained.size and explained[right + 1] < explained[right]:
        right += 1
    others = np.concatenate([explained[:width], explained[right + 1 :], [0.0]])
    worth = _independent(centred) * n
    return int(lags[best]), worth * math.log1p((float(explained[best]) - float(others.max())) / rest)


def _slide(values: Floats, activity: Floats, size: int) -> Floats:
    """Returns the sum of values times activity at every lag, (k, size)."""
    turned = np.fft.rfft(activity, size, axis=1).conj()
    return np.asarray(np.fft.irfft(np.fft.rfft(values, size) * turned, size, axis=1), np.float64)


def _independent(values: Floats) -> float:
    """Returns the share of values that count as independent, from their first correlation."""
    power = float(values @ values)
    if power == 0 or values.size < 3:
        return 1.0
    rho = min(max(float(values[1:] @ values[:-1]) / power, 0.0), 0.999)
    return (1.0 - rho) / (1.0 + rho)


def _refine(power_w: Floats, source: tuple[Timeline, int, int], start_ns: float) -> tuple[int, float, float, float]:
    """Returns offset (ns from the trace's start), its std (s), step (W) and explained share by Gauss and Newton."""
    timeline, begin_ns, step_ns = source
    count, offset = power_w.size, start_ns
    lasting = np.flatnonzero(timeline.end_ns > timeline.start_ns)
    parts = [_stretches(timeline, rows, begin_ns) for rows in _named_rows(timeline, lasting)]
    edges: Floats = np.arange(count + 1, dtype=np.float64) * float(step_ns)
    probe = step_ns * 0.25

    def design_at(offset_ns: float) -> tuple[Floats, Floats, Floats]:
        columns = [np.diff(_elapsed(s + offset_ns, e + offset_ns, edges)) / step_ns for s, e in parts]
        plain = np.column_stack([np.ones(count), *columns])
        steps_w = np.linalg.lstsq(plain, power_w, rcond=1e-9)[0]
        starts, ends = np.zeros(count), np.zeros(count)
        for (s, e), watts in zip(parts, steps_w[1:], strict=True):
            starts -= watts * np.diff(_edge_time(s + offset_ns, edges, probe)) / step_ns
            ends += watts * np.diff(_edge_time(e + offset_ns, edges, probe)) / step_ns
        return plain, np.asarray(starts, np.float64), np.asarray(ends, np.float64)

    for _ in range(40):
        plain, starts, ends = design_at(offset)
        design = np.column_stack([plain, starts + ends])
        move = float(np.clip(np.linalg.lstsq(design, power_w, rcond=1e-12)[0][-1], -step_ns, step_ns))
        offset += move
        if abs(move) < 1e-4 * step_ns:
            break
    parameters = np.linalg.lstsq(design, power_w, rcond=1e-12)[0]
    residual = power_w - design @ parameters
    share = 1.0 - float(residual @ residual) / max(float(np.var(power_w)) * count, 1e-300)
    opened, closed = _stretches(timeline, lasting, begin_ns)
    busy = np.diff(_elapsed(opened + offset, closed + offset, edges)) / step_ns  # nested names are busy once
    busy_w = float((plain[:, 1:] @ parameters[1:-1]).sum() / max(float(busy.sum()), 1e-300))
    std_s = _offset_std_s(design, residual)
    both = np.linalg.lstsq(np.column_stack([plain, starts, ends]), power_w, rcond=1e-12)[0]
    return round(offset), math.hypot(std_s, 0.5 * abs(float(both[-1] - both[-2])) * 1e-9), busy_w, share


def _offset_std_s(design: Floats, residual: Floats) -> float:
    """Returns the standard uncertainty of the last column's parameter, robust to correlation inside blocks, s."""
    gram = design.T @ design
    scale = np.sqrt(np.diag(gram))
    if not scale[-1] > 0:
        return math.inf
    scale = np.where(scale > 0, scale, 1.0)
    inverse = np.linalg.pinv(gram / np.outer(scale, scale), rcond=1e-12, hermitian=True) / np.outer(scale, scale)
    blocks = np.arange(0, residual.size, _BLOCK)
    score = np.add.reduceat(design * residual[:, None], blocks, axis=0)
    robust = float((inverse @ (score.T @ score) @ inverse)[-1, -1])
    plain = float(residual @ residual) / max(residual.size - design.shape[1], 1) * float(inverse[-1, -1])
    return math.sqrt(max(robust, plain, 0.0)) * 1e-9


def _named_rows(timeline: Timeline, among: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Returns the slices of each of the names that take most time, and those of all others together."""
    time_ns = (timeline.end_ns[among] - timeline.start_ns[among]).astype(np.float64)
    name = timeline.name_index[among]
    total = np.bincount(name, time_ns, len(timeline.names))
    largest = np.argsort(-total, kind="stable")[:_NAMES]
    rows = [among[name == one] for one in largest if total[one] > 0]
    rest = among[~np.isin(name, largest)]
    return [*rows, rest] if rest.size else rows


def _stretches(timeline: Timeline, rows: NDArray[np.int64], begin_ns: int) -> tuple[Floats, Floats]:
    """Returns starts and ends of the time in which at least one of the slices is open, ns from begin."""
    order = rows[np.argsort(timeline.start_ns[rows], kind="stable")]
    start_ns, end_ns = timeline.start_ns[order], np.maximum.accumulate(timeline.end_ns[order])
    first = np.flatnonzero(np.concatenate([[True], start_ns[1:] > end_ns[:-1]]))
    last = np.append(first[1:] - 1, start_ns.size - 1)
    start, end = start_ns[first] - np.int64(begin_ns), end_ns[last] - np.int64(begin_ns)
    return start.astype(np.float64), end.astype(np.float64)


def _elapsed(start: Floats, end: Floats, at: Floats) -> Floats:
    """Returns the time inside the stretches up to each instant, ns."""
    before = np.concatenate([[0.0], np.cumsum(end - start)])
    piece = np.searchsorted(start, at, side="right")
    k = np.maximum(piece - 1, 0)
    return np.asarray(np.where(piece > 0, before[k] + np.minimum(at - start[k], (end - start)[k]), 0.0), np.float64)


def _edge_time(edge: Floats, at: Floats, width: float) -> Floats:
    """Returns how many edges passed by each instant, each spread over a width, so that its derivative is finite."""
    return _elapsed(edge - 0.5 * width, edge + 0.5 * width, at) / width
