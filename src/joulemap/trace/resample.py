"""A trace as bins for the eye: lowest, highest and mean power of each bin, exact, lost samples left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.instants import clip_instants, locate_instants, relate_instants
from joulemap.trace.integrate import mean_power
from joulemap.trace.trace import EnergyTrace

__all__ = ["Envelope", "build_envelope"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Envelope:
    """Power per bin; NaN where the trace covers nothing of a bin.

    Args:
        edges_ns: (b + 1,) ns on the trace's clock.
        low_w: (b,) W, lowest sample whose interval overlaps the bin.
        high_w: (b,) W, highest such sample.
        mean_w: (b,) W, energy of the bin over its covered time.
    """

    edges_ns: NDArray[np.int64]
    low_w: NDArray[np.float64]
    high_w: NDArray[np.float64]
    mean_w: NDArray[np.float64]


def build_envelope(trace: EnergyTrace, edges_ns: NDArray[np.int64]) -> Envelope:
    """Returns the envelope of the trace over the bins.

    Args:
        trace: power over time.
        edges_ns: (b + 1,) ns on the trace's clock, strictly increasing.

    Raises:
        ValueError: the edges do not increase.
    """
    edges = np.array(edges_ns, np.int64)
    if edges.ndim != 1 or edges.size < 2 or bool(np.any(edges[1:] <= edges[:-1])):
        raise ValueError("an envelope needs at least two strictly increasing edges")
    mean_w = mean_power(trace, edges[:-1], edges[1:])
    low_w, high_w = _extremes(trace, edges)
    edges.setflags(write=False)
    return Envelope(edges_ns=edges, low_w=low_w, high_w=high_w, mean_w=mean_w)


def _extremes(trace: EnergyTrace, edges_ns: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    index, offset_ns = locate_instants(trace, clip_instants(trace, relate_instants(trace, edges_ns)))
    first, last = index[:-1], index[1:] + (offset_ns[1:] > 0)
    low_w, high_w = np.full(first.size, np.nan), np.full(first.size, np.nan)
    seen = np.flatnonzero(last > first)
    if seen.size:
        begin = int(first[seen[0]])
        power_w = trace.power_w[begin : last[seen[-1]]]
        least: np.ufunc = np.minimum
        most: np.ufunc = np.maximum
        if trace.gaps.size:  # only then a copy, and the slower functions that pass over NaN
            power_w, least, most = power_w.copy(), np.fmin, np.fmax
            for left, right in np.clip(trace.gaps - begin, 0, power_w.size):
                power_w[left:right] = np.nan
        # a bin reaches to where the next one begins, and shares with it the sample that its end lies in
        starts, ends = first[seen] - begin, last[seen] - 1 - begin
        low_w[seen] = least(least.reduceat(power_w, starts), power_w[ends])
        high_w[seen] = most(most.reduceat(power_w, starts), power_w[ends])
    return low_w, high_w
