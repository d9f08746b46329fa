"""The mean layer schedule: when each layer runs inside one inference, from the profile run scaled to GATE / N.

Markers inside the measured phase would disturb it and jitter; the mean schedule of the instrumented image does
neither (METHODS: errors in the markers attenuate least squares, a mean schedule does not).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from joulemap.records.profile import PmuResult

__all__ = ["LayerSchedule"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerSchedule:
    """Layers inside one inference; inference m starts at m times ``period_s`` after GATE rose.

    Args:
        start_s: (layers,) start of each layer after the inference's start, s.
        duration_s: (layers,) s.
        period_s: length of one inference, s.
        boundary_std_s: standard uncertainty of a layer boundary from the spread of the profile's passes, s.
    """

    start_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    period_s: float
    boundary_std_s: float

    @classmethod
    def build(cls, profile: PmuResult, period_s: float) -> Self:
        """Returns the schedule of the profile run, scaled so that one inference lasts ``period_s``.

        The head (input load) comes before the first layer; what is left of the clean latency is loop gap, in equal
        parts after each layer.

        Args:
            profile: counter results of the profile image.
            period_s: GATE / N, s, on the clock of the capture.
        """
        clean_s = profile.clean_latency_s
        duration_s = profile.layer_duration_s
        head_s = profile.head_duration_s
        held_s = head_s + float(duration_s.sum())
        loop_s = max(clean_s - held_s, 0.0) / duration_s.size
        scale = period_s / max(clean_s, held_s)
        start_s = head_s + np.concatenate([[0.0], np.cumsum(duration_s + loop_s)[:-1]])
        passes = profile.layer_cycles.shape[0]
        spread_s = profile.layer_cycles.std(axis=0, ddof=1) / profile.core_hz if passes > 1 else np.zeros(1)
        boundary_std_s = float(np.sqrt((spread_s**2).sum() / passes))
        return cls(
            start_s=start_s * scale,
            duration_s=duration_s * scale,
            period_s=period_s,
            boundary_std_s=boundary_std_s * scale,
        )

    @property
    def layers(self) -> int:
        """Number of layers."""
        return int(self.start_s.size)

    @property
    def end_s(self) -> NDArray[np.float64]:
        """(layers,) end of each layer after the inference's start, s."""
        return np.asarray(self.start_s + self.duration_s, np.float64)

    @property
    def gap_s(self) -> float:
        """Time of one inference that no layer holds, s."""
        return max(self.period_s - float(self.duration_s.sum()), 0.0)

    @property
    def region_s(self) -> NDArray[np.float64]:
        """(layers + 1,) durations, s: the layers in order, then the gap."""
        return np.append(self.duration_s, self.gap_s)

    def region_time(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the time spent in each region from the gate's start until each instant.

        Args:
            time_s: (k,) s after the gate's start.

        Returns:
            (k, layers + 1) s; the last column is the gap.
        """
        whole = np.floor(time_s / self.period_s)
        phase_s = time_s - whole * self.period_s
        spent_s = np.empty((time_s.size, self.layers + 1))
        np.clip(phase_s[:, None] - self.start_s, 0.0, self.duration_s, out=spent_s[:, :-1])
        spent_s[:, :-1] += whole[:, None] * self.duration_s
        spent_s[:, -1] = time_s - spent_s[:, :-1].sum(axis=1)
        return spent_s

    def cut(self, pieces_s: NDArray[np.float64]) -> LayerSchedule:
        """Returns the schedule with each layer cut into pieces, in order.

        Args:
            pieces_s: (layers, pieces) lengths that add up to each layer's duration, s.
        """
        offset_s = np.cumsum(pieces_s, axis=1) - pieces_s
        return LayerSchedule(
            start_s=(self.start_s[:, None] + offset_s).ravel(),
            duration_s=np.asarray(pieces_s, np.float64).ravel(),
            period_s=self.period_s,
            boundary_std_s=self.boundary_std_s,
        )

    def scaled(self, period_s: float) -> LayerSchedule:
        """Returns the schedule stretched to another period, s."""
        scale = period_s / self.period_s
        return LayerSchedule(
            start_s=self.start_s * scale,
            duration_s=self.duration_s * scale,
            period_s=period_s,
            boundary_std_s=self.boundary_std_s * scale,
        )
