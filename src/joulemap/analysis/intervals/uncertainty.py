"""From contributions to an interval: type A and B, effective degrees of freedom, expanded uncertainty.

Every contribution is a :class:`Term`: the standard uncertainty that it gives to the result, in the result's unit.
Where a term is rectangular the interval comes from a Monte Carlo; else from Student's t.

References:
    JCGM 100:2008 (GUM): 4.2 (type A), 4.3.7 (rectangular limits), 5.1 and 5.2 (combination, correlation),
    G.4 (Welch-Satterthwaite), G.6.4 (t at a truncated number of degrees; here t of real degrees).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.distributions import student_t_quantile
from joulemap.analysis.intervals.monte_carlo import MonteCarlo, Shape
from joulemap.estimate import Boundary, Estimate, Provenance

__all__ = [
    "COVERAGE",
    "Kind",
    "Term",
    "Uncertainty",
    "combine",
    "combine_correlated",
    "effective_dof",
    "estimate",
    "limit_std",
    "mean_term",
]

COVERAGE = 0.95
"""Coverage probability of every interval that joulemap states."""


class Kind(StrEnum):
    """How a contribution was evaluated."""

    A = "A"
    B = "B"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One contribution to the uncertainty of a result.

    Args:
        name: what it comes from: ``gain``, ``repeats``, ...
        std: standard uncertainty that it gives to the result, in the result's unit, >= 0.
        kind: evaluated from repeats (A) or from a declaration (B).
        dof: degrees of freedom of std.
        rectangular: its distribution is rectangular, of half-width sqrt(3) std.
    """

    name: str
    std: float
    kind: Kind = Kind.B
    dof: float = math.inf
    rectangular: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.std) and self.std >= 0 and self.dof > 0):
            raise ValueError(f"term {self.name!r} needs a finite std >= 0 and dof > 0, got {self.std}, {self.dof}")

    @property
    def shape(self) -> Shape:
        """Distribution that a Monte Carlo draws it from, scaled to std 1 (or to s / sqrt n for Student's t)."""
        if self.rectangular:
            return Shape(family="rectangular")
        return Shape(family="normal") if math.isinf(self.dof) else Shape(family="student_t", dof=self.dof)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """Combined standard uncertainty, coverage factor and effective degrees of freedom."""

    std: float
    k: float
    dof: float

    @property
    def expanded(self) -> float:
        """U = k std."""
        return self.k * self.std


def limit_std(limit: float) -> float:
    """Returns the standard uncertainty of a limit +-a without further knowledge: a / sqrt(3)."""
    return limit / math.sqrt(3.0)


def mean_term(values: Sequence[float] | NDArray[np.float64], name: str = "repeats") -> tuple[float, Term]:
    """Returns the mean of independent repeats and its type A term s / sqrt(n) with n - 1 degrees of freedom.

    Raises:
        ValueError: fewer than two values: one repeat says nothing of its spread.
    """
    array = np.asarray(values, np.float64)
    if array.size < 2:
        raise ValueError(f"type A needs two repeats or more, got {array.size}")
    std = float(array.std(ddof=1)) / math.sqrt(array.size)
    return float(array.mean()), Term(name=name, std=std, kind=Kind.A, dof=array.size - 1.0)


def effective_dof(terms: Iterable[Term]) -> float:
    """Returns Welch and Satterthwaite's degrees of freedom of the combined standard uncertainty."""
    terms = tuple(terms)
    variance = fourth = 0.0
    largest = max((term.std for term in terms), default=0.0)
    if largest == 0:
        return math.inf
    for term in terms:
        share = (term.std / largest) ** 2
        variance += share
        fourth += share * share / term.dof
    return variance * variance / fourth if fourth > 0 else math.inf


def combine(terms: Iterable[Term], *, coverage: float = COVERAGE, monte_carlo: MonteCarlo | None = None) -> Uncertainty:
    """Returns the combination of independent terms.

    The interval is t(dof) times the combined std; when a term is rectangular it is the symmetric interval of a Monte
    Carlo instead, and k is what that interval is of the combined std.

    Args:
        terms: contributions in the unit of the result.
        coverage: probability of the interval.
        monte_carlo: draws to reuse between results; a fresh seeded one when None.
    """
    terms = tuple(term for term in terms if term.std > 0)
    std = math.sqrt(math.fsum(term.std**2 for term in terms))
    dof = max(effective_dof(terms), 1.0)
    if any(term.rectangular and term.std > 1e-3 * std for term in terms):
        sampler = monte_carlo or MonteCarlo()
        shapes = [(term.name, term.shape) for term in terms]
        expanded = sampler.symmetric_half_width(shapes, [term.std for term in terms], coverage=coverage)
        return Uncertainty(std=std, k=expanded / std, dof=dof)
    return Uncertainty(std=std, k=student_t_quantile(0.5 + coverage / 2, dof), dof=dof)


def combine_correlated(
    sensitivity: NDArray[np.float64], std: NDArray[np.float64], correlation: NDArray[np.float64]
) -> float:
    """Returns the combined standard uncertainty of correlated inputs (GUM 5.2.2, formula 16).

    Args:
        sensitivity: (n,) derivative of the result by each input.
        std: (n,) standard uncertainty of each input.
        correlation: (n, n) correlation coefficients.
    """
    parts = np.asarray(sensitivity, np.float64) * np.asarray(std, np.float64)
    return math.sqrt(max(float(parts @ np.asarray(correlation, np.float64) @ parts), 0.0))


def estimate(
    value: float,
    terms: Iterable[Term],
    *,
    provenance: Provenance,
    boundary: Boundary | None = None,
    monte_carlo: MonteCarlo | None = None,
) -> Estimate:
    """Returns the value with the combined uncertainty of its terms."""
    combined = combine(terms, monte_carlo=monte_carlo)
    return Estimate(
        value=value,
        std=combined.std,
        k=combined.k,
        dof=combined.dof,
        coverage_probability=COVERAGE,
        provenance=provenance,
        boundary=boundary,
    )
