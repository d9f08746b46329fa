"""Where a series of latencies has left its warm-up, and whether it still moves.

References:
    K. P. White, Simulation 69 (1997), and Spratt (1998): MSER-5, the truncation that minimises the variance of the mean
    of what is left, over means of five.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.autocorrelation import effective_count
from joulemap.analysis.intervals.distributions import student_t_quantile

__all__ = ["Steadiness", "find_steady"]

_BATCH = 5
_LEAST = 4 * _BATCH
_MOVES = 0.01
"""A drift of less than this share of the mean over the whole rest is none that matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """What a series says of its warm-up.

    Args:
        cut: values to leave out at the start.
        steady: there are enough values behind the cut, and they do not drift.
        drift: relative change over what is left, by its slope.
    """

    cut: int
    steady: bool
    drift: float


def find_steady(values: NDArray[np.float64]) -> Steadiness:
    """Returns the truncation by MSER-5 and whether the rest is steady.

    Steady is a rest of at least half the series whose slope's 95 % interval holds 0, or moves by less than 1 %.

    Args:
        values: (n,) in order of time.
    """
    batches = values[: values.size // _BATCH * _BATCH].reshape(-1, _BATCH).mean(axis=1)
    if values.size < _LEAST:
        return Steadiness(cut=0, steady=False, drift=math.nan)
    count = batches.size
    left = np.arange(count, 0, -1, dtype=np.float64)
    sums = np.cumsum(batches[::-1])[::-1]
    squares = np.cumsum(batches[::-1] ** 2)[::-1]
    spread = np.maximum(squares / left - (sums / left) ** 2, 0.0) / left
    half = max(count // 2, 1)
    cut = int(np.argmin(spread[: half + 1]))
    rest = values[cut * _BATCH :]
    drift, half_width = _drift(rest)
    return Steadiness(
        cut=cut * _BATCH, steady=cut < half and (abs(drift) <= half_width or abs(drift) < _MOVES), drift=drift
    )


def _drift(values: NDArray[np.float64]) -> tuple[float, float]:
    """Returns the relative change over the series by least squares, and its 95 % half-width for correlated values."""
    at = np.linspace(-0.5, 0.5, values.size)
    mean = float(values.mean())
    if mean == 0:
        return 0.0, 0.0
    power = float(at @ at)
    slope = float(at @ values) / power
    residual = values - mean - slope * at
    independent = max(effective_count(residual), 3.0)
    std = math.sqrt(float(residual @ residual) / max(independent - 2.0, 1.0) * independent / values.size / power)
    std *= math.sqrt(values.size / independent)
    return slope / mean, student_t_quantile(0.975, max(independent - 2.0, 1.0)) * std / abs(mean)
