"""What a server counted while a command loaded it, joined to the energy of the runs: joules per request. Knows no HTTP.

A run whose counts are not known whole has none: neither a guess nor a lower bound.

References:
    Prometheus documentation, "Metric types": a counter only rises, and begins at 0 when its process is started again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from joulemap.analysis.intervals.uncertainty import estimate, limit_std, mean_term
from joulemap.analysis.recorded.energies import estimate_above_idle, estimate_energy
from joulemap.analysis.recorded.runs import DomainRuns
from joulemap.estimate import Estimate, Provenance, Quantity, Unavailable

__all__ = ["LOST", "RESTARTED", "CountedUnit", "Series", "UnitFigures", "count_between", "measure_unit"]

LOST: Final = "server_lost"
RESTARTED: Final = "server_restarted"
_EDGE_UNITS: Final = 1.0
"""Units that may be counted a little late, or be another client's, at the edges of a run."""

Series = Mapping[str, float]
"""Value of each counter of one unit, by its labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedUnit:
    """What a server counted of one kind.

    Args:
        name: ``request``, ``inference``, ``token``, or as asked for.
        metric: that counts it.
        counts: of each run; None for a run of which the count is not known.
    """

    name: str
    metric: str
    counts: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFigures:
    """Energy per unit of work.

    Args:
        energy_j: J.
        above_idle_j: J, above the idle power of the baseline.
        per_s: units per second.
    """

    energy_j: Quantity
    above_idle_j: Quantity
    per_s: Quantity


def count_between(answers: Sequence[Series | None]) -> tuple[float | None, str]:
    """Returns how much all series rose from the first answer to the last, and why that is not known.

    Args:
        answers: of the server, in order of time; None for a question without an answer.

    Returns:
        The count and an empty word; or None and :data:`LOST` (no answer at an end) or :data:`RESTARTED` (a counter fell
        or went away: what it had counted since the answer before is lost).
    """
    heard = [answer for answer in answers if answer is not None]
    if len(heard) < 2 or answers[0] is None or answers[-1] is None:
        return None, LOST
    for before, after in pairwise(heard):
        if any(after.get(labels, -math.inf) < value for labels, value in before.items()):
            return None, RESTARTED
    first, last = heard[0], heard[-1]
    return math.fsum(value - first.get(labels, 0.0) for labels, value in last.items()), ""


def measure_unit(parts: Sequence[DomainRuns], unit: CountedUnit, *, mixed: bool = False) -> UnitFigures:
    """Returns the figures of a unit over the runs whose count is known.

    Args:
        parts: disjoint domains, as for the energy of a run.
        unit: counted.
        mixed: as for the energy of a run.
    """
    known = np.array([math.nan if count is None else count for count in unit.counts], np.float64)
    if not np.isfinite(known).any():
        return _nothing("counts_lost")
    if not np.nansum(known):
        return _nothing("nothing_counted")
    counts = np.where(known > 0, known, np.nan)
    mean = float(np.nanmean(counts))
    scaled = [
        replace(
            part,
            energy_j=part.energy_j / counts,
            duration_s=part.duration_s / np.where(np.isfinite(counts), counts, mean),
            edge_std_j=part.edge_std_j / counts,
            lost_std_j=part.lost_std_j / counts,
            noise_w=part.noise_w / math.sqrt(mean),
        )
        for part in parts
    ]
    edge = limit_std(_EDGE_UNITS) / mean / math.sqrt(float(np.isfinite(counts).sum()))
    return UnitFigures(
        energy_j=_widened(estimate_energy(scaled, mixed=mixed), edge),
        above_idle_j=_widened(estimate_above_idle(scaled, mixed=mixed), edge),
        per_s=_widened(_rate(counts, parts), edge),
    )


def _rate(counts: np.ndarray, parts: Sequence[DomainRuns]) -> Quantity:
    if not parts:
        return Unavailable(reason="no_meter")
    per_s = (counts / parts[0].duration_s)[np.isfinite(counts)]
    if per_s.size == 1:
        return estimate(float(per_s[0]), (), provenance=Provenance.MEASURED_COUNTER)
    value, term = mean_term(per_s)
    return estimate(value, (term,), provenance=Provenance.MEASURED_COUNTER)


def _widened(figure: Quantity, relative: float) -> Quantity:
    if not isinstance(figure, Estimate):
        return figure
    return replace(figure, std=math.hypot(figure.std, relative * figure.value))


def _nothing(reason: str) -> UnitFigures:
    nothing = Unavailable(reason=reason)
    return UnitFigures(energy_j=nothing, above_idle_j=nothing, per_s=nothing)
