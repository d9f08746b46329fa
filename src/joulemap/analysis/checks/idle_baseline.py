"""Idle power before, between and after the work, whether it stayed, and energy above it.

The meter of a row is the meter of its baseline: an offset is in both and cancels, a gain scales the difference. What
the idle power is not known to, and half of what it drifted, does not cancel and is carried.

References:
    METHODS 2 and 3 in docs/methods.md (idle subtraction does not cancel: 12 +- 0.1 W less 10 +- 0.1 W is 2 W +- 7 %).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.autocorrelation import effective_count
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.uncertainty import Kind, Term, estimate
from joulemap.analysis.sampling import TraceFacts
from joulemap.estimate import Estimate, Quantity, Unavailable, weakest
from joulemap.records.finding import Finding, Severity
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.trace import EnergyTrace, Timeline, integrate_between, integrate_energy
from joulemap.trace.streamed import StreamedTrace, Trace

__all__ = ["IdleBaseline", "above_idle", "estimate_idle"]

_SAMPLES = 8.0
"""Samples that a stretch without work lasts at the least, guards left out."""
_GUARD = 2.0
"""Samples beside work that are left out: capacitors, windows, clocks."""
_PARTS = 64
_READ, _READ_SAMPLES = 64, 1 << 18
"""Stretches of streamed samples that are read, and samples of each: they say what the power without work is."""
_BLOCK = 1 << 18
"""Slices at a time: they stay in the cache."""
_MOVED = 3.3
"""Standard uncertainties beyond which the baseline moved: 1e-3 for a chance of being wrong."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleBaseline:
    """Power without work.

    Args:
        power_w: mean of all stretches, W; unavailable when none was recorded.
        noise_w: standard uncertainty of it without the meter's part, W.
        dof: degrees of freedom of noise_w.
        drift_w: later half of the recording less the earlier one, W; None when there is idle time in one of them only.
        drift_std_w: its standard uncertainty, W.
        stretches: that were used.
        time_s: of them in all, s.
        findings: what is doubtful.
    """

    power_w: Quantity
    noise_w: float = 0.0
    dof: float = math.inf
    drift_w: float | None = None
    drift_std_w: float = 0.0
    stretches: int = 0
    time_s: float = 0.0
    findings: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Returns the baseline as JSON."""
        return {
            "power_w": self.power_w.to_json(),
            "drift_w": self.drift_w,
            "drift_std_w": self.drift_std_w if self.drift_w is not None else None,
            "stretches": self.stretches,
            "time_s": self.time_s,
        }


def estimate_idle(
    traces: Sequence[Trace],
    timeline: Timeline,
    clock: ClockMap,
    known: tuple[TraceFacts, MeterErrors],
) -> IdleBaseline:
    """Returns the idle power over all stretches in which no slice is open, and how it moved.

    Args:
        traces: summed.
        timeline: of the work.
        clock: from its clock to the traces'.
        known: the traces and their meter.
    """
    facts, errors = known
    begin_ns, end_ns = _stretches(traces, timeline, clock, facts.sample_s)
    windows, begin_ns, end_ns = _load_stretches(traces, begin_ns, end_ns)
    energy_j, covered_s = _held(windows, begin_ns, end_ns)
    whole = covered_s >= (end_ns - begin_ns) * 1e-9 - 1e-9
    begin_ns, end_ns, energy_j = begin_ns[whole], end_ns[whole], energy_j[whole]
    windows = [window for window, kept in zip(windows, whole.tolist(), strict=True) if kept]
    if not begin_ns.size:
        message = "no time without work was recorded (8 samples at least): nothing is known of the idle power"
        finding = Finding(slug="idle_not_recorded", severity=Severity.INFO, message=message)
        return IdleBaseline(power_w=Unavailable(reason="idle_not_recorded"), findings=(finding,))
    span_s = (end_ns - begin_ns) * 1e-9
    value_w = float(energy_j.sum() / span_s.sum())
    powers_w, at_s = _parts(windows, begin_ns, end_ns, facts.step_s)
    middle_s = 0.5e-9 * (traces[0].start_ns + traces[0].end_ns)
    drift_w, drift_std_w = _drift(powers_w, at_s, middle_s)
    steady_w = powers_w if drift_w is None else np.where(at_s < middle_s, powers_w + drift_w, powers_w)
    noise_w, dof = _spread(steady_w)  # what drifted is a line of its own
    power = estimate(
        value_w,
        _terms(value_w, noise_w, (dof, drift_w), errors),
        provenance=weakest(trace.channel.provenance for trace in traces),
        boundary=traces[0].channel.boundary,
    )
    return IdleBaseline(
        power_w=power,
        noise_w=noise_w,
        dof=dof,
        drift_w=drift_w,
        drift_std_w=drift_std_w,
        stretches=int(span_s.size),
        time_s=float(span_s.sum()),
        findings=_remarks(value_w, drift_w, drift_std_w),
    )


def above_idle(
    energy: Quantity,
    duration_s: float,
    baseline: IdleBaseline,
    errors: MeterErrors,
    *,
    monte_carlo: MonteCarlo | None = None,
) -> Quantity:
    """Returns an energy less idle power times its time, J.

    Args:
        energy: J, measured by the baseline's meter.
        duration_s: time of it, s.
        baseline: idle power.
        errors: of the meter.
        monte_carlo: draws that many of them share.
    """
    if not isinstance(energy, Estimate):
        return energy
    if not isinstance(baseline.power_w, Estimate):
        return baseline.power_w
    value = energy.value - baseline.power_w.value * duration_s
    shared = math.hypot(errors.gain_std * energy.value, errors.offset_std_w * duration_s)
    own = math.sqrt(max(energy.std**2 - shared**2, 0.0))
    terms = (
        Term(name="energy", std=own, kind=Kind.A if math.isfinite(energy.dof) else Kind.B, dof=energy.dof),
        Term(name="gain", std=abs(value) * errors.gain_std, rectangular=errors.rectangular),
        Term(name="idle", std=baseline.noise_w * duration_s, kind=Kind.A, dof=baseline.dof),
        Term(name="idle_drift", std=_drift_std(baseline.drift_w) * duration_s, rectangular=True),
    )
    return estimate(
        value,
        terms,
        provenance=weakest((energy.provenance, baseline.power_w.provenance)),
        boundary=energy.boundary,
        monte_carlo=monte_carlo,
    )


def _drift_std(drift_w: float | None) -> float:
    """Returns half of the drift as a rectangular limit's standard uncertainty, W: work lay somewhere in between."""
    return 0.0 if drift_w is None else 0.5 * abs(drift_w) / math.sqrt(3.0)


def _terms(value_w: float, noise_w: float, moved: tuple[float, float | None], errors: MeterErrors) -> tuple[Term, ...]:
    dof, drift_w = moved
    return (
        Term(name="gain", std=abs(value_w) * errors.gain_std, rectangular=errors.rectangular),
        Term(name="offset", std=errors.offset_std_w, rectangular=errors.rectangular),
        Term(name="noise", std=noise_w, kind=Kind.A, dof=dof),
        Term(name="drift", std=_drift_std(drift_w), rectangular=True),
    )


def _stretches(traces: Sequence[Trace], timeline: Timeline, clock: ClockMap, sample_s: float) -> tuple[Ints, Ints]:
    """Returns begin and end of the stretches without an open slice, guards taken off, ns."""
    span = max(t.start_ns for t in traces), min(t.end_ns for t in traces)
    shift_s = clock.std_at_s(int(timeline.start_ns[len(timeline) // 2])) if len(timeline) else 0.0
    guard_ns = round((_GUARD * sample_s + 3.0 * shift_s) * 1e9)
    least_ns = round(_SAMPLES * sample_s * 1e9)
    begin, end = _rests(timeline, clock, span, least_ns + 2 * guard_ns)
    begin = np.maximum(begin, span[0]) + guard_ns
    end = np.minimum(end, span[1]) - guard_ns
    long = end - begin >= least_ns
    return begin[long], end[long]


def _rests(timeline: Timeline, clock: ClockMap, span: tuple[int, int], least_ns: int) -> tuple[Ints, Ints]:
    """Returns begin and end of what lies between slices, before the first and after the last, if it is long, ns."""
    start_ns, end_ns = timeline.start_ns, timeline.end_ns
    ordered = all(
        bool(np.all(start_ns[at + 1 : at + _BLOCK + 1] >= start_ns[at : at + _BLOCK][: start_ns.size - at - 1]))
        for at in range(0, start_ns.size, _BLOCK)
    )
    if not ordered:  # a clock's rate is positive: it leaves the order as it is
        order = np.argsort(start_ns, kind="stable")
        start_ns, end_ns = start_ns[order], end_ns[order]
    until, begins, ends = span[0], [], []
    for at in range(0, start_ns.size, _BLOCK):
        begin = np.empty(min(_BLOCK, start_ns.size - at) + 1, np.int64)
        begin[0], begin[1:] = until, clock.apply(end_ns[at : at + _BLOCK])
        np.maximum.accumulate(begin, out=begin)
        end, until = clock.apply(start_ns[at : at + _BLOCK]), int(begin[-1])
        long = np.flatnonzero(end - begin[:-1] >= least_ns)
        begins.append(begin[long])
        ends.append(end[long])
    begins.append(np.array([until], np.int64))
    ends.append(np.array([span[1]], np.int64))
    return np.concatenate(begins), np.concatenate(ends)


def _load_stretches(
    traces: Sequence[Trace], begin_ns: Ints, end_ns: Ints
) -> tuple[list[tuple[EnergyTrace, ...]], Ints, Ints]:
    """Returns what holds the samples of each stretch, and the stretches.

    Streamed samples are read for some stretches spread over the recording, and for no more of each than fits.
    """
    if not any(isinstance(trace, StreamedTrace) for trace in traces):
        held = tuple(trace for trace in traces if isinstance(trace, EnergyTrace))
        return [held] * begin_ns.size, begin_ns, end_ns
    some = np.unique(np.linspace(0, begin_ns.size - 1, min(_READ, begin_ns.size)).round().astype(np.int64))
    begin_ns, end_ns = begin_ns[some], end_ns[some]
    longest_ns = _READ_SAMPLES * min(round(t.step_ns) for t in traces if isinstance(t, StreamedTrace))
    begin_ns = np.maximum(begin_ns, (begin_ns + end_ns - longest_ns) // 2)
    end_ns = np.minimum(end_ns, begin_ns + longest_ns)
    windows = [
        tuple(_window(trace, begin, end) for trace in traces)
        for begin, end in zip(begin_ns.tolist(), end_ns.tolist(), strict=True)
    ]
    return windows, begin_ns, end_ns


def _window(trace: Trace, begin_ns: int, end_ns: int) -> EnergyTrace:
    if isinstance(trace, EnergyTrace):
        return trace
    first = max(int((begin_ns - trace.start_ns) // trace.step_ns) - 1, 0)
    return trace.load(first, min(int((end_ns - trace.start_ns) // trace.step_ns) + 2, trace.n))


def _held(windows: Sequence[tuple[EnergyTrace, ...]], begin_ns: Ints, end_ns: Ints) -> tuple[Floats, Floats]:
    """Returns the energy of each stretch, J, and the time of it that was seen, s."""
    if len({id(window) for window in windows}) <= 1:  # all in one piece
        parts = [integrate_energy(trace, begin_ns, end_ns) for trace in (windows[0] if windows else ())]
        if not parts:
            return np.zeros(0), np.zeros(0)
        return np.sum([p.energy_j for p in parts], axis=0), np.min([p.covered_s for p in parts], axis=0)
    each = [
        _held([window], begin_ns[at : at + 1], end_ns[at : at + 1])  # a window holds its own stretch alone
        for at, window in enumerate(windows)
    ]
    return np.concatenate([energy_j for energy_j, _ in each]), np.concatenate([seen_s for _, seen_s in each])


def _parts(
    windows: Sequence[tuple[EnergyTrace, ...]], begin_ns: Ints, end_ns: Ints, step_s: float
) -> tuple[Floats, Floats]:
    """Returns mean powers of equal parts of the stretches, in order of time, and the middle of each, s."""
    total_ns = int((end_ns - begin_ns).sum())
    part_ns = max(total_ns // _PARTS, round(step_s * 1e9), 1)
    powers, middles = [], []
    for window, begin, end in zip(windows, begin_ns.tolist(), end_ns.tolist(), strict=True):
        count = max(round((end - begin) / part_ns), 1)
        edges = begin + np.rint(np.linspace(0.0, end - begin, count + 1)).astype(np.int64)
        held = np.sum([integrate_between(trace, edges).energy_j for trace in window], axis=0)
        powers.append(held / (np.diff(edges) * 1e-9))
        middles.append(0.5e-9 * (edges[1:] + edges[:-1]))
    return np.concatenate(powers), np.concatenate(middles)


def _spread(powers_w: Floats) -> tuple[float, float]:
    if powers_w.size < 3:
        return (float(np.ptp(powers_w)) if powers_w.size > 1 else 0.0), 1.0
    independent = max(effective_count(powers_w), 2.0)
    return float(powers_w.std(ddof=1)) / math.sqrt(independent), independent - 1.0


def _drift(powers_w: Floats, at_s: Floats, middle_s: float) -> tuple[float | None, float]:
    early, late = powers_w[at_s < middle_s], powers_w[at_s >= middle_s]
    if early.size < 3 or late.size < 3:
        return None, 0.0
    parts = [_spread(part)[0] for part in (early, late)]
    return float(late.mean() - early.mean()), math.hypot(*parts)


def _remarks(value_w: float, drift_w: float | None, drift_std_w: float) -> tuple[Finding, ...]:
    if drift_w is None:
        message = "idle time was recorded on one side of the work only: nobody knows whether it stayed"
        return (Finding(slug="idle_not_checked", severity=Severity.INFO, message=message),)
    if abs(drift_w) <= _MOVED * drift_std_w:
        return ()
    message = (
        f"idle power moved by {drift_w:+.4g} W ({drift_w / value_w:+.2%}) between the halves of the recording, known to"
        f" {drift_std_w:.2g} W (1 sd); half of it is in every energy above idle"
    )
    return (Finding(slug="idle_drifted", severity=Severity.WARNING, message=message),)
