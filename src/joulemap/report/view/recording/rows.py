"""The hotspot tables of a recording: rows of the map as text, refused ones with their reason. Pure.

Without power the rows are times: what a slice's name holds and what of it is not inside another slice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from joulemap.estimate import Boundary, Provenance
from joulemap.report.view.colors import NEUTRAL, assign_colors
from joulemap.report.view.page import HotspotRow, HotspotTable
from joulemap.report.view.recording.sections import Document, RecordingSections
from joulemap.report.view.scene import SliceName
from joulemap.report.view.text import DASH, format_measured, format_share, format_supported, printable, shorten
from joulemap.trace import Channel, EnergyTrace, KernelKind, SensorKernel, Timeline
from joulemap.trace.sweep import GroupedSlices, Split, sweep_energy
from joulemap.units import format_count, format_duration, format_si

__all__ = ["ROW_LIMIT", "build_tables", "color_names", "describe_names", "describe_times", "list_times", "operation"]

ROW_LIMIT = 50
"""Rows of the first table; further groupings have half of it."""

_NUMBER = re.compile(r"(\s*#\d+|[_:/.]\d+)$")
_COLORED = 0.005  # share of its own from which an operation has a colour
_LABELS = {"name": "Name", "op": "Operator", "layer": "Layer", "kernel": "Kernel", "path": "Path"}
_WAYS = {"overlap": "overlap", "least_squares": "least squares", "in_place": "in place", "refused": "refused"}

NameTime = tuple[str, int, float, float]
"""Name, count, time held and time of its own, s."""

Shown = Mapping[str, tuple[int, ...]]


def operation(name: str) -> str:
    """Returns a name without the number that tells instances apart: one colour stands for one operation."""
    return _NUMBER.sub("", name) or name


def color_names(rows: Sequence[Document]) -> Callable[[str], int]:
    """Returns the palette index of any name, given rows with the most important first."""
    worth = [row for row in rows if row.get("share") is None or row["share"] >= _COLORED]
    colors = assign_colors(operation(str(row["key"]).rsplit(";", 1)[-1]) for row in worth)
    return lambda name: colors.get(operation(name), NEUTRAL)


def explain_refusal(row: Document) -> str:
    """Returns why a row has no figure, and how many recordings would help."""
    why = str(row["reason"] or "not available").replace("_", " ")
    runs = row["runs_needed"]
    return f"{why}; about {_times(runs)} this recording would tell" if runs is not None else why


def _times(runs: float) -> str:
    return f"{max(1, round(runs))}\u00d7" if runs < 1e4 else f"{runs:.1e}\u00d7"


def describe_names(rows: Sequence[Document], total: Document, color: Callable[[str], int]) -> dict[str, SliceName]:
    """Returns what the tooltip says of each name: the very texts of the table."""
    known = {}
    for row in rows:
        energy = row["energy_j"]
        if energy["value"] is not None:
            facts = [f"{format_measured(energy, 'J')} in all ({format_count(row['count'])} slices)"]
            if _nested(row):
                facts.append(f"{format_measured(row['self_j'], 'J')} of its own")
            facts.append(f"{_share(row, total)} of the whole")
        else:
            facts = [f"no energy: {explain_refusal(row)}"]
        alone = energy["value"] is not None and row["resolution"] == "overlap"
        known[row["key"]] = SliceName(
            name=shorten(printable(row["key"])),
            op=shorten(printable(operation(row["key"])), 40),
            color=color(row["key"]),
            facts=tuple(printable(fact) for fact in facts),
            no_energy="" if alone else "samples tell it for all of them, not for one" if energy["value"] else "refused",
        )
    return known


def describe_times(times: Sequence[NameTime], color: Callable[[str], int]) -> dict[str, SliceName]:
    """Returns the same of a timeline without power."""
    known = {}
    for name, count, held_s, own_s in times:
        facts = [f"{format_si(held_s, 's', digits=4)} in all ({format_count(count)} slices)"]
        facts += [f"{format_si(own_s, 's', digits=4)} of its own"] if own_s < held_s else []
        known[name] = SliceName(
            name=shorten(printable(name)),
            op=shorten(printable(operation(name)), 40),
            color=color(name),
            facts=tuple(facts),
        )
    return known


def _nested(row: Document) -> bool:
    held, own = row["energy_j"]["value"], row["self_j"]["value"]
    return (held is None) != (own is None) or (held is not None and abs(own - held) > 1e-9 * abs(held))


def _share(row: Document, total: Document) -> str:
    own = row["self_j"]
    if own["value"] is None or not total["value"]:
        return DASH
    return format_share(own["value"] / total["value"], own["expanded"] / abs(total["value"]))


def build_tables(
    sections: RecordingSections, times: Sequence[NameTime], color: Callable[[str], int], shown: Shown
) -> tuple[HotspotTable, ...]:
    """Returns one table per grouping, the wanted one first.

    Args:
        sections: of the page.
        times: of names, where there is no power.
        color: of a name.
        shown: name -> names of the scene.
    """
    if sections.document is None:
        return _time_tables(times, color, shown)
    document = sections.document
    tables = []
    for number, (key, rows) in enumerate(sections.tables.items()):
        limit = ROW_LIMIT if number == 0 else ROW_LIMIT // 2
        nested = any(map(_nested, rows))
        made = [_row(row, document["total_j"], (key, color, shown), nested=nested) for row in rows[:limit]]
        made = _accumulate(made, rows, document["total_j"])
        made += [_rest(rows[limit:], document["total_j"])] if len(rows) > limit else []
        made.append(_idle(document, nested=nested))
        notes = ["highlights every slice of the last name of a path"] if key == "path" else []
        tables.append(HotspotTable(key=key, label=_LABELS[key], rows=tuple(made), note=". ".join(notes)))
    return tuple(tables)


def _row(row: Document, total: Document, known: tuple[str, Callable[[str], int], Shown], *, nested: bool) -> HotspotRow:
    key, color, shown = known
    name = str(row["key"]).rsplit(";", 1)[-1] if key == "path" else str(row["key"])
    names = shown.get(name, ())
    if key == "op":
        names = tuple(k for other, indices in shown.items() if operation(other) == name for k in indices)
    energy, own = row["energy_j"], row["self_j"]
    told = energy["value"] is not None or own["value"] is not None
    way = _WAYS.get(row["resolution"], str(row["resolution"]))
    if row["reason"]:
        way = (
            f"{way}; refused: {explain_refusal(row)}"
            if told and way != "refused"
            else f"refused: {explain_refusal(row)}"
        )
    return HotspotRow(
        name=shorten(printable(row["key"].replace(";", " \u203a ")), 100),
        op=printable(operation(name)),
        path="",
        color=color(name),
        count=format_count(row["count"]),
        energy=format_measured(energy, "J") if energy["value"] is not None else "refused",
        energy_j=energy["value"],
        expanded_j=energy.get("expanded"),
        share=_share(row, total),
        cumulative=DASH,
        time=format_duration(row["duration_s"], digits=4),
        duration_s=row["duration_s"],
        power=_power(row["mean_power_w"]),
        per_mac=DASH,
        resolution=printable(way),
        names=names,
        own=(format_measured(own, "J") if own["value"] is not None else "refused") if nested else "",
        own_j=own["value"] if nested else None,
        own_expanded_j=own.get("expanded") if nested else None,
    )


def _accumulate(made: Sequence[HotspotRow], rows: Sequence[Document], total: Document) -> list[HotspotRow]:
    """Returns the rows with the share of all down to each; its U is the sum of theirs, an upper bound."""
    expanded_j, out = 0.0, []
    for shown, row in zip(made, rows, strict=False):
        share = row["cumulative_share"]
        expanded_j += row["self_j"].get("expanded", 0.0)
        text = DASH if share is None or not total["value"] else format_share(share, expanded_j / abs(total["value"]))
        out.append(replace(shown, cumulative=text))
    return out


def _power(power: Document) -> str:
    return DASH if power["value"] is None else _supported(power["value"], power["expanded"])


def _supported(power_w: float, expanded_w: float) -> str:
    return format_supported(power_w, expanded_w, "W") if expanded_w > 0 else format_si(power_w, "W", digits=4)


def _plain(name: str, energy: Document, total: Document, *, nested: bool, **cells: str) -> HotspotRow:
    known = energy["value"] is not None
    share = DASH
    if known and total["value"]:
        share = format_share(energy["value"] / total["value"], energy["expanded"] / abs(total["value"]))
    return HotspotRow(
        name=name,
        op=DASH,
        path="",
        color=NEUTRAL,
        count=cells.get("count", DASH),
        energy=format_measured(energy, "J") if known else f"refused: {str(energy['reason']).replace('_', ' ')}",
        energy_j=energy["value"],
        expanded_j=energy.get("expanded"),
        share=share,
        cumulative=DASH,
        time=cells.get("time", DASH),
        duration_s=0.0,
        power=cells.get("power", DASH),
        per_mac=DASH,
        resolution=cells.get("resolution", ""),
        names=(),
        own=format_measured(energy, "J") if nested else "",
    )


def _idle(document: Document, *, nested: bool) -> HotspotRow:
    idle, idle_s = document["idle_j"], max(document["duration_s"] - document["busy_s"], 0.0)
    power = DASH
    if idle["value"] is not None and idle_s > 0:
        power = _supported(idle["value"] / idle_s, idle["expanded"] / idle_s)
    time = format_duration(idle_s, digits=4)
    return _plain(
        "idle: no slice runs", idle, document["total_j"], nested=nested, time=time, power=power, resolution="the rest"
    )


def _rest(rows: Sequence[Document], total: Document) -> HotspotRow:
    """Returns the rows that do not fit as one: own energies added, and their U, an upper bound of its U."""
    told = [row["self_j"] for row in rows if row["self_j"]["value"] is not None]
    energy: dict[str, object] = {"value": None, "reason": "not told for any of them"}
    if told:
        energy = {"value": sum(e["value"] for e in told), "expanded": sum(e["expanded"] for e in told)}
    refused = len(rows) - len(told)
    way = f"sum of {len(told)}" + (f", {refused} refused" if refused else "")
    return _plain(
        f"{format_count(len(rows))} further rows (joulemap map --json has them)",
        energy,
        total,
        nested=any(map(_nested, rows)),
        count=format_count(sum(row["count"] for row in rows)),
        resolution=way,
    )


def list_times(timeline: Timeline) -> list[NameTime]:
    """Returns name, count, time held and time of its own, s, of each name, the most time of its own first.

    The sweep of a trace of 1 W over the whole timeline: its joules are seconds.
    """
    if not len(timeline):
        return []
    start_ns, end_ns = int(timeline.start_ns.min()), int(timeline.end_ns.max())
    order = np.lexsort((-timeline.end_ns, timeline.start_ns))
    slices = GroupedSlices(
        start_ns=timeline.start_ns[order],
        end_ns=timeline.end_ns[order],
        group=timeline.name_index[order],
        groups=len(timeline.names),
        track=timeline.track_index[order],
        tracks=max(len(timeline.tracks), 1),
    )
    kernel = SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=0.0)
    unit = EnergyTrace(
        clock=timeline.clock,
        channel=Channel(name="time", boundary=Boundary.NODE, provenance=Provenance.MODELLED, kernel=kernel),
        power_w=np.ones(1),
        start_ns=start_ns,
        edges_ns=np.array([start_ns, max(end_ns, start_ns + 1)], np.int64),
    )
    swept = sweep_energy(unit, slices, split=Split.NONE)
    columns = zip(timeline.names, swept.count.tolist(), swept.duration_s.tolist(), swept.self_s.tolist(), strict=True)
    return sorted((row for row in columns if row[1]), key=lambda row: (-row[3], row[0]))


def _time_tables(times: Sequence[NameTime], color: Callable[[str], int], shown: Shown) -> tuple[HotspotTable, ...]:
    if not times:
        return ()
    total_s = sum(own_s for *_, own_s in times)
    nested = any(abs(held_s - own_s) > 1e-9 * held_s for *_, held_s, own_s in times)
    rows, running = [], 0.0
    for name, count, held_s, own_s in times[:ROW_LIMIT]:
        running += own_s
        rows.append(
            HotspotRow(
                name=shorten(printable(name), 120),
                op=printable(operation(name)),
                path="",
                color=color(name),
                count=format_count(count),
                energy=DASH,
                energy_j=None,
                expanded_j=None,
                share=format_share(own_s / total_s, 0.0) if total_s else DASH,
                cumulative=format_share(running / total_s, 0.0) if total_s else DASH,
                time=format_si(held_s, "s", digits=4),
                duration_s=own_s,
                power=DASH,
                per_mac=DASH,
                resolution="",
                names=shown.get(name, ()),
                own=format_si(own_s, "s", digits=4) if nested else "",
            )
        )
    left = len(times) - len(rows)
    note = f"{format_count(left)} further names are not shown" if left > 0 else ""
    return (HotspotTable(key="name", label="Name", rows=tuple(rows), note=note, own_label="Self time"),)
