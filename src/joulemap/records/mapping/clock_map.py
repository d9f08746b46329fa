"""How one clock is related to another: offset, drift, and how well both are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from joulemap.trace import Clock

__all__ = ["AlignMethod", "ClockMap"]

_BLOCK = 1 << 18


class AlignMethod(StrEnum):
    """What the relation of two clocks stands on."""

    SAME = "same"  # one clock
    UTC = "utc"  # two clocks that both say UTC
    STATED = "stated"  # the user says the offset
    MARKERS = "markers"  # marks that both saw
    CORRELATION = "correlation"  # power against activity
    LIKELIHOOD = "likelihood"  # the offset that explains the samples best
    PAIRS = "pairs"  # both clocks read together


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockMap:
    """target = source + offset + drift (source - reference).

    Args:
        source: clock of the instants that go in.
        target: clock of the instants that come out.
        reference_ns: instant of the source at which the offset holds.
        offset_ns: target less source there, ns; the whole part, exact at any magnitude.
        fraction_ns: the rest of the offset, ns.
        drift: rate of the target against the source, less 1.
        std_s: standard uncertainty of the offset at the reference, s.
        drift_std: standard uncertainty of the drift.
        residual_s: scatter of what it was solved from, 1 sd, s; 0 when there was nothing to scatter.
        points: marks, pairs or samples that it stands on.
        method: what it stands on.
    """

    source: Clock
    target: Clock
    reference_ns: int = 0
    offset_ns: int = 0
    fraction_ns: float = 0.0
    drift: float = 0.0
    std_s: float = 0.0
    drift_std: float = 0.0
    residual_s: float = 0.0
    points: int = 0
    method: AlignMethod = AlignMethod.SAME

    def __post_init__(self) -> None:
        numbers = (self.fraction_ns, self.drift, self.std_s, self.drift_std, self.residual_s)
        if not all(map(math.isfinite, numbers)) or min(self.std_s, self.drift_std, self.residual_s) < 0:
            raise ValueError(f"a clock map needs finite numbers and uncertainties >= 0, got {numbers}")

    @property
    def exact(self) -> bool:
        """True when instants stay as they are."""
        return self.offset_ns == 0 and self.fraction_ns == 0 and self.drift == 0

    def apply(self, source_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns instants of the source on the target, (n,) ns, rounded to 1 ns."""
        if self.exact:
            return source_ns
        target_ns = np.asarray(source_ns + np.int64(self.offset_ns), np.int64)
        if self.fraction_ns or self.drift:
            for at in range(0, source_ns.size, _BLOCK):  # ten million instants as float64 would be 80 MB at every step
                block = slice(at, at + _BLOCK)
                since_ns = (source_ns[block] - np.int64(self.reference_ns)).astype(np.float64)
                target_ns[block] += np.rint(since_ns * self.drift + self.fraction_ns).astype(np.int64)
        return target_ns

    def std_at_s(self, source_ns: int) -> float:
        """Returns the standard uncertainty of an instant of the source on the target, s."""
        return math.hypot(self.std_s, self.drift_std * (source_ns - self.reference_ns) * 1e-9)

    def to_json(self) -> dict[str, object]:
        """Returns offset and drift with their uncertainties as JSON; the whole offset stays an integer of ns."""
        return {
            "source": self.source.name,
            "target": self.target.name,
            "method": str(self.method),
            "reference_ns": self.reference_ns,
            "offset_ns": self.offset_ns,
            "offset_fraction_ns": self.fraction_ns,
            "drift_ppm": self.drift * 1e6,
            "std_s": self.std_s,
            "drift_std_ppm": self.drift_std * 1e6,
            "residual_s": self.residual_s,
            "points": self.points,
        }
