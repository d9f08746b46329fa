"""The offset at which activity explains power best: cross-correlation on a grid, then least squares between its points.

The model is power = idle + step x activity(t - offset) with noise that may be correlated in time. Where another offset
explains the samples almost as well (a periodic load without a beginning) there is no answer, and none is given.

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
from joulemap.trace import EnergyTrace, Timeline, integrate_between

__all__ = ["Correlated", "correlate_activity"]

_GRID = 1 << 17
"""Points of the grid at most: 1 s of power at 100 kHz, a day at 1 Hz."""
_DISTINCT = 12.0
"""Least gain in -2 log likelihood over the next peak: 5e-4 for a chance of being wrong."""
_BLOCK = 32

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


def correlate_activity(trace: EnergyTrace, timeline: Timeline) -> Correlated:
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
    activity = _busy(timeline, (begin_ns, step_ns, math.ceil(activity_ns / step_ns) + 1))
    lag, gain = _peak(power_w, activity)
    fine = float(lag) * step_ns
    offset_ns, std_s, step_w, share = _refine(power_w, (timeline, begin_ns, step_ns), fine)
    if gain < _DISTINCT or not math.isfinite(std_s):
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


def _sample_ns(trace: EnergyTrace) -> int:
    if trace.period_s is not None:
        return max(round(trace.step_ns), 1)
    assert trace.edges_ns is not None  # exactly one of the two is given
    return max(int(np.median(np.diff(trace.edges_ns))), 1)


def _mean_power(trace: EnergyTrace, step_ns: int) -> Floats:
    count = max((trace.end_ns - trace.start_ns) // step_ns, 1)
    edges_ns = trace.start_ns + np.arange(count + 1, dtype=np.int64) * step_ns
    held = integrate_between(trace, edges_ns)
    power_w = np.divide(held.energy_j, held.covered_s, out=np.full(count, np.nan), where=held.covered_s > 0)
    power_w[np.isnan(power_w)] = float(np.nanmean(power_w)) if np.isfinite(power_w).any() else 0.0
    return np.asarray(power_w, np.float64)


def _busy(timeline: Timeline, grid: tuple[int, int, int], shift_ns: float = 0.0) -> Floats:
    """Returns the share of each grid interval in which at least one slice is open, (count,).

    Args:
        timeline: the slices.
        grid: first instant, ns; length of an interval, ns; intervals.
        shift_ns: to add to the slices, ns.
    """
    begin_ns, step_ns, count = grid
    real = timeline.end_ns > timeline.start_ns
    start_ns, end_ns = timeline.start_ns[real], timeline.end_ns[real]
    order = np.argsort(start_ns, kind="stable")
    start_ns, end_ns = start_ns[order], np.maximum.accumulate(end_ns[order])
    fresh = np.concatenate([[True], start_ns[1:] > end_ns[:-1]])
    first = np.flatnonzero(fresh)
    last = np.append(first[1:] - 1, start_ns.size - 1)
    start = (start_ns[first] - begin_ns).astype(np.float64) + shift_ns
    end = (end_ns[last] - begin_ns).astype(np.float64) + shift_ns
    before = np.concatenate([[0.0], np.cumsum(end - start)])
    edges = np.arange(count + 1) * float(step_ns)
    piece = np.searchsorted(start, edges, side="right")
    at = np.maximum(piece - 1, 0)
    elapsed = np.where(piece > 0, before[at] + np.minimum(edges - start[at], (end - start)[at]), 0.0)
    return np.asarray(np.diff(elapsed) / step_ns, np.float64)


def _peak(power_w: Floats, activity: Floats) -> tuple[int, float]:
    """Returns the lag in grid steps that explains most, and its gain over the next one in -2 log likelihood."""
    n, m = power_w.size, activity.size
    size = 1 << (n + m).bit_length()
    centred = power_w - power_w.mean()
    # activity outside its record is unknown: lags keep it inside the trace where it fits, else at least half of it
    cross = np.fft.irfft(np.fft.rfft(centred, size) * np.fft.rfft(activity, size).conj(), size)
    inside = np.fft.rfft(np.ones(n), size)
    sums = np.fft.irfft(inside * np.fft.rfft(activity, size).conj(), size)
    squares = np.fft.irfft(inside * np.fft.rfft(activity**2, size).conj(), size)
    lags = np.arange(-(m // 2), max(n - m // 2, 1))
    lags = lags[(lags >= 0) & (lags <= n - m)] if m <= n else lags
    variance = squares[lags] - sums[lags] ** 2 / n
    explained = np.where(variance > 1e-9 * m, np.maximum(cross[lags], 0.0) ** 2 / np.maximum(variance, 1e-300), 0.0)
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
    grid = (begin_ns, step_ns, count)
    probe = step_ns * 0.25
    parameters, std_s, share = np.zeros(3), math.inf, 0.0
    for _ in range(30):
        here = _busy(timeline, grid, offset)
        slope = (_busy(timeline, grid, offset + probe) - _busy(timeline, grid, offset - probe)) / (2.0 * probe)
        plain = np.stack([np.ones(count), here], axis=1)
        step_w = float(np.linalg.lstsq(plain, power_w, rcond=None)[0][1])
        design = np.column_stack([plain, step_w * slope])
        parameters, *_ = np.linalg.lstsq(design, power_w, rcond=None)
        move = float(np.clip(parameters[2], -step_ns, step_ns))
        offset += move
        if abs(move) < 1e-4 * step_ns:
            break
    residual = power_w - design @ parameters
    gram = design.T @ design
    if not np.all(np.diag(gram) > 0) or np.linalg.cond(gram) > 1e15:
        return round(offset), math.inf, float(parameters[1]), 0.0
    inverse = np.linalg.inv(gram)
    blocks = np.arange(0, count, _BLOCK)
    score = np.add.reduceat(design * residual[:, None], blocks, axis=0)
    robust = inverse @ (score.T @ score) @ inverse
    plain_var = float(residual @ residual) / max(count - 3, 1) * inverse[2, 2]
    std_s = math.sqrt(max(float(robust[2, 2]), plain_var)) * 1e-9
    share = 1.0 - float(residual @ residual) / max(float(np.var(power_w)) * count, 1e-300)
    return round(offset), std_s, float(parameters[1]), share
