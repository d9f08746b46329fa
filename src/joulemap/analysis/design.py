"""Rows for least squares: how long each sample spends in each layer, and in which part of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.schedule import LayerSchedule

__all__ = ["CONTRASTS", "Rows", "build_rows"]

CONTRASTS = 3
"""Kinds of unevenness inside a layer: early against late half, and the quarters of each half."""
_QUARTERS = 4

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Samples of one capture that lie wholly inside GATE.

    Args:
        time_s: (k, regions) time of each sample inside each region, s.
        shape_s: (k, 3 layers) Haar contrasts of the time in a layer's quarters, s; no column when the power inside a
            layer is known to be constant.
        energy_j: (k,) energy of each sample, J.
        cluster: (k,) inference that holds the sample's middle.
    """

    time_s: Matrix
    shape_s: Matrix
    energy_j: Matrix
    cluster: NDArray[np.int64]

    @property
    def columns(self) -> Matrix:
        """(k, regions + contrasts) design, s."""
        return np.concatenate([self.time_s, self.shape_s], axis=1)


def build_rows(capture: GatedCapture, schedule: LayerSchedule, count: int) -> Rows:
    """Returns the rows of a capture: ``count`` inferences of the schedule from GATE's rise on."""
    end_s = min(capture.fall_s, capture.rise_s + count * schedule.period_s)
    samples = capture.inside(capture.rise_s, end_s)
    start_s = np.asarray(samples * capture.period_s - capture.rise_s, np.float64)
    quarters = schedule.split(_QUARTERS)
    if samples.size and samples[-1] - samples[0] == samples.size - 1:
        edges_s = np.append(start_s, start_s[-1] + capture.period_s)
        time_s = np.diff(quarters.region_time(edges_s), axis=0)
    else:
        end_of_s = np.asarray(start_s + capture.period_s, np.float64)
        time_s = quarters.region_time(end_of_s) - quarters.region_time(start_s)
    first_s, second_s, third_s, fourth_s = (time_s[:, part:-1:_QUARTERS] for part in range(_QUARTERS))
    early_s, late_s = first_s + second_s, third_s + fourth_s
    return Rows(
        time_s=np.maximum(np.column_stack([early_s + late_s, time_s[:, -1]]), 0.0),
        shape_s=np.concatenate([early_s - late_s, first_s - second_s, third_s - fourth_s], axis=1),
        energy_j=capture.power_w(samples) * capture.period_s,
        cluster=np.floor((start_s + 0.5 * capture.period_s) / schedule.period_s).astype(np.int64),
    )
