"""``map --rule``: the figures of a published scoring rule, and our own integral over the same windows beside them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joulemap.analysis.mapping.published import PublishedFigures, PublishedRule, published_figures
from joulemap.errors import InputError
from joulemap.records.finding import Finding, Severity
from joulemap.records.published import MlperfRun, PublishedRun
from joulemap.trace import EnergyTrace, Timeline, integrate_energy
from joulemap.workflow.recordings.recording_bundle import RecordingBundle, timeline_name

__all__ = ["RULES", "PublishedMap", "apply_rule"]

RULES = tuple(PublishedRule)
_ROUNDING = 1e-12
"""Relative: what sums of the same samples in another order differ by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMap:
    """What a rule adds to a map.

    Args:
        rule: that was applied.
        metrics: its figures and our own, by key.
        findings: how they differ and why.
    """

    rule: str
    metrics: dict[str, object]
    findings: tuple[Finding, ...]


def apply_rule(recordings: RecordingBundle, wanted: str, trace: str | None) -> tuple[PublishedMap, str | None]:
    """Returns the figures of a rule, and the trace that they belong to.

    Args:
        recordings: of the bundle.
        wanted: ``mlperf`` for the rule of the source, or a rule by name.
        trace: that the user named; its recording counts then.

    Raises:
        InputError: the bundle holds nothing that the rule is made for (``rule-not-applicable``).
    """
    runs = recordings.load_published()
    if trace is not None:
        entry = recordings.entry_of(trace)
        runs = tuple(pair for pair in runs if pair[0] is entry)
    if not runs:
        raise InputError(
            "the bundle holds no run that a published rule is made for",
            hint="import the folder of an MLPerf run: rules need its window and counts",
            slug="rule-not-applicable",
        )
    if len(runs) > 1:
        raise InputError(
            f"the bundle holds {len(runs)} runs",
            hint=f"name one by its trace: --trace {runs[0][0].traces[0].name}",
            slug="rule-not-applicable",
        )
    entry, run = runs[0]
    figures = published_figures(run)
    if wanted not in (str(PublishedRule.MLPERF), str(figures.rule)):
        raise InputError(
            f"the rule {wanted} is not made for a recording of {entry.format}",
            hint=f"use --rule {figures.rule}",
            slug="rule-not-applicable",
        )
    own = _own_figures(recordings, run, [t.name for t in entry.traces], entry.timelines)
    metrics: dict[str, object] = {
        "published_value": figures.value,
        "published_unit": figures.unit,
        "average_power_w": figures.average_power_w,
        "energy_per_query_j": figures.energy_per_query_j,
        "energy_per_sample_j": figures.energy_per_sample_j,
        "throughput_hz": figures.throughput_hz,
        "windows": [
            {
                "samples": window.samples,
                "dropped": window.dropped,
                "duration_s": window.duration_s,
                "energy_j": window.energy_j,
                "average_power_w": window.average_power_w,
                "energy_per_query_j": window.energy_per_query_j,
                "throughput_hz": window.throughput_hz,
            }
            for window in figures.windows
        ],
        "own_average_power_w": own[0],
        "own_energy_per_query_j": own[1],
    }
    shown = entry.traces[0].name if entry.traces else None
    return PublishedMap(rule=str(figures.rule), metrics=metrics, findings=_findings(figures, own)), shown


def _own_figures(
    recordings: RecordingBundle, run: PublishedRun, traces: Sequence[str], timelines: Sequence[str]
) -> tuple[float | None, float | None]:
    """Returns mean power, W, and energy per query, J, by exact integration over the same windows."""
    if not timelines:
        return None, None
    loaded = [recordings.load_timeline(timeline_name(section)) for section in timelines]
    if isinstance(run, MlperfRun):
        powers, energies = _integrate(recordings.load_trace(traces[0]), loaded[0])
        return powers[0], energies[0] / run.queries if run.queries else None
    if len(loaded) == len(traces):
        parts = [_integrate(recordings.load_trace(name), line) for name, line in zip(traces, loaded, strict=True)]
    else:
        parts = [_integrate(recordings.load_trace(traces[0]), loaded[0])]
    powers = [power for part in parts for power in part[0]]
    energies = [energy for part in parts for energy in part[1]]
    counts = [trial.iterations for trial in run.trials] if hasattr(run, "trials") else [run.iterations] * len(energies)
    each = [energy / count for energy, count in zip(energies, counts, strict=False) if count]
    return statistics.median(powers), statistics.median(each) if each else None


def _integrate(trace: EnergyTrace, timeline: Timeline) -> tuple[list[float], list[float]]:
    held = integrate_energy(trace, timeline.start_ns, timeline.end_ns)
    seen = held.covered_s > 0
    power_w = np.divide(held.energy_j, held.covered_s, out=np.zeros(seen.size), where=seen)
    return power_w.tolist(), held.energy_j.tolist()


def _findings(figures: PublishedFigures, own: tuple[float | None, float | None]) -> tuple[Finding, ...]:
    findings = []
    dropped = sum(window.dropped for window in figures.windows)
    if dropped:
        total = dropped + sum(window.samples for window in figures.windows)
        message = (
            f"the rule {figures.rule} leaves out {dropped} of {total} samples inside the window, those at or below 0 W,"
            " and multiplies the mean of the others by the whole time"
        )
        findings.append(Finding(slug="published_samples_dropped", severity=Severity.WARNING, message=message))
    if own[0] is not None and figures.average_power_w:
        apart = own[0] / figures.average_power_w - 1.0
        message = (
            f"exact integration over the same time gives {own[0]:.10g} W, {_apart(apart)} the published rule's "
            f"{figures.average_power_w:.10g} W{_why(figures.rule) if abs(apart) >= _ROUNDING else ''}"
        )
        severity = Severity.WARNING if abs(apart) > 0.01 else Severity.INFO
        findings.append(Finding(slug="published_rule_differs", severity=severity, message=message))
    return tuple(findings)


def _apart(relative: float) -> str:
    """Returns a relative difference in words; beyond the twelfth digit it is rounding and no difference."""
    if abs(relative) < _ROUNDING:
        return "the same to twelve digits as"
    return f"{abs(relative) * 100:.3g} % {'above' if relative > 0 else 'below'}"


def _why(rule: PublishedRule) -> str:
    if rule is PublishedRule.MLPERF:
        return ": the rule takes a plain mean of samples that are not evenly spaced"
    return ": the rule takes a plain mean of samples, at edges that it finds in its own way"
