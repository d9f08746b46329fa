"""Rows whose slices are shorter than a sample, told apart by many samples at many phases: least squares over the rows.

Each sample is the sum over rows of power times the time that the sample spends in them. What the samples do not tell
alone is told as a sum where they tell that, else refused, with the number of runs that would tell it.

References:
    METHODS 1.5 in docs/methods.md (exact formulation, planning formula, sums instead of merged columns).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.uncertainty import Kind, Term
from joulemap.analysis.sampling import TraceFacts
from joulemap.analysis.separation.row_clock import ClockDoubt, RowClock, place_rows
from joulemap.analysis.separation.row_design import Samples, Windows, build_samples, build_windows
from joulemap.analysis.separation.row_fit import RowFit, fit_rows, residual_square
from joulemap.analysis.separation.row_sums import LIMIT, RowSum, choose_sums, half_width
from joulemap.analysis.separation.stretches import (
    PathTable,
    Stretches,
    build_stretches,
    find_period,
    redraw_schedule,
    stamp_jitter_s,
    toward_mean_schedule,
)
from joulemap.records.mapping.row_fit_facts import RowFitFacts
from joulemap.trace import EnergyTrace, KernelKind
from joulemap.trace.sweep import GroupedSlices

__all__ = ["IdlePower", "Separated", "separate_rows"]

_MAX_GROUPS = 96
_BLEND_CELLS = 400_000
"""Design entries that are enough to tell jittering stamps from times that vary."""
_BLENDS = (0.25, 0.5, 0.75, 1.0)
_REDRAWN = 8
_DISTINCT = 1e-9
_JITTER = 10.8
"""Gain in -2 log likelihood from which stamps are taken to jitter: 1e-3 for a chance of being wrong."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdlePower:
    """Power between the rows and its standard uncertainty, W."""

    value: float
    std: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Separated:
    """What least squares says of the rows.

    Args:
        power_w: (g,) W; NaN for a row that cannot be told alone.
        terms: per row: contributions to the uncertainty of its power, W; empty where refused.
        held_w: (g,) mean power while a slice of the row is open, W; NaN where it cannot be told.
        held_std_w: (g,) its standard uncertainty from noise, W.
        runs_needed: (g,) times the same work for 5 %; infinite where nothing helps.
        idle_w: power between the rows, W; None when it cannot be told.
        white: the residuals look independent.
        sums: of rows that can only be told together.
        shift_std_s: what stays uncertain of the schedule's place, s; None when the samples did not place it.
        clocked: the terms hold what is uncertain of the clock.
        noise_w: of one sample about the rows' powers, 1 sd, W; None while residuals are not white.
        facts: of the fit.
    """

    power_w: Matrix
    terms: tuple[tuple[Term, ...], ...]
    held_w: Matrix
    held_std_w: Matrix
    runs_needed: Matrix
    idle_w: IdlePower | None
    white: bool
    sums: tuple[RowSum, ...]
    shift_std_s: float | None
    clocked: bool
    noise_w: float | None
    facts: RowFitFacts


def separate_rows(
    trace: EnergyTrace,
    slices: GroupedSlices,
    groups: int,
    facts: TraceFacts,
    *,
    samples: int,
    doubt: ClockDoubt | None = None,
    paths: PathTable | None = None,
) -> Separated | None:
    """Returns the powers of the rows, or None when least squares cannot be tried.

    Args:
        trace: uniform or not.
        slices: of at most one busy track at a time, in order.
        groups: rows.
        facts: of the trace.
        samples: the middle ones of more are taken.
        doubt: of the clock of the slices against the trace's; None for a certain one.
        paths: rows of paths when rows are paths.
    """
    if not 0 < groups <= _MAX_GROUPS or (slices.by_path and paths is None):
        return None
    stretches = build_stretches(slices, trace.start_ns, groups, paths)
    windows = build_windows(trace, stretches, trace.start_ns, samples)
    if windows is None or windows.power_w.size < groups + 3:
        return None
    noise_j = max(trace.channel.kernel.quantum_w / math.sqrt(12.0) * facts.step_s, 1e-300)
    stretches, weight, redrawn = _steady(windows, stretches, groups)
    doubt = doubt or ClockDoubt()
    if trace.channel.kernel.kind is KernelKind.POINT:
        doubt = ClockDoubt()  # a point sample is in one row or another: nothing in it tells by how much
    clock = place_rows(windows, stretches, groups, doubt=doubt, origin_ns=trace.start_ns, noise_std_j=noise_j)
    rows = build_samples(windows, stretches, groups, clock.shift_ns)
    fit = fit_rows(rows, noise_j, clock.aside)
    others = [
        fit_rows(build_samples(windows, other, groups, clock.shift_ns), noise_j, clock.aside) for other in redrawn
    ]
    if others:
        length = [_lengths(other, stretches, groups) for other in redrawn]
        fit = fit.corrected(np.array([other.power_w * times for other, times in zip(others, length, strict=True)]))
    return _told(rows, fit, groups, (clock, windows, weight, stretches.inside_s))


def _lengths(other: Stretches, stretches: Stretches, groups: int) -> Matrix:
    """Returns how long each row and the time between are on another schedule, over how long they are, (g + 1,).

    Energies are what matters: a row that is taken for longer has less power and more time.
    """
    times = []
    for laid in (other, stretches):
        own = np.bincount(laid.row, laid.end_ns - laid.start_ns, groups)
        times.append(np.append(own, max(laid.end_ns.max() - laid.start_ns[0] - own.sum(), 0.0)))
    return np.asarray(np.divide(times[0], times[1], out=np.ones(groups + 1), where=times[1] > 0), np.float64)


def _steady(windows: Windows, stretches: Stretches, groups: int) -> tuple[Stretches, float, tuple[Stretches, ...]]:
    """Returns the stretches that the samples like best between stamps and mean schedule, and how far they moved.

    A mean schedule is as uncertain as its stamps jitter: further schedules say by how much.
    """
    period = find_period(stretches)
    if not period:
        return stretches, 0.0, ()
    count = max(_BLEND_CELLS // (groups + 1), 200)
    first = max((windows.power_w.size - count) // 2, 0)
    some = windows.part(slice(first, first + count))
    size = some.power_w.size

    def cost(tried: Stretches) -> float:
        return size * math.log(max(residual_square(build_samples(some, tried, groups)), 1e-300))

    stamped = cost(stretches)
    tried = {weight: toward_mean_schedule(stretches, period, weight) for weight in _BLENDS}
    costs = {weight: cost(tried[weight]) for weight in _BLENDS}
    best = min(_BLENDS, key=costs.__getitem__)
    if stamped - costs[best] <= _JITTER:
        return stretches, 0.0, ()
    jitter_s = best * stamp_jitter_s(stretches, period)
    rng = np.random.default_rng(0)
    redrawn = (redraw_schedule(tried[best], period, jitter_s, rng) for _ in range(_REDRAWN))
    return tried[best], best, tuple(redrawn)


def _told(rows: Samples, fit: RowFit, groups: int, how: tuple[RowClock, Windows, float, Matrix]) -> Separated:
    clock, windows, weight, inside_s = how
    region_s = rows.time_s.sum(axis=0)
    runs, rank, condition = _plan(rows, fit)
    power_w = np.full(groups, np.nan)
    terms: list[tuple[Term, ...]] = [()] * groups
    for row in range(groups):
        if not clock.settled or half_width(fit, region_s, (row,)) > 2 * LIMIT:
            continue
        one = np.zeros(groups + 1)
        one[row] = 1.0
        power_w[row] = fit.power_w[row]
        terms[row] = (Term(name="noise", std=math.sqrt(fit.variance(one)), kind=Kind.A, dof=fit.dof),)
    held_w, held_std_w = _held(fit, inside_s if clock.settled else 0.0 * inside_s, region_s)
    idle = np.zeros(groups + 1)
    idle[-1] = 1.0
    idle_std, idle_w = math.sqrt(fit.variance(idle)), float(fit.power_w[-1])
    mean_w = float(region_s @ fit.power_w / region_s.sum())
    told = clock.settled and region_s[-1] > 0 and 1.96 * idle_std <= 2 * LIMIT * max(idle_w, mean_w)
    open_rows = [row for row in range(groups if clock.settled else 0) if math.isnan(power_w[row]) and region_s[row] > 0]
    closure_j = float((rows.energy_j - rows.time_s @ fit.power_w).sum())
    total_j = float(rows.energy_j.sum())
    span_s = float(np.mean(windows.span_s))
    return Separated(
        power_w=power_w,
        terms=tuple(terms),
        held_w=held_w,
        held_std_w=held_std_w,
        runs_needed=runs[:groups],
        idle_w=IdlePower(value=idle_w, std=idle_std) if told else None,
        white=fit.white,
        sums=choose_sums(fit, region_s, [*open_rows, *([] if told or not region_s[-1] > 0 else [groups])]),
        shift_std_s=_shift_std(fit, clock, groups),
        clocked=bool(np.any(windows.end_ns > windows.begin_ns)),
        noise_w=fit.residual_std_j / span_s if fit.white and not fit.memory else None,
        facts=RowFitFacts(
            samples=int(rows.energy_j.size),
            columns=int((region_s > 0).sum()),
            rank=rank,
            condition=condition,
            dof=fit.dof,
            white=fit.white,
            noise_memory=fit.memory,
            residual_std_w=fit.residual_std_j / span_s,
            closure=closure_j / total_j if total_j else 0.0,
            closure_std=fit.residual_std_j * math.sqrt(rows.energy_j.size * fit.inflation) / abs(total_j or 1.0),
            schedule_weight=weight,
            shift_s=clock.shift_s,
            shift_std_s=_shift_std(fit, clock, groups),
            drift_ppm=clock.drift * 1e6,
        ),
    )


def _held(fit: RowFit, inside_s: Matrix, region_s: Matrix) -> tuple[Matrix, Matrix]:
    """Returns mean power of what each row holds, W, and its standard uncertainty; NaN where it is not told.

    A sum over rows may be known where its parts are not.
    """
    rows = inside_s.shape[0]
    held_w, std_w = np.full(rows, np.nan), np.full(rows, np.nan)
    mean_w = max(float(region_s @ fit.power_w) / float(region_s.sum()), 1e-300)
    for row in range(rows):
        total_s = float(inside_s[row].sum())
        if not total_s > 0:
            continue
        share = np.append(inside_s[row] / total_s, 0.0)
        power_w, std = float(share @ fit.power_w), math.sqrt(fit.variance(share))
        if 1.96 * std <= 2 * LIMIT * max(power_w, 0.1 * mean_w):
            held_w[row], std_w[row] = power_w, std
    return held_w, std_w


def _shift_std(fit: RowFit, clock: RowClock, groups: int) -> float | None:
    if not clock.settled:
        return None
    if clock.aside is None:
        return 0.0
    return math.sqrt(max(float(fit.covariance[groups + 1, groups + 1]), 0.0))


def _plan(rows: Samples, fit: RowFit) -> tuple[Matrix, int, float]:
    """Returns how often these samples are needed for a half-width of 5 %, (regions,); rank and condition of them."""
    count = rows.energy_j.size
    gram = rows.time_s.T @ rows.time_s / count
    scale = np.sqrt(np.diag(gram))
    used = scale > 0
    needed = np.full(rows.time_s.shape[1], math.inf)
    if not used.any():
        return needed, 0, math.inf
    values, vectors = np.linalg.eigh(gram[np.ix_(used, used)] / np.outer(scale[used], scale[used]))
    told = values > _DISTINCT * values[-1]
    blind = (vectors[:, ~told] ** 2).sum(axis=1) > 1e-6
    power_w = np.abs(fit.power_w[used])
    floor_w = 0.1 * float(np.mean(power_w)) if power_w.size else 0.0
    inverse = (vectors[:, told] ** 2 / values[told]).sum(axis=1) / scale[used] ** 2 / count
    plain = fit.residual_std_j**2 * inverse
    variance = _variances(fit, np.flatnonzero(used))
    prior = float(rows.energy_j.sum() / rows.time_s.sum()) ** 2
    if not prior > 0:  # without energy there is nothing to tell apart
        return needed, int(told.sum()), math.inf
    own = variance < 0.8 * prior  # less what the prior says; where it says most, as the design alone has it
    variance = np.where(own, variance / np.maximum(1.0 - variance / prior, 0.2), plain * _excess(variance, plain, own))
    times = (1.96 / LIMIT) ** 2 * variance / np.maximum(power_w, max(floor_w, 1e-300)) ** 2
    needed[used] = np.where(blind, math.inf, times)
    condition = math.sqrt(max(float(values[-1]), 0.0) / max(float(values[0]), 1e-300))
    return needed, int(told.sum()), condition


def _excess(variance: Matrix, plain: Matrix, own: NDArray[np.bool_]) -> float:
    """Returns how much larger variances are than independent noise has them, from the regions that are told."""
    return float(np.median(variance[own] / np.maximum(plain[own], 1e-300))) if own.any() else 1.0


def _variances(fit: RowFit, regions: Sequence[int] | NDArray[np.int64]) -> Matrix:
    plain = np.diag(fit.covariance)[np.asarray(regions)]
    robust = plain if fit.robust is None else np.diag(fit.robust)[np.asarray(regions)]
    return np.asarray(np.maximum(plain, robust), np.float64)
