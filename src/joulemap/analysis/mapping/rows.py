"""Rows of a map: the energy of each key with its uncertainty, by the way that the samples allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import Kind, Term, estimate
from joulemap.analysis.mapping.probe import Probe
from joulemap.analysis.sampling import TraceFacts
from joulemap.analysis.separation.effort import RESOLVED, SHARP
from joulemap.analysis.separation.separate import Separated
from joulemap.estimate import Boundary, Estimate, Provenance, Quantity, Unavailable
from joulemap.records.energy import Resolution
from joulemap.records.mapping.energy_map import MapRow
from joulemap.records.mapping.row_fit_facts import RowGroup
from joulemap.trace.sweep import Swept

__all__ = ["RowInputs", "build_groups", "build_rows", "energy_terms", "is_resolved"]

_BLUR = 0.1
"""Shorter ones are while the samples on their edges moved less than half this share of their energy."""
_LOST = 0.01
"""Share of a row's time that may be lost before it has no figure."""
_PLACED = 0.5
"""Uncertainty of the clock, in mean durations of a row, beyond which nobody knows whose energy it is."""


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
        groups = range(self.swept.count.size)
        overlap = [g for g in groups if self.route(g, own=True) is Resolution.OVERLAP]
        return math.fsum(float(self.probe.lost_j[g, 1]) for g in overlap)

    def placed_s(self, group: int, *, own: bool) -> float:
        """Returns how well a group's slices are placed, 1 sd, s: the samples of least squares may say it best."""
        told = self.separated
        if told is None or told.shift_std_s is None or not told.clocked:
            return self.shift_s
        return told.shift_std_s if self.route(group, own=own) is Resolution.LEAST_SQUARES else self.shift_s

    def route(self, group: int, *, own: bool) -> Resolution:
        """Returns how a group's energy (what it holds, or its own) can be had from the samples.

        Many samples a slice: overlap. Few: least squares where its residual is white, since it knows what samples on
        edges hold; else overlap while edges matter little; else least squares as it is, else nothing.
        """
        swept = self.swept
        count = int((swept.pieces if own else swept.count)[group])
        time_s = float((swept.self_s if own else swept.duration_s)[group])
        if not count:
            return Resolution.REFUSED
        mean_s = time_s / count
        if mean_s >= SHARP * self.facts.sample_s:
            return Resolution.OVERLAP
        known = self.separated
        told = known is not None and math.isfinite(float((known.power_w if own else known.held_w)[group]))
        if told and self.separated is not None and self.separated.white:
            return Resolution.LEAST_SQUARES
        energy_j = float((swept.self_j if own else swept.energy_j)[group])
        if is_resolved(mean_s, float(self.probe.lost_j[group, int(own)]), energy_j, self.facts.sample_s):
            return Resolution.OVERLAP
        return Resolution.LEAST_SQUARES if told else Resolution.REFUSED


def is_resolved(mean_s: float, lost_j: float, energy_j: float, sample_s: float) -> bool:
    """Returns whether samples of that length tell slices of that mean duration apart from their neighbours."""
    return mean_s >= RESOLVED * sample_s or (mean_s >= sample_s and 2.0 * abs(lost_j) <= _BLUR * abs(energy_j))


def energy_terms(energy_j: float, seen_s: float, known: tuple[TraceFacts, MeterErrors, float]) -> tuple[Term, ...]:
    """Returns the terms that every energy of a trace has: gain, offset, clock, noise, between samples.

    Args:
        energy_j: J.
        seen_s: time over which it was seen, s.
        known: the trace, its meter, and the standard uncertainty of its clock, ppm.
    """
    facts, errors, rate_std_ppm = known
    unseen_w = math.sqrt(max(facts.between_w**2 - facts.noise_w**2, 0.0))  # what noise does not explain already
    return (
        Term(name="gain", std=abs(energy_j) * errors.gain_std, rectangular=errors.rectangular),
        Term(name="offset", std=seen_s * errors.offset_std_w, rectangular=errors.rectangular),
        Term(name="clock", std=abs(energy_j) * rate_std_ppm * 1e-6),
        Term(name="noise", std=facts.noise_w * math.sqrt(max(facts.step_s * seen_s, 0.0))),
        Term(name="between", std=unseen_w * math.sqrt(max(facts.step_s * seen_s, 0.0))),
    )


def build_rows(
    keys: Sequence[str], outside: NDArray[np.int64], inputs: RowInputs, total_j: float
) -> tuple[MapRow, ...]:
    """Returns the rows, the largest self energy first, refused ones last; shares are of the total."""
    rows = [
        _row(group, (key, int(outside[group]) if group < outside.size else 0), inputs, total_j)
        for group, key in enumerate(keys)
    ]
    rows = [row for row in rows if row.count or row.outside]
    rows.sort(key=_order)
    result, running = [], 0.0
    for row in rows:
        if row.share is not None:
            running += row.share
        result.append(row if row.share is None else replace(row, cumulative_share=running))
    return tuple(result)


def build_groups(keys: Sequence[str], inputs: RowInputs) -> tuple[RowGroup, ...]:
    """Returns the rows that only their sum is known of, with that sum; rows that have a figure are left out."""
    separated, swept = inputs.separated, inputs.swept
    if separated is None:
        return ()
    groups = []
    for told in separated.sums:
        rows = [row for row in told.rows if row < len(keys)]
        if any(inputs.route(row, own=True) is not Resolution.REFUSED for row in rows):
            continue
        idle_s = max(inputs.facts.seen_s - swept.busy_s, 0.0)
        own_s = [float(swept.self_s[row]) if row < len(keys) else idle_s for row in told.rows]
        energy_j = math.fsum(watts * time_s for watts, time_s in zip(told.power_w, own_s, strict=True))
        shared = energy_terms(energy_j, math.fsum(own_s), inputs.known)[:3]
        noise = Term(name="noise", std=told.share_std * abs(energy_j), kind=Kind.A, dof=told.dof)
        groups.append(
            RowGroup(
                keys=tuple(keys[row] for row in rows),
                contains_idle=len(rows) < len(told.rows),
                energy_j=_figure(energy_j, (*shared, noise), inputs),
                self_s=math.fsum(float(swept.self_s[row]) for row in rows),
            )
        )
    return tuple(groups)


def _order(row: MapRow) -> tuple[float, float, str]:
    own = row.self_j.value if isinstance(row.self_j, Estimate) else -math.inf
    return (-own, -row.self_s, row.key)


def _row(group: int, named: tuple[str, int], inputs: RowInputs, total_j: float) -> MapRow:
    key, outside = named
    swept = inputs.swept
    count, duration_s, self_s = int(swept.count[group]), float(swept.duration_s[group]), float(swept.self_s[group])
    held_j, way, reason = _held(group, inputs, outside)
    own_j, own_way, own_reason = _own(group, inputs, outside)
    whole = not isinstance(held_j, Unavailable)
    power: Quantity = held_j if not isinstance(held_j, Estimate) else held_j.scaled(1.0 / duration_s)
    needed = None
    if inputs.separated is not None and (not whole or isinstance(own_j, Unavailable)):
        runs = float(inputs.separated.runs_needed[group])
        needed = runs if math.isfinite(runs) else None
    return MapRow(
        key=key,
        count=count,
        outside=outside,
        energy_j=held_j,
        self_j=own_j,
        share=own_j.value / total_j if isinstance(own_j, Estimate) and total_j else None,
        cumulative_share=None,
        duration_s=duration_s,
        self_s=self_s,
        mean_power_w=power,
        resolution=way if whole or isinstance(own_j, Unavailable) else own_way,
        reason=reason or own_reason,
        runs_needed=needed,
        noise_j=_noise_j(group, inputs) if isinstance(own_j, Estimate) else None,
    )


def _noise_j(group: int, inputs: RowInputs) -> float:
    """Returns what more of the same would average down in a row's self energy, 1 sd, J."""
    self_s = float(inputs.swept.self_s[group])
    if inputs.separated is not None and inputs.route(group, own=True) is Resolution.LEAST_SQUARES:
        return math.hypot(*(term.std * self_s for term in inputs.separated.terms[group]))
    terms = energy_terms(float(inputs.swept.self_j[group]), self_s, inputs.known)[3:]
    return math.hypot(*(term.std for term in terms))


def _held(group: int, inputs: RowInputs, outside: int) -> tuple[Quantity, Resolution, str]:
    swept = inputs.swept
    count, duration_s = int(swept.count[group]), float(swept.duration_s[group])
    reason = _refusal(count, duration_s, outside, (float(inputs.lost_s[group, 0]), inputs.placed_s(group, own=False)))
    if reason:
        return Unavailable(reason=reason), Resolution.REFUSED, reason
    return _routed(group, 0, (float(swept.energy_j[group]), duration_s), inputs)


def _own(group: int, inputs: RowInputs, outside: int) -> tuple[Quantity, Resolution, str]:
    swept = inputs.swept
    pieces, self_s = int(swept.pieces[group]), float(swept.self_s[group])
    if int(swept.count[group]) and not pieces and float(swept.duration_s[group]) > 0:  # covered by what is inside
        zero = Estimate(value=0.0, std=0.0, provenance=inputs.provenance, boundary=inputs.boundary)
        return zero, Resolution.OVERLAP, ""
    reason = _refusal(pieces, self_s, outside, (float(inputs.lost_s[group, 1]), inputs.placed_s(group, own=True)))
    if reason:
        return Unavailable(reason=reason), Resolution.REFUSED, reason
    return _routed(group, 1, (float(swept.self_j[group]), self_s), inputs)


def _routed(group: int, column: int, held: tuple[float, float], inputs: RowInputs) -> tuple[Quantity, Resolution, str]:
    way = inputs.route(group, own=column == 1)
    if way is Resolution.OVERLAP:
        return _estimate(group, column, held, inputs), way, ""
    if way is Resolution.LEAST_SQUARES:
        return _told(group, column, held[1], inputs), way, ""
    return Unavailable(reason="too_short_for_samples"), way, "too_short_for_samples"


def _refusal(count: int, duration_s: float, outside: int, doubt: tuple[float, float]) -> str:
    lost_s, shift_s = doubt
    if not count:
        return "slices_outside_trace" if outside else "no_duration"
    if not duration_s > 0:
        return "no_duration"
    if lost_s > _LOST * duration_s:
        return "samples_lost"
    if shift_s > _PLACED * duration_s / count:
        return "alignment_too_coarse"
    return ""


def _estimate(group: int, column: int, held: tuple[float, float], inputs: RowInputs) -> Estimate:
    energy_j, time_s = held[0] + float(inputs.probe.lost_j[group, column]), held[1]
    lost_s = float(inputs.lost_s[group, column])
    terms = (
        *energy_terms(energy_j, time_s, inputs.known),
        Term(name="edges", std=abs(float(inputs.probe.slope_w[group, column])) * inputs.shift_s),
        Term(name="blur", std=float(inputs.probe.blur_j[group, column])),
        Term(name="lost", std=lost_s * inputs.facts.spread_w),
    )
    return _figure(energy_j, terms, inputs)


def _told(group: int, column: int, time_s: float, inputs: RowInputs) -> Estimate:
    """Returns the energy of a row by least squares: its power over its own time, or that of all it holds."""
    separated = inputs.separated
    assert separated is not None  # the route was chosen by it
    if column:
        energy_j = float(separated.power_w[group]) * time_s
        noise = tuple(
            Term(name=term.name, std=term.std * time_s, kind=term.kind, dof=term.dof) for term in separated.terms[group]
        )
    else:
        energy_j = float(separated.held_w[group]) * time_s
        std = float(separated.held_std_w[group]) * time_s
        noise = (Term(name="noise", std=std, kind=Kind.A, dof=separated.facts.dof),)
    shared = energy_terms(energy_j, time_s, inputs.known)[:3]
    if separated.clocked:  # what is uncertain of the clock was fitted with the powers
        return _figure(energy_j, (*shared, *noise), inputs)
    edges = Term(name="edges", std=abs(float(inputs.probe.slope_w[group, column])) * inputs.shift_s)
    return _figure(energy_j, (*shared, *noise, edges), inputs)


def _figure(energy_j: float, terms: Sequence[Term], inputs: RowInputs) -> Estimate:
    return estimate(
        energy_j, terms, provenance=inputs.provenance, boundary=inputs.boundary, monte_carlo=inputs.monte_carlo
    )
