"""A recorded command as text: what it drew, per domain, how well that is known, and the live line while it runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from joulemap.report.console.style import Style
from joulemap.report.view.recording.next_step import suggest_next
from joulemap.report.view.text import printable
from joulemap.units import format_duration, format_estimate, format_si

__all__ = ["render_live_line", "render_record"]

_SHOWN = 3


def render_live_line(
    phase: str, elapsed_s: float, power_w: Mapping[str, float], energy_j: Mapping[str, float], *, place: tuple[int, int]
) -> str:
    """Returns one line of what goes on, without an end of line.

    Args:
        phase: ``baseline`` or ``run``.
        elapsed_s: since the phase began, s.
        power_w: by domain; NaN while nothing is known.
        energy_j: by domain, since the recording began.
        place: number of the run, and of how many.
    """
    what = phase if place[1] == 1 or not place[0] else f"{phase} {place[0]}/{place[1]}"
    known = [(name, value) for name, value in power_w.items() if math.isfinite(value)]
    parts = [
        f"{name} {format_si(value, 'W', digits=4)} {format_si(energy_j[name], 'J', digits=4)}"
        for name, value in known[:_SHOWN]
    ]
    more = f" +{len(known) - _SHOWN}" if len(known) > _SHOWN else ""
    return printable(f"joulemap {what} {format_duration(elapsed_s)}  {'  '.join(parts)}{more}")


def render_record(document: Mapping[str, Any], *, style: Style) -> str:
    """Returns the lines of a record document."""
    lines = [style.bold(printable(" ".join(document["command"]["argv"])))]
    repeats = document["repeats"]
    runs = f"mean of {repeats} runs" if repeats > 1 else "one run"
    lines.append(f"  time       {_figure(document['duration_s'], 's')}  ({runs})")
    lines.append(f"  energy     {_figure(document['energy_j'], 'J')}{_of(document)}")
    above = document["energy_above_idle_j"]
    if above["value"] is not None or above["reason"] != "no_baseline":
        lines.append(f"  above idle {_figure(above, 'J')}")
    lines.append("  domains (whole domain, other programs included)")
    lines += [_domain(domain) for domain in document["domains"]]
    lines += [_unit(unit) for unit in document.get("work", {"units": []})["units"]]
    sampler = document["sampler"]
    if sampler["achieved_hz"] is not None:
        lines.append(
            f"  sampler    {sampler['achieved_hz']:.4g} Hz, jitter p99 {format_duration(sampler['jitter_p99_s'])},"
            f" {sampler['missed']} missed"
        )
    lines += _overhead(document.get("overhead"))
    for finding in document["findings"]:
        where = f" [{finding['span']}]" if finding["span"] else ""
        line = printable(f"{finding['severity']}: {finding['message']}{where} ({finding['slug']})")
        lines.append(style.warn(line) if finding["severity"] != "info" else style.dim(line))
    if document["command"]["status"]:
        lines.append(f"  the command ended with status {document['command']['status']}")
    lines.append(f"bundle  {document['bundle']}")
    lines.append(f"next    {printable(suggest_next(document))}")
    return style.encode("\n".join(lines) + "\n")


def _of(document: Mapping[str, Any]) -> str:
    names = document["energy_of"]
    if not names or len(document["domains"]) < 2:
        return ""
    return printable(f"  ({' + '.join(names)}; {document['headline']['boundary']})")


def _domain(domain: Mapping[str, Any]) -> str:
    inside = f", inside {', '.join(domain['overlaps'])}" if domain["overlaps"] else ""
    inside += f", of {domain['machine']}" if domain["machine"] else ""
    energy, power = domain["energy_j"], domain["average_power_w"]
    return printable(
        f"    {domain['name']:<28} {_figure(energy, 'J'):<26} {_figure(power, 'W'):<22}"
        f" {domain['boundary']}, {domain['provenance'].replace('_', ' ')}{inside}"
    )


def _unit(unit: Mapping[str, Any]) -> str:
    counted = [count for count in unit["counts"] if count is not None]
    above = unit["energy_above_idle_per_unit_j"]
    more = f", above idle {_figure(above, 'J')}" if above["value"] is not None else ""
    rate = unit["units_per_s"]
    pace = f", {rate['value']:.4g} a second" if rate["value"] is not None else ""
    runs = "" if len(counted) == len(unit["counts"]) else f" in {len(counted)} of {len(unit['counts'])} runs"
    return printable(
        f"  per {unit['unit']:<9} {_figure(unit['energy_per_unit_j'], 'J')}{more}"
        f"  ({sum(counted):.6g} counted{runs}{pace}; {unit['metric']})"
    )


def _figure(quantity: Mapping[str, Any], unit: str) -> str:
    if quantity["value"] is None:
        return f"not available ({quantity['reason']})"
    if not quantity["expanded"]:
        return format_si(quantity["value"], unit)
    return format_estimate(quantity["value"], quantity["expanded"], unit)


def _overhead(overhead: Mapping[str, Any] | None) -> list[str]:
    if overhead is None:
        return []
    lines = [f"  overhead   time {_change(overhead['duration_rel'])}  ({overhead['pairs']} pairs, with and without)"]
    lines += [f"             {name} {_change(change)}" for name, change in overhead["energy_rel"].items()]
    return lines


def _change(quantity: Mapping[str, Any]) -> str:
    if quantity["value"] is None:
        return f"not available ({quantity['reason']})"
    return f"{quantity['value']:+.2%} ± {quantity['expanded']:.2%}"
