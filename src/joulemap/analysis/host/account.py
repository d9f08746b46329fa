"""From windows and operator times to the account of a run on this machine.

What was measured by itself (in place) and what is only a share of the time are never mixed in one figure, and each says
which it is. The gap is measured by itself where a runtime can run without operators, so that the sum is a test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.headline import BOXCAR_BANDWIDTH
from joulemap.analysis.host.latency import QUANTILES, estimate_mean, estimate_quantile
from joulemap.analysis.host.parts import HostFit, MeterLimits, PartEnergy, fit_parts
from joulemap.analysis.host.window_energy import WindowEnergy
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import Term, estimate, limit_std, mean_term
from joulemap.analysis.metrics import frames_per_joule, ops_per_joule
from joulemap.estimate import Boundary, Estimate, Provenance, Quantity, Unavailable, weakest
from joulemap.records.energy import BudgetLine, EnergyAccount, EnergyGroup, GapEnergy, LayerEnergy, Resolution
from joulemap.records.finding import Finding, Severity
from joulemap.records.host.account import EnergyClosure, HostAccount, Reconciliation
from joulemap.records.host.campaign import EXACT, InPlaceError, LoadKind, OperatorTimes
from joulemap.units import format_duration

__all__ = ["Measured", "account_host"]

Floats = NDArray[np.float64]
_GROUP = "g1"
_APART = 0.2
"""Share of an inference that may lie between the times of its parts and its own."""
_DRIFT = 0.02
"""A change of idle power by less than this share of what the load adds is none that matters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """Everything that the account is made of.

    Args:
        windows: with their energies, of whole blocks only.
        times: of operators.
        limits: declared by the meter.
        in_place_error: of operators that were repeated.
        provenance: of the samples.
        boundary: what was measured.
        time_provenance: of the latencies.
        ops_per_inference: a multiply-accumulate counted as two.
        sample_period_s: usual length of a sample, s.
    """

    windows: tuple[WindowEnergy, ...]
    times: OperatorTimes
    limits: MeterLimits
    provenance: Provenance
    boundary: Boundary
    time_provenance: Provenance
    ops_per_inference: int
    sample_period_s: float
    in_place_error: InPlaceError = EXACT


def account_host(measured: Measured) -> HostAccount:
    """Returns the account.

    Raises:
        ValueError: fewer than two blocks hold a window of the model as it is.
    """
    base = [w for w in measured.windows if w.window.load.kind is LoadKind.BASE]
    series = [w.window.latency_s for w in base if w.window.latency_s.size]
    latency = estimate_mean(series, measured.time_provenance)
    idle_w, idle_terms, drifted = _idle(measured)
    fit = fit_parts(
        measured.windows,
        measured.times,
        measured.limits,
        idle_w=idle_w,
        in_place_error=measured.in_place_error,
    )
    figure = _Figures(measured)
    energy = figure.energy(fit.base_j, fit.base_terms)
    durations_s = _durations(measured.times, fit.base_s)
    modelled = _modelled(measured, fit, durations_s, idle_w=idle_w)
    layers, groups = _layers(fit, durations_s, figure, modelled)
    account = EnergyAccount(
        energy_per_inference_j=energy,
        energy_above_idle_per_inference_j=_above_idle(fit, (idle_w, idle_terms), figure, measured.limits),
        inferences_per_j=frames_per_joule(energy),
        ops_per_j=ops_per_joule(energy, measured.ops_per_inference),
        average_power_w=_average_power(fit, base, figure, measured.limits),
        peak_power_w=_peak(base, measured),
        peak_bandwidth_hz=BOXCAR_BANDWIDTH / measured.sample_period_s,
        latency_s=latency,
        idle_power_w=Unavailable(reason="idle_unresolved")
        if idle_w is None
        else figure.energy(idle_w, [*idle_terms, *measured.limits.terms(idle_w, 1.0)]),
        layers=layers,
        groups=groups,
        gap=GapEnergy(duration_s=fit.gap_s, energy_j=figure.energy(fit.gap_j, fit.gap_terms)),
        budget=tuple(
            BudgetLine(name=t.name, kind=str(t.kind), std_j=t.std, dof=t.dof) for t in fit.base_terms if t.std > 0
        ),
        findings=(*fit.findings, *drifted, *_apart(durations_s, fit)),
    )
    return HostAccount(
        account=account,
        modelled_j=modelled,
        quantiles=tuple(estimate_quantile(series, p, measured.time_provenance) for p in QUANTILES),
        closure=_closure(fit, idle_w, figure),
        reconciliation=_reconcile(measured.times, fit),
    )


@dataclass(frozen=True, slots=True)
class _Figures:
    measured: Measured

    def energy(self, value: float, terms: Sequence[Term]) -> Estimate:
        return estimate(value, terms, provenance=self.measured.provenance, boundary=self.measured.boundary)


def _scaled(term: Term, factor: float) -> Term:
    return Term(name=term.name, std=term.std * abs(factor), kind=term.kind, dof=term.dof, rectangular=term.rectangular)


def _idle(measured: Measured) -> tuple[float | None, tuple[Term, ...], tuple[Finding, ...]]:
    """Returns idle power, W, its terms, and a doubt when it moved between the first and the last window."""
    idle = [w for w in measured.windows if w.window.load.kind is LoadKind.IDLE]
    if len(idle) < 2:
        return None, (), ()
    powers_w = np.array([w.power_w for w in idle])
    value_w, term = mean_term(powers_w, name="idle")
    half = powers_w.size // 2
    moved_w = float(powers_w[-half:].mean() - powers_w[:half].mean())
    base_w = float(np.mean([w.power_w for w in measured.windows if w.window.load.kind is LoadKind.BASE]))
    steps_w = math.sqrt(0.5 * float(np.mean(np.diff(powers_w) ** 2)))  # noise that a slow drift does not inflate
    if abs(moved_w) <= max(_DRIFT * abs(base_w - value_w), 3.0 * steps_w * math.sqrt(2.0 / half)):
        return value_w, (term,), ()
    message = f"idle power moved by {moved_w:+.3g} W of {value_w:.3g} W between the first and the last windows"
    drift = Term(name="idle_drift", std=limit_std(abs(moved_w) / 2.0))
    return value_w, (term, drift), (Finding(slug="idle_drifted", severity=Severity.WARNING, message=message),)


def _durations(times: OperatorTimes, latency_s: float) -> Floats:
    """Returns (operators,) s of one unprofiled inference; NaN where nothing is known.

    A profiled inference that takes longer is scaled down: what the profiler adds is taken as spread over all of it.
    """
    usual_s = times.usual_s if times.duration_s.size else np.empty(0)
    return np.asarray(usual_s * min(1.0, latency_s / (times.usual_latency_s or latency_s)), np.float64)


def _apart(durations_s: Floats, fit: HostFit) -> tuple[Finding, ...]:
    """Returns a doubt when the times of operators and gap do not add up to an inference of the windows."""
    summed_s = float(durations_s.sum()) + fit.gap_s
    if not durations_s.size or not math.isfinite(summed_s) or abs(summed_s / fit.base_s - 1.0) <= _APART:
        return ()
    message = (
        f"operators and gap take {format_duration(summed_s)} by themselves, an inference"
        f" {format_duration(fit.base_s)} in the windows: their times are of another moment, with other neighbours"
    )
    return (Finding(slug="times_apart", severity=Severity.WARNING, message=message),)


def _modelled(measured: Measured, fit: HostFit, durations_s: Floats, *, idle_w: float | None) -> tuple[Quantity, ...]:
    """Returns each operator's part of the energy by time alone.

    Nothing says what power an operator has: it is taken as anywhere between idle and as much above the mean. Nor are
    its time and its share the same in a profiled inference, or where operators were timed by repetition, which changes
    what caches hold: what all of it is off by is a limit for each.
    """
    known = np.isfinite(durations_s)
    total_s = float(durations_s[known].sum())
    if total_s <= 0:
        return tuple(Unavailable(reason="time_unknown") for _ in durations_s)
    held_j = fit.base_j - fit.gap_j
    mean_w = fit.base_j / fit.base_s
    off = fit.overhead if fit.overhead is not None else (total_s + fit.gap_s) / fit.base_s - 1.0
    unsure_j = math.hypot(*(t.std for t in (*fit.base_terms, *fit.gap_terms) if t.name in {"noise", "repeats"}))
    reach_w = mean_w - idle_w if idle_w is not None and idle_w < mean_w else mean_w
    provenance = weakest([Provenance.MODELLED, measured.provenance])
    figures: list[Quantity] = []
    draws = MonteCarlo(draws=20_000)  # kept between the operators; the limits themselves are guesses to 1 %
    for duration_s in durations_s:
        if not math.isfinite(duration_s):
            figures.append(Unavailable(reason="time_unknown"))
            continue
        share = float(duration_s) / total_s
        value_j = held_j * share
        power = Term(name="power", std=limit_std(reach_w * float(duration_s)), rectangular=True)
        clock = Term(name="perturbation", std=abs(value_j) * limit_std(abs(off)))
        noise = Term(name="noise", std=unsure_j * share)  # of what operators hold at all: the whole less the gap
        terms = [power, clock, noise]
        figures.append(estimate(value_j, terms, provenance=provenance, boundary=measured.boundary, monte_carlo=draws))
    return tuple(figures)


def _layers(
    fit: HostFit, durations_s: Floats, figure: _Figures, modelled: Sequence[Quantity]
) -> tuple[tuple[LayerEnergy, ...], tuple[EnergyGroup, ...]]:
    """Returns rows and groups; what was repeated has the time of its copies, as it has their energy."""
    alone = {part.operators[0]: part for part in fit.parts if len(part.operators) == 1}
    together = [part for part in fit.parts if len(part.operators) > 1]
    in_group = {k for part in together for k in part.operators}
    rows = []
    for index, duration_s in enumerate(durations_s):
        part = alone.get(index)
        energy: Quantity
        if part is not None:
            duration_s = _own_time(part, float(duration_s))  # noqa: PLW2901
            energy, way = figure.energy(part.energy_j, part.terms), Resolution.IN_PLACE
        elif index in in_group:
            energy, way = Unavailable(reason="layers_grouped"), Resolution.IN_PLACE
        else:
            energy, way = modelled[index], Resolution.TIME_SHARE
        rows.append(
            LayerEnergy(
                index=index,
                duration_s=float(duration_s) if math.isfinite(duration_s) else 0.0,
                energy_j=energy,
                share=energy.value / fit.base_j if isinstance(energy, Estimate) else None,
                group=_GROUP if index in in_group else None,
                resolution=way,
            )
        )
    groups = tuple(
        EnergyGroup(
            id=_GROUP,
            layers=part.operators,
            contains_gap=False,
            duration_s=_own_time(part, float(np.nansum(durations_s[list(part.operators)]))),
            energy_j=figure.energy(part.energy_j, part.terms),
        )
        for part in together
    )
    return tuple(rows), groups


def _own_time(part: PartEnergy, other_s: float) -> float:
    """Returns the time of the copies, or that of the other session where noise hides it."""
    return part.duration_s if part.duration_s > 0 else other_s


def _above_idle(
    fit: HostFit, idle: tuple[float | None, tuple[Term, ...]], figure: _Figures, limits: MeterLimits
) -> Quantity:
    """Returns energy above idle: offset cancels, the gain scales the difference."""
    idle_w, terms = idle
    if idle_w is None:
        return Unavailable(reason="idle_unresolved")
    value_j = fit.base_j - idle_w * fit.base_s
    own = [t for t in fit.base_terms if t.name in {"noise", "repeats"}]
    gain = [t for t in limits.terms(value_j, 0.0) if t.name == "gain"]
    return figure.energy(value_j, [*own, *gain, *(_scaled(t, fit.base_s) for t in terms)])


def _average_power(fit: HostFit, base: Sequence[WindowEnergy], figure: _Figures, limits: MeterLimits) -> Quantity:
    """Returns mean power: by the differences of the windows' powers, in which those of their times do not count."""
    value_w = fit.base_j / fit.base_s
    _, term = mean_term(np.array([w.power_w for w in base]), name="noise")
    return figure.energy(value_w, [term, *limits.terms(value_w, 1.0)])


def _peak(base: Sequence[WindowEnergy], measured: Measured) -> Quantity:
    peak_w = max(w.peak_w for w in base)
    std = math.hypot(*(t.std for t in measured.limits.terms(peak_w, 1.0)), measured.limits.noise_std_w)
    return Estimate(value=peak_w, std=std, provenance=measured.provenance, boundary=measured.boundary)


def _closure(fit: HostFit, idle_w: float | None, figure: _Figures) -> EnergyClosure | None:
    if not fit.complete:
        return None
    rest_w = idle_w or 0.0
    operators_j = math.fsum(p.energy_j for p in fit.parts)
    operators_s = math.fsum(p.duration_s for p in fit.parts)
    difference = figure.energy(fit.closure_j, fit.closure_terms)
    idle_j = rest_w * fit.base_s
    gap_s = fit.base_s - operators_s  # idle power is on for the whole inference, whatever the parts' times add up to
    return EnergyClosure(
        operators_above_idle_j=operators_j - rest_w * operators_s,
        gap_above_idle_j=fit.gap_j - rest_w * gap_s,
        idle_j=idle_j,
        window_j=fit.base_j,
        difference_j=difference,
        closed=abs(difference.value) <= difference.expanded,
        independent=fit.gap_measured,
    )


def _reconcile(times: OperatorTimes, fit: HostFit) -> Reconciliation:
    profiled_s = times.usual_latency_s
    summed_s = math.fsum(p.duration_s for p in fit.parts) + fit.gap_s if fit.complete else None
    return Reconciliation(
        source=str(times.source),
        unprofiled_s=fit.base_s,
        profiled_s=profiled_s,
        overhead=fit.overhead,
        repeated_sum_s=summed_s,
        time_closure=None if summed_s is None else summed_s / fit.base_s - 1.0,
    )
