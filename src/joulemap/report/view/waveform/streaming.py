"""What a page needs of samples that stay in their file: extremes of bins and of the whole, a window at a time. Pure.

Samples come part by part and are forgotten again; a lost one is in no extreme.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.trace import EnergyTrace
from joulemap.trace.instants import clip_instants, locate_instants, relate_instants
from joulemap.trace.passes import sum_between, sum_slices
from joulemap.trace.resample import Envelope
from joulemap.trace.streamed import StreamedTrace, Trace, multiply

__all__ = ["Extremes", "bin_stream", "find_extremes", "mean_power_of", "open_samples"]

_LOADED = 1 << 24
"""Samples of a window that may be held at once: 128 MB."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremes:
    """Where a trace is highest and lowest, and where samples are lost first: indices of samples, -1 for nowhere."""

    peak: int
    dip: int
    lost: int


def open_samples(trace: Trace, start_ns: int, end_ns: int) -> EnergyTrace | None:
    """Returns the samples of a window as a trace in memory; None when there are too many of them.

    Args:
        trace: in memory (then it is returned as it is) or streamed.
        start_ns: ns on its clock.
        end_ns: ns, > start_ns.
    """
    if not isinstance(trace, StreamedTrace):
        return trace
    first = max(0, int((start_ns - trace.start_ns) // trace.step_ns))
    last = min(trace.n, int(-(-(end_ns - trace.start_ns) // trace.step_ns)))
    return trace.load(first, last) if 0 < last - first <= _LOADED else None


def mean_power_of(trace: Trace, start_ns: Ints, end_ns: Ints) -> Floats:
    """Returns the mean power over the seen time of every slice, (m,) W; NaN where nothing was seen."""
    held = sum_slices(trace, start_ns, end_ns)
    power_w = np.full(held.energy_j.size, np.nan)
    np.divide(held.energy_j, held.covered_s, out=power_w, where=held.covered_s > 0)
    return power_w


def bin_stream(trace: StreamedTrace, edges_ns: Ints) -> Envelope:
    """Returns lowest, highest and mean power of each bin.

    Args:
        trace: streamed.
        edges_ns: (b + 1,) ns on its clock, strictly increasing.
    """
    held = sum_between(trace, edges_ns)
    bins = edges_ns.size - 1
    mean_w = np.divide(held.energy_j, held.covered_s, out=np.full(bins, np.nan), where=held.covered_s > 0)
    index, offset_ns = locate_instants(trace, clip_instants(trace, relate_instants(trace, edges_ns)))
    first, last = index[:-1], np.minimum(index[1:] + (offset_ns[1:] > 0), trace.n)
    low_w, high_w = np.full(bins, np.inf), np.full(bins, -np.inf)
    begin, end = int(first.min(initial=trace.n)), int(last.max(initial=0))
    for at, factors in trace.source.stream(begin, max(end - begin, 0)):
        power_w = _power(trace, factors)
        left, right = np.searchsorted(last, at, side="right"), np.searchsorted(first, at + power_w.size, side="left")
        inside = np.flatnonzero(last[left:right] > first[left:right]) + left
        if not inside.size:
            continue
        starts = np.maximum(first[inside] - at, 0)
        ends = np.minimum(last[inside] - at, power_w.size) - 1
        power_w = power_w[: int(ends[-1]) + 1]  # the last bin may end before the part does
        low_w[inside] = np.fmin(low_w[inside], np.fmin(np.fmin.reduceat(power_w, starts), power_w[ends]))
        high_w[inside] = np.fmax(high_w[inside], np.fmax(np.fmax.reduceat(power_w, starts), power_w[ends]))
    low_w[~np.isfinite(low_w)] = np.nan
    high_w[~np.isfinite(high_w)] = np.nan
    return Envelope(edges_ns=edges_ns, low_w=low_w, high_w=high_w, mean_w=mean_w)


def _power(trace: StreamedTrace, factors: tuple[NDArray[np.float32] | Floats, ...]) -> Floats:
    """Returns the power of a part, (k,) W; NaN where a sample was lost."""
    power_w = np.empty(factors[0].size)
    multiply(factors, (trace.scale, trace.offset_w, trace.gain), power_w)
    power_w[~np.isfinite(power_w)] = np.nan
    return power_w


def find_extremes(trace: StreamedTrace, first: int, last: int) -> Extremes:
    """Returns the extremes among the samples first..last (exclusive)."""
    peak, dip, lost = (-np.inf, -1), (np.inf, -1), -1
    for at, factors in trace.source.stream(first, max(last - first, 0)):
        power_w = _power(trace, factors)
        bad = np.isnan(power_w)
        if bad.any():
            lost = at + int(np.argmax(bad)) if lost < 0 else lost
            if bad.all():
                continue
        high, low = int(np.nanargmax(power_w)), int(np.nanargmin(power_w))
        peak = max(peak, (float(power_w[high]), at + high), key=lambda seen: seen[0])
        dip = min(dip, (float(power_w[low]), at + low), key=lambda seen: seen[0])
    return Extremes(peak=peak[1], dip=dip[1], lost=lost)
