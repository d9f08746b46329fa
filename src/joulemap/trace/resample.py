"""A trace as bins for the eye: lowest, highest and mean power of each bin, exact, lost samples left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.channel import KernelKind
from joulemap.trace.instants import clip_instants, locate_instants, relate_instants
from joulemap.trace.integrate import Backend, covered_time, mean_power, takes_compiled
from joulemap.trace.trace import EnergyTrace

__all__ = ["Envelope", "build_envelope"]

# samples + 400 per bin: below it two passes of numpy are done before numba is imported (benchmarks/bench_envelope.py)
_NUMBA_PAYS = 6e8

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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


def build_envelope(trace: EnergyTrace, edges_ns: Ints, *, backend: Backend = "auto") -> Envelope:
    """Returns the envelope of the trace over the bins.

    A uniform trace takes one pass of a compiled kernel where that pays; otherwise extremes and means are two passes of
    numpy, with the same figures.

    Args:
        trace: power over time.
        edges_ns: (b + 1,) ns on the trace's clock, strictly increasing.
        backend: as for :func:`joulemap.trace.integrate_energy`.

    Raises:
        ValueError: the edges do not increase.
        SetupError: backend ``numba`` without numba (``missing-extra``).
    """
    edges = np.array(edges_ns, np.int64)
    if edges.ndim != 1 or edges.size < 2 or bool(np.any(edges[1:] <= edges[:-1])):
        raise ValueError("an envelope needs at least two strictly increasing edges")
    if takes_compiled(backend, trace.n, edges.size, pays=_NUMBA_PAYS) and trace.uniform and trace.n:
        low_w, high_w, mean_w = _in_one_pass(trace, edges)
    else:
        mean_w = mean_power(trace, edges[:-1], edges[1:], backend=backend)
        low_w, high_w = _extremes(trace, edges)
    edges.setflags(write=False)
    return Envelope(edges_ns=edges, low_w=low_w, high_w=high_w, mean_w=mean_w)


def _in_one_pass(trace: EnergyTrace, edges_ns: Ints) -> tuple[Floats, Floats, Floats]:
    # lowest, highest and mean of each bin of a uniform trace
    from joulemap.trace import kernels  # noqa: PLC0415  imports numba, only when the work pays for it

    at_ns = clip_instants(trace, relate_instants(trace, edges_ns))
    index, offset_ns = locate_instants(trace, at_ns)
    whole: np.dtype[Any] = np.dtype(np.int32 if trace.power_w.dtype == np.float32 else np.int64)
    power_w: NDArray[Any] = np.ascontiguousarray(trace.power_w)
    sign, mask = whole.type(whole.itemsize * 8 - 1), whole.type(np.iinfo(whole).max)
    energy_wns, keys = np.empty(index.size - 1), np.empty((index.size - 1, 2), whole)
    point = trace.channel.kernel.kind is KernelKind.POINT
    bits = power_w.view(whole)
    kernels.bin_uniform(power_w, bits, sign, mask, trace.step_ns, index, offset_ns, trace.runs, point, energy_wns, keys)
    extremes_w = (keys ^ ((keys >> sign) & mask)).view(power_w.dtype).astype(np.float64)
    extremes_w[keys[:, 0] > keys[:, 1]] = np.nan
    covered_ns = covered_time(trace, at_ns[:-1], at_ns[1:]) * 1e9
    mean_w = np.full(energy_wns.size, np.nan)
    np.divide(energy_wns, covered_ns, out=mean_w, where=covered_ns > 0)
    return extremes_w[:, 0].copy(), extremes_w[:, 1].copy(), mean_w


def _extremes(trace: EnergyTrace, edges_ns: Ints) -> tuple[Floats, Floats]:
    at_ns = clip_instants(trace, relate_instants(trace, edges_ns))
    index, offset_ns = locate_instants(trace, at_ns)
    first, last = index[:-1], index[1:] + (offset_ns[1:] > 0)
    low_w, high_w = np.full(first.size, np.nan), np.full(first.size, np.nan)
    seen = np.flatnonzero((last > first) & (at_ns[1:] > at_ns[:-1]))  # a bin beyond the trace overlaps nothing
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
