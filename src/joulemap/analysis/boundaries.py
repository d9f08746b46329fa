"""What each layer holds, when near its boundaries the samples mix it with its neighbours.

Not only a sample on a boundary mixes two powers: the rail's capacitors and the instrument's response do so beside it,
and an edge that is known to a tick puts boundaries a little off. What a layer holds beside a boundary is therefore held
against its power further inside: what one side has too much and the other too little is handed back. What both have too
much is power inside the layers that is not constant; it stays where it was seen, and in the uncertainty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.schedule import LayerSchedule
from joulemap.trace.integrate import integrate_offsets

__all__ = ["TOLD", "ToldEnergy", "shift_slopes", "tell_layers"]

_BESIDE = 2.0
"""Samples beside a boundary that may hold power of the other side."""
TOLD = 16.0
"""Samples that a layer must last to be told from what is beside its own boundaries."""
_SHIFTED = 400
"""Inferences that tell well enough what a shift of the schedule does."""
_HANDED = 0.25
"""Relative standard uncertainty of what is handed back: power inside the layers could look the same in part."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToldEnergy:
    """Energies over some inferences of one capture.

    Args:
        energy_j: (regions,) J, the gap last, for the time that was seen.
        seen_s: (regions,) time that was not lost, s.
        doubt_j: (2, layers) standard uncertainty of what was handed back at the boundaries that each layer's start
            and end lie at, J.
    """

    energy_j: Array
    seen_s: Array
    doubt_j: Array


def tell_layers(
    capture: GatedCapture, schedule: LayerSchedule, inferences: NDArray[np.int64], shift_s: float = 0.0
) -> ToldEnergy:
    """Returns the energies over some inferences with the schedule moved to later by ``shift_s``."""
    beside_s = np.minimum(_BESIDE * capture.period_s, schedule.duration_s / 4.0)
    bounds_s = [schedule.start_s, schedule.start_s + beside_s, schedule.end_s - beside_s, schedule.end_s]
    origin_s = capture.rise_s + schedule.period_s * inferences[:, None, None]
    instants_s = (origin_s + np.stack(bounds_s, axis=1)).ravel()
    ordered_s = np.concatenate([[capture.rise_s], instants_s, [capture.fall_s]]) + shift_s  # sorting would be dear
    (first_j, inner_j, last_j, gap_j), (first_s, inner_s, last_s, gap_s) = (
        _parts(part, schedule.layers) for part in _until(capture, ordered_s)
    )
    own_j, own_s = first_j + inner_j + last_j, first_s + inner_s + last_s
    inner_w = np.divide(inner_j, inner_s, out=np.zeros(own_j.size), where=inner_s > 0)
    told = np.flatnonzero((schedule.duration_s >= TOLD * capture.period_s) & (inner_s > 0))
    before_j, after_j = first_j - inner_w * first_s, last_j - inner_w * last_s
    doubt_j = np.zeros((2, own_j.size))
    handed_j = np.zeros(own_j.size + 1)
    if told.size:
        left, right = told[:-1], told[1:]
        over_j, both_j = (after_j[left] - before_j[right]) / 2.0, after_j[left] + before_j[right]
        np.add.at(handed_j, left, -over_j)
        np.add.at(handed_j, right, over_j)
        # +-half of it; a layer in between that was not told may hold all of it
        shared_j = np.where(right == left + 1, both_j / math.sqrt(12.0), both_j / 2.0)
        doubt_j[1, left] = doubt_j[0, right] = np.hypot(over_j * _HANDED, shared_j)
        ends = told[[0, -1]]
        alone_j = np.array([before_j[ends[0]], after_j[ends[1]]])  # the gap has no inside to compare with
        doubt_j[[0, 1], ends] = np.abs(alone_j) / 2.0
        np.add.at(handed_j, ends, -alone_j / 2.0)
        handed_j[-1] += float(alone_j.sum()) / 2.0
        doubt_j = _spread(doubt_j, told)
    return ToldEnergy(energy_j=np.append(own_j, gap_j) + handed_j, seen_s=np.append(own_s, gap_s), doubt_j=doubt_j)


def shift_slopes(capture: GatedCapture, schedule: LayerSchedule, count: int) -> Array:
    """Returns (2, regions) W by which energies change when the schedule moves to later and to earlier."""
    some = np.arange(0, count, max(count // _SHIFTED, 1))
    shift_s = max(capture.period_s, capture.edge_std_s)
    here_j, later_j, earlier_j = (
        tell_layers(capture, schedule, some, step_s).energy_j[:-1] for step_s in (0.0, shift_s, -shift_s)
    )
    slope_w = np.stack([later_j - here_j, earlier_j - here_j]) / shift_s * (count / some.size)
    return np.concatenate([slope_w, -slope_w.sum(axis=1, keepdims=True)], axis=1)  # the gate's energy stays


def _spread(doubt_j: Array, told: NDArray[np.int64]) -> Array:
    """Returns the doubts with layers that were not told given those of the boundary beside them."""
    layers = np.arange(doubt_j.shape[1])
    after, before = np.searchsorted(told, layers), np.searchsorted(told, layers, side="right") - 1
    begin_j = np.where(after < told.size, doubt_j[0, told[np.minimum(after, told.size - 1)]], doubt_j[1, told[-1]])
    end_j = np.where(before >= 0, doubt_j[1, told[np.maximum(before, 0)]], doubt_j[0, told[0]])
    return np.stack([begin_j, end_j])


def _until(capture: GatedCapture, at_s: Array) -> tuple[Array, Array]:
    """Returns energy (J) and seen time (s) from sample 0 to each instant."""
    at_s = np.maximum(at_s, 0.0)
    integrated = integrate_offsets(capture.trace, np.zeros(at_s.shape), at_s)
    return integrated.energy_j, integrated.covered_s


def _parts(until: Array, layers: int) -> tuple[Array, Array, Array, float]:
    """Returns what beginning, inside and end of each layer hold over all inferences, (layers,), and the gap.

    Args:
        until: (2 + 4 inferences layers,) totals at GATE's rise, at the four bounds of each layer, at GATE's fall.
        layers: number of layers.
    """
    bounds = until[1:-1].reshape(-1, layers, 4).sum(axis=0)
    first, inner, last = np.diff(bounds, axis=1).T
    return first, inner, last, float(until[-1] - until[0] - (bounds[:, 3] - bounds[:, 0]).sum())
