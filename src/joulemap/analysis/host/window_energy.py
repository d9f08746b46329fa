"""Energy and power of one window by whole samples inside it.

A sample that reaches over an edge mixes two loads: what it gives to either side is wrong by up to a quarter of it. The
mean power of the whole samples inside, times the window's length, is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joulemap.records.host.campaign import LoadWindow
from joulemap.trace import EnergyTrace, KernelKind, integrate_energy

__all__ = ["WindowEnergy", "measure_window"]

_LEAST_COVERED = 0.9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowEnergy:
    """What the meter says of a window.

    Args:
        window: what ran.
        power_w: mean, W.
        peak_w: highest sample, W.
        samples: whole samples inside.
        lost_share: share of them that was lost, 0..1.
    """

    window: LoadWindow
    power_w: float
    peak_w: float
    samples: int
    lost_share: float

    @property
    def energy_j(self) -> float:
        """Of one execution, J; of the whole window when nothing was executed."""
        return self.power_w * self.window.duration_s / max(self.window.count, 1)

    @property
    def time_s(self) -> float:
        """Length of one execution, s; of the whole window when nothing was executed."""
        return self.window.duration_s / max(self.window.count, 1)


def measure_window(trace: EnergyTrace, window: LoadWindow) -> WindowEnergy | None:
    """Returns the window's energy; None when no whole sample lies inside, or more than a tenth of them was lost.

    Args:
        trace: power over time, on the clock of the window.
        window: bounds and load.
    """
    kernel = trace.channel.kernel
    late_ns = round(kernel.latency_s * 1e9)
    edges_ns = trace.edges_ns
    if edges_ns is None:
        edges_ns = trace.start_ns + np.rint(np.arange(trace.n + 1) * trace.step_ns).astype(np.int64)
    smear_ns = 0
    if kernel.kind is not KernelKind.COUNTER:  # a sample speaks of more than its own interval
        smear_ns = max(round(kernel.window_s * 1e9) - round(float(np.median(np.diff(edges_ns)))), 0)
    first = int(np.searchsorted(edges_ns, window.start_ns + late_ns + smear_ns, side="left"))
    last = int(np.searchsorted(edges_ns, window.end_ns + late_ns, side="right")) - 1
    if last - first < 1:
        return None
    held = integrate_energy(trace, edges_ns[first : first + 1], edges_ns[last : last + 1])
    length_s = float(edges_ns[last] - edges_ns[first]) * 1e-9
    covered_s = float(held.covered_s[0])
    if covered_s < _LEAST_COVERED * length_s:
        return None
    inside = np.asarray(trace.power_w[first:last], np.float64)
    return WindowEnergy(
        window=window,
        power_w=float(held.energy_j[0]) / covered_s,
        peak_w=float(inside.max()),
        samples=last - first,
        lost_share=1.0 - covered_s / length_s,
    )
