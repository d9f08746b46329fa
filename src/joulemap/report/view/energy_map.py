"""The document of ``map`` as headline, rows and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joulemap.report.view.text import DASH, format_quantity, format_share, format_time, printable, shorten
from joulemap.units import format_count, format_si

__all__ = ["MapTableRow", "MapView", "build_map_view"]

Document = Mapping[str, Any]

_ROWS = 40
"""Rows of a console table without ``--top``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapTableRow:
    """One line of the table; every cell is text already.

    Args:
        key: what the row stands for.
        count: slices.
        time: of them.
        power: mean.
        energy: with its expanded uncertainty.
        own: less what is inside, with its expanded uncertainty.
        share: of the total.
        running: sum of the shares so far.
        fill: length of the bar, 0..1; None for no bar.
        runs: how often to record for the wanted half-width; empty when none is wanted.
    """

    key: str
    count: str
    time: str
    power: str
    energy: str
    own: str
    share: str
    running: str
    fill: float | None
    runs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapView:
    """Everything that a person is shown of a map.

    Args:
        title: what was mapped.
        badge: provenance, boundary, validity.
        headline: the total.
        hotspot: one sentence on the first row; empty without one.
        rows: table; the last one is the total.
        figures: label and text.
        findings: severity, slug, message.
        bundle: where it lies.
    """

    title: str
    badge: str
    headline: str
    hotspot: str
    rows: tuple[MapTableRow, ...]
    figures: tuple[tuple[str, str], ...]
    findings: tuple[tuple[str, str, str], ...]
    bundle: str


def build_map_view(document: Document) -> MapView:
    """Returns the view of a map document; raises KeyError when a required key is missing."""
    total = document["total_j"]
    what = " + ".join(document["traces"]) or "layers"
    over = f" by the timeline {document['timeline']}" if document["timeline"] else ""
    badge = [
        total["provenance"].replace("_", " "),
        f"boundary {total['boundary']}" if total.get("boundary") else "",
        document["validity"],
    ]
    return MapView(
        title=printable(f"{what}{over}"),
        badge=", ".join(part for part in badge if part),
        headline=_headline(document),
        hotspot=_hotspot(document) if document["validity"] == "valid" else "",
        rows=_rows(document),
        figures=_figures(document),
        findings=_findings(document["findings"]),
        bundle=document["bundle"],
    )


def _headline(document: Document) -> str:
    if document["validity"] != "valid":
        return f"no headline: the recording is {document['validity']}"
    return f"{format_quantity(document['total_j'], 'J')}{' per ' + document['per'] if document.get('per') else ''}"


def _cell(quantity: Document, reason: str | None) -> str:
    if quantity["value"] is None:
        return DASH if not reason else "refused"
    return format_quantity(quantity, "J")


def _share_of(quantity: Document, total: Document) -> str:
    if quantity["value"] is None or not total["value"]:
        return DASH
    return format_share(quantity["value"] / total["value"], quantity["expanded"] / abs(total["value"]))


def _rows(document: Document) -> tuple[MapTableRow, ...]:
    total = document["total_j"]
    shown = document["rows"][:_ROWS]
    largest = max((row["share"] or 0.0 for row in shown), default=0.0)
    rows = [
        MapTableRow(
            key=printable(row["key"]),
            count=format_count(row["count"]),
            time=format_time(row["duration_s"]),
            power=format_quantity(row["mean_power_w"], "W"),
            energy=_cell(row["energy_j"], row["reason"]),
            own=_cell(row["self_j"], row["reason"]),
            share=_share_of(row["self_j"], total),
            running=format_share(row["cumulative_share"], None),
            fill=max(row["share"], 0.0) / largest if row["share"] is not None and largest > 0 else None,
            runs=_runs(row["runs_needed"]) if document.get("half_width") else "",
        )
        for row in shown
    ]
    if shown:
        rows.append(_plain_row("idle" if not document.get("per") else "between layers", document["idle_j"], document))
    rows.append(_plain_row("total", total, document, time_s=document["duration_s"]))
    return tuple(rows)


def _runs(times: float | None) -> str:
    """Returns how often to record as a person reads it: a part of the recording is one of it."""
    return "never" if times is None else f"{max(times, 0.01):.2g} x" if times < 10 else f"{times:.0f} x"


_ABSENT = ("no_duration", "no_timeline")
"""Why there is no idle energy where none can be: nothing was refused then."""


def _plain_row(key: str, quantity: Document, document: Document, *, time_s: float | None = None) -> MapTableRow:
    return MapTableRow(
        key=key,
        count="",
        time=format_time(time_s) if time_s is not None else "",
        power=format_quantity(document["power_w"], "W") if key == "total" else "",
        energy=_cell(quantity, quantity.get("reason") if quantity.get("reason") not in _ABSENT else None),
        own="",
        share=_share_of(quantity, document["total_j"]),
        running="",
        fill=None,
    )


def _hotspot(document: Document) -> str:
    first = next((row for row in document["rows"][:_ROWS] if row["self_j"]["value"] is not None and row["share"]), None)
    if first is None:
        return ""
    share = _share_of(first["self_j"], document["total_j"])
    return f"{printable(shorten(first['key']))} takes {share} ({format_quantity(first['self_j'], 'J')})"


def _figures(document: Document) -> tuple[tuple[str, str], ...]:
    left = len(document["rows"]) - _ROWS
    figures = [("average power", format_quantity(document["power_w"], "W"))]
    for clock in document["clocks"][:1]:
        drift = f", drift {clock['drift_ppm']:.3g} ppm" if clock["drift_ppm"] else ""
        figures.append(("clocks", f"{clock['method']}{drift}{_known(clock)}"))
    if document["rule"] != "joulemap":
        figures += _rule_figures(document)
    if document["metrics"].get("unit"):
        each = document["metrics"]["energy_per_unit_j"]
        what = printable(f"per {document['metrics']['unit']}")
        figures.append((what, f"{format_quantity(each, 'J')} (mean of {format_count(document['metrics']['units'])})"))
    figures += _work_figures(document)
    meter = document["meter"]
    if meter["name"]:
        figures.append(("meter", printable(f"{meter['name']} ({meter['source']})")))
    if left > 0:
        figures.append(("not shown", f"{left} more rows; --top N or --json has them"))
    return tuple(figures)


def _work_figures(document: Document) -> list[tuple[str, str]]:
    """Returns what was asked beyond the rows: idle baseline, energy above it, plan, operations, duty, power split."""
    figures = []
    idle, metrics = document.get("idle"), document["metrics"]
    if idle and idle["power_w"]["value"] is not None:
        figures.append(("idle power", format_quantity(idle["power_w"], "W")))
        figures.append(("above idle", format_quantity(document["energy_above_idle_j"], "J")))
    if document.get("half_width"):
        planned = [row["runs_needed"] for row in document["rows"] if row["runs_needed"] is not None]
        most = f"record {_runs(max(planned))} the work" if planned else "no number of recordings is enough"
        figures.append((f"for {document['half_width']:.3g}", f"{most} (the row that needs most of those that can)"))
    if metrics.get("ops_per_j"):
        figures.append(("operations", f"{format_quantity(metrics['ops_per_j'], 'op/J')} as stated with --ops"))
    if metrics.get("duty_average_w"):
        every = format_time(metrics["duty_period_s"])
        figures.append(("duty average", f"{format_quantity(metrics['duty_average_w'], 'W')} at one every {every}"))
    split = document.get("power_split")
    if split and split["static_w"]["value"] is not None:
        dynamic = format_quantity(split["dynamic_w"], "W")
        figures.append(("static", f"{format_quantity(split['static_w'], 'W')}, {split['label']} {dynamic}"))
    return figures


def _rule_figures(document: Document) -> list[tuple[str, str]]:
    metrics = document["metrics"]
    unit = metrics["published_unit"]
    per = " per query" if unit in ("J", "mJ", "uJ") else ""
    figures = [(f"rule {document['rule']}", f"{metrics['published_value']!r} {unit}{per}")]
    if metrics.get("energy_per_query_j") is not None:
        figures.append(("energy per query", f"{metrics['energy_per_query_j']!r} J"))
    if metrics.get("own_average_power_w") is not None:
        own = metrics.get("own_energy_per_query_j")
        beside = f", {own:.8g} J per query" if per and own is not None else ""
        figures.append(("exact integration", f"{metrics['own_average_power_w']:.8g} W{beside}"))
    return figures


def _findings(findings: list[Document]) -> tuple[tuple[str, str, str], ...]:
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(
        (f["severity"], f["slug"], printable(f["message"] + (f" [{f['span']}]" if f["span"] else "")))
        for f in sorted(findings, key=lambda f: order[f["severity"]])
    )


def _known(clock: Document) -> str:
    return f", known to {format_si(clock['std_s'], 's', digits=2)} (1 sd)" if clock["std_s"] else ""
