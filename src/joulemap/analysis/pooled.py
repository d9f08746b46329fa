"""Layer energies by pooled least squares, for instruments that do not resolve the layers.

What the samples tell is reported: layers where they can be told, sums of neighbours where only the sum can, and
nothing where the sampling is locked to the inferences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.attribution import Attribution, GateEnergy, GroupEnergy, gate_energy
from joulemap.analysis.budget import (
    ASSUMED_REPEATABILITY,
    instrument_terms,
    lost_std_j,
    shared_shift_std_s,
    single_shift_std_s,
)
from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.design import build_cells, build_rows
from joulemap.analysis.grouping import LIMIT, LayerGroup, choose_groups
from joulemap.analysis.intervals.uncertainty import Kind, Term
from joulemap.analysis.least_squares import PooledFit, fit_pooled
from joulemap.analysis.schedule import LayerSchedule
from joulemap.records.energy import Resolution
from joulemap.records.finding import Finding, Severity
from joulemap.records.instrument import ErrorDistribution
from joulemap.records.profile import PmuResult

__all__ = ["attribute_by_least_squares", "sampling_is_locked"]

_LOCKED = 1e-3
_SPARE_ROWS = 8

Array = NDArray[np.float64]


def sampling_is_locked(sample_s: float, inference_s: float) -> bool:
    """Returns whether every sample holds a whole number of inferences, so that all samples say the same."""
    whole = round(sample_s / inference_s)
    return whole >= 1 and abs(sample_s / (whole * inference_s) - 1.0) < _LOCKED


def attribute_by_least_squares(captures: Sequence[GatedCapture], profile: PmuResult, count: int) -> Attribution:
    """Returns the energies of layers and groups, or a refusal with its reason; the gate energies in any case.

    Args:
        captures: valid captures, at least one, with at least one sample inside GATE between them.
        profile: counter results of the profile image.
        count: inferences inside GATE.
    """
    schedules = [LayerSchedule.build(profile, capture.gate_s / count) for capture in captures]
    schedule = LayerSchedule.build(profile, float(np.mean([s.period_s for s in schedules])))
    spec, sample_s = captures[0].spec, captures[0].period_s
    noise_w = math.hypot(spec.noise_std_w, spec.quantum_w / math.sqrt(12.0))
    rows = build_rows(captures, build_cells(schedule, sample_s), count)
    fit = fit_pooled(rows, noise_w)
    gates = tuple(
        gate_energy(c, s, count, fit.power_w * f) for c, s, f in zip(captures, schedules, fit.factor, strict=True)
    )
    fill_std_j = math.sqrt(fit.variance(np.mean([gate.filled_s for gate in gates], axis=0)))
    size = rows.power_w.size
    refusal = _refusal(sample_s, schedule, size)
    if refusal is None:
        mean_w = abs(math.fsum(g.energy_j for g in gates) / math.fsum(c.gate_s for c in captures))
        groups = choose_groups(schedule.region_s, _predictor(captures, fit, mean_w, noise_w))
        if sum(1 for group in groups if group.layers) == 1 and schedule.layers > 1:
            refusal = Finding(
                slug="layers_refused",
                severity=Severity.WARNING,
                message=f"{size} samples of {sample_s:.3g} s cannot tell any two layers apart within {LIMIT:.0%}",
            )
    if refusal is not None:
        return Attribution(
            resolution=Resolution.REFUSED,
            schedule=schedule,
            gates=gates,
            fill_std_j=fill_std_j,
            reason=refusal.slug,
            findings=(refusal,),
        )
    energies = _energies(captures, groups=groups, fit=fit, gates=gates, schedule=schedule)
    return Attribution(
        resolution=Resolution.LEAST_SQUARES,
        schedule=schedule,
        gates=gates,
        fill_std_j=fill_std_j,
        groups=energies,
        findings=_doubts(fit, energies, gates, count),
    )


def _refusal(sample_s: float, schedule: LayerSchedule, size: int) -> Finding | None:
    if sampling_is_locked(sample_s, schedule.period_s):
        whole = round(sample_s / schedule.period_s)
        times = "one inference" if whole == 1 else f"{whole} inferences"
        return Finding(
            slug="sampling_locked",
            severity=Severity.WARNING,
            message=f"a sample of {sample_s:.4g} s holds exactly {times} of {schedule.period_s:.4g} s:"
            " all samples say the same, no layer can be told apart",
        )
    if size < schedule.layers // 2 + _SPARE_ROWS:
        return Finding(
            slug="layers_refused",
            severity=Severity.WARNING,
            message=f"{size} samples inside GATE are too few for {schedule.layers} layers",
        )
    return None


def _predictor(
    captures: Sequence[GatedCapture], fit: PooledFit, mean_w: float, noise_w: float
) -> Callable[[Array], float]:
    """Returns the predicted half-width of a sum of regions, relative to its energy, or to mean power where less."""
    louder = max(noise_w / fit.residual_std_w, 1.0)
    shift_s = math.hypot(captures[0].spec.edge_skew_std_s, single_shift_std_s(captures))

    def half_width(weight_s: Array) -> float:
        duration_s = float(weight_s.sum())
        variance = fit.variance(weight_s) * louder**2
        mean_j = mean_w * duration_s
        own_j = min(max(float(weight_s @ fit.power_w), 0.1 * mean_j), mean_j)
        edges_j = max(shift_s * mean_w, _edges_std_j(captures, fit, weight_s, captures[0].spec.edge_skew_std_s))
        return 1.96 * math.hypot(math.sqrt(variance), edges_j) / own_j

    return half_width


def _energies(
    captures: Sequence[GatedCapture],
    *,
    groups: Sequence[LayerGroup],
    fit: PooledFit,
    gates: Sequence[GateEnergy],
    schedule: LayerSchedule,
) -> tuple[GroupEnergy, ...]:
    spec = captures[0].spec
    totals_j = np.array([gate.energy_j for gate in gates])
    spread = _repeatability(totals_j)
    shared_s = shared_shift_std_s(spec, schedule.boundary_std_s)
    rectangular = spec.distribution is ErrorDistribution.RECTANGULAR
    lost_share = [lost_std_j(c, g.lost_s, g.spread_w) / g.energy_j for c, g in zip(captures, gates, strict=True)]
    result = []
    for group in groups:
        weight_s = group.weight(schedule.region_s)
        duration_s = float(weight_s.sum())
        energy_j = float(weight_s @ fit.power_w)
        result.append(
            GroupEnergy(
                group=group,
                duration_s=duration_s,
                energy_j=energy_j,
                terms=(
                    Term(name="repeats", std=abs(energy_j) * spread[0], kind=spread[1], dof=spread[2]),
                    Term(name="noise", std=math.sqrt(fit.variance(weight_s)), kind=Kind.A, dof=fit.dof),
                    *instrument_terms(spec, energy_j, duration_s),
                    Term(name="edges", std=_edges_std_j(captures, fit, weight_s, shared_s), rectangular=rectangular),
                    Term(name="lost", std=abs(energy_j) * math.hypot(*lost_share) / len(captures)),
                ),
            )
        )
    return tuple(result)


def _repeatability(totals_j: Array) -> tuple[float, Kind, float]:
    """Returns relative std of the mean, kind and dof of what the captures' totals say of run-to-run variation."""
    if totals_j.size == 1:
        return ASSUMED_REPEATABILITY, Kind.B, math.inf
    spread = float(totals_j.std(ddof=1)) / math.sqrt(totals_j.size)
    return spread / abs(float(totals_j.mean())), Kind.A, totals_j.size - 1.0


def _edges_std_j(captures: Sequence[GatedCapture], fit: PooledFit, weight_s: Array, shared_s: float) -> float:
    """Returns what misplaced schedules leave uncertain of a sum of regions, J: all together, and each by its own edge.

    Sampling that is locked to the inferences shows a boundary in some captures only: these are not averaged down.
    """
    moved_j_s = fit.shift_w_s @ weight_s
    own_s = np.array([capture.edge_std_s for capture in captures])
    return math.hypot(float(moved_j_s.sum()) * shared_s, float(np.linalg.norm(moved_j_s * own_s)))


def _doubts(
    fit: PooledFit, energies: Sequence[GroupEnergy], gates: Sequence[GateEnergy], count: int
) -> tuple[Finding, ...]:
    findings = []
    if not fit.white:
        findings.append(
            Finding(
                slug="residuals_not_white",
                severity=Severity.INFO,
                message="what the layer powers leave unexplained is correlated in time: power inside a layer is not"
                " constant, or the schedule is off; the intervals were widened accordingly",
            )
        )
    total_j = float(np.mean([gate.energy_j for gate in gates])) / count
    off_j = math.fsum(e.energy_j for e in energies) - total_j
    noise_j = math.fsum(t.std for e in energies for t in e.terms if t.name in {"noise", "edges", "shape"})
    if abs(off_j) > 2.0 * noise_j + 1e-4 * abs(total_j):
        findings.append(
            Finding(
                slug="closure_failed",
                severity=Severity.WARNING,
                message=f"layers, groups and gap differ from the gate energy by {off_j / total_j:+.3%}",
            )
        )
    return tuple(findings)
