"""The offset at which the schedule explains the samples best: least squares over the rows at every offset tried.

Sharper than correlation, since each name has a power of its own, and the only way when the load never rests.

References:
    METHODS 1.4 and 1.5 in docs/methods.md (profile likelihood: 0.55 us sd at 1 kHz). Golub and Pereyra, SIAM J.
    Numer. Anal. 10 (1973) (variable projection).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.trace import Timeline
from joulemap.trace.streamed import Trace, cut_window

__all__ = ["ProfiledOffset", "profile_offset"]

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_SAMPLES = 20_000
_NAMES = 64

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledOffset:
    """Where the schedule lies.

    Args:
        shift_ns: to add to the timeline, ns.
        std_s: standard uncertainty from the curvature of the likelihood, s.
        gain: -2 log likelihood won over no shift.
    """

    shift_ns: float
    std_s: float
    gain: float


def profile_offset(
    trace: Trace, timeline: Timeline, *, half_range_s: float, start_ns: int = 0, steps: int = 41
) -> ProfiledOffset | None:
    """Returns the shift that minimises the residual of the layer fit, within a range; None when nothing can be told.

    Args:
        trace: uniform power.
        timeline: slices of one track at a time, already near their place on the trace's clock.
        half_range_s: how far off it may be, s.
        start_ns: shift to begin at, ns.
        steps: grid points over the range before it is refined.
    """
    window = _window(trace, timeline)
    if window is None or len(timeline.names) > _NAMES:
        return None
    edges_ns, power_w = window
    pieces = _pieces(timeline)

    def squares(shift_ns: float) -> float:
        columns = [np.diff(_elapsed(s, e, edges_ns - shift_ns)) for s, e in pieces]
        length = np.diff(edges_ns)
        idle = np.maximum(length - np.sum(columns, axis=0), 0.0)
        design = np.column_stack([*columns, idle]) / length[:, None]
        scale = np.linalg.norm(design, axis=0)
        design = design[:, scale > 1e-9 * scale.max()]
        solution, *_ = np.linalg.lstsq(design, power_w, rcond=1e-9)
        residual = power_w - design @ solution
        return float(residual @ residual)

    grid = start_ns + np.linspace(-half_range_s, half_range_s, steps) * 1e9
    values = [squares(shift) for shift in grid]
    best = int(np.argmin(values))
    if best in (0, steps - 1):
        return None
    shift_ns = _minimise(squares, float(grid[best - 1]), float(grid[best + 1]))
    least = squares(shift_ns)
    dof = max(power_w.size - len(pieces) - 2, 1)
    step_ns = max(0.02 * float(grid[1] - grid[0]), 1.0)
    curve = (squares(shift_ns + step_ns) - 2.0 * least + squares(shift_ns - step_ns)) / step_ns**2
    if curve <= 0:
        return None
    std_s = math.sqrt(2.0 * least / dof / curve) * 1e-9
    gain = dof * math.log(max(squares(float(start_ns)), 1e-300) / max(least, 1e-300))
    return ProfiledOffset(shift_ns=shift_ns, std_s=std_s, gain=gain)


def _minimise(function: Callable[[float], float], low: float, high: float) -> float:
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(60):
        if high - low < 0.5:
            break
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return 0.5 * (low + high)


def _window(trace: Trace, timeline: Timeline) -> tuple[Floats, Floats] | None:
    """Returns edges (ns from the start of the trace) and powers of a run of samples inside the timeline."""
    if trace.period_s is None:
        return None
    first = math.ceil((int(timeline.start_ns.min()) - trace.start_ns) / trace.step_ns)
    last = math.floor((int(timeline.end_ns.max()) - trace.start_ns) / trace.step_ns)
    first, last = max(first, 0), min(last, trace.n)
    begin = max(first, (first + last - _SAMPLES) // 2)
    end = min(last, begin + _SAMPLES)
    if end - begin < 16:
        return None
    power_w, seen = cut_window(trace, begin, end)
    if not seen.all():
        return None
    edges_ns = np.arange(begin, end + 1) * trace.step_ns + float(trace.start_ns)
    return np.asarray(edges_ns, np.float64), power_w


def _pieces(timeline: Timeline) -> list[tuple[Floats, Floats]]:
    pieces = []
    for name in range(len(timeline.names)):
        rows = np.flatnonzero((timeline.name_index == name) & (timeline.end_ns > timeline.start_ns))
        if rows.size:
            start = timeline.start_ns[rows].astype(np.float64)
            order = np.argsort(start, kind="stable")
            pieces.append((start[order], timeline.end_ns[rows].astype(np.float64)[order]))
    return pieces


def _elapsed(start: Floats, end: Floats, at: Floats) -> Floats:
    before = np.concatenate([[0.0], np.cumsum(end - start)])
    piece = np.searchsorted(start, at, side="right")
    k = np.maximum(piece - 1, 0)
    return np.where(piece > 0, before[k] + np.minimum(at - start[k], (end - start)[k]), 0.0)
