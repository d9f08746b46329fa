"""Samples as least squares over rows sees them: the time that each spends in each row, by what one sample means.

A mean is the energy of its window, which may be shorter than the distance of two samples (a sensor that looks away) or
longer (one that averages); a point sample is the power of the row that it hits.

References:
    METHODS 1.3 and 1.5 in docs/methods.md (window, point sampling).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.separation.stretches import Stretches
from joulemap.trace import EnergyTrace, KernelKind

__all__ = ["Samples", "Windows", "build_samples", "build_windows", "power_at"]

_CLUSTER = 8
"""Neighbouring samples that may share an error: the unit of the robust covariance."""
_OWN_WINDOW = 0.02
"""A window that differs from the step by less is the step: stamps are rounded."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Samples as least squares sees them.

    Args:
        time_s: (n, rows + 1) time that each sample spends in each row, s; the last column is what lies between.
        energy_j: (n,) J.
        cluster: (n,) number of the neighbourhood whose samples may share an error.
        readings: samples are differences of readings that follow each other without a hole.
    """

    time_s: Floats
    energy_j: Floats
    cluster: NDArray[np.int64]
    readings: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Windows:
    """What each sample looked at.

    Args:
        begin_ns: (n,) ns from the origin.
        end_ns: (n,) ns from the origin; equal to begin for a point sample.
        power_w: (n,) W.
        cluster: (n,) number of the neighbourhood.
        span_s: energy of a sample is power times this, s: the window, or for points their distance.
        counter: power is the difference of two readings of energy over their distance.
    """

    begin_ns: Floats
    end_ns: Floats
    power_w: Floats
    cluster: NDArray[np.int64]
    span_s: Floats
    counter: bool = False

    def part(self, some: slice) -> Windows:
        """Returns some of the samples."""
        return replace(
            self,
            begin_ns=self.begin_ns[some],
            end_ns=self.end_ns[some],
            power_w=self.power_w[some],
            cluster=self.cluster[some],
            span_s=self.span_s[some],
        )


def build_windows(trace: EnergyTrace, stretches: Stretches, origin_ns: int, most: int) -> Windows | None:
    """Returns the seen samples that lie inside the stretches as a whole, the middle ones of too many; None for none.

    Args:
        trace: power.
        stretches: counted from the origin.
        origin_ns: instant that is 0.
        most: samples to take at most.
    """
    if not stretches.row.size:
        return None
    bounds = int(stretches.start_ns[0]) + origin_ns, math.ceil(stretches.end_ns.max()) + origin_ns
    first, last = _samples_between(trace, *bounds)
    first = max(first, (first + last - most) // 2)
    last = min(last, first + most)
    if last <= first:
        return None
    index = np.arange(first, last + 1)
    if trace.edges_ns is not None:
        edges = (trace.edges_ns[index] - origin_ns).astype(np.float64)
    else:
        edges = np.asarray(index * trace.step_ns + float(trace.start_ns - origin_ns), np.float64)
    seen = np.ones(last - first, np.bool_)
    for gap_begin, gap_end in trace.gaps:
        seen[max(int(gap_begin) - first, 0) : max(int(gap_end) - first, 0)] = False
    if not seen.any():
        return None
    kernel = trace.channel.kernel
    begin, end = edges[:-1], edges[1:]
    if kernel.kind is KernelKind.POINT:
        span_s = (end - begin) * 1e-9
        end = begin
    else:
        step_s = float(np.median(end - begin)) * 1e-9
        if kernel.window_s > 0 and abs(kernel.window_s / step_s - 1.0) > _OWN_WINDOW:
            begin = np.asarray(end - kernel.window_s * 1e9, np.float64)
        span_s = (end - begin) * 1e-9
    inside = seen & (begin >= stretches.start_ns[0] - 1.0)
    return Windows(
        begin_ns=begin[inside],
        end_ns=end[inside],
        power_w=trace.power_w[first:last][inside].astype(np.float64),
        cluster=(np.arange(last - first) // _CLUSTER)[inside],
        span_s=span_s[inside],
        counter=kernel.kind is KernelKind.COUNTER,
    )


def build_samples(windows: Windows, stretches: Stretches, rows: int, shift_ns: Floats | float = 0.0) -> Samples:
    """Returns the design of the samples.

    Args:
        windows: of the samples.
        stretches: counted from the same origin.
        rows: number of rows.
        shift_ns: by which the stretches lie later, one for all or for each sample, ns.
    """
    begin, end = windows.begin_ns - shift_ns, windows.end_ns - shift_ns
    time_s = np.empty((begin.size, rows + 1))
    points = bool(np.all(windows.end_ns == windows.begin_ns))
    if points:
        hit = row_at(stretches, begin)
        time_s[:] = 0.0
        time_s[np.arange(begin.size), np.where(hit < 0, rows, hit)] = windows.span_s
    else:
        follows = bool(np.array_equal(windows.begin_ns[1:], windows.end_ns[:-1])) and np.ndim(shift_ns) == 0
        if follows:
            _share(stretches, np.append(begin[:1], end), time_s)
        else:
            for row in range(rows):
                own = stretches.of(row)
                time_s[:, row] = _elapsed(*own, end) - _elapsed(*own, begin)
        time_s[:, :rows] *= 1e-9
        time_s[:, rows] = np.maximum(windows.span_s - time_s[:, :rows].sum(axis=1), 0.0)
    follow = windows.counter and bool(np.array_equal(windows.begin_ns[1:], windows.end_ns[:-1]))
    energy_j = windows.power_w * windows.span_s
    return Samples(time_s=time_s, energy_j=energy_j, cluster=windows.cluster, readings=follow)


def row_at(stretches: Stretches, at_ns: Floats) -> NDArray[np.int64]:
    """Returns the row that is innermost at each instant, (n,); -1 between the rows."""
    place = np.searchsorted(stretches.start_ns, at_ns, side="right") - 1
    safe = np.maximum(place, 0)
    inside = (place >= 0) & (at_ns < stretches.end_ns[safe])
    return np.where(inside, stretches.row[safe], -1)


def power_at(stretches: Stretches, at_ns: Floats, power_w: Floats) -> Floats:
    """Returns the model's power at each instant, (n,) W: ``power_w`` is that of the rows and of what lies between."""
    return np.asarray(power_w[row_at(stretches, at_ns)], np.float64)


def _samples_between(trace: EnergyTrace, begin_ns: int, end_ns: int) -> tuple[int, int]:
    if trace.edges_ns is not None:
        first = int(np.searchsorted(trace.edges_ns, begin_ns))
        return first, max(int(np.searchsorted(trace.edges_ns, end_ns, side="right")) - 1, first)
    first = math.ceil((begin_ns - trace.start_ns) / trace.step_ns)
    first, last = max(first, 0), min(math.floor((end_ns - trace.start_ns) / trace.step_ns), trace.n)
    return first, max(first, last)


def _share(stretches: Stretches, edges_ns: Floats, time_ns: Floats) -> None:
    """Fills the time of every window that lies in each row, (n, rows + 1) ns, 0 in the last column.

    Args:
        stretches: of the rows.
        edges_ns: (n + 1,) of windows that follow each other without a hole.
        time_ns: out.
    """
    windows, columns = time_ns.shape
    start, end = (np.clip(at_ns, edges_ns[0], edges_ns[-1]) for at_ns in (stretches.start_ns, stretches.end_ns))
    some = end > start
    start, end, row = start[some], end[some], stretches.row[some]
    first = np.searchsorted(edges_ns, start, side="right") - 1
    count = np.searchsorted(edges_ns, end, side="left") - first  # windows that the stretch touches
    before = np.cumsum(count) - count
    window = np.arange(int(count.sum())) + np.repeat(first - before, count)
    piece = edges_ns[window + 1] - edges_ns[window]
    last = before + count - 1
    piece[last] = end - edges_ns[window[last]]
    piece[before] = np.minimum(edges_ns[first + 1], end) - start
    place = window * columns + np.repeat(row, count)
    time_ns[:] = np.bincount(place, piece, windows * columns).reshape(windows, columns)


def _elapsed(start: Floats, end: Floats, at_ns: Floats) -> Floats:
    """Returns ns spent inside the stretches up to each instant."""
    if not start.size:
        return np.zeros(at_ns.size)
    before = np.concatenate([[0.0], np.cumsum(end - start)])
    piece = np.searchsorted(start, at_ns, side="right")
    safe = np.maximum(piece - 1, 0)
    inside = np.minimum(at_ns - start[safe], (end - start)[safe])
    return np.where(piece > 0, before[safe] + inside, 0.0)
