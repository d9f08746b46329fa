"""How often the same work must be recorded for a wanted half-width, row by row, before anybody records it.

More of the same averages noise down by the root and nothing else: what the meter's gain and offset leave, and what
edges inside samples leave, is a floor. A half-width below the floor is never reached, and no number is given.

References:
    METHODS 1.5 in docs/methods.md (planning formula; here with the noise as the pilot recording has it).
"""

from __future__ import annotations

import math

from joulemap.analysis.intervals.distributions import normal_quantile
from joulemap.estimate import Estimate
from joulemap.records.mapping.energy_map import MapRow

__all__ = ["runs_for"]

_PLANNED_AT = 0.05
"""Half-width that a refused row's ``runs_needed`` is for."""


def runs_for(row: MapRow, half_width: float) -> float | None:
    """Returns how many times this recording's work gives a row's self energy a relative half-width at 95 %.

    Args:
        row: of a pilot recording.
        half_width: wanted, relative, > 0.
    """
    own = row.self_j
    if not isinstance(own, Estimate):
        return None if row.runs_needed is None else row.runs_needed * (_PLANNED_AT / half_width) ** 2
    if row.noise_j is None or not own.value > 0:
        return None
    wanted_j = half_width * own.value / normal_quantile(0.975)
    floor = max(own.std**2 - row.noise_j**2, 0.0)
    room = wanted_j**2 - floor
    if row.noise_j == 0:
        return 1.0 if room >= 0 else None
    return row.noise_j**2 / room if room > 0 and math.isfinite(room) else None
