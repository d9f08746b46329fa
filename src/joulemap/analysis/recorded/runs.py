"""One domain over the runs of a recording: energy of each run, what its edges are worth, and the idle power around.

References:
    METHODS 1.1, 1.2 (samples are means of intervals; counters are known where they change).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.uncertainty import limit_std
from joulemap.analysis.sampling import describe_trace
from joulemap.estimate import Boundary, Provenance
from joulemap.records.finding import Finding, Severity
from joulemap.trace import EnergyTrace, KernelKind, integrate_between

__all__ = ["DomainRuns", "Window", "measure_runs"]

Window = tuple[int, int]
"""Begin and end, ns on the clock of the traces."""

_LOST_LIMIT: Final = 0.01
_DRIFT_LIMIT: Final = 0.05
_WHOLE_SAMPLES: Final = 2
"""Whole samples that a run must hold before its neighbours say what power was at its edges."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DomainRuns:
    """What one domain drew in each run.

    Args:
        name: of the channel.
        boundary: what it feeds.
        provenance: of its readings.
        energy_j: (runs,) J; NaN for a run of which more than 1 % was lost.
        duration_s: (runs,) s.
        edge_std_j: (runs,) standard uncertainty that the edges of a run give, J.
        lost_std_j: (runs,) standard uncertainty that lost time gives, J.
        noise_w: noise of a sample times the root of its length: W sqrt(s); 0 for a counter.
        idle_w: mean power of the baselines, W; None without a baseline.
        idle_std_w: its standard uncertainty without the gain's, W.
        errors: of the meter.
        findings: what is doubtful.
    """

    name: str
    boundary: Boundary
    provenance: Provenance
    energy_j: Floats
    duration_s: Floats
    edge_std_j: Floats
    lost_std_j: Floats
    noise_w: float
    idle_w: float | None
    idle_std_w: float
    errors: MeterErrors
    findings: tuple[Finding, ...] = field(default=())


def measure_runs(
    trace: EnergyTrace,
    runs: Sequence[Window],
    baselines: Sequence[Window],
    *,
    errors: MeterErrors,
    update_s: float = 0.0,
) -> DomainRuns:
    """Returns the runs of a domain.

    Args:
        trace: of the domain.
        runs: at least one; in order of time.
        baselines: times at which nothing ran; may be empty.
        errors: of the meter.
        update_s: how late a counter may show what it counted, s.
    """
    name = trace.channel.name
    findings = list(errors.findings)
    held = [_energy(trace, window) for window in runs]
    energy_j, lost_s = (np.array(column) for column in zip(*held, strict=True))
    duration_s = np.array([(end - begin) * 1e-9 for begin, end in runs])
    seen_s = duration_s - lost_s
    mean_w = np.divide(energy_j, seen_s, out=np.zeros_like(energy_j), where=seen_s > 0)
    dropped = (lost_s > _LOST_LIMIT * duration_s) | (seen_s <= 0)
    for row in np.flatnonzero(dropped).tolist():
        message = (
            f"{name}: {lost_s[row]:.4g} s of the {duration_s[row]:.4g} s of run {row + 1} were not measured; it has no"
            " energy here"
        )
        findings += [Finding(slug="run_samples_lost", severity=Severity.WARNING, message=message)]
    facts = describe_trace(trace)
    counter = trace.channel.kernel.kind is KernelKind.COUNTER
    idle_w, idle_std_w = _idle(trace, baselines, findings)
    return DomainRuns(
        name=name,
        boundary=trace.channel.boundary,
        provenance=trace.channel.provenance,
        energy_j=np.where(dropped, np.nan, mean_w * duration_s),
        duration_s=duration_s,
        edge_std_j=np.array([_edges_std_j(trace, window, update_s) for window in runs]),
        lost_std_j=limit_std(1.0) * mean_w * lost_s,  # anything from nothing to twice the mean may have been drawn
        noise_w=0.0 if counter else facts.noise_w * math.sqrt(facts.step_s),
        idle_w=idle_w,
        idle_std_w=idle_std_w,
        errors=errors,
        findings=tuple(findings),
    )


def _energy(trace: EnergyTrace, window: Window) -> tuple[float, float]:
    """Returns the energy of a window, J, and how much of its time was not measured, s."""
    held = integrate_between(trace, np.array(window, np.int64))
    span_s = (window[1] - window[0]) * 1e-9
    return float(held.energy_j[0]), max(span_s - float(held.covered_s[0]), 0.0)


def _edges_std_j(trace: EnergyTrace, window: Window, update_s: float) -> float:
    """Returns the standard uncertainty that both edges of a run give, J.

    They add up: where power is higher inside than outside, the samples at both edges take from the run.
    """
    places = [_place(trace, at_ns) for at_ns in window]
    whole = places[1].sample - places[0].sample - 1
    span_s = (window[1] - window[0]) * 1e-9
    short = whole < _WHOLE_SAMPLES or span_s < (_WHOLE_SAMPLES + 1) * update_s
    return sum(_edge_std_j(trace, place, update_s, short=short) for place in places)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The sample that an instant falls into, how far it is cut there, and how long it is, ns."""

    sample: int
    cut_ns: float
    length_ns: float


def _place(trace: EnergyTrace, at_ns: int) -> _Place:
    edges = trace.edges_ns
    if edges is None:
        step_ns = trace.step_ns
        k = int((at_ns - trace.start_ns) // step_ns)
        return _Place(sample=k, cut_ns=(at_ns - trace.start_ns) - k * step_ns, length_ns=step_ns)
    k = int(np.searchsorted(edges, at_ns, "right")) - 1
    inside = min(max(k, 0), trace.n - 1)
    return _Place(sample=k, cut_ns=float(at_ns - edges[inside]), length_ns=float(edges[inside + 1] - edges[inside]))


def _edge_std_j(trace: EnergyTrace, place: _Place, update_s: float, *, short: bool) -> float:
    """Returns what it is worth not to know how power moved inside the sample that an edge falls into, J.

    The sample of length s is cut at x: with powers P and Q on either side its mean gives |P - Q| x (s - x) / s too much
    to one side at the most, and a counter may be late by one update. In a run of a few samples the neighbours do not
    say what P and Q were: then all of the shorter part may be on the wrong side.
    """
    if not 0 <= place.sample < trace.n:
        return 0.0  # outside: that time counts as lost
    near = trace.power_w[max(place.sample - 1, 0) : place.sample + 2].astype(np.float64)
    cut_s, rest_s = place.cut_ns * 1e-9, (place.length_ns - place.cut_ns) * 1e-9
    if short:
        return limit_std(float(np.abs(near).max()) * (max(min(cut_s, rest_s), 0.0) + update_s))
    inside_s = cut_s * rest_s / (place.length_ns * 1e-9)
    return limit_std(float(near.max() - near.min()) * (max(inside_s, 0.0) + update_s))


def _idle(trace: EnergyTrace, baselines: Sequence[Window], findings: list[Finding]) -> tuple[float | None, float]:
    """Returns the mean idle power, W, and its standard uncertainty, from how far the baselines are apart."""
    means: list[float] = []
    spans: list[float] = []
    for window in baselines:
        energy_j, lost_s = _energy(trace, window)
        seen_s = (window[1] - window[0]) * 1e-9 - lost_s
        if seen_s > 0.5 * (window[1] - window[0]) * 1e-9:
            means.append(energy_j / seen_s)
            spans.append(seen_s)
    if not means:
        return None, 0.0
    mean_w = math.fsum(m * s for m, s in zip(means, spans, strict=True)) / math.fsum(spans)
    apart_w = max(means) - min(means)
    if len(means) > 1 and apart_w > _DRIFT_LIMIT * abs(mean_w):
        findings.append(
            Finding(
                slug="baseline_drifted",
                severity=Severity.WARNING,
                message=f"{trace.channel.name}: idle power was {means[0]:.4g} W before and {means[-1]:.4g} W after the"
                " runs; the energy above idle is known no better than that",
            )
        )
    facts = describe_trace(trace)
    counter = trace.channel.kernel.kind is KernelKind.COUNTER
    noise_w = 0.0 if counter else facts.noise_w * math.sqrt(facts.step_s / math.fsum(spans))
    return mean_w, math.hypot(limit_std(0.5 * apart_w), noise_w)
