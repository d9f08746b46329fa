"""The entry point of the analysis: from a profile run and a power run to energy per inference and per layer.

Chooses the way by what the instrument resolves, never by what the answer looks like, and says in findings what it
could not tell. It never sees the truth of a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from joulemap.analysis.alignment import align_gate, edges_are_coarse, edges_are_hopeless
from joulemap.analysis.attribution import Attribution, GroupEnergy, gate_energy
from joulemap.analysis.capture import GatedCapture, gated_captures
from joulemap.analysis.headline import BOXCAR_BANDWIDTH, build_headline
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import estimate
from joulemap.analysis.metrics import frames_per_joule, ops_per_joule
from joulemap.analysis.overlap import attribute_by_overlap, overlap_resolves
from joulemap.analysis.pooled import attribute_by_least_squares
from joulemap.analysis.schedule import LayerSchedule
from joulemap.estimate import Boundary, Quantity, Unavailable
from joulemap.records.energy import EnergyAccount, EnergyGroup, GapEnergy, LayerEnergy, Resolution
from joulemap.records.finding import Finding, Severity
from joulemap.records.model import Layer
from joulemap.records.power import PowerRun
from joulemap.records.profile import PmuResult

__all__ = ["account_energy"]


def account_energy(
    profile: PmuResult, run: PowerRun, layers: tuple[Layer, ...], *, ops_per_inference: int, boundary: Boundary
) -> EnergyAccount:
    """Returns the energy per inference, per layer, per group and of the gap, each with its uncertainty.

    Args:
        profile: counter results of the profile image.
        run: captures of the power image; the valid gated ones count.
        layers: of the model, in execution order; as many as the profile has.
        ops_per_inference: operations of one inference, a MAC counted as two.
        boundary: what the measured rail feeds.

    Raises:
        NotComparableError: a capture was measured at another boundary.
        ValueError: model and profile disagree on the number of layers.
    """
    if len(layers) != profile.layer_cycles.shape[1]:
        raise ValueError(f"the model has {len(layers)} layers, the profile {profile.layer_cycles.shape[1]}")
    captures = gated_captures(run, boundary)
    count = run.plan.requested_count
    if not captures or 2 * len(captures) < run.plan.repeats:
        return _unavailable(profile, count, run, reason="captures_dropped")
    captures, unresolved = _resolved(captures)
    if 2 * len(captures) < run.plan.repeats:
        return _unavailable(profile, count, run, reason="gate_unresolved")
    captures, findings = _aligned(captures, profile, count)
    attribution = _attribute(captures, profile, count, hopeless=any(f.slug == "edges_too_coarse" for f in findings))
    monte_carlo = MonteCarlo()
    headline = build_headline(captures, attribution, count, boundary=boundary, monte_carlo=monte_carlo)
    energy_j = headline.energy_per_inference_j

    def figure(part: GroupEnergy) -> Quantity:
        provenance = energy_j.provenance
        return estimate(part.energy_j, part.terms, provenance=provenance, boundary=boundary, monte_carlo=monte_carlo)

    layer_energies, groups, gap = _layers(attribution, energy_j.value, figure)
    return EnergyAccount(
        energy_per_inference_j=energy_j,
        energy_above_idle_per_inference_j=headline.energy_above_idle_per_inference_j,
        inferences_per_j=frames_per_joule(energy_j),
        ops_per_j=ops_per_joule(energy_j, ops_per_inference),
        average_power_w=headline.average_power_w,
        peak_power_w=headline.peak_power_w,
        peak_bandwidth_hz=BOXCAR_BANDWIDTH / captures[0].period_s,
        latency_s=headline.latency_s,
        idle_power_w=headline.idle_power_w,
        layers=layer_energies,
        groups=groups,
        gap=gap,
        budget=headline.budget,
        findings=(*unresolved, *findings, *attribution.findings, *_remarks(captures, groups)),
    )


def _resolved(captures: Sequence[GatedCapture]) -> tuple[tuple[GatedCapture, ...], tuple[Finding, ...]]:
    """Returns the captures with a whole sample inside GATE: another one's energy would be no repeat but a copy."""
    resolved = tuple(capture for capture in captures if capture.inside(capture.rise_s, capture.fall_s).size)
    if len(resolved) == len(captures):
        return resolved, ()
    message = f"{len(captures) - len(resolved)} of {len(captures)} captures hold no whole sample inside GATE: left out"
    return resolved, (Finding(slug="gate_unresolved", severity=Severity.WARNING, message=message),)


def _aligned(
    captures: Sequence[GatedCapture], profile: PmuResult, count: int
) -> tuple[tuple[GatedCapture, ...], tuple[Finding, ...]]:
    """Returns the captures, with GATE placed by likelihood where the logic inputs are too slow, and a remark."""
    tick_s = 1.0 / captures[0].spec.edge_rate_hz
    if not edges_are_coarse(profile, tick_s):
        return tuple(captures), ()
    moved = [] if edges_are_hopeless(profile, tick_s) else [align_gate(c, profile, count) for c in captures]
    placed = tuple(capture for capture in moved if capture is not None)
    if len(placed) != len(captures):
        message = f"GATE is known to {tick_s:.3g} s and the samples do not say better: no layer can be placed"
        return tuple(captures), (Finding(slug="edges_too_coarse", severity=Severity.WARNING, message=message),)
    worst_s = max(capture.edge_std_s for capture in placed)
    message = f"GATE is known to {tick_s:.3g} s by its edges; its start was placed by likelihood to {worst_s:.2g} s"
    return placed, (Finding(slug="gate_aligned", severity=Severity.INFO, message=message),)


def _attribute(captures: Sequence[GatedCapture], profile: PmuResult, count: int, *, hopeless: bool) -> Attribution:
    schedule = LayerSchedule.build(profile, captures[0].gate_s / count)
    mean_w = _mean_power_w(captures)
    if mean_w <= 0:
        return _refused(captures, profile, count, mean_w)
    if overlap_resolves(schedule, captures[0].period_s):
        attribution = attribute_by_overlap(captures, profile, count)
    else:
        attribution = attribute_by_least_squares(captures, profile, count)
    if not hopeless:
        return attribution
    return Attribution(
        resolution=Resolution.REFUSED,
        schedule=attribution.schedule,
        gates=attribution.gates,
        fill_std_j=attribution.fill_std_j,
        reason="edges_too_coarse",
    )


def _mean_power_w(captures: Sequence[GatedCapture]) -> float:
    """Returns the mean of all samples inside the gates, W."""
    powers = [capture.power_w(capture.inside(capture.rise_s, capture.fall_s)) for capture in captures]
    return math.fsum(float(power_w.sum()) for power_w in powers) / sum(power_w.size for power_w in powers)


def _refused(captures: Sequence[GatedCapture], profile: PmuResult, count: int, mean_w: float) -> Attribution:
    """Returns an attribution without layers, of samples that show no load: coarser, or further off, than the load."""
    schedules = [LayerSchedule.build(profile, capture.gate_s / count) for capture in captures]
    gates = [
        gate_energy(c, s, count, np.full(s.region_s.shape, mean_w)) for c, s in zip(captures, schedules, strict=True)
    ]
    return Attribution(
        resolution=Resolution.REFUSED,
        schedule=LayerSchedule.build(profile, float(np.mean([s.period_s for s in schedules]))),
        gates=tuple(gates),
        fill_std_j=float(np.mean([gate.filled_s.sum() * gate.spread_w for gate in gates])),
        reason="layers_refused",
        findings=(
            Finding(
                slug="layers_refused",
                severity=Severity.WARNING,
                message=f"the samples inside GATE have a mean of {mean_w:.3g} W: they show no load to be shared out",
            ),
        ),
    )


def _layers(
    attribution: Attribution, total_j: float, energy: Callable[[GroupEnergy], Quantity]
) -> tuple[tuple[LayerEnergy, ...], tuple[EnergyGroup, ...], GapEnergy]:
    schedule = attribution.schedule
    alone = {p.group.layers[0]: p for p in attribution.groups if len(p.group.layers) == 1 and not p.group.gap}
    gap = next((p for p in attribution.groups if not p.group.layers), None)
    together = [p for p in attribution.groups if len(p.group.layers) + p.group.gap > 1]
    groups = tuple(
        EnergyGroup(
            id=f"g{number}",
            layers=part.group.layers,
            contains_gap=part.group.gap,
            duration_s=part.duration_s,
            energy_j=energy(part),
        )
        for number, part in enumerate(together, start=1)
    )
    group_of = {layer: group.id for group in groups for layer in group.layers}
    reason = attribution.reason or "layers_grouped"
    rows = []
    for index in range(schedule.layers):
        part = alone.get(index)
        rows.append(
            LayerEnergy(
                index=index,
                duration_s=float(schedule.duration_s[index]),
                energy_j=Unavailable(reason=reason) if part is None else energy(part),
                share=None if part is None else part.energy_j / total_j,
                group=group_of.get(index),
                resolution=attribution.resolution,
            )
        )
    gap_energy = Unavailable(reason=reason) if gap is None else energy(gap)
    return tuple(rows), groups, GapEnergy(duration_s=schedule.gap_s, energy_j=gap_energy)


def _remarks(captures: Sequence[GatedCapture], groups: Sequence[EnergyGroup]) -> tuple[Finding, ...]:
    remarks = []
    if len(captures) == 1:
        message = "one capture says nothing of run-to-run variation; 1 % (1 sd) is assumed in every interval"
        remarks.append(Finding(slug="single_capture", severity=Severity.WARNING, message=message))
    if groups:
        names = ", ".join(
            f"{g.id} (layers {g.layers[0]}..{g.layers[-1]}{' and the gap' if g.contains_gap else ''})" for g in groups
        )
        message = f"only the sum can be told of {names}"
        remarks.append(Finding(slug="layers_grouped", severity=Severity.INFO, message=message))
    return tuple(remarks)


def _unavailable(profile: PmuResult, count: int, run: PowerRun, *, reason: str) -> EnergyAccount:
    """Returns the account of a run that has no headline; durations are those of the profile run."""
    missing = Unavailable(reason=reason)
    schedule = LayerSchedule.build(profile, profile.clean_latency_s)
    valid = len(run.valid_captures)
    message = {
        "captures_dropped": f"{valid} of {run.plan.repeats} captures are valid, fewer than half: there is no headline",
        "gate_unresolved": f"too few captures hold a whole sample inside GATE ({count} inferences): take more of them",
    }[reason]
    return EnergyAccount(
        energy_per_inference_j=missing,
        energy_above_idle_per_inference_j=missing,
        inferences_per_j=missing,
        ops_per_j=missing,
        average_power_w=missing,
        peak_power_w=missing,
        peak_bandwidth_hz=0.0,
        latency_s=missing,
        idle_power_w=missing,
        layers=tuple(
            LayerEnergy(
                index=index,
                duration_s=float(duration_s),
                energy_j=missing,
                share=None,
                group=None,
                resolution=Resolution.REFUSED,
            )
            for index, duration_s in enumerate(schedule.duration_s)
        ),
        groups=(),
        gap=GapEnergy(duration_s=schedule.gap_s, energy_j=missing),
        budget=(),
        findings=(Finding(slug=reason, severity=Severity.ERROR, message=message),),
    )
