"""``joulemap meters``: the power meters of this machine, and for each that cannot be read the exact fix."""

from __future__ import annotations

import json
import sys

import click

from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, is_unicode, output_options
from joulemap.cli.streams import write_result
from joulemap.meters.live.discovery import discover, find_meters
from joulemap.meters.live.registry import driver, driver_names
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterCandidate
from joulemap.report.console.style import Style
from joulemap.units import PLAIN, format_duration

__all__ = ["command"]

_READING = {DomainReading.ENERGY_COUNTER: "energy", DomainReading.POWER: "power", DomainReading.SIGNAL: "signal"}


@click.command("meters")
@click.option("--meter", "names", multiple=True, metavar="NAME", help="Look at this meter only; repeatable.")
@output_options
@click.pass_context
def command(context: click.Context, /, names: tuple[str, ...]) -> int:
    """List the power meters of this machine, and the fix for each that cannot be read."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    candidates = find_meters(names) if names else discover()
    if invocation.json:
        write_result(json.dumps(_document(candidates), indent=2) + "\n")
        return 0
    style = Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout))
    text = "".join(_lines(candidate, style) for candidate in candidates)
    write_result(style.encode(text + ("" if names else _named_kinds())))
    return 0


def _lines(candidate: MeterCandidate, style: Style) -> str:
    state = "can be read" if candidate.usable else "cannot be read"
    lines = [f"{style.bold(candidate.name)}  {state}"]
    if not candidate.usable:
        lines.append(f"  {candidate.problem}")
        lines += [f"    fix: {candidate.fix}"] if candidate.fix else []
    lines += [f"  {_domain_line(domain)}" for domain in candidate.domains]
    return "".join(f"{line}\n" for line in lines)


def _signal(unit: str) -> str:
    return "signal, a share or a count" if unit == "1" else f"signal in {unit}"


def _domain_line(domain: LiveDomain) -> str:
    facts = [_READING[domain.reading] if domain.boundary is not None else _signal(domain.unit)]
    facts += [f"of the {domain.boundary}"] if domain.boundary is not None else []
    facts += [str(domain.provenance).replace("_", " ")]
    facts += (
        [f"new every {format_duration(domain.update_period_s, typography=PLAIN)}"]
        if domain.update_period_s is not None
        else []
    )
    facts += [f"mean of {format_duration(domain.window_s, typography=PLAIN)}"] if domain.window_s is not None else []
    facts += [f"inside {', '.join(domain.inside)}"] if domain.inside else []
    return f"{domain.name:<24} {', '.join(facts)}"


def _named_kinds() -> str:
    kinds = [(driver(name).EXAMPLE, driver(name).SUMMARY) for name in driver_names() if driver(name).EXAMPLE]
    lines = [f"  {example}\n    {summary}" for example, summary in kinds]
    return "\nMeters that are there when they are named with --meter:\n" + "".join(f"{line}\n" for line in lines)


def _document(candidates: tuple[MeterCandidate, ...]) -> dict[str, object]:
    return {
        **document_head("joulemap.meters"),
        "meters": [
            {
                "name": candidate.name,
                "driver": candidate.address.driver,
                "options": dict(candidate.address.options),
                "usable": candidate.usable,
                "problem": candidate.problem or None,
                "fix": candidate.fix or None,
                "domains": [_domain_document(domain) for domain in candidate.domains],
            }
            for candidate in candidates
        ],
        "named": [
            {"driver": name, "example": driver(name).EXAMPLE, "summary": driver(name).SUMMARY}
            for name in driver_names()
            if driver(name).EXAMPLE
        ],
    }


def _domain_document(domain: LiveDomain) -> dict[str, object]:
    return {
        "name": domain.name,
        "reading": str(domain.reading),
        "unit": domain.unit,
        "provenance": str(domain.provenance),
        "boundary": None if domain.boundary is None else str(domain.boundary),
        "update_period_s": domain.update_period_s,
        "window_s": domain.window_s,
        "latency_s": domain.latency_s,
        "modulus_j": None if domain.modulus is None else domain.modulus * domain.scale,
        "largest_w": domain.largest_w,
        "gain_std": domain.gain_std,
        "inside": list(domain.inside),
        "source": domain.source,
    }
