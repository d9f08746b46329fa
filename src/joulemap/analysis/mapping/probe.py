"""What an energy would be if the slices lay elsewhere: the cost of edges inside samples and of an uncertain clock.

A sample on an edge mixes the power of both sides. Shared by time it takes ``f (1 - f)`` of a sample times the step
in power from the side that has more, ``f`` being where in the sample the edge lies. With ``E`` shifted by one sample
either way, ``q (2 E - E+ - E-)`` is what both edges of every slice lost, ``q`` being the mean of ``f (1 - f)`` (a
sixth at random phases). It is given back; what stays uncertain is that power near an edge need not be even.

References:
    docs/map.md, "What the samples can tell".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.mapping.sampling import TraceFacts
from joulemap.trace import KernelKind
from joulemap.trace.instants import clip_instants, locate_instants, relate_instants
from joulemap.trace.streamed import Trace
from joulemap.trace.sweep import GroupedSlices, Swept

__all__ = ["Probe", "ProbePlan", "ShiftedSums", "plan_probe", "probe_edges"]

_LIMIT = 60_000
"""Slices that are enough to see what a shift does; more of the same only cost time."""
_RANDOM_SHARE = 6.0
"""1 over the mean of f (1 - f) for f uniform on 0..1."""
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
    far_s = max(sample_s, shift_s)
    part = _part(slices, span_ns, far_s)
    # paths are numbered as they appear: a part of the slices would number them otherwise
    if (slices.by_path and part.start_ns.size < slices.start_ns.size) or not part.start_ns.size:
        return ProbePlan(slices=part, shifts_s=())
    return ProbePlan(slices=part, shifts_s=tuple(dict.fromkeys((0.0, sample_s, -sample_s, far_s, -far_s))))


def probe_edges(
    trace: Trace,
    plan: ProbePlan,
    sums: Mapping[float, ShiftedSums],
    *,
    whole: Swept,
    facts: TraceFacts,
    shift_s: float,
) -> Probe:
    """Returns what shifts do to every group.

    Args:
        trace: the first of those that were summed: its samples' borders count.
        plan: what was swept.
        sums: by the shifts of the plan.
        whole: what the groups hold where they are.
        facts: of the traces.
        shift_s: uncertainty of the clock, s; the slope is taken over the larger of it and a sample.
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
    seen = np.divide(whole.count, here.count, out=np.zeros(groups), where=here.count > 0)[:, None]
    moved_j: NDArray[np.float64] = (2.0 * here.held_j - sums[sample_s].held_j - sums[-sample_s].held_j) * seen
    edges = 2.0 * np.stack([whole.count, whole.pieces], axis=1)
    noise_j = facts.noise_w * facts.step_s * np.sqrt(edges) / _RANDOM_SHARE
    share = _mixed_share(trace, plan.slices, groups, (sample_s, facts.step_s))[:, None]
    far_w = np.asarray((sums[far_s].held_j - sums[-far_s].held_j) / (2.0 * far_s) * seen, np.float64)
    return Probe(
        lost_j=share * moved_j,
        blur_j=_UNEVEN * np.abs(moved_j) / _RANDOM_SHARE + noise_j,
        slope_w=far_w,
    )


def _mixed_share(
    trace: Trace, slices: GroupedSlices, groups: int, lengths_s: tuple[float, float]
) -> NDArray[np.float64]:
    """Returns the mean of f (1 - f) over the edges of every group, (g,); a sixth where phases are not known."""
    sample_s, step_s = lengths_s
    random = np.full(groups, 1.0 / _RANDOM_SHARE)
    if sample_s > 1.5 * step_s or slices.by_path or not trace.n:
        return random
    counted = slices.group >= 0
    group = slices.group[counted].astype(np.int64)
    begin, end = _phase(trace, slices.start_ns[counted]), _phase(trace, slices.end_ns[counted])
    if trace.channel.kernel.kind is KernelKind.POINT:
        mixed = 0.25 * ((1.0 - begin) ** 2 + end**2)
    else:
        mixed = 0.5 * (begin * (1.0 - begin) + end * (1.0 - end))
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
