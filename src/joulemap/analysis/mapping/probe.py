"""What an energy would be if the slices lay elsewhere: the cost of edges inside samples and of an uncertain clock.

A sample on an edge mixes the power of both sides. Shared by time it takes ``f (1 - f)`` of a sample times the step
in power from the side that has more, ``f`` being where in the sample the edge lies. With ``E1`` and ``E2`` the energy
shifted by one and by two samples either way, ``2 E - E1+ - E1-`` is the step of both edges less twice what they lost,
``2 E - E2+ - E2-`` twice the step less the same: so ``E1+ + E1- - E - (E2+ + E2-) / 2`` is what was lost, at any phase.
It is given back. What stays uncertain is the noise of the samples beside the edge, and that power near it need not be
even: that is told where residuals about the rows' powers are not white.

References:
    docs/map.md, "What the samples can tell".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.sampling import TraceFacts
from joulemap.trace import KernelKind
from joulemap.trace.instants import clip_instants, locate_instants, relate_instants
from joulemap.trace.streamed import Trace
from joulemap.trace.sweep import GroupedSlices, Swept

__all__ = ["Probe", "ProbePlan", "ShiftedSums", "plan_probe", "probe_edges"]

_LIMIT = 60_000
"""Slices that are enough to see what a shift does; more of the same only cost time."""
_RANDOM_SHARE = 6.0
"""1 over the mean of f (1 - f) for f uniform on 0..1."""
_CROWDED = 0.8
"""What one edge may have lost where another is near, 1 sd, in samples of the power's spread; signs may agree."""
_EDGE_NOISE = math.sqrt(7.0 / 12.0)
"""What giving it back adds to the noise at one edge, in samples, at a random phase."""
_UNEVEN = 0.5
"""How far off the step at an edge may be, 1 sd, relative: power within a sample of it is not even."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Probe:
    """Effects on the held and the own energy of every group, over all its slices.

    Args:
        lost_j: (g, 2) J that samples on edges took from the group; negative where they gave.
        blur_j: (g, 2) J that this may be off by, 1 sd.
        slope_w: (g, 2) J per s of a common shift.
    """

    lost_j: NDArray[np.float64]
    blur_j: NDArray[np.float64]
    slope_w: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftedSums:
    """What the groups of a plan hold of a trace that was moved.

    Args:
        count: (g,) slices.
        held_j: (g, 2) J of slices, and of their own.
    """

    count: NDArray[np.int64]
    held_j: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbePlan:
    """What is to be swept besides the slices where they are.

    Args:
        slices: enough of them to see what a shift does.
        shifts_s: by which the trace is to be moved back, s; empty when the slices cannot be probed.
    """

    slices: GroupedSlices
    shifts_s: tuple[float, ...]


def plan_probe(slices: GroupedSlices, span_ns: tuple[int, int], sample_s: float, shift_s: float) -> ProbePlan:
    """Returns what is to be swept to know what shifts do.

    Args:
        slices: on the traces' clock.
        span_ns: start and end of what was recorded.
        sample_s: time that a sample stands for, s.
        shift_s: uncertainty of the clock, s.
    """
    part = _part(slices, span_ns, max(2.0 * sample_s, shift_s))
    # paths are numbered as they appear: a part of the slices would number them otherwise
    if (slices.by_path and part.start_ns.size < slices.start_ns.size) or not part.start_ns.size:
        return ProbePlan(slices=part, shifts_s=())
    far_s = max(sample_s, shift_s)
    shifts_s = (0.0, sample_s, -sample_s, 2.0 * sample_s, -2.0 * sample_s, far_s, -far_s)
    return ProbePlan(slices=part, shifts_s=tuple(dict.fromkeys(shifts_s)))


def probe_edges(
    trace: Trace,
    plan: ProbePlan,
    sums: Mapping[float, ShiftedSums],
    *,
    whole: Swept,
    facts: TraceFacts,
    shift_s: float,
    even: bool = False,
) -> Probe:
    """Returns what shifts do to every group.

    Args:
        trace: the first of those that were summed: its samples' borders count.
        plan: what was swept.
        sums: by the shifts of the plan.
        whole: what the groups hold where they are.
        facts: of the traces.
        shift_s: uncertainty of the clock, s; the slope is taken over the larger of it and a sample.
        even: power inside the slices was seen to be even.
    """
    groups, sample_s = whole.count.size, facts.sample_s
    if not plan.shifts_s:
        mean_w = np.divide(whole.energy_j, whole.duration_s, out=np.zeros(groups), where=whole.duration_s > 0)
        own_w = np.divide(whole.self_j, whole.self_s, out=np.zeros(groups), where=whole.self_s > 0)
        blur_j = np.stack([mean_w * whole.count, own_w * whole.pieces], axis=1) * (sample_s / 3.0)
        slope_w = np.asarray(np.stack([mean_w * whole.count, own_w * whole.pieces], axis=1), np.float64)
        return Probe(lost_j=np.zeros((groups, 2)), blur_j=np.abs(blur_j), slope_w=slope_w)
    far_s = max(sample_s, shift_s)
    here = sums[0.0]
    once_j = sums[sample_s].held_j + sums[-sample_s].held_j
    twice_j = sums[2.0 * sample_s].held_j + sums[-2.0 * sample_s].held_j
    seen = np.divide(whole.count, here.count, out=np.zeros(groups), where=here.count > 0)[:, None]
    moved_j: NDArray[np.float64] = (2.0 * here.held_j - once_j) * seen
    edges = 2.0 * np.stack([whole.count, whole.pieces], axis=1)
    if trace.channel.kernel.kind is KernelKind.POINT:
        lost_j, share = _mixed_share(trace, plan.slices, groups)[:, None] * moved_j, 1.0 / _RANDOM_SHARE
    else:
        lost_j, share = (once_j - here.held_j - 0.5 * twice_j) * seen, _EDGE_NOISE
    noise_j = facts.noise_w * facts.step_s * share * np.sqrt(edges)
    uneven_j = 0.0 if even else _UNEVEN * np.abs(moved_j) / _RANDOM_SHARE
    crowd_j = (_CROWDED * facts.spread_w * sample_s * _crowded(plan.slices, groups, 2.0 * sample_s))[:, None] * seen
    far_w = np.asarray((sums[far_s].held_j - sums[-far_s].held_j) / (2.0 * far_s) * seen, np.float64)
    return Probe(
        lost_j=np.asarray(lost_j, np.float64),
        blur_j=np.asarray(np.hypot(uneven_j + crowd_j, noise_j), np.float64),
        slope_w=far_w,
    )


def _crowded(slices: GroupedSlices, groups: int, reach_s: float) -> NDArray[np.float64]:
    """Returns at how many edges of every group another edge lies nearer than the samples that tell what it lost."""
    counted = (slices.group >= 0) & (not slices.by_path)
    start, end, group = (column[counted] for column in (slices.start_ns, slices.end_ns, slices.group))
    if start.size < 2:
        return np.zeros(groups)
    reach_ns = reach_s * 1e9
    apart = start[1:] - end[:-1]
    rest = (apart > 0) & (apart < reach_ns)  # a short rest: both sides doubt it
    brief = end - start < reach_ns
    before = rest | ((apart == 0) & brief[1:])
    after = rest | ((apart == 0) & brief[:-1])
    crowd = np.bincount(group[:-1][before], minlength=groups) + np.bincount(group[1:][after], minlength=groups)
    return np.asarray(crowd, np.float64)


def _mixed_share(trace: Trace, slices: GroupedSlices, groups: int) -> NDArray[np.float64]:
    """Returns the share of a step that interpolated points take at the edges of every group, (g,)."""
    random = np.full(groups, 1.0 / _RANDOM_SHARE)
    if slices.by_path or not trace.n:
        return random
    counted = slices.group >= 0
    group = slices.group[counted].astype(np.int64)
    begin, end = _phase(trace, slices.start_ns[counted]), _phase(trace, slices.end_ns[counted])
    mixed = 0.25 * ((1.0 - begin) ** 2 + end**2)
    total = np.bincount(group, mixed, groups)
    count = np.bincount(group, minlength=groups)
    return np.asarray(np.divide(total, count, out=random, where=count > 0), np.float64)


def _phase(trace: Trace, at_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns where in its sample each instant lies, 0 to 1."""
    index, offset_ns = locate_instants(trace, clip_instants(trace, relate_instants(trace, at_ns)))
    if trace.edges_ns is None:
        return np.asarray(offset_ns / trace.step_ns, np.float64)
    last = np.minimum(index, trace.n - 1)
    return np.asarray(offset_ns / (trace.edges_ns[last + 1] - trace.edges_ns[last]), np.float64)


def _part(slices: GroupedSlices, span_ns: tuple[int, int], margin_s: float) -> GroupedSlices:
    n = slices.start_ns.size
    first = max((n - _LIMIT) // 2, 0)
    part = slice(first, min(first + _LIMIT, n))
    margin_ns = round(margin_s * 1e9) + 1
    begin, end = span_ns[0] + margin_ns, span_ns[1] - margin_ns
    start_ns, end_ns = slices.start_ns[part], slices.end_ns[part]
    group = np.where((start_ns >= begin) & (end_ns <= end), slices.group[part], np.int32(-1))
    if slices.by_path and bool(np.any(group != slices.group[part])):
        group = slices.group[part]  # every path must appear as it does in the whole
    return replace(
        slices, start_ns=start_ns, end_ns=end_ns, group=np.asarray(group, np.int32), track=slices.track[part]
    )
