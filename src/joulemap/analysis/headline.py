"""Energy, power and time per inference, with their uncertainty, from the captures' gate energies.

Type A comes from the repeats and holds everything that is new in each of them: run-to-run variation, noise, where
an edge fell between two ticks. Type B is what all repeats share: gain, offset, clock, skew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.attribution import Attribution
from joulemap.analysis.budget import instrument_terms, lost_std_j, repeat_terms, resolution_terms
from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import Term, estimate
from joulemap.estimate import Boundary, Estimate, Provenance, Quantity, Unavailable, weakest
from joulemap.records.energy import BudgetLine
from joulemap.records.instrument import ErrorDistribution

__all__ = ["BOXCAR_BANDWIDTH", "Headline", "build_headline"]

BOXCAR_BANDWIDTH = 0.443
"""-3 dB bandwidth of a mean over a window, times the window: sin(pi x)/(pi x) = 1/sqrt(2) at x = 0.443."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """Figures of the whole inference; names as in ``EnergyAccount``."""

    energy_per_inference_j: Estimate
    energy_above_idle_per_inference_j: Quantity
    average_power_w: Estimate
    peak_power_w: Quantity
    latency_s: Estimate
    idle_power_w: Quantity
    budget: tuple[BudgetLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """Per capture: energy per inference (J), latency (s), idle power (W), all (captures,); idle is None without one."""

    energy_j: Array
    latency_s: Array
    idle_w: Array | None


def build_headline(
    captures: Sequence[GatedCapture],
    attribution: Attribution,
    count: int,
    *,
    boundary: Boundary,
    monte_carlo: MonteCarlo,
) -> Headline:
    """Returns the figures of the whole inference.

    Args:
        captures: valid captures, at least one.
        attribution: of the same captures; its gate energies are the total.
        count: inferences inside GATE.
        boundary: what was measured.
        monte_carlo: draws shared by the results of one account.
    """
    provenance = weakest(capture.trace.channel.provenance for capture in captures)
    sums = _Sums(
        energy_j=np.array([gate.energy_j for gate in attribution.gates]) / count,
        latency_s=np.array([capture.gate_s for capture in captures]) / count,
        idle_w=_idle_power(captures),
    )

    def figure(value: float, terms: Sequence[Term], at: Boundary | None = boundary) -> Estimate:
        return estimate(value, terms, provenance=provenance, boundary=at, monte_carlo=monte_carlo)

    energy_j, terms = _energy(captures, attribution, count, sums=sums)
    return Headline(
        energy_per_inference_j=figure(energy_j, terms),
        energy_above_idle_per_inference_j=_above_idle(captures, terms, sums, figure),
        average_power_w=figure(*_average_power(captures, sums)),
        peak_power_w=_peak_power(captures, provenance, boundary),
        latency_s=figure(*_latency(captures, sums, count), None),
        idle_power_w=_idle(captures, sums, figure),
        budget=tuple(BudgetLine(name=term.name, kind=str(term.kind), std_j=term.std, dof=term.dof) for term in terms),
    )


def _energy(
    captures: Sequence[GatedCapture], attribution: Attribution, count: int, *, sums: _Sums
) -> tuple[float, tuple[Term, ...]]:
    spec = captures[0].spec
    gate_s = float(np.mean([capture.gate_s for capture in captures]))
    single_j = spec.noise_std_w * math.sqrt(captures[0].period_s * gate_s) / count
    value_j, repeats = repeat_terms(sums.energy_j, single_std=single_j)
    lost_j = [lost_std_j(c, g.lost_s, g.spread_w) for c, g in zip(captures, attribution.gates, strict=True)]
    rectangular = spec.distribution is ErrorDistribution.RECTANGULAR
    return value_j, (
        *repeats,
        *instrument_terms(spec, value_j, gate_s / count),
        Term(name="edges", std=_edges_std_j(captures, attribution, sums) / count, rectangular=rectangular),
        Term(name="lost", std=math.hypot(*lost_j) / len(captures) / count),
    )


def _edges_std_j(captures: Sequence[GatedCapture], attribution: Attribution, sums: _Sums) -> float:
    """Returns what the edges add beyond the repeats, J: skew, one capture's ticks, and the fill of edge samples."""
    mean_w = float((sums.energy_j / sums.latency_s).mean())
    outside_w = float(sums.idle_w.mean()) if sums.idle_w is not None else 0.0
    tick_s = captures[0].edge_std_s * math.sqrt(2.0) if len(captures) == 1 else 0.0
    shift_j = math.hypot(captures[0].spec.edge_skew_std_s, tick_s) * abs(mean_w - outside_w)
    return math.hypot(shift_j, attribution.fill_std_j)


def _above_idle(captures: Sequence[GatedCapture], terms: Sequence[Term], sums: _Sums, figure: object) -> Quantity:
    """Returns energy above idle: the offset is the same in both and cancels, the gain scales the difference."""
    assert callable(figure)
    if sums.idle_w is None:
        return Unavailable(reason="idle_unresolved")
    above_j = sums.energy_j - sums.idle_w * sums.latency_s
    value_j, repeats = repeat_terms(above_j, single_std=next((t.std for t in terms if t.name == "noise"), 0.0))
    shared = [t for t in instrument_terms(captures[0].spec, value_j, 0.0) if t.name in {"gain", "clock"}]
    rest = [t for t in terms if t.name in {"edges", "lost"}]
    idle_std_w = _idle_noise_w(captures) / math.sqrt(len(captures)) if len(captures) == 1 else 0.0
    latency_s = float(sums.latency_s.mean())
    idle = Term(name="idle", std=idle_std_w * latency_s)
    rounding = resolution_terms(captures[0].spec, math.sqrt(2.0) * latency_s)  # two powers at places of their own
    result: Estimate = figure(value_j, [*repeats, *shared, *rest, *rounding, idle])
    return result


def _average_power(captures: Sequence[GatedCapture], sums: _Sums) -> tuple[float, tuple[Term, ...]]:
    """Returns the mean power inside GATE: energy and time are on one clock, whose error cancels."""
    spec = captures[0].spec
    gate_s = captures[0].gate_s
    single_w = spec.noise_std_w * math.sqrt(captures[0].period_s / gate_s)
    value_w, repeats = repeat_terms(sums.energy_j / sums.latency_s, single_std=single_w)
    shared = [t for t in instrument_terms(spec, value_w, 1.0) if t.name != "clock"]
    return value_w, (*repeats, *shared)


def _latency(captures: Sequence[GatedCapture], sums: _Sums, count: int) -> tuple[float, tuple[Term, ...]]:
    """Returns GATE / N; equal ticks in every repeat are no proof of a short tick, so it is counted in full."""
    spec = captures[0].spec
    value_s = float(sums.latency_s.mean())
    rectangular = spec.distribution is ErrorDistribution.RECTANGULAR
    repeats = repeat_terms(sums.latency_s)[1] if sums.latency_s.size > 1 else ()
    tick_s = math.sqrt(2.0) * max(capture.edge_std_s for capture in captures) / count
    clock = Term(name="clock", std=value_s * spec.clock_std_ppm * 1e-6, rectangular=rectangular)
    return value_s, (*repeats, clock, Term(name="edges", std=tick_s))


def _idle(captures: Sequence[GatedCapture], sums: _Sums, figure: object) -> Quantity:
    assert callable(figure)
    if sums.idle_w is None:
        return Unavailable(reason="idle_unresolved")
    value_w, repeats = repeat_terms(sums.idle_w, single_std=_idle_noise_w(captures))
    shared = [t for t in instrument_terms(captures[0].spec, value_w, 1.0) if t.name != "clock"]
    result: Estimate = figure(value_w, [*repeats, *shared])
    return result


def _idle_power(captures: Sequence[GatedCapture]) -> Array | None:
    """Returns the mean power of each capture's idle window, W; None when one has no whole sample inside it."""
    means = []
    for capture in captures:
        samples = capture.inside(*capture.idle_s) if capture.idle_s is not None else np.empty(0, np.int64)
        if not samples.size:
            return None
        means.append(float(capture.power_w(samples).mean()))
    return np.array(means)


def _idle_noise_w(captures: Sequence[GatedCapture]) -> float:
    """Returns the noise of one capture's idle mean, W."""
    idle_s = captures[0].idle_s
    assert idle_s is not None  # there is an idle power only where there is a window
    return captures[0].spec.noise_std_w / math.sqrt(max(captures[0].inside(*idle_s).size, 1))


def _peak_power(captures: Sequence[GatedCapture], provenance: Provenance, boundary: Boundary) -> Quantity:
    """Returns the highest sample wholly inside GATE of any capture, W: one sample, with one sample's noise."""
    peaks = []
    for capture in captures:
        samples = capture.inside(capture.rise_s, capture.fall_s)
        if samples.size:
            peaks.append(float(capture.power_w(samples).max()))
    if not peaks:
        return Unavailable(reason="gate_unresolved")
    spec, peak_w = captures[0].spec, max(peaks)
    noise_w = math.hypot(spec.noise_std_w, spec.quantum_w / math.sqrt(12.0))
    std_w = math.hypot(noise_w, spec.gain_std * peak_w, spec.offset_std_w)
    return Estimate(value=peak_w, std=std_w, provenance=provenance, boundary=boundary)
