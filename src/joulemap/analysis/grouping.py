"""Which neighbouring layers can only be told as a sum: widened until the sum's predicted half-width is acceptable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LIMIT", "LayerGroup", "choose_groups"]

LIMIT = 0.05
"""Largest predicted relative half-width of a layer that stands alone."""
_NEGLIGIBLE = 1e-3
"""A gap whose half-width is this share of the inference's energy stands alone, however badly it is known itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Layers whose sum is reported; one layer, neighbours, or the gap alone.

    Args:
        layers: indices, ascending and without holes; empty for the gap alone.
        gap: the gap is part of the sum.
    """

    layers: tuple[int, ...]
    gap: bool = False

    def weight(self, region_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the durations of the regions of the group and 0 elsewhere, (layers + 1,) s."""
        weight_s = np.zeros_like(region_s)
        weight_s[list(self.layers)] = region_s[list(self.layers)]
        if self.gap:
            weight_s[-1] = region_s[-1]
        return weight_s

    def joined(self, other: LayerGroup) -> LayerGroup:
        """Returns the group of both."""
        return LayerGroup(layers=tuple(sorted((*self.layers, *other.layers))), gap=self.gap or other.gap)


def choose_groups(
    region_s: NDArray[np.float64], half_width: Callable[[NDArray[np.float64]], float], *, limit: float = LIMIT
) -> tuple[LayerGroup, ...]:
    """Returns the groups, in order, the gap last when it stands alone; a single one means that nothing can be told.

    The worst group is joined with the neighbour that leaves the narrower sum (the smaller neighbour when both are
    good), again and again, until every group is known well enough.

    Args:
        region_s: (layers + 1,) durations, s; the gap last.
        half_width: predicted half-width of a sum of regions, relative to what its durations take at mean power, from
            the sum's durations, (layers + 1,) s.
        limit: largest acceptable half-width.
    """
    groups = [LayerGroup(layers=(layer,)) for layer in range(region_s.size - 1)]
    gap = LayerGroup(layers=(), gap=True)
    period_s = float(region_s.sum())
    gap_alone = _gap_stands_alone(region_s, half_width, limit)

    def width(group: LayerGroup) -> float:
        weight_s = group.weight(region_s)
        return half_width(weight_s) if weight_s.any() else np.inf

    widths = [width(group) for group in groups]
    if not gap_alone:
        place = min((0, len(groups) - 1), key=lambda k: width(groups[k].joined(gap)))
        groups[place] = groups[place].joined(gap)
        widths[place] = width(groups[place])
    while len(groups) > 1:
        worst = int(np.argmax(widths))
        if widths[worst] <= limit:
            break
        sides = [k for k in (worst - 1, worst + 1) if 0 <= k < len(groups)]

        def cost(k: int, worst: int = worst) -> tuple[float, float]:
            joined = groups[k].joined(groups[worst])
            return max(width(joined), limit), float(groups[k].weight(region_s).sum()) / period_s

        side = min(sides, key=cost)
        low, high = min(worst, side), max(worst, side)
        groups[low] = groups[low].joined(groups.pop(high))
        widths.pop(high)
        widths[low] = width(groups[low])
    return (*groups, gap) if gap_alone else tuple(groups)


def _gap_stands_alone(
    region_s: NDArray[np.float64], half_width: Callable[[NDArray[np.float64]], float], limit: float
) -> bool:
    weight_s = LayerGroup(layers=(), gap=True).weight(region_s)
    if not weight_s.any():
        return True
    width = half_width(weight_s)
    return width <= limit or width * float(weight_s.sum()) <= _NEGLIGIBLE * float(region_s.sum())
