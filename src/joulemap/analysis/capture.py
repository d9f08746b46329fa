"""One valid capture as the analysis sees it: samples, GATE and idle window on the trace's own time axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import NotComparableError
from joulemap.estimate import Boundary
from joulemap.records.instrument import InstrumentSpec
from joulemap.records.power import GateWindow, ObservationMode, PowerResult, PowerRun
from joulemap.trace import EnergyTrace

__all__ = ["GatedCapture", "gated_captures"]

_GRID_SLACK = 1e-6
"""Share of a sample by which a window may miss a sample boundary and still hold the whole sample (rounding only)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatedCapture:
    """A gated capture; times are s after the start of sample 0.

    Args:
        index: of the capture within its run.
        spec: of the instrument.
        trace: uniform power samples.
        rise_s: GATE rises, s.
        fall_s: GATE falls, s.
        idle_s: idle window before GATE, s; None without one.
        edge_std_s: standard uncertainty of one edge that is new in each capture, s.
    """

    index: int
    spec: InstrumentSpec
    trace: EnergyTrace
    rise_s: float
    fall_s: float
    idle_s: tuple[float, float] | None
    edge_std_s: float

    @property
    def period_s(self) -> float:
        """Length of a sample, s."""
        assert self.trace.period_s is not None  # looked at when the capture was taken in
        return self.trace.period_s

    @property
    def gate_s(self) -> float:
        """Length of GATE, s."""
        return self.fall_s - self.rise_s

    def moved(self, rise_s: float, fall_s: float, edge_std_s: float) -> GatedCapture:
        """Returns the capture with GATE put elsewhere."""
        return replace(self, rise_s=rise_s, fall_s=fall_s, edge_std_s=edge_std_s)

    def inside(self, start_s: float, end_s: float) -> NDArray[np.int64]:
        """Returns the indices of the samples that lie wholly inside the window and were not lost, (k,)."""
        first = max(math.ceil(start_s / self.period_s - _GRID_SLACK), 0)
        last = min(math.floor(end_s / self.period_s + _GRID_SLACK), self.trace.n)
        samples = np.arange(first, max(first, last), dtype=np.int64)
        if not self.trace.gaps.size:
            return samples
        return samples[~self.lost(samples)]

    def lost(self, samples: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns which of the samples were lost, (k,)."""
        gaps = self.trace.gaps
        if not gaps.size:
            return np.zeros(samples.shape, np.bool_)
        gap = np.searchsorted(gaps[:, 0], samples, side="right") - 1
        return np.asarray((gap >= 0) & (samples < gaps[np.maximum(gap, 0), 1]), np.bool_)

    def power_w(self, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the power of the samples, (k,) W."""
        return self.trace.power_w[samples].astype(np.float64)


def gated_captures(run: PowerRun, boundary: Boundary) -> tuple[GatedCapture, ...]:
    """Returns the captures that a headline may be made of: valid, gated, with samples.

    Raises:
        NotComparableError: a capture was measured at another boundary, or its trace is not uniform.
    """
    views = []
    for capture in run.valid_captures:
        result = capture.observation.result
        if capture.observation.mode is not ObservationMode.GPIO_GATED or result is None or result.gate is None:
            continue
        trace = result.recording.trace
        if trace.channel.boundary is not boundary:
            raise NotComparableError(
                f"capture {capture.index} was measured at boundary {trace.channel.boundary}, the run is of {boundary}",
                hint="Energies of different boundaries are never combined: use one instrument on one rail.",
                slug="boundary-mismatch",
            )
        if not trace.uniform:
            raise NotComparableError(
                f"the trace of capture {capture.index} is not uniform; layers are attributed on uniform traces only",
                hint="Resample the trace to a uniform period first.",
                slug="trace-not-uniform",
            )
        views.append(_view(capture.index, result, result.gate))
    return tuple(views)


def _view(index: int, result: PowerResult, gate: GateWindow) -> GatedCapture:
    trace, spec = result.recording.trace, result.recording.instrument
    # a sample speaks of the time that ended latency_s before its stamp, so the gate lies that much later among stamps
    origin_ns = trace.start_ns - trace.channel.kernel.latency_s * 1e9
    idle = result.idle
    return GatedCapture(
        index=index,
        spec=spec,
        trace=trace,
        rise_s=(gate.rise_ns - origin_ns) * 1e-9,
        fall_s=(gate.fall_ns - origin_ns) * 1e-9,
        idle_s=None if idle is None else ((idle.rise_ns - origin_ns) * 1e-9, (idle.fall_ns - origin_ns) * 1e-9),
        edge_std_s=1.0 / spec.edge_rate_hz / math.sqrt(12.0),
    )
