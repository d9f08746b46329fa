"""The entry of the map: traces, a timeline and the relation of their clocks to an :class:`EnergyMap`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import Kind, Term, estimate
from joulemap.analysis.mapping.groups import build_groups, rest_terms
from joulemap.analysis.mapping.keys import Grouping, MapKey, group_slices
from joulemap.analysis.mapping.placement import Placed, place_slices
from joulemap.analysis.mapping.probe import plan_probe, probe_edges
from joulemap.analysis.mapping.row_figures import energy_terms, shared_terms
from joulemap.analysis.mapping.rows import WAYS, RowInputs, RowTable, build_rows
from joulemap.analysis.mapping.sums import SweepPlan, TraceSums, sum_traces
from joulemap.analysis.sampling import TraceFacts, sample_lengths_s
from joulemap.analysis.separation.effort import separate_as_needed
from joulemap.analysis.separation.row_clock import doubt_of, placed_std_s
from joulemap.analysis.separation.separate import Separated
from joulemap.errors import NotComparableError
from joulemap.estimate import Boundary, Estimate, Provenance, Quantity, Unavailable, weakest
from joulemap.records.energy import BudgetLine, Resolution
from joulemap.records.finding import Finding, Severity
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap
from joulemap.trace import Timeline
from joulemap.trace.streamed import StreamedTrace, Trace, shift_trace
from joulemap.trace.sweep import Split, Swept

__all__ = ["MapRequest", "correct_trace", "map_energy"]

_SHOWS = 1e-12
"""Relative standard uncertainty below which only the rounding of numbers shows, and no meter."""
_INSTANT_S = 1e-6
"""Lost time below which sums of spans are rounded, s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRequest:
    """How a map is to be made.

    Args:
        key: what a row stands for.
        split: between tracks that are busy at once.
        paused_s: of the gaps, time in which nothing was to be measured, s: it is no loss and no doubt.
    """

    key: MapKey = MapKey.NAME
    split: Split = Split.EQUAL
    paused_s: float = 0.0


def correct_trace(trace: Trace, errors: MeterErrors) -> Trace:
    """Returns the trace with a calibration's offset and gain taken out of its samples."""
    if not errors.corrects:
        return trace
    kernel = replace(trace.channel.kernel, quantum_w=trace.channel.kernel.quantum_w / abs(errors.gain))
    channel = replace(trace.channel, kernel=kernel)
    if isinstance(trace, StreamedTrace):
        return replace(trace, offset_w=errors.offset_w, gain=errors.gain, channel=channel)
    power_w = (trace.power_w.astype(np.float64) - errors.offset_w) / errors.gain
    for begin, end in trace.gaps:
        power_w[begin:end] = 0.0
    return replace(trace, power_w=power_w, channel=channel)


def map_energy(
    traces: Sequence[Trace],
    timeline: Timeline | None,
    clock: ClockMap | None,
    errors: MeterErrors,
    *,
    request: MapRequest,
) -> EnergyMap:
    """Returns where the energy of the traces went.

    Args:
        traces: at least one; several are summed, so they must be disjoint, of one boundary and on one clock.
        timeline: what happened; None to have the total alone.
        clock: from the timeline's clock to the traces'; None without a timeline.
        errors: of the meter; samples are corrected already.
        request: how.

    Raises:
        NotComparableError: the traces have different boundaries or clocks.
        InputError: no slice is of the wanted kind.
    """
    _check_summable(traces)
    told, (traces, clock) = clock, _meet(traces, clock)
    boundary = traces[0].channel.boundary
    provenance = weakest(trace.channel.provenance for trace in traces)
    plan = _plan(traces, timeline, clock, request)
    sums = _without_pauses(sum_traces(traces, plan[1] if plan else None), request.paused_s)
    facts = sums.facts
    rate = traces[0].clock.rate_std_ppm or 0.0
    monte_carlo = MonteCarlo()
    findings = list(errors.findings)
    if facts.lost_s > 0:
        findings.append(_lost(facts))
    duration_s = max(trace.duration_s for trace in traces)
    told_as = (provenance, boundary, monte_carlo)
    if plan is None or sums.swept is None or clock is None or told is None:
        total, power, budget = _total((facts, errors, rate), told_as)
        findings += _unseen_noise(total)
        return EnergyMap(
            total_j=total,
            idle_j=Unavailable(reason="no_timeline"),
            power_w=power,
            duration_s=duration_s,
            busy_s=0.0,
            rows=(),
            split=str(request.split),
            concurrent=0,
            budget=budget,
            findings=tuple(findings),
        )
    (grouping, shift_s), placed, swept = plan[0], plan[1].placed, sums.swept
    inputs = _inputs(traces, plan[1], sums, (errors, rate, shift_s, clock))
    inputs = replace(inputs, provenance=provenance, boundary=boundary, monte_carlo=monte_carlo)
    total, power, budget = _total(inputs.known, told_as)
    findings += _unseen_noise(total)
    keys, outside = _keys(grouping, placed, swept)
    rows = build_rows(keys, outside, inputs, facts.energy_j)
    findings += _remarks(rows, placed, inputs, request.split)
    idle = _idle(swept, inputs)
    return EnergyMap(
        total_j=total,
        idle_j=idle,
        power_w=power,
        duration_s=duration_s,
        busy_s=swept.busy_s,
        rows=rows,
        split=str(request.split),
        concurrent=swept.concurrent,
        clocks=(told,),
        budget=budget,
        findings=tuple(findings),
        groups=build_groups(keys, inputs),
        fit=None if inputs.separated is None else inputs.separated.facts,
    )


def _without_pauses(sums: TraceSums, paused_s: float) -> TraceSums:
    """Returns the sums with the time of pauses taken out of what was lost."""
    lost_s = sums.facts.lost_s - paused_s
    return replace(sums, facts=replace(sums.facts, lost_s=lost_s if lost_s > _INSTANT_S else 0.0))


def _meet(traces: Sequence[Trace], clock: ClockMap | None) -> tuple[Sequence[Trace], ClockMap | None]:
    """Returns traces and relation with a constant of whole ns taken to the traces: so no slice has to be moved."""
    if clock is None or clock.exact or clock.drift or clock.fraction_ns:
        return traces, clock
    return [shift_trace(trace, -clock.offset_ns) for trace in traces], replace(clock, offset_ns=0)


def _plan(
    traces: Sequence[Trace], timeline: Timeline | None, clock: ClockMap | None, request: MapRequest
) -> tuple[tuple[Grouping, float], SweepPlan] | None:
    """Returns keys, uncertainty of the clock (s) and what is to be swept; None when there is no slice."""
    if timeline is None or clock is None or not len(timeline):
        return None
    grouping = group_slices(timeline, request.key)
    span_ns = max(t.start_ns for t in traces), min(t.end_ns for t in traces)
    placed = place_slices(timeline, grouping, clock, span_ns)
    shift_s = math.hypot(placed_std_s(clock, timeline), _late_s(traces))
    sample_s = max(sample_lengths_s(trace)[0] for trace in traces)
    probe = plan_probe(placed.slices, span_ns, sample_s, shift_s)
    return (grouping, shift_s), SweepPlan(placed=placed, probe=probe, split=request.split)


def _late_s(traces: Sequence[Trace]) -> float:
    """Returns what the instants of samples are not known to, 1 sd, s."""
    return max(trace.channel.kernel.latency_std_s for trace in traces)


def _total(
    known: tuple[TraceFacts, MeterErrors, float], told_as: tuple[Provenance, Boundary, MonteCarlo]
) -> tuple[Quantity, Quantity, tuple[BudgetLine, ...]]:
    """Returns energy and mean power of the whole trace, and the budget of the former."""
    facts, (provenance, boundary, monte_carlo) = known[0], told_as
    terms = (
        *energy_terms(facts.energy_j, facts.seen_s, known),
        Term(name="lost", std=facts.lost_s * facts.spread_w),
    )
    budget = tuple(BudgetLine(name=t.name, kind=str(t.kind), std_j=t.std, dof=t.dof) for t in terms if t.std > 0)
    if not facts.seen_s > 0:
        return Unavailable(reason="samples_lost"), Unavailable(reason="samples_lost"), budget
    total = estimate(facts.energy_j, terms, provenance=provenance, boundary=boundary, monte_carlo=monte_carlo)
    return total, total.scaled(1.0 / facts.seen_s), budget


def _idle(swept: Swept, inputs: RowInputs) -> Quantity:
    """Returns what no row holds: the rest of the busy and idle time, so that rows and idle add up to the trace."""
    if not inputs.facts.seen_s > 0:
        return Unavailable(reason="samples_lost")
    idle_s = max(inputs.facts.seen_s - swept.busy_s, 0.0)
    ways = np.array(WAYS, object)[inputs.ways(own=True)]
    told = inputs.separated
    if Resolution.LEAST_SQUARES in ways and told is not None:
        if told.idle_w is None:
            return Unavailable(reason="too_short_for_samples")
        if not idle_s > 0:
            return Unavailable(reason="no_duration")
        terms = (
            *shared_terms(told.idle_w.value * idle_s, idle_s, inputs.known),
            Term(name="noise", std=told.idle_w.std * idle_s, kind=Kind.A, dof=told.facts.dof),
        )
        return estimate(
            told.idle_w.value * idle_s,
            terms,
            provenance=inputs.provenance,
            boundary=inputs.boundary,
            monte_carlo=inputs.monte_carlo,
        )
    if swept.pieces[ways == Resolution.REFUSED].any():
        return Unavailable(reason="too_short_for_samples")
    energy_j = swept.idle_j - inputs.given_back_j
    terms = rest_terms(energy_j, idle_s, inputs)
    return estimate(
        energy_j,
        terms,
        provenance=inputs.provenance,
        boundary=inputs.boundary,
        monte_carlo=inputs.monte_carlo,
    )


def _check_summable(traces: Sequence[Trace]) -> None:
    boundaries = {trace.channel.boundary for trace in traces}
    if len(boundaries) > 1:
        raise NotComparableError(
            f"traces of the boundaries {', '.join(sorted(boundaries))} are not added",
            hint="name traces of one boundary with --trace",
            slug="boundaries-differ",
        )
    if len({(trace.clock.name, trace.clock.kind) for trace in traces}) > 1:
        raise NotComparableError(
            "traces on different clocks are not added", hint="map them one by one with --trace", slug="clocks-differ"
        )


def _inputs(
    traces: Sequence[Trace], plan: SweepPlan, sums: TraceSums, known: tuple[MeterErrors, float, float, ClockMap]
) -> RowInputs:
    (errors, rate, shift_s, clock), facts, swept = known, sums.facts, sums.swept
    assert swept is not None  # there is a plan
    separated = _separated(traces, plan, facts, (swept, clock))
    if separated is not None and separated.noise_w is not None:
        facts = replace(facts, noise_w=min(facts.noise_w, separated.noise_w))
    even = separated is not None and separated.white
    probe = probe_edges(traces[0], plan.probe, sums.shifted, whole=swept, facts=facts, shift_s=shift_s, even=even)
    return RowInputs(
        swept=swept,
        lost_s=sums.lost_s,
        probe=probe,
        separated=separated,
        facts=facts,
        errors=errors,
        rate_std_ppm=rate,
        shift_s=shift_s,
        late_s=_late_s(traces),
        provenance=Provenance.ESTIMATED,
        boundary=Boundary.RAIL,
        monte_carlo=MonteCarlo(),
    )


def _separated(
    traces: Sequence[Trace], plan: SweepPlan, facts: TraceFacts, laid: tuple[Swept, ClockMap]
) -> Separated | None:
    """Returns what least squares says, where it can be tried."""
    (swept, clock), slices = laid, plan.placed.slices
    if len(traces) > 1 or swept.concurrent != 1:
        return None
    paths = None
    if slices.by_path:
        above = zip(swept.path_parent.tolist(), swept.path_name.tolist(), strict=True)
        paths = {pair: row for row, pair in enumerate(above)}
    doubt = doubt_of(clock, _late_s(traces))
    return separate_as_needed(traces[0], slices, swept, facts, doubt=doubt, paths=paths)


def _keys(
    grouping: Grouping, placed: Placed, swept: Swept
) -> tuple[list[str], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    if not grouping.by_path:
        return list(grouping.keys), placed.outside
    groups = swept.count.size
    labels = [grouping.label(swept.path_parent, swept.path_name, group) for group in range(groups)]
    return labels, np.zeros(groups, np.int64)


def _lost(facts: TraceFacts) -> Finding:
    share = facts.lost_s / (facts.lost_s + facts.seen_s)
    return Finding(
        slug="samples_lost",
        severity=Severity.WARNING if facts.seen_s > 0 else Severity.ERROR,
        message=f"{facts.lost_s:.4g} s of the trace were not recorded ({share:.2%}); no energy is assumed there",
    )


def _unseen_noise(total: Quantity) -> list[Finding]:
    """Returns a warning where nothing is known of the meter and its samples show nothing either."""
    if not isinstance(total, Estimate) or total.std > _SHOWS * abs(total.value):
        return []
    message = (
        "neighbouring samples repeat to the last digit: noise and resolution of the meter do not show, and the"
        " intervals leave them out; name it with --instrument"
    )
    return [Finding(slug="noise_not_seen", severity=Severity.WARNING, message=message)]


def _remarks(rows: RowTable, placed: Placed, inputs: RowInputs, split: Split) -> list[Finding]:
    swept, remarks = inputs.swept, []
    outside = int(placed.outside.sum())
    if outside:
        message = f"{outside} slices reach beyond the recorded time and are in no figure; {placed.counted} lie inside"
        severity = Severity.WARNING if placed.counted else Severity.ERROR
        remarks.append(Finding(slug="slices_outside_trace", severity=severity, message=message))
    short = rows.count_refused("too_short_for_samples")
    if short:
        lasting_s = swept.self_s / np.maximum(swept.pieces, 1)
        mean_s = float(lasting_s[swept.pieces > 0].min())
        few = () if inputs.separated is None else rows  # least squares plans few rows, or none
        known = [r.runs_needed for r in few if r.reason == "too_short_for_samples" and r.runs_needed is not None]
        advice = f"; about {max(known):.3g} times this recording would tell those that can be told" if known else ""
        message = (
            f"{short} of {len(rows)} rows have a refused figure: a sample stands for"
            f" {inputs.facts.sample_s:.3g} s, stretches of a row last {mean_s:.3g} s at the least{advice}"
        )
        remarks.append(Finding(slug="too_short_for_samples", severity=Severity.WARNING, message=message))
    if inputs.separated is not None and not inputs.separated.white:
        message = (
            "what the rows leave unexplained is correlated in time: power inside a slice is uneven, or clocks are off"
        )
        remarks.append(Finding(slug="residuals_not_white", severity=Severity.INFO, message=message))
    coarse = rows.count_refused("alignment_too_coarse")
    if coarse:
        message = f"{coarse} rows are refused: the clocks agree to {inputs.shift_s:.3g} s (1 sd), over half a slice"
        remarks.append(Finding(slug="alignment_too_coarse", severity=Severity.WARNING, message=message))
    if swept.concurrent > 1:
        rule = {
            Split.EQUAL: "each gets an equal part of the power",
            Split.DURATION: "each gets power by the duration of its innermost slice",
            Split.NONE: "each gets all of the power, so rows add up to more than the trace",
        }[split]
        message = f"up to {swept.concurrent} tracks are busy at once; {rule} (--split {split})"
        remarks.append(Finding(slug="tracks_share_power", severity=Severity.INFO, message=message))
    return remarks
