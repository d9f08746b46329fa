"""What is believed of power inside a layer before a sample was seen: that it wanders, and how much the data say.

Two kinds add up. Slow: over a quarter of the layer, to some degree alike in all layers, since one compiler makes their
prologues and epilogues. Quick: over the length of a sample, as where a convolution meets the border of its input. Both
have the exponential kernel, whose paths have steps as well as slopes, and are relative to the layer's own power.

References:
    Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), section 4.2.1 (exponential kernel), 5.4
    (marginal likelihood). MacKay, Neural Computation 4 (1992), section 4.3 (fixed point for the width of a prior).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.design import Cells

__all__ = ["Unevenness"]

_ALIKE = 0.5
"""Prior correlation of the slow unevenness between layers."""
_SLOW = 0.25
"""Share of a layer over which its slow unevenness stays the same."""
_PLAUSIBLE = (0.03, 0.01)
"""Relative unevenness, 1 sd, slow and quick, that the data are weighed against as one observation of it is."""
_SHAPE = (1e-4, 0.5)
"""Bounds of relative unevenness."""
_LEAST_POWER = 0.1
"""A layer's unevenness is taken of this share of the mean power at least: its own may be known badly."""
_SHORTEST = 1e-4
"""Lengths are not told apart below this share of the kernel's."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unevenness:
    """Correlations between cells, one matrix for each kind.

    Args:
        kinds: (cells, cells) each, of relative power; 0 for the gap.
        region: (cells,) of each cell.
    """

    kinds: tuple[Matrix, ...]
    region: NDArray[np.int64]

    @classmethod
    def build(cls, cells: Cells, sample_s: float) -> Self:
        """Returns what samples of a length in these cells are to expect.

        Args:
            cells: of the layers.
            sample_s: length of a sample, s.
        """
        total_s = np.bincount(cells.region, cells.length_s, cells.regions)[cells.region]
        total_s = np.where(total_s > 0, total_s, 1.0)
        layer = cells.region < cells.regions - 1
        both = layer[:, None] & layer
        same = cells.region[:, None] == cells.region
        slow = _correlation(cells.start_s / total_s / _SLOW, cells.length_s / total_s / _SLOW)
        quick = _correlation(cells.start_s / sample_s, cells.length_s / sample_s)
        return cls(kinds=(slow * np.where(same, 1.0, _ALIKE) * both, quick * (same & both)), region=cells.region)

    @property
    def first(self) -> tuple[float, ...]:
        """Widths to begin with."""
        return _PLAUSIBLE

    def covariance(self, widths: tuple[float, ...], power: Matrix) -> Matrix:
        """Returns the (cells, cells) prior covariance, relative to the mean power.

        Args:
            widths: relative unevenness of each kind, 1 sd.
            power: (regions,) of the layers and the gap, relative to the mean.
        """
        own = np.maximum(power, _LEAST_POWER)[self.region]
        total = sum(width**2 * kind for width, kind in zip(widths, self.kinds, strict=True))
        return np.asarray(total * np.outer(own, own), np.float64)

    def better(
        self, widths: tuple[float, ...], power: Matrix, *, weighed: Matrix, unit: Matrix, excess: Matrix
    ) -> tuple[float, ...]:
        """Returns the widths that fit the data better, what is plausible counting as one observation.

        Args:
            widths: so far.
            power: (regions,) relative to the mean.
            weighed: (cells, cells) gram over the noise's variance.
            unit: (cells, cells) posterior covariance.
            excess: (cells,) moments beyond the mean power, over the noise's variance.
        """
        own = np.maximum(power, _LEAST_POWER)[self.region]
        left = excess - weighed @ (unit @ excess)
        told = weighed - weighed @ unit @ weighed
        found = []
        for width, plausible, kind in zip(widths, _PLAUSIBLE, self.kinds, strict=True):
            scaled = kind * np.outer(own, own)
            known = max(width**2 * float(np.sum(told * scaled)), 0.0)
            square = width**4 * max(float(left @ scaled @ left), 0.0)
            better = math.sqrt((square + plausible**2) / (known + 1.0))
            found.append(min(max(better, _SHAPE[0]), _SHAPE[1]))
        return tuple(found)


def _correlation(start: Matrix, length: Matrix) -> Matrix:
    """Returns (n, n) means of exp(-|x - y|) over pairs of intervals."""
    middle, length = start + length / 2.0, np.maximum(length, _SHORTEST)
    low, high = middle - length / 2.0, middle + length / 2.0

    def second(distance: Matrix) -> Matrix:
        return np.asarray(np.abs(distance) + np.exp(-np.abs(distance)), np.float64)

    total = (
        second(high[:, None] - low)
        - second(low[:, None] - low)
        - second(high[:, None] - high)
        + second(low[:, None] - high)
    )
    return np.asarray(total / np.outer(length, length), np.float64)
