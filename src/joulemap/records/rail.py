"""What really happened on a virtual rail, and the truth behind it. Only simulated instruments and ``score`` read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.trace import Marker

__all__ = ["BoardTruth", "RailActivity"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RailActivity:
    """Energy that left a virtual rail, row by row of board time; what a simulated instrument samples.

    Args:
        row_s: length of a row, s.
        energy_fj: (n,) fJ per row.
        edges: edges of READY and GATE on the board's clock, ns.
    """

    row_s: float
    energy_fj: NDArray[np.uint32]
    edges: tuple[Marker, ...]

    def __post_init__(self) -> None:
        energy_fj = np.asarray(self.energy_fj, np.uint32).view()
        energy_fj.setflags(write=False)
        object.__setattr__(self, "energy_fj", energy_fj)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoardTruth:
    """True energies of one capture at run factor 1, latched at the GATE edges. Never read by an analysis.

    Args:
        gate_j: energy inside GATE, J.
        layer_j: (layers,) energy of each layer over all inferences of the gate, J.
        gap_j: energy inside the gate that no layer holds, J.
        layer_cycles: (layers,) cycles over all inferences.
        layer_entries: (layers,) times each layer was entered.
        gate_cycles: cycles between the edges.
        run_factor: the factor that this capture's rail was multiplied with.
    """

    gate_j: float
    layer_j: NDArray[np.float64]
    gap_j: float
    layer_cycles: NDArray[np.int64]
    layer_entries: NDArray[np.int64]
    gate_cycles: int
    run_factor: float
