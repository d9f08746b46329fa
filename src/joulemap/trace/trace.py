"""The energy trace: power samples of one channel on one clock, each standing for the interval that it covers.

Every sample is the energy of an interval over its length (METHODS: sample k of a uniform trace covers
``(start + k * period, start + (k + 1) * period]``). A sample that was lost is listed in ``gaps``; its value is 0 and
means nothing: missing is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.channel import Channel
from joulemap.trace.clock import Clock

__all__ = ["EnergyTrace", "whole_step_ns"]

_NO_GAPS: NDArray[np.int64] = np.empty((0, 2), np.int64)
_NO_GAPS.setflags(write=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnergyTrace:
    """Power over time. Uniform when ``period_s`` is given, else non-uniform by ``edges_ns``; exactly one of the two.

    Args:
        clock: the clock of start_ns and edges_ns.
        channel: what was measured and how.
        power_w: (n,) W, float32 or float64, finite outside gaps; mean power of each interval (or points).
        start_ns: start of the first interval, ns.
        period_s: length of every interval, s, > 0 (uniform).
        edges_ns: (n + 1,) ns, strictly increasing; interval k is edges[k]..edges[k+1] (non-uniform).
        gaps: (m, 2) half-open ranges of sample indices that were lost, sorted and disjoint.
    """

    clock: Clock
    channel: Channel
    power_w: NDArray[np.float32] | NDArray[np.float64]
    start_ns: int
    period_s: float | None = None
    edges_ns: NDArray[np.int64] | None = None
    gaps: NDArray[np.int64] = field(default_factory=lambda: _NO_GAPS)  # shared, empty and read-only

    def __post_init__(self) -> None:
        power_w = np.asarray(self.power_w)
        if power_w.ndim != 1 or power_w.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"power_w must be one-dimensional float32 or float64, got {power_w.shape} {power_w.dtype}")
        power_w = power_w.view()
        power_w.setflags(write=False)
        object.__setattr__(self, "power_w", power_w)
        if (self.period_s is None) == (self.edges_ns is None):
            raise ValueError("a trace has either a period_s (uniform) or edges_ns (non-uniform)")
        if self.period_s is not None and not (np.isfinite(self.period_s) and self.period_s > 0):
            raise ValueError(f"period_s must be finite and > 0, got {self.period_s}")
        if self.edges_ns is not None:
            edges_ns = np.asarray(self.edges_ns, np.int64).view()
            if edges_ns.shape != (power_w.size + 1,):
                raise ValueError(f"edges_ns must have {power_w.size + 1} entries, got {edges_ns.shape}")
            if bool(np.any(edges_ns[1:] <= edges_ns[:-1])):
                raise ValueError("edges_ns must be strictly increasing")
            if int(edges_ns[0]) != self.start_ns:
                raise ValueError("start_ns must equal edges_ns[0]")
            edges_ns.setflags(write=False)
            object.__setattr__(self, "edges_ns", edges_ns)
        gaps = np.asarray(self.gaps, np.int64).reshape(-1, 2).view()
        flat = gaps.ravel()
        if flat.size and (
            bool(np.any(gaps[:, 1] <= gaps[:, 0]))
            or bool(np.any(flat[1:] < flat[:-1]))
            or int(flat[0]) < 0
            or int(flat[-1]) > power_w.size
        ):
            raise ValueError("gaps must be sorted, disjoint, non-empty ranges inside the trace")
        gaps.setflags(write=False)
        object.__setattr__(self, "gaps", gaps)

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.power_w.size)

    @property
    def uniform(self) -> bool:
        """True when every interval has the same length."""
        return self.period_s is not None

    @property
    def duration_s(self) -> float:
        """Length from the first interval's start to the last one's end, s."""
        if self.period_s is not None:
            return self.n * self.period_s
        assert self.edges_ns is not None  # held by __post_init__
        return float(self.edges_ns[-1] - self.edges_ns[0]) * 1e-9

    @property
    def end_ns(self) -> int:
        """Instant at which the last interval ends, ns (rounded for a uniform trace)."""
        return self.start_ns + round(self.duration_s * 1e9)

    @property
    def step_ns(self) -> float:
        """Length of every interval of a uniform trace, ns: whole when the period was meant as whole nanoseconds.

        Raises:
            ValueError: the trace is not uniform.
        """
        if self.period_s is None:
            raise ValueError("a non-uniform trace has no step")
        return whole_step_ns(self.period_s)

    @property
    def runs(self) -> NDArray[np.int64]:
        """(r, 2) half-open ranges of samples that were not lost, sorted and disjoint."""
        inner = np.concatenate([[0], self.gaps.ravel(), [self.n]]).astype(np.int64).reshape(-1, 2)
        return inner[inner[:, 1] > inner[:, 0]]

    @property
    def lost_samples(self) -> int:
        """Number of samples inside gaps."""
        return int((self.gaps[:, 1] - self.gaps[:, 0]).sum())


def whole_step_ns(period_s: float) -> float:
    """Returns a period as ns: 1e-6 s times 1e9 need not be 1000 to the last bit."""
    step_ns = period_s * 1e9
    whole = round(step_ns)
    return float(whole) if whole and abs(step_ns - whole) <= 4e-16 * whole else step_ns
