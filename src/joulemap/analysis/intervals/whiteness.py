"""Whether residuals look independent of each other. Knows nothing of what they are residuals of.

References:
    Ljung and Box, Biometrika 65 (1978).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.distributions import chi_square_sf

__all__ = ["look_white"]

_LAGS = 10
_WHITE = 1e-3
"""Residuals are called white while Ljung and Box's p-value is above this."""


def look_white(series: Iterable[NDArray[np.float64]]) -> bool:
    """Returns whether Ljung and Box's statistic over all series is one of independent residuals.

    Args:
        series: residuals in order of time, one array per capture or trace; too short ones say nothing.
    """
    statistic, lags = 0.0, 0
    for residual in series:
        n = residual.size
        power = float(residual @ residual)
        if n <= 4 * _LAGS or power == 0:
            continue
        for lag in range(1, _LAGS + 1):
            correlation = float(residual[lag:] @ residual[:-lag]) / power
            statistic += n * (n + 2) * correlation**2 / (n - lag)
        lags += _LAGS
    return lags == 0 or chi_square_sf(statistic, lags) > _WHITE
