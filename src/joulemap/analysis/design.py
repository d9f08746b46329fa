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
        design_s: (k, regions + contrasts) s; first the time of each sample inside each region, then Haar contrasts of
            its time in the layers' quarters (no column when the power inside a layer is known to be constant).
        regions: layers and the gap.
        energy_j: (k,) energy of each sample, J.
        cluster: (k,) inference that holds the sample's middle.
    """

    design_s: Matrix
    regions: int
    energy_j: Matrix
    cluster: NDArray[np.int64]

    @property
    def time_s(self) -> Matrix:
        """(k, regions) time of each sample inside each region, s."""
        return self.design_s[:, : self.regions]


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
    layers, regions = schedule.layers, schedule.layers + 1
    design_s = np.empty((samples.size, regions + CONTRASTS * layers))
    np.add(early_s, late_s, out=design_s[:, :layers])
    np.maximum(time_s[:, -1], 0.0, out=design_s[:, layers])
    np.subtract(early_s, late_s, out=design_s[:, regions : regions + layers])
    np.subtract(first_s, second_s, out=design_s[:, regions + layers : regions + 2 * layers])
    np.subtract(third_s, fourth_s, out=design_s[:, regions + 2 * layers :])
    return Rows(
        design_s=design_s,
        regions=regions,
        energy_j=capture.power_w(samples) * capture.period_s,
        cluster=np.floor((start_s + 0.5 * capture.period_s) / schedule.period_s).astype(np.int64),
    )
