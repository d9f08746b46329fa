"""Offset and drift of two clocks from instants that both stamped.

Ordinary least squares while the scatter looks normal; where stamps came late now and then (USB, a busy host) the slope
is Theil and Sen's and both are refined by Tukey's M-estimate. It gives late stamps no weight at all: Huber's gives them
a bounded one, and since stamps are never early by as much that would pull the offset.

References:
    METHODS 1.4 in docs/methods.md (sd of the offset sigma / sqrt N, of the drift sigma sqrt 12 / (T sqrt N)).
    P. K. Sen, J. Am. Stat. Assoc. 63 (1968). A. E. Beaton and J. W. Tukey, Technometrics 16 (1974) (bisquare).
    P. J. Huber, Robust Statistics (1981), 7.6 (covariance of M-estimates).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError
from joulemap.records.mapping.clock_map import AlignMethod, ClockMap
from joulemap.trace import Clock

__all__ = ["Robustness", "fit_clock"]

Robustness = Literal["auto", "ols", "robust"]

_TUKEY = 4.685  # 95 % efficient on normal scatter
_OUTLIER = 5.0
"""Largest residual, in robust sd, of scatter that is called normal."""
_PAIRS = 2000
_MAD = 1.4826
_ROUNDS = 50

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def fit_clock(
    source: tuple[Clock, Ints], target: tuple[Clock, Ints], *, robust: Robustness = "auto", method: AlignMethod
) -> ClockMap:
    """Returns the relation of two clocks from instants that both stamped.

    One instant gives an offset alone; two give a drift without a residual, whose uncertainty is then the clocks' tick.

    Args:
        source: clock and (n,) ns of its stamps.
        target: clock and (n,) ns of the stamps of the same instants.
        robust: ``auto`` looks at the scatter.
        method: what the stamps are.

    Raises:
        InputError: there is no pair, or all stand at one instant and disagree (``clocks-unrelated``).
    """
    source_ns, target_ns = source[1], target[1]
    if not source_ns.size or source_ns.size != target_ns.size:
        raise InputError(
            f"{source_ns.size} and {target_ns.size} stamps are no pairs",
            hint="both clocks must have stamped the same instants",
            slug="clocks-unrelated",
        )
    reference_ns = int(source_ns[0]) + int(np.rint((source_ns - source_ns[0]).astype(np.float64).mean()))
    offset_ns = int(target_ns[0]) - int(source_ns[0])
    x_s = (source_ns - np.int64(reference_ns)).astype(np.float64) * 1e-9
    y_s = ((target_ns - source_ns) - np.int64(offset_ns)).astype(np.float64) * 1e-9
    tick_s = math.hypot(source[0].resolution_ns, target[0].resolution_ns) * 1e-9 / math.sqrt(12.0)
    intercept_s, drift, std_s, drift_std, residual_s = _fit(x_s, y_s, tick_s, robust)
    whole_ns = round(intercept_s * 1e9)
    return ClockMap(
        source=source[0],
        target=target[0],
        reference_ns=reference_ns,
        offset_ns=offset_ns + whole_ns,
        fraction_ns=intercept_s * 1e9 - whole_ns,
        drift=drift,
        std_s=std_s,
        drift_std=drift_std,
        residual_s=residual_s,
        points=int(source_ns.size),
        method=method,
    )


def _fit(x_s: Floats, y_s: Floats, tick_s: float, robust: Robustness) -> tuple[float, float, float, float, float]:
    """Returns intercept, slope, their standard uncertainties and the scatter."""
    n, spread = x_s.size, float(x_s @ x_s)
    if n == 1 or spread == 0:
        return float(y_s.mean()), 0.0, max(float(y_s.std()), tick_s), 0.0, float(y_s.std())
    slope = float(x_s @ y_s) / spread
    intercept = float(y_s.mean())
    residual = y_s - intercept - slope * x_s
    if n == 2:
        return intercept, slope, tick_s / math.sqrt(2.0), tick_s / math.sqrt(spread), 0.0
    sigma = max(math.sqrt(float(residual @ residual) / (n - 2)), tick_s)
    scale = max(_MAD * float(np.median(np.abs(residual - np.median(residual)))), tick_s)
    late = float(np.abs(residual - np.median(residual)).max()) > _OUTLIER * scale
    if robust == "ols" or n < 5 or (robust == "auto" and not late):
        return intercept, slope, sigma / math.sqrt(n), sigma / math.sqrt(spread), sigma
    return _fit_robust(x_s, y_s, tick_s)


def _fit_robust(x_s: Floats, y_s: Floats, tick_s: float) -> tuple[float, float, float, float, float]:
    slope = _theil_sen(x_s, y_s)
    intercept = float(np.median(y_s - slope * x_s))
    design = np.stack([np.ones_like(x_s), x_s], axis=1)
    scale = tick_s
    for _ in range(_ROUNDS):
        residual = y_s - design @ np.array([intercept, slope])
        scale = max(_MAD * float(np.median(np.abs(residual))), tick_s)
        weighted = design * _bisquare(residual / scale)[:, None]
        previous = (intercept, slope)
        intercept, slope = (float(v) for v in np.linalg.solve(design.T @ weighted, weighted.T @ y_s))
        if abs(intercept - previous[0]) <= 1e-9 * scale and abs(slope - previous[1]) * np.ptp(x_s) <= 1e-9 * scale:
            break
    unit = (y_s - design @ np.array([intercept, slope])) / scale
    weight = _bisquare(unit)
    psi = unit * weight
    bent = np.where(np.abs(unit) < _TUKEY, np.sqrt(weight) * (1.0 - 5.0 * (unit / _TUKEY) ** 2), 0.0)  # psi'
    n = x_s.size
    factor = max(scale * math.sqrt(float(psi @ psi) / (n - 2)) / max(float(bent.mean()), 0.1), tick_s)
    covariance = np.linalg.inv(design.T @ design)
    return (
        intercept,
        slope,
        factor * math.sqrt(float(covariance[0, 0])),
        factor * math.sqrt(float(covariance[1, 1])),
        scale,
    )


def _bisquare(unit: Floats) -> Floats:
    return np.asarray(np.where(np.abs(unit) < _TUKEY, (1.0 - (unit / _TUKEY) ** 2) ** 2, 0.0), np.float64)


def _theil_sen(x_s: Floats, y_s: Floats) -> float:
    """Returns the median slope over pairs: all of them for few points, far ones for many."""
    order = np.argsort(x_s, kind="stable")
    x_s, y_s = x_s[order], y_s[order]
    n = x_s.size
    if n * (n - 1) // 2 <= _PAIRS * 10:
        first, second = np.triu_indices(n, 1)
    else:  # each point with the one half the record away: as efficient for a slope, and linear in n
        first = np.arange(n - n // 2)
        second = first + n // 2
    run_s = x_s[second] - x_s[first]
    used = run_s > 0
    return float(np.median((y_s[second] - y_s[first])[used] / run_s[used]))
