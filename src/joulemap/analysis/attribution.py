"""What the two ways of resolving layers have in common: their result, and the energy inside GATE."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.grouping import LayerGroup
from joulemap.analysis.intervals.uncertainty import Term
from joulemap.analysis.schedule import LayerSchedule
from joulemap.records.energy import Resolution
from joulemap.records.finding import Finding

__all__ = ["Attribution", "GateEnergy", "GroupEnergy", "gate_energy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEnergy:
    """Energy of a group per inference.

    Args:
        group: which layers, with or without the gap.
        duration_s: s per inference.
        energy_j: J per inference.
        terms: contributions to its uncertainty, J.
    """

    group: LayerGroup
    duration_s: float
    energy_j: float
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribution:
    """How the energy inside GATE falls to the layers.

    Args:
        resolution: overlap, least squares, or refused.
        schedule: mean layer schedule over the captures.
        gates: energy inside GATE, one per capture.
        fill_std_j: what filling up edge samples adds to the mean gate energy's uncertainty, J.
        groups: energies; empty when refused.
        reason: slug of the finding that says why the layers were refused; empty otherwise.
        findings: doubts.
    """

    resolution: Resolution
    schedule: LayerSchedule
    gates: tuple[GateEnergy, ...]
    fill_std_j: float = 0.0
    groups: tuple[GroupEnergy, ...] = ()
    reason: str = ""
    findings: tuple[Finding, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEnergy:
    """Energy inside one GATE, lost samples and the samples at its edges filled up from the layers' powers.

    Args:
        energy_j: J.
        seen_s: time of samples that lie wholly inside and were not lost, s.
        lost_s: lost time inside GATE, s.
        filled_s: (regions,) time that was filled up, s.
        spread_w: standard deviation of the samples inside GATE, W.
    """

    energy_j: float
    seen_s: float
    lost_s: float
    filled_s: NDArray[np.float64]
    spread_w: float


def gate_energy(capture: GatedCapture, schedule: LayerSchedule, count: int, power_w: NDArray[np.float64]) -> GateEnergy:
    """Returns the energy inside GATE.

    Samples wholly inside count as they are. A sample that also covers time outside would blur the two powers, so the
    part of GATE that only such samples (or lost ones) cover is filled up: each region's time at that region's power.

    Args:
        capture: the capture.
        schedule: scaled to it.
        count: inferences inside GATE.
        power_w: (regions,) power of the layers and the gap in this capture, W.
    """
    samples = capture.inside(capture.rise_s, capture.fall_s)
    power = capture.power_w(samples)
    seen_s = samples.size * capture.period_s
    bounds_s = np.asarray(_bounds(samples) * capture.period_s - capture.rise_s, np.float64)
    total_s = schedule.region_time(np.array([0.0, count * schedule.period_s]))
    held_s = schedule.region_time(bounds_s.ravel()).reshape(bounds_s.shape[0], 2, power_w.size)
    filled_s = np.maximum(total_s[1] - total_s[0] - (held_s[:, 1] - held_s[:, 0]).sum(axis=0), 0.0)
    first, last = capture.rise_s / capture.period_s, capture.fall_s / capture.period_s
    whole = np.arange(math.ceil(first), math.floor(last), dtype=np.int64)
    return GateEnergy(
        energy_j=math.fsum((float(power.sum()) * capture.period_s, float(filled_s @ power_w))),
        seen_s=seen_s,
        lost_s=float(np.count_nonzero(capture.lost(whole))) * capture.period_s if capture.trace.gaps.size else 0.0,
        filled_s=filled_s,
        spread_w=float(power.std()) if power.size else 0.0,
    )


def _bounds(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns runs of consecutive samples as (runs, 2) half-open index ranges."""
    if not samples.size:
        return np.empty((0, 2), np.int64)
    breaks = np.flatnonzero(np.diff(samples) != 1)
    first = samples[np.concatenate([[0], breaks + 1])]
    last = samples[np.concatenate([breaks, [samples.size - 1]])] + 1
    return np.stack([first, last], axis=1)
