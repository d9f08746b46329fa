"""The mean of values that follow each other in time: how many of them are worth an independent one.

s / sqrt n is wrong for such values, by any factor (METHODS 2: a naive 95 % interval covered 36 %).

References:
    C. J. Geyer, Practical Markov chain Monte Carlo, Statist. Sci. 7 (1992), 3.3 (initial monotone sequence).
    C. Alexopoulos and A. F. Seila, Output data analysis, in Handbook of Simulation (1998), 7.2.2 (batch means).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.uncertainty import Kind, Term

__all__ = ["batch_mean_term", "correlated_mean_term", "effective_count", "highest_variance"]

_ORDERS = 4


def effective_count(values: NDArray[np.float64]) -> float:
    """Returns n_eff of the mean by Geyer's initial monotone sequence, between 1 and n.

    Args:
        values: (n,) in order of time, evenly spaced.
    """
    n = values.size
    if n < 4:
        return float(n)
    centred = values - values.mean()
    power = float(centred @ centred) / n
    if power == 0:
        return float(n)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), size)[:n] / n
    pairs = covariance[0 : n - 1 : 2][: n // 2] + covariance[1:n:2][: n // 2]
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if negative.size else pairs)
    variance = 2.0 * float(pairs.sum()) - power
    return float(min(max(n * power / variance if variance > 0 else n, 1.0), n))


def highest_variance(values: NDArray[np.float64]) -> float:
    """Returns the variance of white noise that has the values' power at half their sampling frequency.

    Differences of higher order see less and less of what varies slowly; the least of them is taken.

    Args:
        values: (n,) in order of time, evenly spaced.
    """
    found = math.inf
    for order in range(1, min(_ORDERS, values.size - 1) + 1):
        steps = np.diff(values, order)
        found = min(found, float(steps @ steps) / (steps.size * math.comb(2 * order, order)))
    return found if math.isfinite(found) else 0.0


def correlated_mean_term(values: NDArray[np.float64], name: str = "repeats") -> tuple[float, Term]:
    """Returns the mean and its type A term with n_eff - 1 degrees of freedom (at least 1).

    Raises:
        ValueError: fewer than two values.
    """
    if values.size < 2:
        raise ValueError(f"type A needs two values or more, got {values.size}")
    independent = effective_count(values)
    std = float(values.std(ddof=1)) / math.sqrt(independent)
    return float(values.mean()), Term(name=name, std=std, kind=Kind.A, dof=max(independent - 1.0, 1.0))


def batch_mean_term(values: NDArray[np.float64], *, batches: int = 20, name: str = "repeats") -> tuple[float, Term]:
    """Returns the mean and the type A term of the means of equal batches, the last incomplete one left out.

    Args:
        values: (n,) in order of time.
        batches: at least 2; each must be long against the correlation.
        name: of the term.

    Raises:
        ValueError: fewer values than batches.
    """
    length = values.size // batches
    if batches < 2 or length < 1:
        raise ValueError(f"{values.size} values make no {batches} batches")
    means = values[: length * batches].reshape(batches, length).mean(axis=1)
    std = float(means.std(ddof=1)) / math.sqrt(batches)
    return float(values[: length * batches].mean()), Term(name=name, std=std, kind=Kind.A, dof=batches - 1.0)
