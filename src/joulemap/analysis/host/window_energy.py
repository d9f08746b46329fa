"""Energy and power of one window of a load that also ran before and after it.

A sample that reaches over an edge mixes what ran on both sides. Where the same load runs on both sides of both edges,
what the window loses at one edge it gains at the other: the energy is exact on average, whatever the phase of samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.records.host.campaign import LoadWindow
from joulemap.trace import EnergyTrace, KernelKind, integrate_energy

__all__ = ["WindowEnergy", "measure_window"]

_LEAST_COVERED = 0.9
_SHORT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowEnergy:
    """What the meter says of a window.

    Args:
        window: what ran.
        power_w: mean, W.
        peak_w: highest sample, W; of those that are not much shorter than usual: their power is that of their stamps.
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
    """Returns the window's energy; None when fewer than two whole samples lie inside, or a tenth of it was lost.

    Args:
        trace: power over time, on the clock of the window.
        window: bounds and load.
    """
    kernel = trace.channel.kernel
    edges_ns = trace.edges_ns
    if edges_ns is None:
        edges_ns = trace.start_ns + np.rint(np.arange(trace.n + 1) * trace.step_ns).astype(np.int64)
    late_s = kernel.latency_s
    if kernel.kind is not KernelKind.COUNTER and trace.n:  # a sample may speak of more than its own interval
        late_s += 0.5 * max(kernel.window_s - float(np.median(np.diff(edges_ns))) * 1e-9, 0.0)
    start_ns, end_ns = (np.array([at + round(late_s * 1e9)]) for at in (window.start_ns, window.end_ns))
    first, last = int(np.searchsorted(edges_ns, start_ns[0])), int(np.searchsorted(edges_ns, end_ns[0], "right")) - 1
    if last - first < 2:
        return None
    held = integrate_energy(trace, start_ns, end_ns)
    covered_s = float(held.covered_s[0])
    if covered_s < _LEAST_COVERED * window.duration_s:
        return None
    return WindowEnergy(
        window=window,
        power_w=float(held.energy_j[0]) / covered_s,
        peak_w=_peak_w(np.asarray(trace.power_w[first:last], np.float64), np.diff(edges_ns[first : last + 1])),
        samples=last - first,
        lost_share=1.0 - covered_s / window.duration_s,
    )


def _peak_w(power_w: NDArray[np.float64], spans_ns: NDArray[np.int64]) -> float:
    """Returns the highest power, W, of samples at least half as long as the usual one.

    A reading that was late makes the next sample short, and what little of it is left looks like a peak.
    """
    return float(power_w[spans_ns >= _SHORT * np.median(spans_ns)].max())
