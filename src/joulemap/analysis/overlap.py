"""Layer energies by exact overlap: each sample's energy falls to the layers by the time that it spends in each.

Right where a layer lasts many samples. What a sample on a boundary mixes is handed back once, by the powers of the
two sides, which leaves an error of second order in (sample / layer).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.attribution import Attribution, GateEnergy, GroupEnergy, gate_energy
from joulemap.analysis.budget import instrument_terms, lost_std_j, repeat_terms, shared_shift_std_s, single_shift_std_s
from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.grouping import LayerGroup, choose_groups
from joulemap.analysis.intervals.uncertainty import Term
from joulemap.analysis.schedule import LayerSchedule
from joulemap.records.energy import Resolution
from joulemap.records.instrument import ErrorDistribution
from joulemap.records.profile import PmuResult
from joulemap.trace.integrate import integrate_offsets

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
        unsettled_j: (regions,) what a second round of handing back would move, J.
        gate: energy inside GATE.
    """

    energy_j: Array
    slope_w: Array
    lost_s: Array
    unsettled_j: Array
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
        aligned = math.hypot(shift_s, jitter_s) / duration_s
        blurred = (sample_s / (3.0 * duration_s)) ** 2
        return 1.96 * math.sqrt(noise**2 / duration_s + aligned**2 + blurred**2)

    slope_w = np.mean([part.slope_w for part in parts], axis=0)
    unsettled_j = np.mean([part.unsettled_j for part in parts], axis=0) / count
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
                    Term(name="shape", std=math.hypot(float(unsettled_j[member].sum()), unseen_j)),
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


def _member(group: LayerGroup, layers: int) -> list[int]:
    return [*group.layers, layers] if group.gap else list(group.layers)


def _overlap(capture: GatedCapture, schedule: LayerSchedule, count: int) -> _Overlap:
    sample_s = capture.period_s
    origin_s = capture.rise_s + schedule.period_s * np.arange(count)[:, None, None]
    bounds_s = np.asarray(origin_s + np.stack([schedule.start_s, schedule.end_s], axis=1), np.float64).ravel()
    instants_s = np.concatenate([[capture.rise_s], bounds_s, [capture.fall_s]])  # in order: sorting them is cheap
    shift_s = max(sample_s, capture.edge_std_s)
    seen_j, seen_s = (_regions(part, schedule.layers) for part in _until(capture, instants_s))
    moved_j = [_regions(_until(capture, instants_s + step)[0], schedule.layers) for step in (shift_s, -shift_s)]
    planned_s = np.append(schedule.duration_s, schedule.gap_s) * count
    power_w = np.divide(seen_j, seen_s, out=np.full(seen_j.size, seen_j.sum() / seen_s.sum()), where=seen_s > 0)
    blur_s = _blurred(capture, schedule, bounds_s, seen_s)
    handed_j = seen_j - blur_s @ power_w
    energy_j = np.where(seen_s > 0, (seen_j + handed_j) / np.maximum(seen_s, 1e-300), power_w) * planned_s
    sharp_w = np.divide(energy_j, planned_s, out=power_w.copy(), where=planned_s > 0)
    unsettled_j = seen_j - blur_s @ sharp_w
    gate = gate_energy(capture, schedule, count, sharp_w)
    energy_j[-1] = gate.energy_j - float(energy_j[:-1].sum())
    return _Overlap(
        energy_j=energy_j,
        slope_w=(np.stack(moved_j) - seen_j) / shift_s,
        lost_s=np.maximum(planned_s - seen_s, 0.0) if capture.trace.gaps.size else np.zeros(planned_s.size),
        unsettled_j=unsettled_j,
        gate=gate,
    )


def _until(capture: GatedCapture, at_s: Array) -> tuple[Array, Array]:
    """Returns energy (J) and seen time (s) from sample 0 to each instant."""
    at_s = np.maximum(at_s, 0.0)
    integrated = integrate_offsets(capture.trace, np.zeros(at_s.shape), at_s)
    return integrated.energy_j, integrated.covered_s


def _regions(until: Array, layers: int) -> Array:
    """Returns (layers + 1,) what each region holds over all inferences, the gap last, from running totals.

    Args:
        until: (2 + 2 inferences layers,) totals at GATE's rise, at each layer's start and end, at GATE's fall.
        layers: number of layers.
    """
    start, end = until[1:-1].reshape(-1, layers, 2).sum(axis=0).T
    held = end - start
    return np.append(held, until[-1] - until[0] - held.sum())


def _blurred(capture: GatedCapture, schedule: LayerSchedule, bounds_s: Array, seen_s: Array) -> Array:
    """Returns (regions, regions) seconds: row i tells from whose power the overlap of region i really comes.

    Only samples on a boundary mix; all others fall to their own region.
    """
    sample_s = capture.period_s
    samples = (bounds_s / sample_s).astype(np.int64)
    samples = samples[np.flatnonzero(np.diff(samples, prepend=-1))]  # in order, so each once
    samples = samples[(samples * sample_s >= capture.rise_s) & ((samples + 1) * sample_s <= capture.fall_s)]
    samples = samples[~capture.lost(samples)]
    start_s = np.asarray(samples * sample_s - capture.rise_s, np.float64)
    end_s = np.asarray(start_s + sample_s, np.float64)
    time_s = np.maximum(schedule.region_time(end_s) - schedule.region_time(start_s), 0.0)
    mixed = time_s.T @ time_s / sample_s
    mixed[np.diag_indices_from(mixed)] += seen_s - time_s.sum(axis=0)
    return np.asarray(mixed, np.float64)
