"""The exact energy integral of a virtual rail, and its mean power over the intervals of a sampling clock.

Rows are integer femtojoules, so the integral is exact; only the fraction of a row at an interval's end is rounded.
This module knows nothing of instruments: it says what an ideal one would see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from joulemap.records.rail import RailActivity
from joulemap.trace import Marker

__all__ = ["RailIntegral"]

_HOLD_ROWS = 1000
"""Rows whose mean the rail keeps before its first and after its last row."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RailIntegral:
    """Cumulative energy of a rail at its row boundaries, built once and sampled as often as wanted.

    Args:
        row_s: length of a row, s.
        energy_fj: (n,) fJ per row.
        cumulative_fj: (n + 1,) fJ up to each row boundary.
        edges: edges of READY and GATE on the board's clock, ns.
    """

    row_s: float
    energy_fj: NDArray[np.uint32]
    cumulative_fj: NDArray[np.int64]
    edges: tuple[Marker, ...]

    @classmethod
    def build(cls, rail: RailActivity) -> Self:
        """Returns the integral of the rail.

        Raises:
            ValueError: the rail has no row.
        """
        if not rail.energy_fj.size:
            raise ValueError("a rail without rows has no integral")
        cumulative_fj = np.empty(rail.energy_fj.size + 1, np.int64)
        cumulative_fj[0] = 0
        np.cumsum(rail.energy_fj, dtype=np.int64, out=cumulative_fj[1:])
        cumulative_fj.setflags(write=False)
        return cls(row_s=rail.row_s, energy_fj=rail.energy_fj, cumulative_fj=cumulative_fj, edges=rail.edges)

    @property
    def duration_s(self) -> float:
        """Length of the rows together, s."""
        return self.energy_fj.size * self.row_s

    def energy_j(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the energy from board time 0 to each instant, J, held power outside the rows.

        Args:
            time_s: (k,) s, board time.
        """
        whole_fj, part_fj = self._split(np.asarray(time_s, np.float64) / self.row_s)
        return np.asarray((whole_fj + part_fj) * 1e-15, np.float64)

    def interval_power_w(self, first_s: float, period_s: float, count: int, *, begin: int = 0) -> NDArray[np.float64]:
        """Returns the mean power of consecutive intervals, W.

        Args:
            first_s: start of the first interval, s of board time; may lie before the first row.
            period_s: length of an interval, s of board time.
            count: how many.
            begin: how many intervals are passed over before; the ones that follow are the same to the last bit.

        Returns:
            (count,) W. Before the first and after the last row the rail holds the mean of its nearest rows.
        """
        position = np.arange(begin, begin + count + 1, dtype=np.float64)
        position *= period_s / self.row_s
        position += first_s / self.row_s
        whole_fj, part_fj = self._split(position)
        power_w = np.diff(part_fj)
        power_w += np.diff(whole_fj)
        power_w *= 1e-15 / period_s
        return np.asarray(power_w, np.float64)

    def _split(self, position: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Returns whole rows' energy (exact) and the rest, fJ, at positions counted in rows."""
        n = self.energy_fj.size
        row = np.floor(position)
        np.clip(row, 0, n - 1, out=row)
        index = row.astype(np.int64)
        part_fj = position - row
        part_fj *= self.energy_fj[index]
        for outside, edge, rows in (
            (position < 0, 0, self.energy_fj[:_HOLD_ROWS]),
            (position > n, n, self.energy_fj[-_HOLD_ROWS:]),
        ):
            if outside[0] or outside[-1] or bool(outside.any()):
                rest = (position[outside] - edge) * float(rows.mean())
                part_fj[outside] = rest + (self.cumulative_fj[edge] - self.cumulative_fj[index[outside]])
        return self.cumulative_fj[index], part_fj
