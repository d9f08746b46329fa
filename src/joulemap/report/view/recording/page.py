"""A bundle of recordings as a page: the answer first, then map, tables, doubt and provenance. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from joulemap.estimate import Provenance
from joulemap.records.finding import Validity
from joulemap.report.view.cures import CURES
from joulemap.report.view.findings import build_finding_rows
from joulemap.report.view.page import Badge, BudgetShare, FlameNode, PageView
from joulemap.report.view.recording.facts import (
    build_panels,
    build_provenance,
    build_traces,
    name_sources,
    reproduce,
)
from joulemap.report.view.recording.flame import build_path_flame, build_rail_flame
from joulemap.report.view.recording.rows import (
    build_tables,
    color_names,
    describe_names,
    describe_times,
    explain_refusal,
    list_times,
)
from joulemap.report.view.recording.scene import build_scene
from joulemap.report.view.recording.sections import Document, RecordingSections
from joulemap.report.view.text import format_measured, format_share, printable, shorten
from joulemap.units import format_count, format_duration, format_percent, format_si

__all__ = ["build_recording_page"]

_REFUSED = 20


def build_recording_page(sections: RecordingSections) -> PageView:
    """Returns the page; raises KeyError when a required key of a document is missing."""
    document = sections.document
    times = list_times(sections.work.timeline) if document is None and sections.work is not None else []
    names = sections.tables.get("name") or [{"key": time[0]} for time in times]
    color = color_names(names)
    known = describe_names(names, document["total_j"], color) if document is not None else describe_times(times, color)
    parts = build_scene(sections, known)
    headline, unit = _headline(document)
    return PageView(
        subject=_subject(sections),
        badges=_badges(document, sections.imported),
        headline=headline,
        headline_unit=unit,
        no_headline="" if headline is not None else _explain(sections),
        next_step="" if headline is not None else _next_step(sections),
        hotspot=_hotspot(sections) if headline is not None else "",
        figures=_figures(sections, headline=headline is not None),
        figures_are="" if headline is not None else "what the recording still says",
        scene=parts.scene,
        fold=parts.fold,
        no_scene="" if parts.scene is not None else "No map: everything in the bundle is of one instant.",
        tables=build_tables(sections, times, color, parts.shown),
        flame=_flame(sections, color, parts.shown),
        budget=_budget(document) if headline is not None else (),
        findings=build_finding_rows(
            [*_map_findings(sections), *(f.to_json() for f in (*sections.findings, *parts.findings))]
        ),
        refused=_refused(sections),
        provenance=build_provenance(sections),
        command=reproduce(sections.entries, sections.flags),
        traces=build_traces(sections.lines, alone=True),
        panels=build_panels(sections),
        joules_are="joules of the whole recording" if document is not None else "no power in this bundle: times alone",
        flame_is="the whole recording",
        budget_of="the energy of the whole recording",
        flame_title="Energy by path" if sections.paths else "Energy by rail",
    )


def _map_findings(sections: RecordingSections) -> Sequence[Document]:
    if sections.document is not None:
        found: Sequence[Document] = sections.document["findings"]
        return found
    imported: Sequence[Document] = sections.imported.get("findings", [])
    return imported


def _subject(sections: RecordingSections) -> str:
    what = " + ".join(line.name for line in sections.lines if line.mapped)
    parts = [name_sources(sections.entries)]
    parts += [f"{what}" if what else "no power"]
    if sections.work is not None:
        parts.append(f"timeline {sections.work.name}" if sections.work.name else "with a timeline")
    return printable(shorten(" \u00b7 ".join(parts), 200))


def _badges(document: Document | None, imported: Document) -> tuple[Badge, ...]:
    validity = Validity((document or imported)["validity"]).value
    badge = Badge(word=validity, pattern="solid" if validity == "valid" else "double")
    if document is None or document["total_j"]["value"] is None:
        return (Badge(word="no power", pattern="dashed"), badge)
    total = document["total_j"]
    provenance = Provenance(total["provenance"]).value
    measured = provenance.startswith("measured")
    badges = [
        Badge(word=provenance.replace("_", " "), pattern="solid" if measured else "dashed"),
        Badge(word=f"boundary {total['boundary']}", pattern="solid"),
        badge,
    ]
    if document["meter"]["name"] is None:
        badges.append(Badge(word="meter unknown: U leaves it out", pattern="dashed"))
    return tuple(badges)


def _headline(document: Document | None) -> tuple[str | None, str]:
    if document is None or document["validity"] != "valid" or document["total_j"]["value"] is None:
        return None, ""
    each = document["metrics"].get("energy_per_unit_j")
    if each is not None and each["value"] is not None:
        return format_measured(each, "J"), printable(f"per {document['metrics']['unit']}")
    length = f"in {format_duration(document['duration_s'], digits=4)}"
    if document["total_j"]["expanded"] == 0:  # neither meter nor scatter: digits would claim what nobody knows
        return format_si(document["total_j"]["value"], "J", digits=4), f"(U unknown) {length}"
    return format_measured(document["total_j"], "J"), length


def _explain(sections: RecordingSections) -> str:
    if sections.document is None:
        return "No energy: the bundle holds no power, only what ran, counters or figures that the source states."
    severe = next((f for f in sections.document["findings"] if f["severity"] == "error"), None)
    why = f" {printable(severe['message'][:1].upper() + severe['message'][1:])}." if severe else ""
    return f"No energy that can be relied on: the recording is {sections.document['validity']}.{why}"


def _next_step(sections: RecordingSections) -> str:
    if sections.document is None:
        return "Import the recording of a power meter together with it: `joulemap import POWER TIMELINE -o RUN.jm`."
    severe = next((f for f in sections.document["findings"] if f["severity"] == "error"), None)
    return CURES.get(severe["slug"], "See the findings below.") if severe else "See the findings below."


def _hotspot(sections: RecordingSections) -> str:
    """Returns one sentence on what takes most: a row, the idle time, or a rail inside the whole."""
    document = sections.document
    assert document is not None  # there is a headline
    total, rows = document["total_j"], next(iter(sections.tables.values()), ())
    first = next((row for row in rows if row["self_j"]["value"] is not None and row["share"]), None)
    sentences = []
    if first is not None:
        sentences.append(
            f"{printable(shorten(first['key'].rsplit(';', 1)[-1]))} takes {_part(first['self_j'], total)}."
        )
    idle = document["idle_j"]
    if rows and idle["value"] is not None and (first is None or idle["value"] > first["self_j"]["value"]):
        sentences.append(f"While no slice runs: {_part(idle, total)}.")
    if not sentences:
        mapped = {line.name for line in sections.lines if line.mapped}
        rails = [line for line in sections.lines if mapped & set(line.inside) and line.energy["value"]]
        largest = max(rails, key=lambda line: float(line.energy["value"]), default=None)
        if largest is not None and len(mapped) == 1:
            sentences.append(f"Inside it {printable(shorten(largest.name))} holds {_part(largest.energy, total)}.")
    return " ".join(sentences)


def _part(energy: Document, total: Document) -> str:
    if not total["value"]:  # of nothing there is no share
        return format_measured(energy, "J")
    share = format_share(energy["value"] / total["value"], energy["expanded"] / abs(total["value"]))
    return f"{share} ({format_measured(energy, 'J')})"


def _figures(sections: RecordingSections, *, headline: bool) -> tuple[tuple[str, str], ...]:
    document = sections.document
    if document is None:
        return _plain_figures(sections)
    figures = [
        ("Mean power", format_measured(document["power_w"], "W")),
        ("Length", format_duration(document["duration_s"], digits=4)),
    ]
    each = document["metrics"].get("energy_per_unit_j")
    if not headline or (each is not None and each["value"] is not None):
        figures.insert(0, ("Energy", format_measured(document["total_j"], "J")))
    if document["rule"] != "joulemap":
        value, unit = document["metrics"]["published_value"], document["metrics"]["published_unit"]
        figures.append((f"By the rule {document['rule']}", f"{value:.7g}\u2009{unit}"))
    elif document["busy_s"] > 0:
        busy = min(document["busy_s"] / document["duration_s"], 1.0)
        figures.append(("Busy", format_percent(busy, digits=3)))
    return tuple((label, printable(text)) for label, text in figures)


def _plain_figures(sections: RecordingSections) -> tuple[tuple[str, str], ...]:
    figures = []
    if sections.work is not None and len(sections.work.timeline):
        timeline = sections.work.timeline
        figures.append(("Slices", format_count(len(timeline))))
        length_s = int(timeline.end_ns.max() - timeline.start_ns.min()) * 1e-9
        figures.append(("Length", format_si(length_s, "s", digits=4)))
    if sections.values:
        figures.append(("Counters", str(len(sections.values))))
    totals = sum(len(entry.totals) for entry in sections.entries)
    if totals:
        figures.append(("Stated figures", str(totals)))
    return tuple(figures)


def _flame(
    sections: RecordingSections, color: Callable[[str], int], shown: Mapping[str, tuple[int, ...]]
) -> FlameNode | None:
    if sections.document is None:
        return None
    made = build_path_flame(sections.paths, sections.document, color, shown)
    return made or build_rail_flame(sections.lines)


def _budget(document: Document | None) -> tuple[BudgetShare, ...]:
    lines = sorted((document or {}).get("budget", []), key=lambda line: -line["std_j"])
    variance = sum(line["std_j"] ** 2 for line in lines)
    if not variance:
        return ()
    return tuple(
        BudgetShare(
            name=printable(line["name"]),
            kind=printable(line["kind"]),
            std=format_si(line["std_j"], "J", digits=2),
            share=line["std_j"] ** 2 / variance,
            share_text=format_percent(line["std_j"] ** 2 / variance, digits=2)
            if line["std_j"] ** 2 >= 1e-3 * variance
            else "<0.1\u2009%",
        )
        for line in lines
    )


def _refused(sections: RecordingSections) -> tuple[tuple[str, str], ...]:
    rows = [row for row in next(iter(sections.tables.values()), ()) if row["reason"]]
    told = [(printable(shorten(row["key"])), printable(explain_refusal(row))) for row in rows[:_REFUSED]]
    if len(rows) > _REFUSED:
        told.append((f"{len(rows) - _REFUSED} further rows", "refused too"))
    return tuple(told)
