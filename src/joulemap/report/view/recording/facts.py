"""What a recording's page says beside the map: provenance, clocks, published figures, stated totals. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from joulemap.formats.sections.recording_json import RecordingEntry
from joulemap.report.view.page import Panel, TraceRow
from joulemap.report.view.recording.sections import Document, PowerLine, RecordingSections
from joulemap.report.view.text import DASH, format_measured, format_memory, printable, shorten
from joulemap.units import format_count, format_percent, format_si

__all__ = ["build_panels", "build_provenance", "build_traces", "name_sources", "reproduce"]

_SHORT = 16  # digits of a digest that people compare
_FILES = 8
_METADATA = 12
_TOTALS = 24
_COVERAGE = 1.959963984540054
_METHODS = {
    "same": "one clock",
    "utc": "both say UTC",
    "stated": "as stated by the user",
    "markers": "from marks that both saw",
    "correlation": "from power against activity",
    "likelihood": "where it explains the samples best",
    "pairs": "from instants read on both",
}
_CERTAINTY = {
    "recording": "a reader built on genuine recordings or the writer's own source",
    "written": "a reader built on files that the real tool wrote",
    "described": "a reader built on public descriptions",
}


def name_sources(entries: Sequence[RecordingEntry]) -> str:
    """Returns the files or folders that were read, by their last name."""
    names = list(dict.fromkeys(PurePosixPath(entry.root).name or entry.root for entry in entries))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return printable(shorten(" + ".join(names[:3]) + more, 120))


def build_traces(lines: Sequence[PowerLine], *, alone: bool) -> tuple[TraceRow, ...]:
    """Returns one row a trace; none for a single trace that is the whole bundle.

    Args:
        lines: of the page.
        alone: leave out the table of one trace.
    """
    if alone and len(lines) < 2:
        return ()
    return tuple(
        TraceRow(
            name=printable(shorten(line.name, 60)),
            inside=printable(shorten(", ".join(line.inside), 60)),
            boundary=line.boundary,
            energy=format_measured(line.energy, "J"),
            power=format_measured(line.power, "W"),
            sampling=f"{format_count(line.samples)}, every {format_si(line.step_s, 's', digits=3)}",
            role=_role(line),
        )
        for line in lines
    )


def _role(line: PowerLine) -> str:
    if line.mapped:
        return "mapped"
    if line.trace is None:
        return "on a clock of its own"
    return "inside, never added" if line.inside else "beside"


def build_panels(sections: RecordingSections) -> tuple[Panel, ...]:
    """Returns clocks, published figures, stated totals and values of one instant, where there are any."""
    panels = []
    document = sections.document
    if document is not None and document["clocks"]:
        rows = tuple(map(_describe_clock, document["clocks"]))
        panels.append(
            Panel(title="Clocks", note="how instants of one clock were put on another; \u00b1 is U", rows=rows)
        )
    if document is not None and document["rule"] != "joulemap":
        panels.append(_published(document))
    if document is not None and document["metrics"].get("unit"):
        panels.append(_units(document))
    totals = [(e, total) for e in sections.entries for total in e.totals]
    if totals:
        rows = tuple(
            (printable(total.key.replace("_", " ")), f"{total.value:.10g} ({str(total.provenance).replace('_', ' ')})")
            for _, total in totals[:_TOTALS]
        )
        if len(totals) > _TOTALS:
            rows += ((f"{len(totals) - _TOTALS} more", "in recordings.json of the bundle"),)
        note = "figures of the source itself, as written, in the unit of their name; they are in no sum of ours"
        panels.append(Panel(title="What the source states", note=note, rows=rows))
    if sections.points:
        panels.append(Panel(title="Read once", note="counters of one instant", rows=sections.points))
    return tuple(panels)


def _supported(value: float, expanded: float) -> str:
    """Returns a number with the decimals that two digits of its U support; without U nine at most, none of them idle.

    No prefix: an offset may be as long as an epoch and known to a nanosecond.
    """
    if not 0 < expanded < math.inf:
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return f"{value:.{min(max(1 - math.floor(math.log10(expanded)), 0), 9)}f}"


def _describe_clock(clock: Document) -> tuple[str, str]:
    offset_s = clock["offset_ns"] * 1e-9 + clock["offset_fraction_ns"] * 1e-9
    known = f" \u00b1 {format_si(_COVERAGE * clock['std_s'], 's', digits=2)}" if clock["std_s"] else ""
    said = [_METHODS.get(clock["method"], str(clock["method"]))]
    if offset_s or known:
        said.append(f"offset {_supported(offset_s, _COVERAGE * (clock['std_s'] or 0.0))}\u2009s{known}")
    if clock["drift_ppm"]:
        spread = f" \u00b1 {_COVERAGE * clock['drift_std_ppm']:.2g}" if clock["drift_std_ppm"] else ""
        drift = _supported(clock["drift_ppm"], _COVERAGE * (clock["drift_std_ppm"] or 0.0))
        said.append(f"drift {drift}{spread}\u2009ppm")
    if clock["points"]:
        residual = format_si(clock["residual_s"], "s", digits=2)
        said.append(f"residual {residual} (1 sd) over {format_count(clock['points'])} points")
    label = clock["source"] if clock["source"] == clock["target"] else f"{clock['source']} \u2192 {clock['target']}"
    return printable(label), printable("; ".join(said))


def _published(document: Document) -> Panel:
    metrics = document["metrics"]
    rows = [
        ("Rule", document["rule"]),
        ("Published figure", f"{metrics['published_value']!r} {metrics['published_unit']}"),
    ]
    for key, label, unit in (
        ("average_power_w", "Mean power by the rule", "W"),
        ("own_average_power_w", "The same by exact integration", "W"),
        ("energy_per_query_j", "Energy per query by the rule", "J"),
        ("own_energy_per_query_j", "The same by exact integration", "J"),
        ("energy_per_sample_j", "Energy per sample by the rule", "J"),
    ):
        if metrics.get(key) is not None:
            rows.append((label, f"{metrics[key]!r} {unit}"))
    rule, own = metrics.get("average_power_w"), metrics.get("own_average_power_w")
    if rule and own is not None:
        rows.append(("Ours less the rule's", f"{own / rule - 1.0:+.3e} of it"))
    note = "to the last digit, beside our own over the same window; the findings say why they differ"
    return Panel(title="Published rule", note=note, rows=tuple((label, printable(text)) for label, text in rows))


def _units(document: Document) -> Panel:
    metrics = document["metrics"]
    rows = [("Unit", printable(f"{metrics['unit']}, {format_count(metrics['units'])} of them"))]
    if metrics["latency_s"] is not None:
        rows.append(("Mean latency", format_si(metrics["latency_s"], "s", digits=4)))
    for key, label, unit in (
        ("energy_per_unit_j", "Energy", "J"),
        ("units_per_j", "Units per joule", ""),
        ("energy_delay_j_s", "EDP", "J\u00b7s"),
        ("energy_delay_squared_j_s2", "ED\u00b2P", "J\u00b7s\u00b2"),
    ):
        quantity = metrics[key]
        text = format_measured(quantity, unit) if quantity["value"] is not None else str(quantity.get("reason", DASH))
        rows.append((label, printable(text.replace("_", " "))))
    return Panel(title="Per unit of work", note="the mean over all of them", rows=tuple(rows))


def build_provenance(sections: RecordingSections) -> tuple[tuple[str, str], ...]:
    """Returns label and text: sources with their digests, readers, meter, clock, bundle."""
    facts: list[tuple[str, str]] = []
    certainties = [r.get("certainty", "") for r in sections.imported.get("recordings", [])]
    for number, entry in enumerate(sections.entries):
        word = _CERTAINTY.get(certainties[number] if number < len(certainties) else "", "")
        where = "kept in the bundle" if entry.embedded else "referred to, compared with its digest at every use"
        reader = f"{entry.format}{f' ({word})' if word else ''}; {where}"
        facts.append((PurePosixPath(entry.root).name or entry.root, reader))
        for source in entry.sources[:_FILES]:
            digest = f"{format_memory(source.size_b)}, SHA-256 {source.sha256[:_SHORT]}"
            facts.append(("File", f"{source.name}, {digest}"))
        if len(entry.sources) > _FILES:
            facts.append(("File", f"{len(entry.sources) - _FILES} more; recordings.json of the bundle lists them"))
        facts += [(key.replace("_", " "), shorten(text, 200)) for key, text in list(entry.metadata.items())[:_METADATA]]
    if sections.document is not None:
        facts.append(("Meter", _meter(sections)))
        if sections.work is not None:
            tracks = sections.document["concurrent_tracks"]
            facts.append(("Split", f"{sections.document['split']}, at most {tracks} busy at once"))
    facts.append(("Clock", f"{sections.clock.name} ({str(sections.clock.kind).replace('_', ' ')})"))
    tool = sections.imported.get("tool", {})
    facts += [
        ("Import", f"{sections.imported.get('run_id', DASH)}, {sections.created}"),
        ("Tool", f"{tool.get('name', DASH)} {tool.get('version', '')}"),
        ("Bundle", f"manifest SHA-256 {sections.digest}"),
    ]
    return tuple((printable(shorten(label, 40)), printable(text)) for label, text in facts)


def _meter(sections: RecordingSections) -> str:
    assert sections.document is not None  # asked where there is power
    meter = sections.document["meter"]
    mapped = next(line for line in sections.lines if line.mapped)
    noise = f"noise {format_si(mapped.limits.noise_std_w, 'W', digits=2)} (1 sd of a sample, from its neighbours)"
    if not meter["name"]:
        return f"not known, so gain and offset are in no interval; {noise}"
    gain = format_percent(mapped.limits.gain_std, digits=2)
    offset = format_si(mapped.limits.offset_std_w, "W", digits=2)
    return f"{meter['name']}: gain {gain}, offset {offset} (1 sd), {noise}; {meter['source']}"


def reproduce(entries: Sequence[RecordingEntry], flags: Sequence[str]) -> str:
    """Returns the commands that make the bundle and the page again from the same files."""
    words = ["joulemap", "import", *(PurePosixPath(entry.root).name or entry.root for entry in entries)]
    words += ["-o", "RUN.jm"]
    if entries:
        options = entries[0].options
        pairs: tuple[tuple[str, Mapping[str, str]], ...] = (("--column", options.columns), ("--unit", options.units))
        words += [word for flag, given in pairs for key, value in given.items() for word in (flag, f"{key}={value}")]
        for flag, value in (("--voltage", options.voltage_v), ("--rate", options.rate_hz)):
            words += [flag, f"{value:g}"] if value is not None else []
        words += [f"--utc-offset={options.utc_offset_s:g}"] if options.utc_offset_s is not None else []
        words += ["--boundary", options.boundary] if options.boundary else []
    report = ["joulemap", "report", "RUN.jm", *flags, "--html", "RUN.html"]
    return printable(f"{shlex.join(words)} && {shlex.join(report)}")
