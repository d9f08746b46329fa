"""Energies of many rows at once: which way each is had, why it is refused, and what samples that overlap it say.

A timeline may have a million names. What every row needs is computed for all of them in columns; what few rows have
(least squares) is left to the caller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import Term, combine
from joulemap.analysis.sampling import TraceFacts

__all__ = [
    "SHARED",
    "TermColumn",
    "coverage_factors",
    "edge_columns",
    "energy_columns",
    "energy_terms",
    "shared_terms",
]

Floats = NDArray[np.float64]
Known = tuple[TraceFacts, MeterErrors, float]
"""The trace, its meter, and the standard uncertainty of its clock, ppm."""

SHARED = 4
"""Terms that more of the same work does not average down: gain, offset, clock, resolution."""
_EACH = 256
"""So many rows have a Monte Carlo each."""
_GRID = 64.0
"""More share those of equal make-up: shares of the variance to 1 part in so many, k to 0.3 %."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TermColumn:
    """One contribution to the energies of many rows.

    Args:
        name: what it comes from.
        std: (g,) standard uncertainty that it gives to each, J, >= 0.
        rectangular: its distribution is rectangular.
    """

    name: str
    std: Floats
    rectangular: bool = False

    def at(self, row: int) -> Term:
        """Returns the contribution to one row."""
        return Term(name=self.name, std=float(self.std[row]), rectangular=self.rectangular)


def energy_columns(energy_j: Floats, seen_s: Floats, known: Known) -> tuple[TermColumn, ...]:
    """Returns the terms that every energy of a trace has: gain, offset, clock, resolution, noise, between samples.

    Args:
        energy_j: (g,) J.
        seen_s: (g,) time over which each was seen, s.
        known: what they depend on.
    """
    facts, errors, rate_std_ppm = known
    unseen_w = np.sqrt(max(facts.between_w**2 - facts.noise_w**2, 0.0))  # what noise does not explain already
    root = np.sqrt(np.maximum(facts.step_s * seen_s, 0.0))
    return (
        TermColumn(name="gain", std=np.abs(energy_j) * errors.gain_std, rectangular=errors.rectangular),
        TermColumn(name="offset", std=seen_s * errors.offset_std_w, rectangular=errors.rectangular),
        TermColumn(name="clock", std=np.abs(energy_j) * (rate_std_ppm * 1e-6)),
        TermColumn(name="resolution", std=np.maximum(seen_s, 0.0) * facts.rounding_w),
        TermColumn(name="noise", std=facts.noise_w * root),
        TermColumn(name="between", std=unseen_w * root),
    )


def edge_columns(slope_w: Floats, shift_s: float, late_s: float) -> tuple[TermColumn, TermColumn]:
    """Returns the terms of not knowing where slices lie under samples.

    Args:
        slope_w: (g,) J per s of a common shift, >= 0.
        shift_s: its standard uncertainty, s.
        late_s: what of that is a rectangular doubt of the samples' own instants, s.
    """
    clock_s = math.sqrt(max(shift_s**2 - late_s**2, 0.0))
    return (
        TermColumn(name="edges", std=slope_w * clock_s),
        TermColumn(name="polls", std=slope_w * late_s, rectangular=True),
    )


def energy_terms(energy_j: float, seen_s: float, known: Known) -> tuple[Term, ...]:
    """Returns the terms of :func:`energy_columns` of one energy.

    Args:
        energy_j: J.
        seen_s: time over which it was seen, s.
        known: what it depends on.
    """
    columns = energy_columns(np.array([energy_j]), np.array([seen_s]), known)
    return tuple(column.at(0) for column in columns)


def shared_terms(energy_j: float, seen_s: float, known: Known) -> tuple[Term, ...]:
    """Returns those of them that more of the same work does not average down: noise is told another way."""
    return energy_terms(energy_j, seen_s, known)[:SHARED]


def coverage_factors(terms: Sequence[TermColumn], std: Floats, monte_carlo: MonteCarlo) -> Floats:
    """Returns k of each row, (g,): one for all where every term is normal, else by Monte Carlo.

    Rows of equal make-up have one k: beyond a few hundred of them those of nearly equal make-up share theirs.

    Args:
        terms: contributions, none with few degrees of freedom.
        std: (g,) combined standard uncertainty, J.
        monte_carlo: draws that all rows share.
    """
    plain = combine((Term(name="all", std=1.0),)).k
    factors = np.full(std.size, plain)
    rectangular = [term for term in terms if term.rectangular]
    if not rectangular:
        return factors
    rows = np.flatnonzero(np.any([term.std > 1e-3 * std for term in rectangular], axis=0))
    if rows.size <= _EACH:
        for row in rows.tolist():
            factors[row] = combine((term.at(row) for term in terms), monte_carlo=monte_carlo).k
        return factors
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.stack([np.rint(_GRID * (term.std[rows] / std[rows]) ** 2) for term in rectangular], axis=1)
    kinds, which = np.unique(shares, axis=0, return_inverse=True)
    made = np.array([_factor(rectangular, kind / _GRID, monte_carlo) for kind in kinds])
    factors[rows] = made[which.ravel()]
    return factors


def _factor(terms: Sequence[TermColumn], shares: Floats, monte_carlo: MonteCarlo) -> float:
    """Returns k of a sum whose rectangular terms have these shares of its variance and whose rest is normal."""
    rest = max(1.0 - float(shares.sum()), 0.0)
    parts = [
        Term(name=term.name, std=float(np.sqrt(share)), rectangular=True)
        for term, share in zip(terms, shares, strict=True)
    ]
    return combine((*parts, Term(name="noise", std=float(np.sqrt(rest)))), monte_carlo=monte_carlo).k
