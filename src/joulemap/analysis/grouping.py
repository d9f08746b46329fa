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
    good), again and again, until every group is known well enough. The gap is a neighbour of the first layer and of
    the last one; a gap that hardly weighs stands alone unless one of them needs it.

    Args:
        region_s: (layers + 1,) durations, s; the gap last.
        half_width: predicted relative half-width of a sum of regions, from the sum's durations, (layers + 1,) s.
        limit: largest acceptable half-width.
    """
    groups = [LayerGroup(layers=(layer,)) for layer in range(region_s.size - 1)]
    gap = LayerGroup(layers=(), gap=True)

    def width(group: LayerGroup) -> float:
        weight_s = group.weight(region_s)
        return half_width(weight_s) if weight_s.any() else np.inf

    def cost(joined: LayerGroup) -> tuple[float, float]:
        return max(width(joined), limit), float(joined.weight(region_s).sum())

    if not _gap_stands_alone(region_s, half_width, limit):
        place = min((0, len(groups) - 1), key=lambda k: cost(groups[k].joined(gap)))
        groups[place] = groups[place].joined(gap)
    widths = [width(group) for group in groups]
    while True:
        worst = int(np.argmax(widths))
        if widths[worst] <= limit:
            break
        sides = [k for k in (worst - 1, worst + 1) if 0 <= k < len(groups)]
        choices = {k: groups[k].joined(groups[worst]) for k in sides}
        if worst in (0, len(groups) - 1) and not any(group.gap for group in groups):
            choices[worst] = groups[worst].joined(gap)
        if not choices:
            break
        side = min(choices, key=lambda k: cost(choices[k]))
        low, high = min(worst, side), max(worst, side)
        groups[low : high + 1] = [choices[side]]
        widths[low : high + 1] = [width(choices[side])]
    return tuple(groups) if any(group.gap for group in groups) else (*groups, gap)


def _gap_stands_alone(
    region_s: NDArray[np.float64], half_width: Callable[[NDArray[np.float64]], float], limit: float
) -> bool:
    weight_s = LayerGroup(layers=(), gap=True).weight(region_s)
    if not weight_s.any():
        return True
    width = half_width(weight_s)
    return width <= limit or width * float(weight_s.sum()) <= _NEGLIGIBLE * float(region_s.sum())
