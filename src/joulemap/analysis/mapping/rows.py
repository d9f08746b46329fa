"""Rows of a map: the energy of each key with its uncertainty, by the way that the samples allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import Term, estimate
from joulemap.analysis.mapping.probe import Probe
from joulemap.analysis.mapping.sampling import TraceFacts
from joulemap.analysis.mapping.separation import Separated
from joulemap.estimate import Boundary, Estimate, Provenance, Quantity, Unavailable
from joulemap.records.energy import Resolution
from joulemap.records.energy_map import MapRow
from joulemap.trace.sweep import Swept

__all__ = ["RowInputs", "build_rows", "energy_terms", "is_resolved"]

_SAMPLES = 4.0
"""Slices that last so many samples are resolved whatever their neighbours take."""
_BLUR = 0.1
"""Shorter ones are while the samples on their edges may have moved no more than this share of their energy."""
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


def is_resolved(mean_s: float, blur_j: float, energy_j: float, sample_s: float) -> bool:
    """Returns whether samples of that length tell slices of that mean duration apart from their neighbours."""
    return mean_s >= _SAMPLES * sample_s or (mean_s >= sample_s and 2.0 * abs(blur_j) <= _BLUR * abs(energy_j))


def energy_terms(
    energy_j: float, seen_s: float, facts: TraceFacts, errors: MeterErrors, rate_std_ppm: float
) -> tuple[Term, ...]:
    """Returns the terms that every energy of a trace has: gain, offset, clock, noise.

    Args:
        energy_j: J.
        seen_s: time over which it was seen, s.
        facts: of the trace.
        errors: of the meter.
        rate_std_ppm: standard uncertainty of the trace's clock, ppm.
    """
    return (
        Term(name="gain", std=abs(energy_j) * errors.gain_std, rectangular=errors.rectangular),
        Term(name="offset", std=seen_s * errors.offset_std_w, rectangular=errors.rectangular),
        Term(name="clock", std=abs(energy_j) * rate_std_ppm * 1e-6),
        Term(name="noise", std=facts.noise_w * math.sqrt(max(facts.step_s * seen_s, 0.0))),
    )


def build_rows(
    keys: Sequence[str], outside: NDArray[np.int64], inputs: RowInputs, total_j: float
) -> tuple[MapRow, ...]:
    """Returns the rows, the largest self energy first, refused ones last; shares are of the total."""
    rows = [
        _row(group, key, int(outside[group]) if group < outside.size else 0, inputs, total_j)
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


def _order(row: MapRow) -> tuple[float, float, str]:
    own = row.self_j.value if isinstance(row.self_j, Estimate) else -math.inf
    return (-own, -row.self_s, row.key)


def _row(group: int, key: str, outside: int, inputs: RowInputs, total_j: float) -> MapRow:
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
    )


def _held(group: int, inputs: RowInputs, outside: int) -> tuple[Quantity, Resolution, str]:
    swept = inputs.swept
    count, duration_s = int(swept.count[group]), float(swept.duration_s[group])
    energy_j = float(swept.energy_j[group])
    reason = _refusal(count, duration_s, outside, float(inputs.lost_s[group, 0]), inputs.shift_s)
    if reason:
        return Unavailable(reason=reason), Resolution.REFUSED, reason
    blur_j = float(inputs.probe.blur_j[group, 0])
    if is_resolved(duration_s / count, blur_j, energy_j, inputs.facts.sample_s):
        return _estimate(group, 0, (energy_j, duration_s), inputs), Resolution.OVERLAP, ""
    flat = abs(float(swept.self_s[group]) - duration_s) <= 1e-9 * max(duration_s, 1e-9)
    if flat and (told := _told(group, inputs)) is not None:
        return told, Resolution.LEAST_SQUARES, ""
    return Unavailable(reason="too_short_for_samples"), Resolution.REFUSED, "too_short_for_samples"


def _own(group: int, inputs: RowInputs, outside: int) -> tuple[Quantity, Resolution, str]:
    swept = inputs.swept
    pieces, self_s = int(swept.pieces[group]), float(swept.self_s[group])
    if int(swept.count[group]) and not pieces:  # always covered by what is inside
        zero = Estimate(value=0.0, std=0.0, provenance=inputs.provenance, boundary=inputs.boundary)
        return zero, Resolution.OVERLAP, ""
    reason = _refusal(pieces, self_s, outside, float(inputs.lost_s[group, 1]), inputs.shift_s)
    if reason:
        return Unavailable(reason=reason), Resolution.REFUSED, reason
    energy_j, blur_j = float(swept.self_j[group]), float(inputs.probe.blur_j[group, 1])
    if is_resolved(self_s / pieces, blur_j, energy_j, inputs.facts.sample_s):
        return _estimate(group, 1, (energy_j, self_s), inputs), Resolution.OVERLAP, ""
    if (told := _told(group, inputs)) is not None:
        return told, Resolution.LEAST_SQUARES, ""
    return Unavailable(reason="too_short_for_samples"), Resolution.REFUSED, "too_short_for_samples"


def _refusal(count: int, duration_s: float, outside: int, lost_s: float, shift_s: float) -> str:
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
    energy_j, time_s = held
    lost_s = float(inputs.lost_s[group, column])
    terms = (
        *energy_terms(energy_j, time_s, inputs.facts, inputs.errors, inputs.rate_std_ppm),
        Term(name="edges", std=abs(float(inputs.probe.slope_w[group, column])) * inputs.shift_s),
        Term(name="blur", std=float(inputs.probe.blur_j[group, column])),
        Term(name="lost", std=lost_s * inputs.facts.spread_w),
    )
    return _figure(energy_j, terms, inputs)


def _told(group: int, inputs: RowInputs) -> Estimate | None:
    """Returns the energy of a row by least squares: its power over its own time; None when it cannot be told."""
    separated, self_s = inputs.separated, float(inputs.swept.self_s[group])
    if separated is None or not math.isfinite(float(separated.power_w[group])):
        return None
    energy_j = float(separated.power_w[group]) * self_s
    noise = tuple(
        Term(name=term.name, std=term.std * self_s, kind=term.kind, dof=term.dof) for term in separated.terms[group]
    )
    shared = energy_terms(energy_j, self_s, inputs.facts, inputs.errors, inputs.rate_std_ppm)[:3]
    edges = Term(name="edges", std=abs(float(inputs.probe.slope_w[group, 1])) * inputs.shift_s)
    return _figure(energy_j, (*shared, *noise, edges), inputs)


def _figure(energy_j: float, terms: Sequence[Term], inputs: RowInputs) -> Estimate:
    return estimate(
        energy_j, terms, provenance=inputs.provenance, boundary=inputs.boundary, monte_carlo=inputs.monte_carlo
    )
