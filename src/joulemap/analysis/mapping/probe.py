"""What an energy would be if the slices lay elsewhere: the cost of edges inside samples and of an uncertain clock.

A sample on an edge mixes the power of both sides. Shared by time it gives each side, at a random phase, a sixth of a
sample times the step in power too much or too little: with ``E`` shifted by one sample either way,
``(2 E - E+ - E-) / 6`` for both edges of every slice.

References:
    docs/map.md, "What the samples can tell". The sixth is the mean of f (1 - f) for a phase f uniform on 0..1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.mapping.sampling import shift_trace
from joulemap.trace import EnergyTrace
from joulemap.trace.sweep import GroupedSlices, Split, Swept, sweep_energy

__all__ = ["Probe", "probe_edges"]

_LIMIT = 60_000
"""Slices that are enough to see what a shift does; more of the same only cost time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Probe:
    """Effects on the held and the own energy of every group, over all its slices.

    Args:
        blur_j: (g, 2) J that samples on edges may have moved.
        slope_w: (g, 2) J per s of a common shift.
    """

    blur_j: NDArray[np.float64]
    slope_w: NDArray[np.float64]


def probe_edges(
    traces: Sequence[EnergyTrace], slices: GroupedSlices, whole: Swept, *, split: Split, sample_s: float, shift_s: float
) -> Probe:
    """Returns what shifts do to every group.

    Args:
        traces: summed, on one clock.
        slices: on that clock.
        whole: what the groups hold where they are.
        split: between busy tracks.
        sample_s: time that one sample stands for, s.
        shift_s: uncertainty of the clock, s; the slope is taken over the larger of it and a sample.
    """
    groups = whole.count.size
    part = _part(slices, traces, max(sample_s, shift_s))
    # paths are numbered as they appear: a part of the slices would number them otherwise
    if (slices.by_path and part.start_ns.size < slices.start_ns.size) or not part.start_ns.size:
        mean_w = np.divide(whole.energy_j, whole.duration_s, out=np.zeros(groups), where=whole.duration_s > 0)
        own_w = np.divide(whole.self_j, whole.self_s, out=np.zeros(groups), where=whole.self_s > 0)
        blur_j = np.stack([mean_w * whole.count, own_w * whole.pieces], axis=1) * (sample_s / 3.0)
        return Probe(blur_j=np.abs(blur_j), slope_w=np.stack([mean_w * whole.count, own_w * whole.pieces], axis=1))
    here = _swept(traces, part, split, 0.0)
    near = [_swept(traces, part, split, sign * sample_s) for sign in (1.0, -1.0)]
    far_s = max(sample_s, shift_s)
    far = near if far_s == sample_s else [_swept(traces, part, split, sign * far_s) for sign in (1.0, -1.0)]
    seen = np.divide(whole.count, here[0], out=np.zeros(groups), where=here[0] > 0)[:, None]
    blur_j = np.abs(2.0 * here[1] - near[0][1] - near[1][1]) / 6.0 * seen
    slope_w = (far[0][1] - far[1][1]) / (2.0 * far_s) * seen
    return Probe(blur_j=blur_j, slope_w=slope_w)


def _part(slices: GroupedSlices, traces: Sequence[EnergyTrace], margin_s: float) -> GroupedSlices:
    n = slices.start_ns.size
    first = max((n - _LIMIT) // 2, 0)
    part = slice(first, min(first + _LIMIT, n))
    margin_ns = round(margin_s * 1e9) + 1
    begin, end = max(t.start_ns for t in traces) + margin_ns, min(t.end_ns for t in traces) - margin_ns
    start_ns, end_ns = slices.start_ns[part], slices.end_ns[part]
    group = np.where((start_ns >= begin) & (end_ns <= end), slices.group[part], np.int32(-1))
    if slices.by_path and bool(np.any(group != slices.group[part])):
        group = slices.group[part]  # every path must appear as it does in the whole
    return replace(
        slices, start_ns=start_ns, end_ns=end_ns, group=np.asarray(group, np.int32), track=slices.track[part]
    )


def _swept(
    traces: Sequence[EnergyTrace], slices: GroupedSlices, split: Split, shift_s: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    total: NDArray[np.float64] | None = None
    count: NDArray[np.int64] = np.zeros(0, np.int64)
    for trace in traces:
        swept = sweep_energy(shift_trace(trace, -round(shift_s * 1e9)), slices, split=split)
        held = np.stack([swept.energy_j, swept.self_j], axis=1)
        total = held if total is None else total + held
        count = swept.count
    assert total is not None  # a map has a trace
    return count, total
