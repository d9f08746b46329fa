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
from joulemap.analysis.mapping.sampling import describe_trace
from joulemap.estimate import Boundary, Provenance
from joulemap.records.finding import Finding, Severity
from joulemap.trace import EnergyTrace, KernelKind, integrate_between

__all__ = ["DomainRuns", "Window", "measure_runs"]

Window = tuple[int, int]
"""Begin and end, ns on the clock of the traces."""

_LOST_LIMIT: Final = 0.01
_DRIFT_LIMIT: Final = 0.05

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
        edge_std_j=np.array([math.hypot(*(_edge_std_j(trace, at, update_s) for at in window)) for window in runs]),
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


def _edge_std_j(trace: EnergyTrace, at_ns: int, update_s: float) -> float:
    """Returns what it is worth not to know how power moved inside the sample that an edge falls into, J.

    The sample of length s is cut at x: with powers P and Q on either side its mean gives |P - Q| x (s - x) / s too much
    to one side at the most, and a counter may be late by one update.
    """
    edges = trace.edges_ns
    if edges is None:
        step_ns = trace.step_ns
        k = int((at_ns - trace.start_ns) // step_ns)
        cut_ns, length_ns = (at_ns - trace.start_ns) - k * step_ns, step_ns
    else:
        k = int(np.searchsorted(edges, at_ns, "right")) - 1
        if not 0 <= k < trace.n:
            return 0.0  # outside: that time counts as lost
        cut_ns, length_ns = float(at_ns - edges[k]), float(edges[k + 1] - edges[k])
    near = trace.power_w[max(k - 1, 0) : k + 2].astype(np.float64)
    if not near.size:
        return 0.0
    step_w = float(near.max() - near.min())
    inside_s = cut_ns * (length_ns - cut_ns) / length_ns * 1e-9
    return limit_std(step_w * (max(inside_s, 0.0) + update_s))


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
