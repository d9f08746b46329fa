"""Where a schedule lies under samples when the clock is uncertain: the shift (and drift) that explains them best.

What is known of the clock is the prior; the samples sharpen it, often a thousandfold (METHODS 1.4: 0.55 us at 1 kHz).

References:
    METHODS 1.4 in docs/methods.md (profile likelihood). Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973) (variable
    projection), Gauss and Newton's steps on the shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.separation.row_design import Windows, build_samples, power_at
from joulemap.analysis.separation.row_fit import Aside, fit_rows, residual_square
from joulemap.analysis.separation.stretches import Stretches
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.trace import Timeline

__all__ = ["ClockDoubt", "RowClock", "doubt_of", "place_rows", "placed_std_s"]

_STEPS = 15
_GRID = 241
_SAMPLES = 2000
"""Samples of the middle that are enough for the first look."""
_DISTINCT = 12.0
"""Gain in -2 log likelihood over the next place from which there is one place: 5e-4 for a chance of being wrong."""
_NEGLIGIBLE = 1e-4
"""Doubt of the clock over the shortest stretch that is left out of the fit."""
_PLACED = 0.05
"""Doubt over a typical stretch from which the samples must find the place."""
_SETTLED = 0.25
"""Last step over what stays uncertain: below it the place was found."""
_CERTAIN_S = 1e-12
_TICK_S = 1.5e-9
"""A clock that states 1 ns, the least that an instant can hold, states nothing."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockDoubt:
    """What is not known of the clock.

    Args:
        std_s: of a common shift, s.
        drift_std: of the rate.
        reference_ns: instant of the trace's clock at which the shift holds, ns.
    """

    std_s: float = 0.0
    drift_std: float = 0.0
    reference_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowClock:
    """Where the schedule lies.

    Args:
        shift_s: of the stretches at the reference, s.
        drift: of the stretches.
        aside: the same as parameters of the fit, at the place found; None when the clock is certain.
        shift_ns: (n,) for each sample, ns; or one for all.
        settled: there is one place, and it was found.
    """

    shift_s: float
    drift: float
    aside: Aside | None
    shift_ns: Floats | float
    settled: bool


def doubt_of(clock: ClockMap, late_s: float = 0.0) -> ClockDoubt:
    """Returns what is not known of a relation of clocks, and of stamps that are written in whole ticks.

    Args:
        clock: from the slices' to the trace's.
        late_s: what the instants of the samples are not known to, 1 sd, s.
    """
    reference = np.array([clock.reference_ns], np.int64)
    return ClockDoubt(
        std_s=math.hypot(clock.std_s, _rounded_s(clock), late_s),
        drift_std=clock.drift_std,
        reference_ns=int(clock.apply(reference)[0]),
    )


def placed_std_s(clock: ClockMap, timeline: Timeline) -> float:
    """Returns how well slices are placed before the samples are asked, over all of them, 1 sd, s."""
    doubt_s = _rounded_s(clock)
    if not clock.drift_std:
        return math.hypot(clock.std_s, doubt_s)
    away_s = (timeline.start_ns - np.int64(clock.reference_ns)).astype(np.float64) * 1e-9
    return math.hypot(clock.std_s, doubt_s, clock.drift_std * math.sqrt(float(np.mean(away_s**2))))


def _rounded_s(clock: ClockMap) -> float:
    tick_s = max(clock.source.resolution_ns, clock.target.resolution_ns) * 1e-9
    return (
        math.hypot(clock.source.resolution_ns, clock.target.resolution_ns) * 1e-9 / math.sqrt(12.0)
        if (tick_s > _TICK_S)
        else 0.0
    )


def place_rows(
    windows: Windows, stretches: Stretches, rows: int, *, doubt: ClockDoubt, origin_ns: int, noise_std_j: float
) -> RowClock:
    """Returns the shift and drift that explain the samples best, given what is known of them.

    Args:
        windows: of the samples.
        stretches: of the rows.
        rows: number of rows.
        doubt: of the clock.
        origin_ns: instant that is 0.
        noise_std_j: declared noise of a sample, J.
    """
    at_s = (0.5 * (windows.begin_ns + windows.end_ns) + float(origin_ns - doubt.reference_ns)) * 1e-9
    typical_s = _typical_s(stretches)
    reach_s = math.hypot(doubt.std_s, doubt.drift_std * float(np.abs(at_s).max()))
    if reach_s <= _NEGLIGIBLE * typical_s:
        return RowClock(shift_s=0.0, drift=0.0, aside=None, shift_ns=0.0, settled=True)
    finest_s = 0.25 * typical_s
    first = _look(windows, (stretches, rows), doubt, finest_s)
    if first is None:
        aside = _aside(windows, (stretches, rows), (0.0, 0.0), (at_s, doubt, noise_std_j))
        return RowClock(shift_s=0.0, drift=0.0, aside=aside, shift_ns=0.0, settled=False)
    place = (first, 0.0)
    limit_s = 0.5 * max(float(np.median(windows.span_s)), finest_s)
    settled = reach_s < _PLACED * typical_s
    calm, before = 1.0, 0.0
    for _ in range(_STEPS):
        aside = _aside(windows, (stretches, rows), place, (at_s, doubt, noise_std_j))
        samples = build_samples(windows, stretches, rows, _shift_ns(place, at_s))
        fit = fit_rows(samples, noise_std_j, aside)
        move = float(np.clip(fit.aside[0], -limit_s, limit_s))
        turn = float(fit.aside[1]) if fit.aside.size > 1 else 0.0
        calm, before = 0.5 * calm if move * before < 0 else calm, move  # two places push at each other
        place = (place[0] + calm * move, place[1] + calm * turn)
        known_s = math.sqrt(max(float(fit.covariance[rows + 1, rows + 1]), 1e-30))
        moved_s = max(abs(move), abs(turn) * float(np.ptp(at_s)))
        settled = settled or moved_s < _SETTLED * known_s
        if calm * moved_s < 0.2 * _SETTLED * known_s + 1e-12:
            break
    aside = _aside(windows, (stretches, rows), place, (at_s, doubt, noise_std_j))
    return RowClock(shift_s=place[0], drift=place[1], aside=aside, shift_ns=_shift_ns(place, at_s), settled=settled)


def _typical_s(stretches: Stretches) -> float:
    """Returns the stretch in or below whose length half of all time lies, s: slivers between slices do not count."""
    length = np.sort(stretches.end_ns - stretches.start_ns)
    until = np.cumsum(length)
    return float(length[int(np.searchsorted(until, 0.5 * until[-1]))]) * 1e-9


def _shift_ns(place: tuple[float, float], at_s: Floats) -> Floats | float:
    """Returns the shift of every sample, (n,) ns; one for all without drift, since a common one costs least."""
    return (place[0] + place[1] * at_s) * 1e9 if place[1] else place[0] * 1e9


def _look(windows: Windows, laid: tuple[Stretches, int], doubt: ClockDoubt, finest_s: float) -> float | None:
    """Returns a first shift from a grid over what is possible; None when two places do alike or it is too wide."""
    reach_s = 3.5 * doubt.std_s
    step_s = min(finest_s, 0.25 * float(np.median(windows.span_s)))
    if reach_s <= step_s:
        return 0.0
    count = 2 * math.ceil(reach_s / step_s) + 1
    if count > _GRID:
        return None
    some = windows.part(slice(max((windows.power_w.size - _SAMPLES) // 2, 0), (windows.power_w.size + _SAMPLES) // 2))
    grid = np.linspace(-reach_s, reach_s, count)
    squares = np.array([residual_square(build_samples(some, *laid, shift * 1e9)) for shift in grid])
    cost = some.power_w.size * np.log(np.maximum(squares, 1e-300)) + (grid / doubt.std_s) ** 2
    best = int(np.argmin(cost))
    inner = np.flatnonzero((cost[1:-1] < cost[:-2]) & (cost[1:-1] < cost[2:])) + 1
    others = [cost[k] for k in inner if abs(k - best) > 1]
    return None if others and min(others) - cost[best] < _DISTINCT else float(grid[best])


def _aside(
    windows: Windows,
    laid: tuple[Stretches, int],
    place: tuple[float, float],
    known: tuple[Floats, ClockDoubt, float],
) -> Aside:
    """Returns how the samples answer to a further shift and drift, J/s and J, and the prior of both from here."""
    (stretches, rows), (at_s, doubt, noise_std_j) = laid, known
    shift_ns = _shift_ns(place, at_s)
    power_w = fit_rows(build_samples(windows, stretches, rows, shift_ns), noise_std_j, rough=True).power_w
    begin, end = windows.begin_ns - shift_ns, windows.end_ns - shift_ns
    step_ns = 0.005 * np.maximum(end - begin, 1.0)
    slope = np.zeros(begin.size)
    for side in (-1.0, 1.0):
        slope += 0.5 * (power_at(stretches, begin + side * step_ns, power_w))
        slope -= 0.5 * (power_at(stretches, end + side * step_ns, power_w))
    columns, mean, std = [slope], [-place[0]], [max(doubt.std_s, _CERTAIN_S)]
    if doubt.drift_std > 0:
        columns.append(slope * at_s)
        mean.append(-place[1])
        std.append(doubt.drift_std)
    return Aside(column=np.column_stack(columns), mean=np.array(mean), std=np.array(std))
