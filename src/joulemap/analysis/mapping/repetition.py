"""Energy of layers that a slow sensor never resolves: the slope of a pass's energy over how often a layer ran in place.

Each slice is a number of passes through the whole network in which one layer ran k times instead of once, so a pass
takes ``E_k = E_1 + (k - 1) e``. All layers share ``E_1``, and a drift of power over the order of the slices is a
parameter more. Slices of at least a few samples are enough, however short the layer is.

References:
    METHODS 1.6 in docs/methods.md (slope, u, order, closure).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.distributions import student_t_quantile
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import Kind, Term, estimate
from joulemap.analysis.mapping.edge_energy import integrate_slices
from joulemap.analysis.mapping.row_figures import shared_terms
from joulemap.analysis.sampling import TraceFacts
from joulemap.errors import InputError
from joulemap.estimate import Estimate, Quantity, Unavailable, weakest
from joulemap.records.energy import Resolution
from joulemap.records.finding import Finding, Severity
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap, MapRow
from joulemap.trace import Timeline
from joulemap.trace.streamed import Trace

__all__ = ["compile_pattern", "map_repetitions"]

_SAMPLES = 4.0
"""Samples that a slice lasts at the least."""
_SURE = 0.9995
"""One-sided probability from which a drift or a curve is told."""
_WHOLE = 1e-9

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Points:
    """One point a slice: energy and time of a pass."""

    layer: NDArray[np.int64]
    times: Floats  # k
    passes: Floats
    energy_j: Floats
    duration_s: Floats
    at_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Slopes:
    """Weighted least squares: E_1, one slope a layer, drift (last)."""

    value: Floats
    covariance: Floats
    dof: float
    curve: float  # of k over the line, in its standard uncertainties
    drift: float  # the same of the drift


def compile_pattern(text: str) -> re.Pattern[str]:
    """Returns the pattern of slice names that tell layer, repetitions and passes: ``{layer}``, ``{k}`` and ``{n}``.

    Raises:
        InputError: layer or k is not in it (``pattern-form``).
    """
    parts = re.split(r"(\{layer\}|\{k\}|\{n\})", text)
    if parts.count("{layer}") != 1 or parts.count("{k}") != 1 or parts.count("{n}") > 1:
        raise InputError(
            f"--in-place {text!r}: {{layer}} and {{k}} must stand in it once, {{n}} at most once",
            hint="for slices called 'conv1 x20 n500': --in-place '{layer} x{k} n{n}'",
            slug="pattern-form",
        )
    forms = {"{layer}": r"(?P<layer>.+?)", "{k}": r"(?P<k>\d+)", "{n}": r"(?P<n>\d+)"}
    return re.compile("".join(forms.get(part, re.escape(part)) for part in parts))


def map_repetitions(
    traces: Sequence[Trace],
    timeline: Timeline,
    clock: ClockMap,
    known: tuple[TraceFacts, MeterErrors],
    *,
    pattern: str,
) -> EnergyMap:
    """Returns the energy of one execution of each layer, that of a pass as total, and what no layer holds as idle.

    Args:
        traces: summed.
        timeline: with a slice for each number of repetitions; each layer needs two numbers at least.
        clock: from its clock to the traces'.
        known: the traces and their meter.
        pattern: of the names.

    Raises:
        InputError: the pattern lacks a part, or fits no slice (``no-such-slices``).
    """
    facts, errors = known
    layers, points = _points(traces, timeline, clock, (pattern, facts.sample_s))
    short = points.duration_s * points.passes < _SAMPLES * facts.sample_s
    usable = [layer for layer in range(len(layers)) if np.unique(points.times[points.layer == layer]).size > 1]
    fit = None if bool(short.any()) else _fit(points, usable, facts)
    length = None if fit is None else _fit(points, usable, facts, of=points.duration_s)
    if fit is None or length is None:
        reason = "too_short_for_samples" if bool(short.any()) else "repetitions_missing"
        rows = tuple(_refused(name, points, k, reason) for k, name in enumerate(layers))
        return _map(clock, rows, (Unavailable(reason=reason),) * 2, (0.0, ()))
    told = _Told(facts=facts, errors=errors, traces=traces, monte_carlo=MonteCarlo())
    rows = tuple(
        _row((name, k), points, (fit, length, 1 + usable.index(k)), told)
        if k in usable
        else _refused(name, points, k, "repetitions_missing")
        for k, name in enumerate(layers)
    )
    weight = np.zeros(fit.value.size)
    weight[0] = 1.0
    total = told.quantity(weight, fit, length)
    weight[1 : 1 + len(usable)] = -1.0
    rest = told.quantity(weight, fit, length)
    share = _shares(rows, total)
    findings = (*errors.findings, *_doubts(fit, total, rest))
    return _map(clock, share, (total, rest), (float(length.value[0]), findings))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Told:
    """From a weighted sum of the parameters to an estimate."""

    facts: TraceFacts
    errors: MeterErrors
    traces: Sequence[Trace]
    monte_carlo: MonteCarlo

    def quantity(self, weight: Floats, fit: _Slopes, length: _Slopes) -> Estimate:
        """Returns the sum with its type A part from the scatter and the meter's part."""
        energy_j, time_s = float(weight @ fit.value), float(weight @ length.value)
        std = math.sqrt(max(float(weight @ fit.covariance @ weight), 0.0))
        rate = self.traces[0].clock.rate_std_ppm or 0.0
        shared = shared_terms(energy_j, abs(time_s), (self.facts, self.errors, rate))
        kind = Kind.B if math.isinf(fit.dof) else Kind.A
        return estimate(
            energy_j,
            (*shared, Term(name="repeats", std=std, kind=kind, dof=fit.dof)),
            provenance=weakest(trace.channel.provenance for trace in self.traces),
            boundary=self.traces[0].channel.boundary,
            monte_carlo=self.monte_carlo,
        )


def _points(
    traces: Sequence[Trace],
    timeline: Timeline,
    clock: ClockMap,
    asked: tuple[str, float],
) -> tuple[list[str], _Points]:
    text, sample_s = asked
    pattern = compile_pattern(text)
    parsed = {k: match for k, name in enumerate(timeline.names) if (match := pattern.fullmatch(name))}
    rows = np.flatnonzero(np.isin(timeline.name_index, list(parsed)))
    if not rows.size:
        raise InputError(
            f"--in-place {text!r}: no slice has such a name",
            hint=f"names begin with {', '.join(timeline.names[:6])}",
            slug="no-such-slices",
        )
    start_ns, end_ns = clock.apply(timeline.start_ns[rows]), clock.apply(timeline.end_ns[rows])
    energy_j, covered_s = integrate_slices(traces, start_ns, end_ns, sample_s)
    span_s = (end_ns - start_ns) * 1e-9
    whole = (covered_s >= span_s - _WHOLE) & (span_s > 0)
    found = [parsed[int(name)] for name in timeline.name_index[rows]]
    layers = list(dict.fromkeys(match["layer"] for match in found))
    passes = np.array([float(match.groupdict().get("n") or 1) for match in found])
    middle_s = (start_ns - start_ns[0]).astype(np.float64) * 1e-9 + 0.5 * span_s
    keep = whole & (passes > 0)
    return layers, _Points(
        layer=np.array([layers.index(match["layer"]) for match in found], np.int64)[keep],
        times=np.array([float(match["k"]) for match in found])[keep],
        passes=passes[keep],
        energy_j=(energy_j / np.maximum(passes, 1.0))[keep],
        duration_s=(span_s / np.maximum(passes, 1.0))[keep],
        at_s=(middle_s - middle_s.mean())[keep],
    )


def _fit(points: _Points, usable: Sequence[int], facts: TraceFacts, of: Floats | None = None) -> _Slopes | None:
    """Returns the slopes; None for too few points."""
    asked = points.energy_j if of is None else of
    columns = [np.ones(asked.size)]
    columns += [np.where(points.layer == layer, points.times - 1.0, 0.0) for layer in usable]
    drift = points.duration_s * points.at_s  # a power that changes by so many W per s
    size = len(columns)
    drifts = asked.size > size + 2 and of is None
    design = np.column_stack([*columns, drift]) if drifts else np.column_stack(columns)
    if not usable or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    noise_j = facts.noise_w * np.sqrt(facts.step_s * points.duration_s * points.passes) / points.passes
    scale = noise_j if float(noise_j.min(initial=0.0)) > 0 else np.sqrt(points.duration_s / points.passes)
    value, inverse, residual = _solve(design / scale[:, None], asked / scale)
    spare = asked.size - design.shape[1]
    square = float(residual @ residual) / spare if spare > 2 else 1.0 if noise_j.min() > 0 else 0.0
    dof = float(spare) if spare > 2 else math.inf
    covariance = inverse * square
    curve = drifted = 0.0
    if spare > 3 and of is None:
        bent = sum(column**2 for column in columns[1:])
        more, unit, left = _solve(np.column_stack([design, bent]) / scale[:, None], asked / scale)
        curve = float(more[-1]) / math.sqrt(max(float(left @ left) / (spare - 1) * float(unit[-1, -1]), 1e-300))
    if drifts:
        drifted = float(value[-1]) / math.sqrt(max(float(covariance[-1, -1]), 1e-300))
    return _Slopes(value=value[:size], covariance=covariance[:size, :size], dof=dof, curve=curve, drift=drifted)


def _solve(design: Floats, asked: Floats) -> tuple[Floats, Floats, Floats]:
    scale = np.linalg.norm(design, axis=0)
    scaled = design / scale
    inverse = np.linalg.inv(scaled.T @ scaled)
    value = inverse @ (scaled.T @ asked)
    return value / scale, inverse / np.outer(scale, scale), asked - scaled @ value


def _row(named: tuple[str, int], points: _Points, fits: tuple[_Slopes, _Slopes, int], told: _Told) -> MapRow:
    name, layer = named
    fit, length, column = fits
    weight = np.zeros(fit.value.size)
    weight[column] = 1.0
    energy = told.quantity(weight, fit, length)
    duration_s = float(length.value[column])
    power: Quantity = energy.scaled(1.0 / duration_s) if duration_s > 0 else Unavailable(reason="no_duration")
    return MapRow(
        key=name,
        count=int((points.layer == layer).sum()),
        outside=0,
        energy_j=energy,
        self_j=energy,
        share=None,
        cumulative_share=None,
        duration_s=duration_s,
        self_s=duration_s,
        mean_power_w=power,
        resolution=Resolution.IN_PLACE,
    )


def _refused(name: str, points: _Points, layer: int, reason: str) -> MapRow:
    nothing = Unavailable(reason=reason)
    return MapRow(
        key=name,
        count=int((points.layer == layer).sum()),
        outside=0,
        energy_j=nothing,
        self_j=nothing,
        share=None,
        cumulative_share=None,
        duration_s=0.0,
        self_s=0.0,
        mean_power_w=nothing,
        resolution=Resolution.REFUSED,
        reason=reason,
    )


def _shares(rows: Sequence[MapRow], total: Estimate) -> tuple[MapRow, ...]:
    known = [row for row in rows if isinstance(row.energy_j, Estimate)]
    known.sort(key=lambda row: -row.energy_j.value if isinstance(row.energy_j, Estimate) else 0.0)
    running, shared = 0.0, []
    for row in known:
        assert isinstance(row.energy_j, Estimate)  # chosen so
        share = row.energy_j.value / total.value if total.value else 0.0
        running += share
        shared.append(replace(row, share=share, cumulative_share=running))
    return (*shared, *(row for row in rows if not isinstance(row.energy_j, Estimate)))


def _doubts(fit: _Slopes, total: Estimate, rest: Estimate) -> list[Finding]:
    findings = []
    limit = student_t_quantile(_SURE, fit.dof)
    if abs(fit.drift) > limit:
        message = (
            f"power drifted over the order of the slices ({abs(fit.drift):.1f} standard uncertainties); a line in time"
            " was fitted with the energies"
        )
        findings.append(Finding(slug="order_drift", severity=Severity.WARNING, message=message))
    if abs(fit.curve) > limit:
        message = (
            f"energy does not grow evenly with the repetitions ({fit.curve:+.1f} standard uncertainties): a layer that"
            " repeats in place finds warmer caches than one that runs once"
        )
        findings.append(Finding(slug="repetition_not_linear", severity=Severity.WARNING, message=message))
    if rest.value < -rest.expanded:
        message = f"the layers add up to {1.0 - rest.value / total.value:.2%} of a pass, beyond their uncertainty"
        findings.append(Finding(slug="closure_failed", severity=Severity.WARNING, message=message))
    return findings


def _map(
    clock: ClockMap,
    rows: tuple[MapRow, ...],
    whole: tuple[Quantity, Quantity],
    rest: tuple[float, tuple[Finding, ...]],
) -> EnergyMap:
    (total, idle), (pass_s, findings) = whole, rest
    power: Quantity = total.scaled(1.0 / pass_s) if isinstance(total, Estimate) and pass_s > 0 else total
    return EnergyMap(
        total_j=total,
        idle_j=idle,
        power_w=power,
        duration_s=pass_s,
        busy_s=math.fsum(row.self_s for row in rows),
        rows=rows,
        split="none",
        concurrent=1,
        clocks=(clock,),
        findings=findings,
        per="pass",
    )
