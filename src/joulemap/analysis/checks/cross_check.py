"""The sampled power of a device against its own energy counter over the time that both saw.

References:
    METHODS 1.2 in docs/methods.md (NVML at idle: 187 J by one, 327 J by the other; flag 10 %).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.uncertainty import Term, estimate
from joulemap.analysis.mapping.row_figures import energy_terms
from joulemap.analysis.sampling import describe_trace
from joulemap.estimate import Estimate, weakest
from joulemap.records.finding import Finding, Severity
from joulemap.trace import EnergyTrace, KernelKind, integrate_energy

__all__ = ["compare_counter", "pair_counters"]

_STEPS = 4
_ALARM = 0.10
_SUFFIX = " counter"


def pair_counters(traces: Sequence[EnergyTrace]) -> list[tuple[EnergyTrace, EnergyTrace]]:
    """Returns (power, counter) of each device that has both, on one clock and boundary."""
    counters = {t.channel.name: t for t in traces if t.channel.kernel.kind is KernelKind.COUNTER}
    pairs = []
    for trace in traces:
        counter = counters.get(trace.channel.name + _SUFFIX)
        if counter is None or counter is trace or trace.channel.kernel.kind is KernelKind.COUNTER:
            continue
        if counter.clock == trace.clock and counter.channel.boundary is trace.channel.boundary:
            pairs.append((trace, counter))
    return pairs


def compare_counter(power: EnergyTrace, counter: EnergyTrace) -> tuple[Estimate | None, Finding | None]:
    """Returns power's energy over the counter's with its interval, and the verdict; None when they share no time.

    The interval holds noise, what power did between its samples, and the edges of the common time: it says whether
    the two agree as well as this recording can tell, nothing of a gain that both share.
    """
    begin_ns, end_ns = max(power.start_ns, counter.start_ns), min(power.end_ns, counter.end_ns)
    facts = [describe_trace(trace) for trace in (power, counter)]
    step_s = max(f.step_s for f in facts)
    if (end_ns - begin_ns) * 1e-9 < _STEPS * step_s:
        return None, None
    edges = np.array([begin_ns], np.int64), np.array([end_ns], np.int64)
    held = [integrate_energy(trace, *edges) for trace in (power, counter)]
    energy_j = [float(part.energy_j[0]) for part in held]
    seen_s = [float(part.covered_s[0]) for part in held]
    if min(energy_j) <= 0 or min(seen_s) < 0.9 * max(seen_s):
        return None, None
    mean_w = [joules / time_s for joules, time_s in zip(energy_j, seen_s, strict=True)]
    ratio = mean_w[0] / mean_w[1]
    terms = []
    for which, fact, joules, time_s in zip(("power", "counter"), facts, energy_j, seen_s, strict=True):
        own = energy_terms(joules, time_s, (fact, MeterErrors(), 0.0))
        edge_j = fact.spread_w * fact.sample_s / math.sqrt(6.0)  # both ends, each anywhere in a sample
        std_j = math.hypot(edge_j, *(term.std for term in own))
        terms.append(Term(name=which, std=ratio * std_j / joules))
    told = estimate(
        ratio, terms, provenance=weakest((power.channel.provenance, counter.channel.provenance)), boundary=None
    )
    off = abs(ratio - 1.0)
    said = (
        f"{power.channel.name}: its power readings make {ratio:.4g} +- {told.expanded:.2g} (95 %) of what its energy"
        f" counter says over {(end_ns - begin_ns) * 1e-9:.4g} s"
    )
    if off <= told.expanded:
        return told, Finding(slug="counter_confirms", severity=Severity.INFO, message=f"{said}: they agree")
    severity = Severity.WARNING if off > _ALARM else Severity.INFO
    return told, Finding(slug="counter_disagrees", severity=severity, message=f"{said}: they do not agree")
