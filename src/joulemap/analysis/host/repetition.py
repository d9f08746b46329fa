"""Energies by repetition in place: what more an inference takes when some operators are executed k times.

Each block holds one window of every load, in random order. A block has a level of its own (temperature, a neighbour on
the machine), which a difference inside it does not see; what is left is the noise of a window, pooled over all loads.

References:
    METHODS 1.6 in docs/methods.md (slopes over repetitions).
    G. W. Snedecor and W. G. Cochran, Statistical Methods, 8th ed., 14.2 (randomised blocks).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.uncertainty import Kind, Term
from joulemap.records.host.campaign import Load

__all__ = ["BlockedLoads", "Combination", "slope_weights"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """A weighted sum of the loads' means.

    Args:
        value: in the unit of the loads.
        noise: standard uncertainty from the noise of windows.
        noise_dof: of it.
        block: standard uncertainty from the level of blocks, the same in every load.
        block_dof: of it.
    """

    value: float
    noise: float
    noise_dof: float
    block: float
    block_dof: float

    def terms(self) -> tuple[Term, ...]:
        """Returns the type A terms."""
        return (
            Term(name="noise", std=self.noise, kind=Kind.A, dof=self.noise_dof),
            Term(name="repeats", std=self.block, kind=Kind.A, dof=self.block_dof),
        )

    @property
    def std(self) -> float:
        """Combined standard uncertainty."""
        return math.hypot(self.noise, self.block)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockedLoads:
    """One quantity (J or s per execution) of every load in every block.

    Args:
        loads: columns; the first is the model as it is.
        values: (blocks, loads).
        noise_rel: relative standard deviation of one window.
        noise_dof: of it.
        block_rel: relative standard deviation of a block's level.
    """

    loads: tuple[Load, ...]
    values: Floats
    noise_rel: float
    noise_dof: float
    block_rel: float

    @classmethod
    def build(cls, loads: Sequence[Load], values: Floats) -> Self:
        """Returns the loads with the noise that two-way differences show.

        Args:
            loads: columns.
            values: (blocks, loads), two blocks or more, all > 0.

        Raises:
            ValueError: fewer than two blocks, or a value that is not positive.
        """
        blocks, columns = values.shape
        if blocks < 2 or not bool(np.all(values > 0)):
            raise ValueError("blocked loads need two blocks or more and positive values")
        relative = values / values.mean(axis=0) - 1.0
        level = relative.mean(axis=1)
        rest = relative - level[:, None]
        if columns > 1:
            dof = float((blocks - 1) * (columns - 1))
            noise = float(np.sum(rest**2)) / dof
            between = columns * float(np.sum(level**2)) / (blocks - 1)
            block = max((between - noise) / columns, 0.0)
        else:  # noise and level are one: all of it is told by the spread of the only column
            dof = blocks - 1.0
            noise, block = float(np.sum(level**2)) / dof, 0.0
        return cls(
            loads=tuple(loads),
            values=values,
            noise_rel=math.sqrt(noise),
            noise_dof=dof,
            block_rel=math.sqrt(block),
        )

    @property
    def means(self) -> Floats:
        """(loads,) mean over the blocks."""
        return np.asarray(self.values.mean(axis=0), np.float64)

    def combine(self, weights: Mapping[int, float]) -> Combination:
        """Returns the weighted sum of means, with the noise that its windows leave.

        Args:
            weights: column -> weight.
        """
        blocks = self.values.shape[0]
        means = self.means
        value = math.fsum(weight * means[c] for c, weight in weights.items())
        noise = self.noise_rel * math.sqrt(math.fsum((w * means[c]) ** 2 for c, w in weights.items()) / blocks)
        return Combination(
            value=value,
            noise=noise,
            noise_dof=self.noise_dof,
            block=abs(value) * self.block_rel / math.sqrt(blocks),
            block_dof=blocks - 1.0,
        )


def slope_weights(loads: Sequence[Load], columns: Sequence[int]) -> dict[int, float]:
    """Returns the weights whose combination is the sum of the parts that the columns repeat.

    Args:
        loads: of the blocked loads; the first is the model as it is.
        columns: of repeated loads.
    """
    weights = {c: 1.0 / (loads[c].copies - 1) for c in columns}
    weights[0] = -math.fsum(weights.values())
    return weights
