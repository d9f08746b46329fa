"""Named clocks. An instant is an integer number of nanoseconds on one of them; instants of two clocks never mix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Clock", "ClockKind"]


class ClockKind(StrEnum):
    """What a clock counts."""

    UTC = "utc"
    LOCAL = "local"
    MONOTONIC = "monotonic"
    COUNTER = "counter"
    SAMPLE_INDEX = "sample_index"
    VIRTUAL = "virtual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A time base.

    Args:
        name: unique within a bundle, for example ``instrument`` or ``board``.
        kind: what it counts.
        resolution_ns: smallest step, ns, > 0.
        rate_std_ppm: standard uncertainty of its rate against SI seconds, ppm, >= 0; None when unknown.
    """

    name: str
    kind: ClockKind
    resolution_ns: float = 1.0
    rate_std_ppm: float | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a clock needs a name")
        if not self.resolution_ns > 0:
            raise ValueError(f"clock {self.name}: resolution_ns must be > 0, got {self.resolution_ns}")
        if self.rate_std_ppm is not None and not self.rate_std_ppm >= 0:
            raise ValueError(f"clock {self.name}: rate_std_ppm must be >= 0, got {self.rate_std_ppm}")
