"""The hotspot tables as HTML: complete without the script, which filters, switches and highlights them."""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.report.html.figures import render_bar, render_swatch
from joulemap.report.html.markup import element, escape, join
from joulemap.report.view.page import HotspotRow, HotspotTable, TraceRow
from joulemap.report.view.text import DASH

__all__ = ["render_hotspots", "render_traces"]

_COLUMNS = (
    ("Op", "op", "wide"),
    ("In the model", "path", "path wide"),
    ("Count", "count", "num wide"),
    ("Energy \u00b1 U", "energy", "num"),
    ("Self \u00b1 U", "own", "num"),
    ("", "bar", "barc"),
    ("Share", "share", "num"),
    ("Cum.", "cumulative", "num dim wide"),
    ("Time", "time", "num wide"),
    ("Power", "power", "num wide"),
    ("J/MAC", "per_mac", "num wide"),
    ("Resolved", "resolution", "dim wide why"),
)


_LONG = 30  # characters from which a name may be cut
_TRACE_COLUMNS = (
    ("Inside", "inside", "path"),
    ("Boundary", "boundary", "dim wide"),
    ("Energy \u00b1 U", "energy", "num"),
    ("Mean power", "power", "num wide"),
    ("Samples", "sampling", "num wide"),
    ("On this page", "role", "dim wide"),
)


def render_traces(traces: Sequence[TraceRow]) -> str:
    """Returns the section of the traces of a recording: what each holds, and what contains it."""
    columns = [c for c in _TRACE_COLUMNS if any(getattr(row, c[1]) not in {DASH, ""} for row in traces)]
    heads = element("th", "Trace", scope="col") + "".join(
        element("th", escape(title), scope="col", class_=kind) for title, _, kind in columns
    )
    rows = [
        element(
            "tr",
            element("th", escape(row.name), scope="row"),
            *(element("td", escape(getattr(row, field)), class_=kind) for _, field, kind in columns),
        )
        for row in traces
    ]
    table = element("table", element("thead", element("tr", heads)), element("tbody", join(rows)))
    note = "what is inside another is part of it and never added"
    return element(
        "section",
        element("div", element("h2", "Traces"), element("span", note, class_="note"), class_="bar0"),
        element("div", table, class_="scroll", tabindex="0", role="region", aria_label="Traces"),
        aria_label="Traces",
    )


def render_hotspots(tables: Sequence[HotspotTable], joules_are: str) -> str:
    """Returns the section: a table per grouping, the first one shown, with filter and switch.

    Args:
        tables: one per grouping.
        joules_are: what its joules are, in a few words.
    """
    options = "".join(element("option", escape(table.label), value=table.key) for table in tables)
    grouping = (
        element("label", "By ", element("select", options, id="grouping"), class_="by") if len(tables) > 1 else ""
    )
    notes = "".join(
        element("p", escape(table.note), class_="empty", data_note=table.key, hidden=True)
        for table in tables
        if table.note
    )
    known = any(row.energy_j is not None for table in tables for row in table.rows)
    note = f"{joules_are}; press a name to find it on the map" if known else "no energies: what is known is time"
    return element(
        "section",
        element(
            "div",
            element("h2", "Hotspots"),
            element("span", escape(note), class_="note"),
            element("span", class_="gap"),
            element("span", id="matches", aria_live="polite"),
            grouping,
            element("input", id="filter", type="search", placeholder="Filter", aria_label="Filter hotspots"),
            class_="bar0",
        ),
        element(
            "div",
            *(_table(table, first=k == 0) for k, table in enumerate(tables)),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label="Hotspot table",
        ),
        notes,
        aria_label="Hotspots",
        class_="hotspots",
    )


def _table(table: HotspotTable, *, first: bool) -> str:
    # the name of a layer or of a kind begins with the operation; only a path does not say it
    empty = {
        field
        for _, field, _ in _COLUMNS
        if field != "bar" and all(getattr(row, field) in {DASH, ""} for row in table.rows)
    }
    dropped = set({"layer": {"op"}, "op": {"op", "path"}, "name": {"op", "path"}}.get(table.key, {"path"}))
    dropped |= empty | ({"bar"} if "energy" in empty else set())
    columns = [
        (table.own_label if column[1] == "own" else column[0], *column[1:])
        for column in _COLUMNS
        if column[1] not in dropped
    ]
    if "energy" in empty:  # time is then what a narrow screen must still show
        columns = [
            (title, field, kind.replace(" wide", "") if field == "time" else kind) for title, field, kind in columns
        ]
    shown = [row.shown_j for row in table.rows]
    largest = max((value + expanded for value, expanded in shown if value is not None), default=0.0)
    heads = element("th", escape(table.label), scope="col") + "".join(
        element("th", escape(title), scope="col", class_=_class(kind), aria_label=None if title else "Energy as a bar")
        for title, _, kind in columns
    )
    keys = [f"{table.key}:{row.name if len(row.name) <= _LONG else k}" for k, row in enumerate(table.rows)]
    rows = [_row(key, row, columns, largest) for key, row in zip(keys, table.rows, strict=True)]
    return element(
        "table",
        element("caption", escape(f"Energy by {table.label.lower()}"), class_="said"),
        element("thead", element("tr", heads)),
        element("tbody", join(rows)),
        data_table=table.key,
        hidden=not first,
    )


def _class(kind: str) -> str | None:
    return kind or None


def _row(key: str, row: HotspotRow, columns: Sequence[tuple[str, str, str]], largest: float) -> str:
    name = element(
        "button",
        render_swatch(row.color),
        element("span", escape(row.name)),
        type="button",
        title=row.name if len(row.name) > _LONG else None,
        class_="name",
        aria_pressed="false",
        data_key=key,
        data_names=",".join(map(str, row.names)),
        disabled=not row.names,
    )
    cells = []
    for _, field, kind in columns:
        if field == "bar":
            value, expanded = row.shown_j
            text = render_bar(value, expanded, largest, row.color) if value is not None and largest > 0 else ""
        else:
            text = escape(getattr(row, field))
        title = row.path if field == "path" else None
        cells.append(element("td", text, class_=_class(kind), title=title))
    return element(
        "tr",
        element("th", name, scope="row"),
        *cells,
    )
