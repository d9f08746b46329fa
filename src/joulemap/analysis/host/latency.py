"""Mean and quantiles of latencies. Quantiles have intervals from order statistics, and none where n does not allow it.

References:
    H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed. (2003), 7.1 (distribution-free intervals for quantiles).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.autocorrelation import correlated_mean_term, effective_count
from joulemap.analysis.intervals.uncertainty import COVERAGE, Kind, Term, estimate
from joulemap.estimate import Estimate, Provenance
from joulemap.records.host.account import LatencyQuantile

__all__ = ["QUANTILES", "estimate_mean", "estimate_quantile", "least_count", "quantile_ranks"]

QUANTILES = (0.5, 0.95, 0.99)


def estimate_mean(series: Sequence[NDArray[np.float64]], provenance: Provenance) -> Estimate:
    """Returns the mean latency, s; its uncertainty is from the means of the windows, or from one window's values.

    Args:
        series: (n,) s of each window.
        provenance: of the times.
    """
    means = np.array([values.mean() for values in series])
    if means.size > 1:
        std = float(means.std(ddof=1)) / math.sqrt(means.size)
        value, dof = float(means.mean()), means.size - 1.0
    else:
        value, term = correlated_mean_term(series[0])
        std, dof = term.std, term.dof
    return estimate(value, [Term(name="repeats", std=std, kind=Kind.A, dof=dof)], provenance=provenance)


def estimate_quantile(
    series: Sequence[NDArray[np.float64]], probability: float, provenance: Provenance
) -> LatencyQuantile:
    """Returns a quantile with its interval, or the reason why there is none.

    Latencies in a row are alike: the number of independent ones is that of the marks "above the quantile".

    Args:
        series: (n,) s of each window.
        probability: 0..1.
        provenance: of the times.
    """
    values = np.concatenate(list(series))
    ordered = np.sort(values)
    at = float(np.quantile(ordered, probability))
    above = [(part >= at).astype(np.float64) for part in series]
    independent = math.fsum(effective_count(part) if part.std() > 0 else float(part.size) for part in above)
    whole = int(independent)
    ranks = quantile_ranks(whole, probability) if whole else None
    if ranks is None:
        return LatencyQuantile(
            probability=probability,
            value_s=None,
            low_s=None,
            high_s=None,
            coverage_probability=COVERAGE,
            executions=values.size,
            independent=independent,
            provenance=Provenance.UNAVAILABLE,
            reason="too_few_executions",
        )
    low, high = (min(max(round(rank / whole * values.size), 1), values.size) for rank in ranks)
    return LatencyQuantile(
        probability=probability,
        value_s=at,
        low_s=float(ordered[low - 1]),
        high_s=float(ordered[high - 1]),
        coverage_probability=COVERAGE,
        executions=values.size,
        independent=independent,
        provenance=provenance,
    )


def quantile_ranks(count: int, probability: float, *, coverage: float = COVERAGE) -> tuple[int, int] | None:
    """Returns the ranks (from 1) of the order statistics around a quantile, each side leaving half of the rest.

    None when the sample is too small for an upper or a lower one.

    Args:
        count: independent values.
        probability: of the quantile.
        coverage: of the interval.
    """
    tail = (1.0 - coverage) / 2.0
    below = _binomial_cdf(count, probability)
    low = int(np.searchsorted(below, tail, side="right"))  # P(X < low) <= tail
    high = int(np.searchsorted(below, 1.0 - tail, side="left")) + 1  # P(X < high) >= 1 - tail
    if low < 1 or high > count:
        return None
    return low, high


def least_count(probability: float, *, coverage: float = COVERAGE) -> int:
    """Returns the least number of independent values that gives a quantile an interval."""
    tail = (1.0 - coverage) / 2.0
    rarer = max(probability, 1.0 - probability)
    return math.ceil(math.log(tail) / math.log(rarer))


def _binomial_cdf(count: int, probability: float) -> NDArray[np.float64]:
    """Returns P(X <= k) for k = 0..count, (count + 1,), by sums of logarithms."""
    k = np.arange(count + 1)
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])
    logs = factorial[count] - factorial - factorial[::-1]
    logs += k * math.log(probability) + (count - k) * math.log1p(-probability)
    return np.asarray(np.minimum(np.cumsum(np.exp(logs)), 1.0), np.float64)
