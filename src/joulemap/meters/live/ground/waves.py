"""Power over time that is known exactly, with its energy: what simulated meters and fake trees draw.

Phase 0 is instant 0 of the clock, so every process that shares the clock knows the same truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["PowerWave", "WaveShape"]


class WaveShape(StrEnum):
    """How power moves within one period."""

    CONSTANT = "constant"
    SINE = "sine"
    SQUARE = "square"


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerWave:
    """Power about a mean: ``mean_w`` + ``swing_w`` times a sine or a square of +-1.

    Args:
        mean_w: W, >= 0.
        swing_w: W, >= 0 and no larger than the mean: power is never negative.
        period_s: s, > 0.
        shape: of one period; a square is high in its first half.
    """

    mean_w: float
    swing_w: float = 0.0
    period_s: float = 1.0
    shape: WaveShape = WaveShape.CONSTANT

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean_w) and 0 <= self.swing_w <= self.mean_w):
            raise ValueError(f"a wave needs 0 <= swing_w <= mean_w, got {self.swing_w} and {self.mean_w}")
        if not (math.isfinite(self.period_s) and self.period_s > 0):
            raise ValueError(f"a wave needs period_s > 0, got {self.period_s}")

    def scaled(self, factor: float) -> PowerWave:
        """Returns the wave times a factor >= 0: a domain that takes a share of it."""
        return PowerWave(
            mean_w=self.mean_w * factor, swing_w=self.swing_w * factor, period_s=self.period_s, shape=self.shape
        )

    def power_w(self, time_ns: int) -> float:
        """Returns the power at an instant, W."""
        phase = self._phase(time_ns)
        match self.shape:
            case WaveShape.CONSTANT:
                return self.mean_w
            case WaveShape.SINE:
                return self.mean_w + self.swing_w * math.sin(2.0 * math.pi * phase)
            case WaveShape.SQUARE:
                return self.mean_w + (self.swing_w if phase < 0.5 else -self.swing_w)

    def energy_j(self, start_ns: int, end_ns: int) -> float:
        """Returns the energy between two instants, J: the exact integral, to the rounding of a double."""
        swing_j = self._swing_j(end_ns) - self._swing_j(start_ns)
        return self.mean_w * (end_ns - start_ns) * 1e-9 + swing_j

    def mean_power_w(self, start_ns: int, end_ns: int) -> float:
        """Returns the mean power of an interval, W; the power at its end when it is empty."""
        if end_ns <= start_ns:
            return self.power_w(end_ns)
        return self.energy_j(start_ns, end_ns) / ((end_ns - start_ns) * 1e-9)

    def _phase(self, time_ns: int) -> float:
        period_ns = self.period_s * 1e9
        return math.fmod(time_ns, period_ns) / period_ns

    def _swing_j(self, time_ns: int) -> float:
        # a whole period adds nothing, so only the part of the last one counts
        phase = self._phase(time_ns)
        amount_j = self.swing_w * self.period_s
        match self.shape:
            case WaveShape.CONSTANT:
                return 0.0
            case WaveShape.SINE:
                return amount_j * (1.0 - math.cos(2.0 * math.pi * phase)) / (2.0 * math.pi)
            case WaveShape.SQUARE:
                return amount_j * min(phase, 1.0 - phase)
