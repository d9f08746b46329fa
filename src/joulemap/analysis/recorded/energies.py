"""From runs of disjoint domains to figures with intervals: scatter over repeats, and what meters declare.

References:
    JCGM 100:2008, 4.2 (type A), 4.3 (type B), 5.2 (gains of one meter are one input: its domains add up linearly).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.uncertainty import Term, estimate, mean_term
from joulemap.analysis.recorded.runs import DomainRuns
from joulemap.estimate import Estimate, Provenance, Quantity, Unavailable, weakest

__all__ = ["RUNS_DIFFER", "estimate_above_idle", "estimate_duration", "estimate_energy", "estimate_mean_power"]

_WIDEST: Final = 1.0
"""An interval wider than the figure itself says that the runs were too short for the meter, or differ too much."""
RUNS_DIFFER: Final = "runs_differ"
"""Reason of a mean that the scatter over few runs leaves unknown."""

Floats = NDArray[np.float64]


def estimate_energy(parts: Sequence[DomainRuns], *, mixed: bool = False) -> Quantity:
    """Returns the mean energy of a run, J: of one domain, or of the sum of disjoint ones of one boundary.

    Args:
        parts: disjoint domains.
        mixed: add domains of several boundaries too; the figure then has no boundary, and its user names them all.
    """
    return _estimate(parts, np.zeros(len(parts)), mixed=mixed)


def estimate_above_idle(parts: Sequence[DomainRuns], *, mixed: bool = False) -> Quantity:
    """Returns the mean energy of a run above the idle power of the same domains, J; arguments as for the energy."""
    idle_w = [part.idle_w for part in parts]
    if not parts or any(power_w is None for power_w in idle_w):
        return Unavailable(reason="no_baseline")
    return _estimate(parts, np.array(idle_w, np.float64), mixed=mixed)


def estimate_mean_power(parts: Sequence[DomainRuns], *, mixed: bool = False) -> Quantity:
    """Returns the mean power of a run, W; arguments as for the energy."""
    energy = estimate_energy(parts, mixed=mixed)
    if not isinstance(energy, Estimate):
        return energy
    good = _good(parts)
    return energy.scaled(1.0 / float(parts[0].duration_s[good].mean()))


def estimate_duration(duration_s: Sequence[float]) -> Quantity:
    """Returns the mean duration of a run, s, with its scatter when there were several."""
    if not duration_s:
        return Unavailable(reason="no_run")
    if len(duration_s) == 1:
        return estimate(duration_s[0], (), provenance=Provenance.MEASURED_COUNTER)
    mean_s, term = mean_term(list(duration_s))
    return estimate(mean_s, (term,), provenance=Provenance.MEASURED_COUNTER)


def _good(parts: Sequence[DomainRuns]) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(np.sum([part.energy_j for part in parts], axis=0)), np.bool_)


def _estimate(parts: Sequence[DomainRuns], idle_w: Floats, *, mixed: bool) -> Quantity:
    if not parts:
        return Unavailable(reason="no_meter")
    boundaries = {part.boundary for part in parts}
    if len(boundaries) > 1 and not mixed:
        return Unavailable(reason="boundaries_differ")
    good = _good(parts)
    runs = int(good.sum())
    if 2 * runs < good.size or not runs:
        return Unavailable(reason="samples_lost")
    duration_s = parts[0].duration_s[good]
    own_j = [part.energy_j[good] - power_w * duration_s for part, power_w in zip(parts, idle_w, strict=True)]
    totals_j = np.sum(own_j, axis=0)
    value_j = float(totals_j.mean())
    terms = [
        *_gain_terms(parts, [float(energy_j.mean()) for energy_j in own_j]),
        Term(name="edges", std=math.fsum(float(part.edge_std_j[good].mean()) for part in parts)),  # alike in each run
        Term(name="lost", std=_rss([part.lost_std_j[good] for part in parts]) / runs),
        Term(name="noise", std=math.hypot(*(p.noise_w for p in parts)) * math.sqrt(float(duration_s.sum())) / runs),
    ]
    if idle_w.any():
        terms.append(Term(name="idle", std=math.hypot(*(part.idle_std_w for part in parts)) * float(duration_s.mean())))
    scatter = [mean_term(totals_j)[1]] if runs > 1 else []
    made = estimate(
        value_j,
        (*terms, *scatter),
        provenance=weakest(part.provenance for part in parts),
        boundary=parts[0].boundary if len(boundaries) == 1 else None,
    )
    gross_j = abs(float(np.sum([part.energy_j[good] for part in parts], axis=0).mean()))
    if made.expanded > _WIDEST * gross_j and gross_j > 0:
        alike = estimate(value_j, terms, provenance=made.provenance)
        return Unavailable(reason="too_short_for_samples" if alike.expanded > _WIDEST * gross_j else RUNS_DIFFER)
    return made


def _rss(columns: Sequence[Floats]) -> float:
    return math.sqrt(math.fsum(float((column**2).sum()) for column in columns))


def _gain_terms(parts: Sequence[DomainRuns], mean_j: Sequence[float]) -> list[Term]:
    """Returns one term a meter: its domains share their gain."""
    meters: dict[str, list[tuple[float, bool]]] = {}
    for part, energy_j in zip(parts, mean_j, strict=True):
        meter = part.name.rsplit(":", 1)[0]
        meters.setdefault(meter, []).append((energy_j * part.errors.gain_std, part.errors.rectangular))
    return [
        Term(name=f"gain {meter}", std=abs(math.fsum(std for std, _ in known)), rectangular=any(r for _, r in known))
        for meter, known in meters.items()
    ]
