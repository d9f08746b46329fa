"""Layer energies by exact overlap: each sample's energy falls to the layers by the time that it spends in each.

Right where a layer lasts many samples; what the samples near its boundaries mix is handed back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.attribution import Attribution, GateEnergy, GroupEnergy, gate_energy
from joulemap.analysis.boundaries import TOLD, shift_slopes, tell_layers
from joulemap.analysis.budget import instrument_terms, lost_std_j, repeat_terms, shared_shift_std_s, single_shift_std_s
from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.grouping import LayerGroup, choose_groups
from joulemap.analysis.intervals.uncertainty import Term
from joulemap.analysis.schedule import LayerSchedule
from joulemap.records.energy import Resolution
from joulemap.records.instrument import ErrorDistribution
from joulemap.records.profile import PmuResult

__all__ = ["attribute_by_overlap", "overlap_resolves"]

_SAMPLES_PER_LAYER = 20
_SHORT = 5e-4
"""A layer shorter than this share of the inference does not decide the method: it may be grouped."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Overlap:
    """One capture: energies of the regions over all inferences, and how they move with the schedule.

    Args:
        energy_j: (regions,) J, the gap last; they add up to the gate's energy.
        slope_w: (2, regions) change per shift of the schedule to later and to earlier, W.
        lost_s: (regions,) time that was lost, s.
        doubt_j: (2, layers) of what was handed back at each layer's start and end, J.
        gate: energy inside GATE.
    """

    energy_j: Array
    slope_w: Array
    lost_s: Array
    doubt_j: Array
    gate: GateEnergy


def overlap_resolves(schedule: LayerSchedule, period_s: float) -> bool:
    """Returns whether every layer that matters lasts at least 20 samples of ``period_s``."""
    matters = schedule.duration_s >= _SHORT * schedule.period_s
    return bool(np.all(schedule.duration_s[matters] >= _SAMPLES_PER_LAYER * period_s))


def attribute_by_overlap(captures: Sequence[GatedCapture], profile: PmuResult, count: int) -> Attribution:
    """Returns the energies of layers, groups and gap; they add up to the mean gate energy exactly.

    Args:
        captures: valid captures, at least one.
        profile: counter results of the profile image.
        count: inferences inside GATE.
    """
    schedules = [LayerSchedule.build(profile, capture.gate_s / count) for capture in captures]
    parts = [_overlap(c, s, count) for c, s in zip(captures, schedules, strict=True)]
    schedule = LayerSchedule.build(profile, float(np.mean([s.period_s for s in schedules])))
    spec, sample_s = captures[0].spec, captures[0].period_s
    energy_j = np.stack([part.energy_j for part in parts]) / count
    shift_s = shared_shift_std_s(spec, schedule.boundary_std_s)
    jitter_s = single_shift_std_s(captures)
    mean_w = float(energy_j.sum(axis=1).mean()) / schedule.period_s
    noise = spec.noise_std_w / abs(mean_w) * math.sqrt(sample_s / (count * len(captures)))

    def half_width(weight_s: Array) -> float:
        duration_s = float(weight_s.sum())
        if weight_s[:-1].any() and duration_s < TOLD * sample_s:
            return math.inf
        aligned = math.hypot(shift_s, jitter_s) / duration_s
        blurred = (sample_s / (3.0 * duration_s)) ** 2
        return 1.96 * math.sqrt(noise**2 / duration_s + aligned**2 + blurred**2)

    slope_w = np.mean([part.slope_w for part in parts], axis=0)
    doubt_j = np.mean([part.doubt_j for part in parts], axis=0) / count
    spread_w = float(np.mean([part.gate.spread_w for part in parts]))
    groups = []
    for group in choose_groups(schedule.region_s, half_width):
        member = _member(group, schedule.layers)
        duration_s = float(schedule.region_s[member].sum())
        single_j = spec.noise_std_w * math.sqrt(sample_s * duration_s / count)
        value_j, repeats = repeat_terms(energy_j[:, member].sum(axis=1), single_std=single_j)
        slope_j_s = float(np.abs(slope_w[:, member].sum(axis=1)).max()) / count
        shift_j = slope_j_s * (shift_s if len(captures) > 1 else math.hypot(shift_s, jitter_s))
        unseen_j = _unseen_s(schedule, group, sample_s) * spread_w
        rectangular = spec.distribution is ErrorDistribution.RECTANGULAR
        lost_j = np.array(
            [
                lost_std_j(c, float(p.lost_s[member].sum()), p.gate.spread_w)
                for c, p in zip(captures, parts, strict=True)
            ]
        )
        groups.append(
            GroupEnergy(
                group=group,
                duration_s=duration_s,
                energy_j=value_j,
                terms=(
                    *repeats,
                    *instrument_terms(spec, value_j, duration_s),
                    Term(name="edges", std=shift_j, rectangular=rectangular),
                    Term(name="shape", std=math.hypot(_doubt_j(group, doubt_j), unseen_j)),
                    Term(name="lost", std=math.hypot(*lost_j) / len(captures) / count),
                ),
            )
        )
    return Attribution(
        resolution=Resolution.OVERLAP,
        schedule=schedule,
        gates=tuple(part.gate for part in parts),
        groups=tuple(groups),
    )


def _unseen_s(schedule: LayerSchedule, group: LayerGroup, sample_s: float) -> float:
    """Returns the time in and beside the group that no sample shows apart from its neighbours, s, in quadrature.

    That is its layers shorter than a sample; all pieces of the gap for a group with the gap, half of those beside its
    layers for one without: what such a piece takes is told from a sample that it shares with them.
    """
    pieces_s = np.append(schedule.start_s, schedule.period_s) - np.append(0.0, schedule.end_s)
    pieces_s = np.minimum(pieces_s, sample_s)
    layers = np.array(group.layers, np.int64)
    beside_s = pieces_s if group.gap else pieces_s[np.union1d(layers, layers + 1)] / 2.0
    own_s = schedule.duration_s[layers]
    return math.hypot(float(np.linalg.norm(beside_s)), float(np.linalg.norm(own_s[own_s < sample_s])))


def _doubt_j(group: LayerGroup, doubt_j: Array) -> float:
    """Returns the standard uncertainty of what was handed back over the boundaries of the group itself, J."""
    last = doubt_j.shape[1] - 1
    if not group.layers:
        return math.hypot(float(doubt_j[0, 0]), float(doubt_j[1, last]))
    begin = 0.0 if group.gap and group.layers[0] == 0 else float(doubt_j[0, group.layers[0]])
    end = 0.0 if group.gap and group.layers[-1] == last else float(doubt_j[1, group.layers[-1]])
    return math.hypot(begin, end)


def _member(group: LayerGroup, layers: int) -> list[int]:
    return [*group.layers, layers] if group.gap else list(group.layers)


def _overlap(capture: GatedCapture, schedule: LayerSchedule, count: int) -> _Overlap:
    told = tell_layers(capture, schedule, np.arange(count))
    planned_s = np.append(schedule.duration_s, schedule.gap_s) * count
    mean_w = told.energy_j.sum() / told.seen_s.sum()
    power_w = np.divide(told.energy_j, told.seen_s, out=np.full(planned_s.size, mean_w), where=told.seen_s > 0)
    gate = gate_energy(capture, schedule, count, power_w)
    energy_j = power_w * planned_s
    energy_j[-1] = gate.energy_j - float(energy_j[:-1].sum())
    return _Overlap(
        energy_j=energy_j,
        slope_w=shift_slopes(capture, schedule, count),
        lost_s=np.maximum(planned_s - told.seen_s, 0.0) if capture.trace.gaps.size else np.zeros(planned_s.size),
        doubt_j=told.doubt_j,
        gate=gate,
    )
