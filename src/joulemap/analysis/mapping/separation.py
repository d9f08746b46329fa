"""Rows whose slices are shorter than a sample, told apart by many samples at many phases: least squares over the rows.

Each sample is the sum over rows of power times the time that the sample spends in them. What the samples do not tell
is refused, with the number of runs that would tell it.

References:
    METHODS 1.5 in docs/methods.md (exact formulation, planning formula).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.grouping import LIMIT, choose_groups
from joulemap.analysis.intervals.uncertainty import Kind, Term
from joulemap.analysis.mapping.row_fit import RowFit, Samples, fit_rows
from joulemap.analysis.mapping.sampling import TraceFacts
from joulemap.trace import EnergyTrace
from joulemap.trace.streamed import Trace
from joulemap.trace.sweep import GroupedSlices

__all__ = ["IdlePower", "Separated", "cut_to_slices", "separate_rows"]

_MAX_GROUPS = 96
_MAX_CELLS = 8_000_000  # design entries: 64 MB
_MAX_SLICES = 100_000
_CLUSTER = 8
"""Neighbouring samples that may share an error: the unit of the robust covariance."""
_DISTINCT = 1e-9

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
        runs_needed: (g,) times the same work for 5 %; infinite where nothing helps.
        idle_w: power between the rows, W; None when it cannot be told.
        white: the residuals look independent.
    """

    power_w: Matrix
    terms: tuple[tuple[Term, ...], ...]
    runs_needed: Matrix
    idle_w: IdlePower | None
    white: bool


def separate_rows(trace: EnergyTrace, slices: GroupedSlices, groups: int, facts: TraceFacts) -> Separated | None:
    """Returns the powers of the rows, or None when least squares cannot be tried.

    Args:
        trace: uniform or not.
        slices: of at most one busy track at a time, in order.
        groups: rows.
        facts: of the trace.
    """
    if not 0 < groups <= _MAX_GROUPS or slices.by_path:
        return None
    slices = _middle(slices)
    pieces = _pieces(slices, groups)
    rows = _rows(trace, pieces, groups)
    if rows is None or rows.energy_j.size < groups + 2:
        return None
    fit = fit_rows(rows, max(facts.noise_w * facts.step_s, 1e-300))
    region_s = rows.time_s.sum(axis=0)
    runs = _runs_needed(rows, fit)
    power_w = np.full(groups, np.nan)
    terms: list[tuple[Term, ...]] = [()] * groups
    known = _choose(fit, region_s, groups)
    for row in known:
        weight = np.zeros(groups + 1)
        weight[row] = 1.0
        power_w[row] = fit.power_w[row]
        terms[row] = (Term(name="noise", std=math.sqrt(fit.variance(weight)), kind=Kind.A, dof=fit.dof),)
    idle = np.zeros(groups + 1)
    idle[-1] = 1.0
    idle_std = math.sqrt(fit.variance(idle))
    idle_w = float(fit.power_w[-1])
    mean_w = float(region_s @ fit.power_w / region_s.sum())
    told = region_s[-1] > 0 and 1.96 * idle_std <= 2 * LIMIT * max(idle_w, mean_w)
    return Separated(
        power_w=power_w,
        terms=tuple(terms),
        runs_needed=runs[:groups],
        idle_w=IdlePower(value=idle_w, std=idle_std) if told else None,
        white=fit.white,
    )


def _middle(slices: GroupedSlices) -> GroupedSlices:
    excess = slices.start_ns.size - _MAX_SLICES
    if excess <= 0:
        return slices
    part = slice(excess // 2, excess // 2 + _MAX_SLICES)  # the middle of many says as much as all of them
    columns = {name: getattr(slices, name)[part] for name in ("start_ns", "end_ns", "group", "track")}
    return replace(slices, **columns)


def cut_to_slices(trace: Trace, slices: GroupedSlices, groups: int) -> tuple[EnergyTrace, GroupedSlices]:
    """Returns the samples that :func:`separate_rows` looks at, in memory, and the slices among them.

    A trace that is in memory stays whole. Of a streamed one the middle of the slices' time is read, as many samples as
    a fit of so many rows takes.

    Args:
        trace: in memory or streamed.
        slices: in order.
        groups: rows.
    """
    slices = _middle(slices)
    if isinstance(trace, EnergyTrace):
        return trace, slices
    counted = slices.group >= 0
    if not counted.any():
        return trace.load(0, 1), slices
    bounds = int(slices.start_ns[counted].min()), int(slices.end_ns[counted].max())
    first = max(math.ceil((bounds[0] - trace.start_ns) / trace.step_ns), 0)
    last = max(min(math.floor((bounds[1] - trace.start_ns) / trace.step_ns), trace.n), first)
    most = max(_MAX_CELLS // (groups + 1), 1)
    first = max(first, (first + last - most) // 2)
    return trace.load(first, max(min(last, first + most), first)), slices


def _choose(fit: RowFit, region_s: Matrix, groups: int) -> list[int]:
    mean_w = max(float(region_s @ fit.power_w) / float(region_s.sum()), 1e-300)

    def half_width(weight_s: Matrix) -> float:
        own_j = min(max(float(weight_s @ fit.power_w), 0.1 * mean_w * float(weight_s.sum())), 1e300)
        return 1.96 * math.sqrt(fit.variance(weight_s)) / own_j if own_j > 0 else math.inf

    chosen = choose_groups(region_s, half_width, limit=2 * LIMIT)
    return [g.layers[0] for g in chosen if len(g.layers) == 1 and not g.gap and g.layers[0] < groups]


def _runs_needed(rows: Samples, fit: RowFit) -> Matrix:
    """Returns how often these samples would be needed for a half-width of 5 %, (regions,)."""
    count = rows.energy_j.size
    gram = rows.time_s.T @ rows.time_s / count
    scale = np.sqrt(np.diag(gram))
    used = scale > 0
    needed = np.full(rows.time_s.shape[1], math.inf)
    if not used.any():
        return needed
    normal = gram[np.ix_(used, used)] / np.outer(scale[used], scale[used])
    values, vectors = np.linalg.eigh(normal)
    told = values > _DISTINCT * values[-1]
    inverse = (vectors[:, told] ** 2 / values[told]).sum(axis=1) / scale[used] ** 2
    blind = (vectors[:, ~told] ** 2).sum(axis=1) > 1e-6
    power_w = np.abs(fit.power_w[used])
    floor_w = 0.1 * float(np.mean(power_w)) if power_w.size else 0.0
    samples = (1.96 / LIMIT) ** 2 * fit.residual_std_j**2 * inverse / np.maximum(power_w, max(floor_w, 1e-300)) ** 2
    needed[used] = np.where(blind, math.inf, samples / count)
    return needed


def _pieces(slices: GroupedSlices, groups: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Returns for each group the stretches in which a slice of it is innermost, in order and disjoint."""
    starts: list[list[int]] = [[] for _ in range(groups)]
    ends: list[list[int]] = [[] for _ in range(groups)]
    stack: list[tuple[int, int]] = []  # end, group
    at = -(1 << 62)

    def close(until: int) -> None:
        nonlocal at
        while stack and stack[-1][0] <= until:
            end, group = stack.pop()
            _put(starts[group], ends[group], (at, end))
            at = max(at, end)
            while stack and stack[-1][0] <= at:  # ended while something inside it went on
                stack.pop()

    for start, end, group in zip(slices.start_ns.tolist(), slices.end_ns.tolist(), slices.group.tolist(), strict=True):
        if group < 0 or end == start:
            continue
        close(start)
        if stack:
            _put(starts[stack[-1][1]], ends[stack[-1][1]], (at, start))
        at = start
        stack.append((end, group))
    close(1 << 62)
    return [(np.array(s, np.int64), np.array(e, np.int64)) for s, e in zip(starts, ends, strict=True)]


def _put(starts: list[int], ends: list[int], span: tuple[int, int]) -> None:
    if span[1] > span[0]:
        starts.append(span[0])
        ends.append(span[1])


def _rows(
    trace: EnergyTrace, pieces: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]], groups: int
) -> Samples | None:
    busy = [(int(s[0]), int(e[-1])) for s, e in pieces if s.size]
    if not busy:
        return None
    begin_ns, end_ns = min(b for b, _ in busy), max(e for _, e in busy)
    first, last = _samples_between(trace, begin_ns, end_ns)
    most = max(_MAX_CELLS // (groups + 1), 1)
    first = max(first, (first + last - most) // 2)
    last = min(last, first + most)
    index = np.arange(first, last + 1)
    if trace.edges_ns is not None:
        edges_ns = trace.edges_ns[index].astype(np.int64)
    else:
        edges_ns = trace.start_ns + np.rint(index * trace.step_ns).astype(np.int64)
    seen = np.ones(max(index.size - 1, 0), np.bool_)
    for gap_begin, gap_end in trace.gaps:
        seen[max(int(gap_begin) - first, 0) : max(int(gap_end) - first, 0)] = False
    length_s = np.diff(edges_ns) * 1e-9
    time_s = np.empty((length_s.size, groups + 1))
    for group, (start, end) in enumerate(pieces):
        time_s[:, group] = np.diff(_elapsed(start, end, edges_ns)) * 1e-9
    time_s[:, groups] = np.maximum(length_s - time_s[:, :groups].sum(axis=1), 0.0)
    if not seen.any():
        return None
    power_w = trace.power_w[first:last].astype(np.float64)
    return Samples(
        time_s=time_s[seen],
        energy_j=(power_w * length_s)[seen],
        cluster=(np.arange(length_s.size) // _CLUSTER)[seen],
    )


def _samples_between(trace: EnergyTrace, begin_ns: int, end_ns: int) -> tuple[int, int]:
    if trace.edges_ns is not None:
        first = int(np.searchsorted(trace.edges_ns, begin_ns))
        return first, max(int(np.searchsorted(trace.edges_ns, end_ns, side="right")) - 1, first)
    first = math.ceil((begin_ns - trace.start_ns) / trace.step_ns)
    first, last = max(first, 0), min(math.floor((end_ns - trace.start_ns) / trace.step_ns), trace.n)
    return first, max(first, last)


def _elapsed(start: NDArray[np.int64], end: NDArray[np.int64], at_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns ns spent inside the pieces up to each instant."""
    if not start.size:
        return np.zeros(at_ns.size)
    before = np.concatenate([[0], np.cumsum(end - start)])
    piece = np.searchsorted(start, at_ns, side="right")
    inside = np.minimum(at_ns - start[np.maximum(piece - 1, 0)], (end - start)[np.maximum(piece - 1, 0)])
    return np.where(piece > 0, before[np.maximum(piece - 1, 0)] + inside, 0).astype(np.float64)
