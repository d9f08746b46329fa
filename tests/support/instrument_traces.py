"""Traces of known power as an instrument gives them: of any type, kernel and step, with gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Boundary, Provenance
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel

__all__ = ["UTC_NS", "build_trace"]

UTC_NS = 1_700_000_000_123_456_789


def build_trace(
    power_w: NDArray[np.float32] | NDArray[np.float64],
    *,
    start_ns: int = 0,
    period_s: float | None = 1e-6,
    edges_ns: NDArray[np.int64] | None = None,
    gaps: list[list[int]] | None = None,
    kind: KernelKind = KernelKind.INTERVAL_MEAN,
) -> EnergyTrace:
    """A trace of an instrument's own clock, in the type of its samples; 1 MS/s unless said otherwise."""
    return EnergyTrace(
        clock=Clock(name="instrument", kind=ClockKind.LOCAL),
        channel=Channel(
            name="rail",
            boundary=Boundary.RAIL,
            provenance=Provenance.SIMULATED,
            kernel=SensorKernel(kind=kind, window_s=0.0),
        ),
        power_w=power_w,
        start_ns=start_ns,
        period_s=None if edges_ns is not None else period_s,
        edges_ns=edges_ns,
        gaps=np.array(gaps or [], np.int64).reshape(-1, 2),
    )
