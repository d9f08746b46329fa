"""Numbers that people may rely on: a value with its uncertainty, its provenance and its boundary.

A measured number that leaves ``analysis`` is an :class:`Estimate` or an :class:`Unavailable`, never a bare float.
This module knows nothing of traces, files or units of print.

References:
    JCGM 100:2008 (GUM), 2.3 (standard and expanded uncertainty, coverage factor), G.4 (effective degrees of freedom).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from joulemap.units import format_estimate

__all__ = ["Boundary", "Estimate", "Provenance", "Quantity", "Unavailable", "weakest"]


class Provenance(StrEnum):
    """Where a number comes from, strongest first."""

    MEASURED_COUNTER = "measured_counter"
    MEASURED_SAMPLED = "measured_sampled"
    SIMULATED = "simulated"
    MODELLED = "modelled"
    ESTIMATED = "estimated"
    UNAVAILABLE = "unavailable"


_STRENGTH = {provenance: rank for rank, provenance in enumerate(Provenance)}


def weakest(provenances: Iterable[Provenance]) -> Provenance:
    """Returns the weakest of the provenances: what a sum of such energies may claim.

    Raises:
        ValueError: there is none.
    """
    return max(provenances, key=_STRENGTH.__getitem__)


class Boundary(StrEnum):
    """What the measured power feeds. Only disjoint boundaries of one kind are ever added."""

    RAIL = "rail"
    SOC = "soc"
    PACKAGE = "package"
    BOARD = "board"
    NODE = "node"
    WALL = "wall"
    FACILITY = "facility"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with standard uncertainty, coverage factor and degrees of freedom, in the SI unit of its key.

    Args:
        value: best estimate.
        std: combined standard uncertainty, same unit, >= 0.
        k: coverage factor, > 0; ``expanded`` is ``k * std``.
        dof: effective degrees of freedom; ``math.inf`` for a purely type B figure.
        coverage_probability: of the interval value +- expanded.
        provenance: weakest source of what it is made of; never ``unavailable``.
        boundary: None for a figure that has none (a time, a count).
    """

    value: float
    std: float
    k: float = 1.959963984540054
    dof: float = math.inf
    coverage_probability: float = 0.95
    provenance: Provenance
    boundary: Boundary | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and math.isfinite(self.std) and self.std >= 0):
            raise ValueError(f"an estimate needs a finite value and a finite std >= 0, got {self.value}, {self.std}")
        if not (self.k > 0 and self.dof > 0 and 0 < self.coverage_probability < 1):
            raise ValueError("an estimate needs k > 0, dof > 0 and a coverage probability in (0, 1)")
        if self.provenance is Provenance.UNAVAILABLE:
            raise ValueError("an unavailable figure is an Unavailable, not an Estimate")

    @property
    def expanded(self) -> float:
        """Expanded uncertainty U = k * std, same unit as the value."""
        return self.k * self.std

    def scaled(self, factor: float) -> Estimate:
        """Returns the estimate times an exact factor (a count, a unit)."""
        return Estimate(
            value=self.value * factor,
            std=self.std * abs(factor),
            k=self.k,
            dof=self.dof,
            coverage_probability=self.coverage_probability,
            provenance=self.provenance,
            boundary=self.boundary,
        )

    def reciprocal(self) -> Estimate:
        """Returns 1/value with the first-order uncertainty (inferences per joule from joules per inference).

        Raises:
            ZeroDivisionError: the value is 0.
        """
        inverse = 1.0 / self.value
        return Estimate(
            value=inverse,
            std=self.std * inverse * inverse,
            k=self.k,
            dof=self.dof,
            coverage_probability=self.coverage_probability,
            provenance=self.provenance,
            boundary=self.boundary,
        )

    def __str__(self) -> str:
        """Returns what people read: rounded to the uncertainty, without a unit; ``repr`` has every digit."""
        shown = format_estimate(self.value, self.expanded, "") if self.expanded else f"{self.value:.6g}"
        labels = [str(self.provenance)] if self.boundary is None else [str(self.boundary), str(self.provenance)]
        return f"{shown} ({', '.join(labels)})".replace("_", " ")

    def to_json(self) -> dict[str, object]:
        """Returns the JSON form of the contract; ``dof`` is null for infinitely many."""
        document: dict[str, object] = {
            "value": self.value,
            "std": self.std,
            "expanded": self.expanded,
            "coverage_probability": self.coverage_probability,
            "k": self.k,
            "dof": self.dof if math.isfinite(self.dof) else None,
            "provenance": str(self.provenance),
        }
        if self.boundary is not None:
            document["boundary"] = str(self.boundary)
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A figure that there is no honest value for, with the slug of the reason. Never 0."""

    reason: str

    def __str__(self) -> str:
        """Returns what people read."""
        return f"not available ({self.reason})"

    def to_json(self) -> dict[str, object]:
        """Returns the JSON form of the contract: value null, provenance unavailable, reason."""
        return {"value": None, "provenance": str(Provenance.UNAVAILABLE), "reason": self.reason}


Quantity = Estimate | Unavailable
