"""Rows of a map: the energy of each key with its uncertainty, by the way that the samples allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import COVERAGE, Kind, Term, combine, estimate
from joulemap.analysis.mapping.probe import Probe
from joulemap.analysis.mapping.row_figures import (
    SHARED,
    TermColumn,
    coverage_factors,
    edge_columns,
    energy_columns,
    shared_terms,
)
from joulemap.analysis.sampling import TraceFacts
from joulemap.analysis.separation.effort import RESOLVED, SHARP
from joulemap.analysis.separation.separate import Separated
from joulemap.estimate import Boundary, Estimate, Provenance, Quantity, Unavailable
from joulemap.records.energy import Resolution
from joulemap.records.mapping.energy_map import MapRow
from joulemap.trace.sweep import Swept

__all__ = ["OVERLAP", "REFUSED", "WAYS", "RowInputs", "RowTable", "build_rows"]

Codes = NDArray[np.int8]
WAYS = (Resolution.OVERLAP, Resolution.LEAST_SQUARES, Resolution.REFUSED)
"""Ways to have an energy, by their codes."""
OVERLAP, LEAST_SQUARES, REFUSED = range(3)

_BLUR = 0.1
"""Shorter ones are while the samples on their edges moved less than half this share of their energy."""
_LOST = 0.01
"""Share of a row's time that may be lost before it has no figure."""
_PLACED = 0.5
"""Uncertainty of the clock, in mean durations of a row, beyond which nobody knows whose energy it is."""
_REASONS = (
    "", "slices_outside_trace", "no_duration", "samples_lost", "alignment_too_coarse", "too_short_for_samples",
)  # fmt: skip
_REFUSED = tuple(Unavailable(reason=reason) for reason in _REASONS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowInputs:
    """Everything that the rows are made of.

    Args:
        swept: energies of the groups.
        lost_s: (g, 2) lost time of slices and of their own.
        probe: what shifts do.
        separated: least squares over the groups; None when it was not tried.
        facts: of the trace.
        errors: of the meter.
        rate_std_ppm: of the trace's clock; 0 when unknown.
        shift_s: uncertainty of the timeline against the trace, s.
        late_s: what of it is a rectangular doubt of the samples' own instants, s.
        provenance: of the trace.
        boundary: of the trace.
        monte_carlo: draws that all rows share.
    """

    swept: Swept
    lost_s: NDArray[np.float64]
    probe: Probe
    separated: Separated | None
    facts: TraceFacts
    errors: MeterErrors
    rate_std_ppm: float
    shift_s: float
    late_s: float
    provenance: Provenance
    boundary: Boundary
    monte_carlo: MonteCarlo

    @property
    def known(self) -> tuple[TraceFacts, MeterErrors, float]:
        """What every energy of the trace depends on."""
        return self.facts, self.errors, self.rate_std_ppm

    @property
    def given_back_j(self) -> float:
        """What rows by overlap get back from the samples on their edges, J: it comes from the idle time."""
        return math.fsum(self.probe.lost_j[self.ways(own=True) == OVERLAP, 1].tolist())

    def ways(self, *, own: bool) -> Codes:
        """Returns how each group's energy (what it holds, or its own) can be had from the samples, (g,) of ``WAYS``.

        Many samples a slice: overlap. Few: least squares where its residual is white, since it knows what samples on
        edges hold; else overlap while edges matter little; else least squares as it is, else nothing.
        """
        swept, sample_s = self.swept, self.facts.sample_s
        count = swept.pieces if own else swept.count
        time_s = swept.self_s if own else swept.duration_s
        energy_j = swept.self_j if own else swept.energy_j
        mean_s = np.divide(time_s, count, out=np.zeros(count.size), where=count > 0)
        way = np.full(count.size, REFUSED, np.int8)
        known, told = self.separated, np.zeros(count.size, np.bool_)
        if known is not None:
            told = np.isfinite(known.power_w if own else known.held_w)
        way[told] = LEAST_SQUARES
        blurred = 2.0 * np.abs(self.probe.lost_j[:, int(own)]) > _BLUR * np.abs(energy_j)
        way[(mean_s >= RESOLVED * sample_s) | ((mean_s >= sample_s) & ~blurred)] = OVERLAP
        if known is not None and known.white:
            way[told] = LEAST_SQUARES
        way[mean_s >= SHARP * sample_s] = OVERLAP
        way[count == 0] = REFUSED
        return way

    def placed_s(self, way: Codes) -> NDArray[np.float64]:
        """Returns how well the slices of groups are placed, 1 sd, (g,) s: least squares may say it best.

        Args:
            way: (g,) how the energy is had.
        """
        told = self.separated
        if told is None or told.shift_std_s is None or not told.clocked:
            return np.full(way.size, self.shift_s)
        return np.where(way == LEAST_SQUARES, told.shift_std_s, self.shift_s)


def build_rows(keys: Sequence[str], outside: NDArray[np.int64], inputs: RowInputs, total_j: float) -> RowTable:
    """Returns the rows, the largest self energy first, refused ones last; shares are of the total."""
    swept = inputs.swept
    beyond = np.zeros(swept.count.size, np.int64)
    beyond[: outside.size] = outside[: swept.count.size]
    held, own = (_column(column, beyond, inputs) for column in range(2))
    known = own.reasons == 0
    first, second = np.where(known, -own.values_j, np.inf).tolist(), (-swept.self_s).tolist()
    wanted = np.flatnonzero((swept.count > 0) | (beyond > 0)).tolist()
    wanted.sort(key=lambda group: (first[group], second[group], keys[group]))
    order = np.array(wanted, np.int64)
    share = np.where(known, own.values_j, 0.0)[order] / total_j if total_j else None
    return RowTable(
        keys=tuple(keys),
        order=order,
        share=share,
        running=None if share is None else np.cumsum(share),
        outside=beyond,
        noise_j=_noise_j(inputs, own.ways),
        held=held,
        own=own,
        inputs=inputs,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowTable(Sequence[MapRow]):
    """The rows of a map in columns; a row is made when it is asked for, since there may be a million.

    Columns are arrays, whose numbers cost nothing until one is looked at.

    Args:
        keys: of the groups.
        order: groups in the order of the rows.
        share: of each row in the total; None when the total is 0.
        running: sum of the shares down to each row.
        outside: slices of each group that reach beyond the recorded time.
        noise_j: of each group, what more of the same would average down, J.
        held: energies of slices with what is inside them.
        own: energies of slices without.
        inputs: what they were made of.
    """

    keys: tuple[str, ...]
    order: NDArray[np.int64]
    share: NDArray[np.float64] | None
    running: NDArray[np.float64] | None
    outside: NDArray[np.int64]
    noise_j: NDArray[np.float64]
    held: _Column
    own: _Column
    inputs: RowInputs

    def __len__(self) -> int:
        return self.order.size

    @overload
    def __getitem__(self, at: int) -> MapRow: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[MapRow, ...]: ...

    def __getitem__(self, at: int | slice) -> MapRow | tuple[MapRow, ...]:
        if isinstance(at, slice):
            return tuple(self._row(index) for index in range(*at.indices(len(self))))
        return self._row(range(len(self))[at])

    def count_refused(self, reason: str) -> int:
        """Returns how many rows lack a figure for a reason."""
        code = _REASONS.index(reason)
        reasons = np.where(self.held.reasons, self.held.reasons, self.own.reasons)
        return int(np.count_nonzero(reasons[self.order] == code))

    def _row(self, index: int) -> MapRow:
        group, swept = self.order.item(index), self.inputs.swept
        energy_j, own_j = self.held.figure(group), self.own.figure(group)
        whole, alone = isinstance(energy_j, Estimate), isinstance(own_j, Estimate)
        duration_s = swept.duration_s.item(group)
        return MapRow(
            key=self.keys[group],
            count=swept.count.item(group),
            outside=self.outside.item(group),
            energy_j=energy_j,
            self_j=own_j,
            share=self.share.item(index) if alone and self.share is not None else None,
            cumulative_share=self.running.item(index) if alone and self.running is not None else None,
            duration_s=duration_s,
            self_s=swept.self_s.item(group),
            mean_power_w=energy_j.scaled(1.0 / duration_s) if isinstance(energy_j, Estimate) else energy_j,
            resolution=WAYS[(self.held if whole or not alone else self.own).ways.item(group)],
            reason=_REASONS[self.held.reasons.item(group) or self.own.reasons.item(group)],
            runs_needed=None if whole and alone else _runs_needed(group, self.inputs),
            noise_j=self.noise_j.item(group) if alone else None,
        )


def _runs_needed(group: int, inputs: RowInputs) -> float | None:
    if inputs.separated is None:
        return None
    runs = float(inputs.separated.runs_needed[group])
    return runs if math.isfinite(runs) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Column:
    """The energies that groups hold, or their own.

    Args:
        ways: (g,) how each is had; what is refused for another reason is refused.
        reasons: (g,) index into ``_REASONS``; 0 for none.
        values_j: (g,) J; where there is a figure.
        stds_j: (g,) of those by overlap, J.
        factors: (g,) k of those by overlap.
        inputs: what they were made of.
        own: whether they are the groups' own.
    """

    ways: Codes
    reasons: Codes
    values_j: NDArray[np.float64]
    stds_j: NDArray[np.float64]
    factors: NDArray[np.float64]
    inputs: RowInputs
    own: bool

    def figure(self, group: int) -> Quantity:
        """Returns a group's energy."""
        reason = self.reasons.item(group)
        if reason:
            return _REFUSED[reason]
        if self.ways.item(group) == LEAST_SQUARES:
            return _told(group, int(self.own), self.inputs)
        return Estimate(
            value=self.values_j.item(group),
            std=self.stds_j.item(group),
            k=self.factors.item(group),
            coverage_probability=COVERAGE,
            provenance=self.inputs.provenance,
            boundary=self.inputs.boundary,
        )


def _column(column: int, outside: NDArray[np.int64], inputs: RowInputs) -> _Column:
    swept, own = inputs.swept, column == 1
    count = swept.pieces if own else swept.count
    time_s = swept.self_s if own else swept.duration_s
    lost_s, way = inputs.lost_s[:, column], inputs.ways(own=own)
    mean_s = np.divide(time_s, count, out=np.zeros(count.size), where=count > 0)
    reason = np.select(
        [
            (count == 0) & (outside > 0),
            (count == 0) | ~(time_s > 0),
            lost_s > _LOST * time_s,
            inputs.placed_s(way) > _PLACED * mean_s,
            way == REFUSED,
        ],
        [1, 2, 3, 4, 5],
    ).astype(np.int8)
    covered = (swept.count > 0) & (swept.pieces == 0) & (swept.duration_s > 0) & own  # by what is inside
    reason[covered] = 0
    way = np.where(covered, OVERLAP, np.where(reason > 0, REFUSED, way)).astype(np.int8)
    value, std, factor = _overlap(column, time_s, way == OVERLAP, inputs)
    value[covered], std[covered], factor[covered] = 0.0, 0.0, combine(()).k
    for group in np.flatnonzero(way == LEAST_SQUARES).tolist():
        value[group] = _told_j(group, column, inputs)
    return _Column(
        ways=way,
        reasons=reason,
        values_j=value,
        stds_j=std,
        factors=factor,
        inputs=inputs,
        own=own,
    )


def _overlap(
    column: int, time_s: NDArray[np.float64], wanted: NDArray[np.bool_], inputs: RowInputs
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Returns energy, standard uncertainty and k of every group by the samples that lie on it, (g,) each."""
    swept = inputs.swept
    energy_j = (swept.self_j if column else swept.energy_j) + inputs.probe.lost_j[:, column]
    terms = (
        *energy_columns(energy_j, time_s, inputs.known),
        *edge_columns(np.abs(inputs.probe.slope_w[:, column]), inputs.shift_s, inputs.late_s),
        TermColumn(name="blur", std=inputs.probe.blur_j[:, column]),
        TermColumn(name="lost", std=inputs.lost_s[:, column] * inputs.facts.spread_w),
    )
    std = np.sqrt(np.sum([np.where(wanted, term.std, 0.0) ** 2 for term in terms], axis=0))
    return energy_j, std, coverage_factors(terms, std, inputs.monte_carlo)


def _noise_j(inputs: RowInputs, way: Codes) -> NDArray[np.float64]:
    """Returns what more of the same would average down in each row's self energy, 1 sd, (g,) J."""
    swept, separated = inputs.swept, inputs.separated
    terms = energy_columns(swept.self_j, swept.self_s, inputs.known)[SHARED:]
    noise_j = np.sqrt(np.sum([term.std**2 for term in terms], axis=0))
    if separated is None:
        return np.asarray(noise_j, np.float64)
    for group in np.flatnonzero(way == LEAST_SQUARES).tolist():
        noise_j[group] = math.hypot(*(term.std * float(swept.self_s[group]) for term in separated.terms[group]))
    return np.asarray(noise_j, np.float64)


def _told_j(group: int, column: int, inputs: RowInputs) -> float:
    """Returns the energy of a row by least squares, J: its power over its own time, or that of all it holds."""
    separated, swept = inputs.separated, inputs.swept
    assert separated is not None  # the way was chosen by it
    if column:
        return float(separated.power_w[group]) * float(swept.self_s[group])
    return float(separated.held_w[group]) * float(swept.duration_s[group])


def _told(group: int, column: int, inputs: RowInputs) -> Estimate:
    """Returns the energy of a row by least squares with its uncertainty."""
    separated, swept = inputs.separated, inputs.swept
    assert separated is not None  # the way was chosen by it
    energy_j = _told_j(group, column, inputs)
    time_s = float((swept.self_s if column else swept.duration_s)[group])
    if column:
        noise = tuple(
            Term(name=term.name, std=term.std * time_s, kind=term.kind, dof=term.dof) for term in separated.terms[group]
        )
    else:
        std = float(separated.held_std_w[group]) * time_s
        noise = (Term(name="noise", std=std, kind=Kind.A, dof=separated.facts.dof),)
    shared = shared_terms(energy_j, time_s, inputs.known)
    if separated.clocked:  # what is uncertain of the clock was fitted with the powers
        return _figure(energy_j, (*shared, *noise), inputs)
    edges = Term(name="edges", std=abs(float(inputs.probe.slope_w[group, column])) * inputs.shift_s)
    return _figure(energy_j, (*shared, *noise, edges), inputs)


def _figure(energy_j: float, terms: Sequence[Term], inputs: RowInputs) -> Estimate:
    return estimate(
        energy_j, terms, provenance=inputs.provenance, boundary=inputs.boundary, monte_carlo=inputs.monte_carlo
    )
