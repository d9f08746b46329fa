"""Figures of merit with their uncertainty, each from energies of one boundary and of one and the same unit of work.

References:
    METHODS 3 in docs/methods.md: what each figure means and what it must not be used for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from joulemap.analysis.intervals.uncertainty import Kind, Term, estimate
from joulemap.errors import NotComparableError
from joulemap.estimate import Estimate, Quantity, Unavailable, weakest

__all__ = ["duty_average_w", "ops_per_watt", "rate_per_watt", "subtract_energy", "sum_energy"]


def ops_per_watt(energy_per_unit_j: Quantity, ops_per_unit: float) -> Quantity:
    """Returns operations per second per watt, the same as operations per joule, 1/J.

    Args:
        energy_per_unit_j: J.
        ops_per_unit: as its user states it, with what he counts as one.
    """
    if not isinstance(energy_per_unit_j, Estimate):
        return energy_per_unit_j
    if not (energy_per_unit_j.value > 0 and ops_per_unit > 0):
        return Unavailable(reason="no_energy" if ops_per_unit > 0 else "no_ops")
    return energy_per_unit_j.reciprocal().scaled(ops_per_unit)


def rate_per_watt(power_w: Quantity, rate_hz: float) -> Quantity:
    """Returns units per second per watt, 1/J: the rate counts what is finished, the power is that of the same time."""
    if not isinstance(power_w, Estimate):
        return power_w
    return power_w.reciprocal().scaled(rate_hz) if power_w.value > 0 else Unavailable(reason="no_energy")


def duty_average_w(active: Quantity, active_s: float, sleep_w: Quantity, period_s: float) -> Quantity:
    """Returns mean power of one burst of work a period and rest between, W.

    Args:
        active: energy of the burst, J.
        active_s: its length, s.
        sleep_w: power of the rest, W; of the same boundary.
        period_s: from burst to burst, s.

    Raises:
        NotComparableError: boundaries differ.
    """
    for part in (active, sleep_w):
        if not isinstance(part, Estimate):
            return part
    assert isinstance(active, Estimate)  # seen above
    assert isinstance(sleep_w, Estimate)
    if not period_s > 0 or active_s > period_s:
        return Unavailable(reason="duty_impossible")
    total = sum_energy((active, sleep_w.scaled(period_s - active_s)))
    return total.scaled(1.0 / period_s) if isinstance(total, Estimate) else total


def sum_energy(parts: Sequence[Quantity], *, shared: float = 0.0) -> Quantity:
    """Returns the sum of energies of one boundary, J.

    Args:
        parts: at least one; a part that is unavailable makes the sum so.
        shared: relative standard uncertainty that all parts have in common (a meter's gain): it adds up, and does not
            average; it must be in each part.

    Raises:
        NotComparableError: boundaries differ (``boundaries-differ``).
    """
    known: list[Estimate] = []
    for part in parts:
        if not isinstance(part, Estimate):
            return part
        known.append(part)
    boundaries = {part.boundary for part in known}
    if len(boundaries) > 1:
        raise NotComparableError(
            f"energies of the boundaries {', '.join(sorted(str(b) for b in boundaries))} are not added",
            hint="add parts that one supply feeds, or parts that exclude each other at one boundary",
            slug="boundaries-differ",
        )
    terms = [_own(part, shared, at) for at, part in enumerate(known)]
    value = math.fsum(part.value for part in known)
    terms.append(Term(name="shared", std=abs(value) * shared))
    return estimate(value, terms, provenance=weakest(part.provenance for part in known), boundary=known[0].boundary)


def subtract_energy(whole: Estimate, part: Estimate, *, shared: float = 0.0) -> Estimate:
    """Returns whole less part, J or W: what both have in common scales the difference, all else adds up.

    Raises:
        NotComparableError: boundaries differ (``boundaries-differ``).
    """
    difference = sum_energy((whole, part.scaled(-1.0)), shared=shared)
    assert isinstance(difference, Estimate)  # both parts are
    return difference


def _own(part: Estimate, shared: float, at: int) -> Term:
    std = math.sqrt(max(part.std**2 - (shared * part.value) ** 2, 0.0))
    return Term(name=f"part {at}", std=std, kind=Kind.B if math.isinf(part.dof) else Kind.A, dof=part.dof)
