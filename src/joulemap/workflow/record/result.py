"""The document of a recording: energy per domain, the sum of disjoint ones, the command, the sampler, the findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from joulemap import __version__
from joulemap.analysis.intervals.uncertainty import estimate, mean_term
from joulemap.analysis.recorded.energies import (
    RUNS_DIFFER,
    estimate_above_idle,
    estimate_duration,
    estimate_energy,
    estimate_mean_power,
)
from joulemap.analysis.recorded.gain import live_errors, stated_gain
from joulemap.analysis.recorded.headline import SUM, Headline, choose_headline
from joulemap.analysis.recorded.runs import DomainRuns, Window, measure_runs
from joulemap.analysis.recorded.work import measure_unit
from joulemap.estimate import Estimate, Provenance, Quantity, Unavailable
from joulemap.records.finding import Finding, Severity, Validity
from joulemap.records.live.capture_header import CaptureHeader, qualify
from joulemap.records.live.domain import DomainReading, LiveDomain
from joulemap.records.recording import Recording
from joulemap.workflow.record.command import CommandEnd
from joulemap.workflow.record.request import Recorded

__all__ = ["SCHEMA", "describe_record", "estimate_headline", "headline_of", "headline_parts", "measure_domains"]

SCHEMA: Final = "joulemap.record"
SCOPE: Final = "whole domain: everything that it fed while the command ran, other programs included"


def measure_domains(
    recording: Recording,
    header: CaptureHeader,
    runs: Sequence[Window],
    baselines: Sequence[Window],
    *,
    asked: Sequence[str] = (),
    explain: bool = True,
) -> tuple[DomainRuns, ...]:
    """Returns what every domain drew in the runs, in the order of the traces.

    Args:
        recording: of the capture.
        header: of the capture.
        runs: begin and end of each.
        baselines: begin and end of each.
        asked: headline, as in :func:`choose_headline`.
        explain: the first domain of the headline says what it leaves out.
    """
    declared = {name: domain for name, domain, _ in _declared(header)}
    parts = tuple(
        measure_runs(
            trace,
            runs,
            baselines,
            errors=live_errors(
                trace.channel.name, stated_gain(recording.metadata, trace.channel.name), trace.channel.provenance
            ),
            update_s=declared[trace.channel.name].update_period_s or 0.0,
        )
        for trace in recording.traces
    )
    headline = headline_of(recording, parts, asked)
    said = tuple(_explain(headline)) if explain else ()
    return tuple(
        replace(part, findings=(*part.findings, *said)) if part.name in headline.domains[:1] else part for part in parts
    )


def headline_of(recording: Recording, parts: Sequence[DomainRuns], asked: Sequence[str] = ()) -> Headline:
    """Returns which domains the headline is made of; ``asked`` as in :func:`choose_headline`."""
    return choose_headline({part.name: part.boundary for part in parts}, recording.overlaps, asked)


def headline_parts(parts: Sequence[DomainRuns], headline: Headline) -> tuple[DomainRuns, ...]:
    """Returns the domains that the headline adds."""
    by_name = {part.name: part for part in parts}
    return tuple(by_name[name] for name in headline.domains)


def estimate_headline(figure: Callable[..., Quantity], parts: Sequence[DomainRuns], headline: Headline) -> Quantity:
    """Returns a figure of the headline; unavailable when what was asked for was lost.

    Args:
        figure: of disjoint domains: energy, energy above idle or mean power.
        parts: every domain.
        headline: of them.
    """
    if not headline.domains:
        return Unavailable(reason="meter_lost" if parts else "no_meter")
    return figure(headline_parts(parts, headline), mixed=headline.mixed)


def describe_record(
    recorded: Recorded, header: CaptureHeader, *, argv: Sequence[str], run_id: str
) -> tuple[dict[str, object], Validity]:
    """Returns the document without its bundle, and what it may claim.

    Args:
        recorded: what was recorded.
        header: of the capture.
        argv: the command.
        run_id: of the recording.
    """
    runs = [(end.start_ns, end.end_ns) for end in recorded.ends]
    recording = recorded.recording
    parts = measure_domains(recording, header, runs, recorded.baselines, explain=False) if runs else ()
    headline = headline_of(recording, parts, recorded.headline)
    chosen = headline_parts(parts, headline)
    findings = [*recorded.findings, *recording.findings, *(f for part in parts for f in part.findings)]
    findings += [*_remarks(chosen, recorded), *_explain(headline)]
    energy = estimate_headline(estimate_energy, parts, headline)
    validity = _validity([energy] if recorded.headline else [estimate_energy([part]) for part in parts], findings)
    document: dict[str, object] = {
        "schema": SCHEMA,
        "schema_version": 1,
        "tool": {"name": "joulemap", "version": __version__},
        "run_id": run_id,
        "validity": str(validity),
        "findings": [finding.to_json() for finding in findings],
        "scope": SCOPE,
        "energy_j": energy.to_json(),
        "energy_above_idle_j": estimate_headline(estimate_above_idle, parts, headline).to_json(),
        "average_power_w": estimate_headline(estimate_mean_power, parts, headline).to_json(),
        "energy_of": list(headline.domains) if isinstance(energy, Estimate) else [],
        "headline": {
            "rule": headline.rule,
            "domains": list(headline.domains),
            "boundary": headline.boundary or None,
            "left_out": list(headline.left_out),
        },
        "duration_s": estimate_duration([end.duration_s for end in recorded.ends]).to_json(),
        "domains": _describe_domains(recording, header, parts),
        "repeats": len(recorded.ends),
        "runs": [_describe_run(end, row, parts) for row, end in enumerate(recorded.ends)],
        "baselines_s": [(end - begin) * 1e-9 for begin, end in recorded.baselines],
        "command": _describe_command(argv, recorded.ends),
        "sampler": _describe_sampler(recording.metadata),
    }
    if recorded.server:
        document["work"] = _describe_work(recorded, chosen, mixed=headline.mixed)
    if recorded.plain:
        document["overhead"] = _describe_overhead(recorded, parts, header)
    return document, validity


def _describe_work(recorded: Recorded, chosen: Sequence[DomainRuns], *, mixed: bool) -> dict[str, object]:
    """Returns what the server counted, and the energy of the headline per unit of it."""
    units = []
    for unit in recorded.units:
        figures = measure_unit(chosen, unit, mixed=mixed)
        units.append(
            {
                "unit": unit.name,
                "metric": unit.metric,
                "counts": list(unit.counts),
                "energy_per_unit_j": figures.energy_j.to_json(),
                "energy_above_idle_per_unit_j": figures.above_idle_j.to_json(),
                "units_per_s": figures.per_s.to_json(),
            }
        )
    return {"server": recorded.server, "units": units}


def _declared(header: CaptureHeader) -> list[tuple[str, LiveDomain, str]]:
    return [
        (qualify(stream.meter, domain.name), domain, stream.meter)
        for stream in header.streams
        for domain in stream.domains
        if domain.reading is not DomainReading.SIGNAL
    ]


def _validity(figures: Sequence[Quantity], findings: Sequence[Finding]) -> Validity:
    if not any(isinstance(figure, Estimate) for figure in figures):
        return Validity.INVALID
    severe = any(finding.severity is Severity.ERROR for finding in findings)
    return Validity.DEGRADED if severe else Validity.VALID


def _explain(headline: Headline) -> list[Finding]:
    """Returns what the headline does not hold, and what it mixes."""
    said = []
    if headline.rule == "widest":
        message = (
            f"the headline is {', '.join(headline.domains)}: the widest boundary that was measured"
            f" ({headline.boundary}); {', '.join(headline.left_out)} feed something else and are not added; the"
            f" headline {SUM!r} adds them"
        )
        said.append(Finding(slug="domains_chosen", severity=Severity.INFO, message=message))
    if "+" in headline.boundary:
        message = (
            f"the headline adds what feeds different things ({headline.boundary}); it has no boundary of its own and"
            " is compared with sums of the same domains only"
        )
        said.append(Finding(slug="boundaries_differ", severity=Severity.INFO, message=message))
    return said


def _remarks(outer: Sequence[DomainRuns], recorded: Recorded) -> list[Finding]:
    remarks = []
    if len(recorded.ends) == 1:
        message = "one run: the intervals hold the meter's errors, not the scatter between runs; --repeats 5 adds it"
        remarks.append(Finding(slug="one_run", severity=Severity.INFO, message=message))
    short = [part.name for part in outer if estimate_energy([part]) == Unavailable(reason="too_short_for_samples")]
    if short and recorded.ends:
        mean_s = float(np.mean([end.duration_s for end in recorded.ends]))
        message = (
            f"{', '.join(short)}: a run of {mean_s:.3g} s is too short to be told from what lies around it; record a"
            " loop of many runs in one command"
        )
        remarks.append(Finding(slug="run_too_short", severity=Severity.WARNING, message=message))
    apart = [part.name for part in outer if estimate_energy([part]) == Unavailable(reason=RUNS_DIFFER)]
    if apart:
        message = (
            f"{', '.join(apart)}: the {len(recorded.ends)} runs differ so much that their mean is not known; more"
            " --repeats make it known"
        )
        remarks.append(Finding(slug=RUNS_DIFFER, severity=Severity.WARNING, message=message))
    return remarks


def _describe_domains(
    recording: Recording, header: CaptureHeader, parts: Sequence[DomainRuns]
) -> list[dict[str, object]]:
    by_name = {part.name: part for part in parts}
    described: list[dict[str, object]] = []
    for name, domain, meter in _declared(header):
        part = by_name.get(name)
        nothing: Quantity = Unavailable(reason="meter_lost")
        described.append(
            {
                "name": name,
                "meter": meter,
                "boundary": str(domain.boundary),
                "machine": domain.machine or None,
                "energy_j": (estimate_energy([part]) if part else nothing).to_json(),
                "energy_above_idle_j": (estimate_above_idle([part]) if part else nothing).to_json(),
                "average_power_w": (estimate_mean_power([part]) if part else nothing).to_json(),
                "idle_power_w": part.idle_w if part else None,
                "provenance": str(domain.provenance),
                "overlaps": [outer for inner, outer in recording.overlaps if inner == name],
            }
        )
    return described


def _describe_run(end: CommandEnd, row: int, parts: Sequence[DomainRuns]) -> dict[str, object]:
    energies = {part.name: float(part.energy_j[row]) for part in parts}
    return {
        "start_ns": end.start_ns,
        "end_ns": end.end_ns,
        "duration_s": end.duration_s,
        "status": end.status,
        "energy_j": {name: value if math.isfinite(value) else None for name, value in energies.items()},
    }


def _describe_command(argv: Sequence[str], ends: Sequence[CommandEnd]) -> dict[str, object]:
    failed = [end.status for end in ends if end.status]
    return {
        "argv": list(argv),
        "status": failed[0] if failed else 0,
        "rusage": {
            "user_s": math.fsum(end.user_s for end in ends),
            "system_s": math.fsum(end.system_s for end in ends),
            "peak_rss_b": max((end.peak_rss_b for end in ends if end.peak_rss_b is not None), default=None),
        },
    }


def _describe_sampler(metadata: Mapping[str, str]) -> dict[str, object]:
    def number(key: str) -> float | None:
        return float(metadata[key]) if key in metadata else None

    return {
        "rate_hz": number("rate_hz"),
        "achieved_hz": number("achieved_hz"),
        "jitter_p99_s": number("jitter_p99_s"),
        "missed": int(metadata.get("missed", "0")),
        "reading_p99_s": number("reading_p99_s"),
        "priority": metadata.get("priority", "normal"),
    }


def _describe_overhead(recorded: Recorded, parts: Sequence[DomainRuns], header: CaptureHeader) -> dict[str, object]:
    """Returns what sampling changes: the mean of the log ratios of neighbouring runs, sampled to not sampled.

    A counter counts on while nothing is sampled: read before and after, it tells what a run drew meanwhile.

    References:
        METHODS 2 (paired log ratios; a common gain cancels).
    """
    pairs = min(len(recorded.ends), len(recorded.plain))
    time_rel = _relative(
        [end.duration_s for end in recorded.ends[:pairs]], [end.duration_s for end in recorded.plain[:pairs]]
    )
    windows = [(end.start_ns, end.end_ns) for end in recorded.plain[:pairs]]
    counters = {name for name, domain, _ in _declared(header) if domain.reading is DomainReading.ENERGY_COUNTER}
    energy_rel: dict[str, object] = {}
    through = recorded.through or recorded.recording
    measured = measure_domains(through, header, windows, (), explain=False) if windows else ()
    plain = {part.name: part for part in measured}
    for with_it in parts:
        without = plain.get(with_it.name)
        if with_it.name in counters and without is not None:
            rows = np.isfinite(with_it.energy_j[:pairs]) & np.isfinite(without.energy_j[:pairs])
            figures = with_it.energy_j[:pairs][rows].tolist(), without.energy_j[:pairs][rows].tolist()
            energy_rel[with_it.name] = _relative(*figures).to_json()
    return {"pairs": pairs, "duration_rel": time_rel.to_json(), "energy_rel": energy_rel}


def _relative(sampled: Sequence[float], plain: Sequence[float]) -> Quantity:
    ratios = [math.log(a / b) for a, b in zip(sampled, plain, strict=True) if a > 0 and b > 0]
    if len(ratios) < 2:
        return Unavailable(reason="too_few_pairs")
    mean, term = mean_term(ratios)
    made = estimate(mean, (term,), provenance=Provenance.MEASURED_COUNTER)
    return Estimate(
        value=math.expm1(made.value),
        std=made.std * math.exp(made.value),
        k=made.k,
        dof=made.dof,
        provenance=made.provenance,
    )
