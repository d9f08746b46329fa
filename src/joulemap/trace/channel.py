"""What a stream of samples is: quantity, boundary, provenance, and how the sensor turned power into numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from joulemap.estimate import Boundary, Provenance

__all__ = ["Channel", "KernelKind", "SensorKernel"]


class KernelKind(StrEnum):
    """What one sample means."""

    INTERVAL_MEAN = "interval_mean"
    POINT = "point"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorKernel:
    """The sensor's response: a sample is the mean of power over ``window_s`` ending ``latency_s`` before its stamp.

    Args:
        kind: what one sample means.
        window_s: averaging window, s, >= 0; equal to the period for a boxcar without dead time.
        latency_s: delay from the end of the window to the stamp, s.
        latency_std_s: what all stamps alike may be off by, 1 sd of a rectangular distribution, s.
        quantum_w: resolution of a sample, W; 0 for none declared.
    """

    kind: KernelKind
    window_s: float
    latency_s: float = 0.0
    latency_std_s: float = 0.0
    quantum_w: float = 0.0

    def __post_init__(self) -> None:
        if not (self.window_s >= 0 and self.latency_std_s >= 0 and self.quantum_w >= 0):
            raise ValueError(f"a sensor kernel needs window_s, latency_std_s and quantum_w >= 0, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One measured rail or domain.

    Args:
        name: unique within a trace's bundle, for example ``rail``.
        boundary: what the power feeds.
        provenance: how the samples came about.
        kernel: the sensor's response.
    """

    name: str
    boundary: Boundary
    provenance: Provenance
    kernel: SensorKernel
