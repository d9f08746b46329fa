"""Which rows can only be told as a sum: joined where it helps most, until the sum is known well enough.

Rows of a recording need not follow each other in time, so a row is joined with the one that leaves the narrowest sum.

References:
    METHODS 1.5 in docs/methods.md (report an unidentifiable group as its sum, never merge columns).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.grouping import LIMIT
from joulemap.analysis.separation.row_fit import RowFit

__all__ = ["LIMIT", "RowSum", "choose_sums", "half_width"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSum:
    """Rows whose sum is known.

    Args:
        rows: ascending; the number of rows stands for the time between them.
        share_std: standard uncertainty of the sum over its energy, from noise.
        power_w: of each of its rows, W; only their sum over their own times means something.
        dof: degrees of freedom of share_std.
    """

    rows: tuple[int, ...]
    share_std: float
    power_w: tuple[float, ...]
    dof: float


def half_width(fit: RowFit, region_s: NDArray[np.float64], rows: Sequence[int]) -> float:
    """Returns the relative half-width of the sum of rows, against at least a tenth of mean power; infinite for none."""
    weight_s = np.zeros_like(region_s)
    weight_s[list(rows)] = region_s[list(rows)]
    duration_s = float(weight_s.sum())
    if not duration_s > 0:
        return math.inf
    mean_w = max(float(region_s @ fit.power_w[: region_s.size]) / float(region_s.sum()), 1e-300)
    own_j = max(float(weight_s @ fit.power_w[: region_s.size]), 0.1 * mean_w * duration_s)
    return 1.96 * math.sqrt(fit.variance(weight_s)) / own_j


def choose_sums(fit: RowFit, region_s: NDArray[np.float64], rows: Sequence[int]) -> tuple[RowSum, ...]:
    """Returns the sums of rows, none of which is known alone, that are known to twice the limit.

    Args:
        fit: of all rows.
        region_s: (rows + 1,) time of each row and between them inside the samples, s.
        rows: to be joined.
    """
    left: list[tuple[int, ...]] = [(row,) for row in rows]
    found: list[tuple[int, ...]] = []
    while len(left) > 1:
        widths = [half_width(fit, region_s, group) for group in left]
        worst = left.pop(int(np.argmax(widths)))
        joined = [tuple(sorted((*worst, *group))) for group in left]
        best = min(range(len(joined)), key=lambda k: half_width(fit, region_s, joined[k]))
        if half_width(fit, region_s, joined[best]) <= 2 * LIMIT:
            found.append(joined[best])
            left.pop(best)
        else:
            left[best] = joined[best]
    return tuple(_sum(fit, region_s, group) for group in sorted(found))


def _sum(fit: RowFit, region_s: NDArray[np.float64], rows: tuple[int, ...]) -> RowSum:
    weight_s = np.zeros_like(region_s)
    weight_s[list(rows)] = region_s[list(rows)]
    energy_j = float(weight_s @ fit.power_w[: region_s.size])
    return RowSum(
        rows=rows,
        share_std=math.sqrt(fit.variance(weight_s)) / abs(energy_j or 1.0),
        power_w=tuple(float(fit.power_w[row]) for row in rows),
        dof=fit.dof,
    )
