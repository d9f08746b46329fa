"""Everything that a map needs of the samples of its traces, in one pass over each: sums, sweeps, and what a shift does.

A trace in memory is swept as often as it takes; a streamed one is read once, and all sweeps take its parts side by
side. It must not know rows or uncertainty.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.mapping.placement import Placed
from joulemap.analysis.mapping.probe import ProbePlan, ShiftedSums
from joulemap.analysis.sampling import TraceFacts, describe_trace
from joulemap.trace import EnergyTrace
from joulemap.trace.integrate import Backend
from joulemap.trace.passes import run_pass
from joulemap.trace.streamed import StreamedTrace, Trace, shift_trace
from joulemap.trace.sweep import GroupedSlices, Split, StreamedSweep, Swept, sweep_energy, sweep_lost_time

__all__ = ["SweepPlan", "TraceSums", "describe_traces", "sum_traces"]

_Sweep = Callable[[], Swept]
_SWEPT_PAYS: Final = 400_000
"""Slices of all sweeps together from which loading what was compiled costs less than it saves."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepPlan:
    """What is to be swept.

    Args:
        placed: the slices on the traces' clock.
        probe: some of them, moved.
        split: between tracks that are busy at once.
    """

    placed: Placed
    probe: ProbePlan
    split: Split


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TraceSums:
    """Sums over all traces.

    Args:
        facts: of their sum.
        swept: what the groups hold; None without a plan.
        lost_s: (g, 2) lost time of slices and of their own.
        shifted: by shift, what the slices of the probe hold then.
    """

    facts: TraceFacts
    swept: Swept | None
    lost_s: NDArray[np.float64]
    shifted: Mapping[float, ShiftedSums]


def describe_traces(traces: Sequence[Trace]) -> TraceFacts:
    """Returns the facts of the sum of traces."""
    return sum_traces(traces, None).facts


def sum_traces(traces: Sequence[Trace], plan: SweepPlan | None) -> TraceSums:
    """Returns the sums over the traces.

    Args:
        traces: at least one, on one clock.
        plan: what is to be swept; None for the facts alone.
    """
    parts = [_sum_trace(trace, plan) for trace in traces]
    facts = _sum_facts([part.facts for part in parts])
    first = parts[0]
    if plan is None or first.swept is None:
        return replace(first, facts=facts)
    shifted = {
        shift: ShiftedSums(
            count=first.shifted[shift].count,
            held_j=np.sum([part.shifted[shift].held_j for part in parts], axis=0),
        )
        for shift in plan.probe.shifts_s
    }
    lost_s = np.max([part.lost_s for part in parts], axis=0)
    return TraceSums(facts=facts, swept=_sum_swept([p.swept for p in parts if p.swept]), lost_s=lost_s, shifted=shifted)


def _sum_trace(trace: Trace, plan: SweepPlan | None) -> TraceSums:
    facts, gaps, sweeps = _stream(trace, plan) if isinstance(trace, StreamedTrace) else _load(trace, plan)
    if plan is None:
        return TraceSums(facts=facts, swept=None, lost_s=np.zeros((0, 2)), shifted={})
    swept = sweeps[0]()
    shifted = {}
    for shift, sweep in zip(plan.probe.shifts_s, sweeps[1:], strict=True):
        moved = sweep()
        shifted[shift] = ShiftedSums(count=moved.count, held_j=np.stack([moved.energy_j, moved.self_j], axis=1))
    lost_s = np.zeros((swept.count.size, 2))
    if gaps.size:
        lost = sweep_lost_time(trace, gaps, plan.placed.slices)
        lost_s = np.stack([lost.energy_j, lost.self_j], axis=1)
    return TraceSums(facts=facts, swept=swept, lost_s=lost_s, shifted=shifted)


def _wanted(trace: Trace, plan: SweepPlan | None) -> list[tuple[Trace, GroupedSlices]]:
    if plan is None:
        return []
    moved = [shift_trace(trace, -round(shift * 1e9)) for shift in plan.probe.shifts_s]
    return [(trace, plan.placed.slices), *((other, plan.probe.slices) for other in moved)]


def _load(trace: EnergyTrace, plan: SweepPlan | None) -> tuple[TraceFacts, NDArray[np.int64], list[_Sweep]]:
    def later(other: EnergyTrace, slices: GroupedSlices, split: Split) -> _Sweep:
        return lambda: sweep_energy(other, slices, split=split, backend=backend)

    split = Split.EQUAL if plan is None else plan.split
    wanted = _wanted(trace, plan)
    many = sum(slices.start_ns.size for _, slices in wanted) >= _SWEPT_PAYS  # many sweeps of few slices, or few of many
    backend: Backend = "numba" if many and importlib.util.find_spec("numba") is not None else "auto"
    sweeps = [later(other, slices, split) for other, slices in wanted if isinstance(other, EnergyTrace)]
    return describe_trace(trace), trace.gaps, sweeps


def _stream(trace: StreamedTrace, plan: SweepPlan | None) -> tuple[TraceFacts, NDArray[np.int64], list[_Sweep]]:
    split = Split.EQUAL if plan is None else plan.split
    sweeps = [
        StreamedSweep(other, slices, split=split, idle=not number)  # of a probe only what its slices hold counts
        for number, (other, slices) in enumerate(_wanted(trace, plan))
        if isinstance(other, StreamedTrace)
    ]
    found = run_pass(trace, sweeps)
    return describe_trace(trace), found.gaps, [sweep.result for sweep in sweeps]


def _sum_facts(facts: Sequence[TraceFacts]) -> TraceFacts:
    """Returns the facts of the sum of traces, at the coarsest of their samplings."""
    return TraceFacts(
        energy_j=math.fsum(f.energy_j for f in facts),
        seen_s=max(f.seen_s for f in facts),
        lost_s=max(f.lost_s for f in facts),
        sample_s=max(f.sample_s for f in facts),
        step_s=max(f.step_s for f in facts),
        noise_w=math.hypot(*(f.noise_w for f in facts)),
        spread_w=math.hypot(*(f.spread_w for f in facts)),
        between_w=math.hypot(*(f.between_w for f in facts)),
        rounding_w=math.hypot(*(f.rounding_w for f in facts)),
    )


def _sum_swept(parts: Sequence[Swept]) -> Swept:
    first = parts[0]
    for other in parts[1:]:
        first = replace(
            first,
            energy_j=first.energy_j + other.energy_j,
            self_j=first.self_j + other.self_j,
            busy_j=first.busy_j + other.busy_j,
            idle_j=first.idle_j + other.idle_j,
        )
    return first
