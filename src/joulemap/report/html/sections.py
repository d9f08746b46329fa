"""The sections of the page as HTML: answer, map, hotspots, energy by path, doubt, provenance."""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.report.html.figures import budget_color, render_bar, render_budget, render_icicle, render_swatch
from joulemap.report.html.markup import element, escape, join
from joulemap.report.view.page import Badge, HotspotRow, HotspotTable, PageView
from joulemap.report.view.scene import Scene
from joulemap.report.view.text import DASH

__all__ = ["render_sections"]

_SIGNS = {"error": "\u2715 error", "warning": "! warning", "info": "i info"}
_KEYS = (
    "Keys on the map: + and - zoom, arrows pan, 0 fits, comma and full stop move a reading cursor (Shift with arrows:"
    " faster), s starts and ends a selection, Escape clears."
)


def render_sections(view: PageView) -> str:
    """Returns everything between the tags of the body, scripts left out."""
    parts = [
        _answer(view),
        "<main>",
        _map(view.scene, view.fold) if view.scene is not None else _no_map(view.no_scene),
        _hotspots(view.tables),
        _flame(view),
        _doubt(view),
        _provenance(view),
        "</main>",
        element("div", id="tip", role="tooltip", hidden=True),
    ]
    return join(part for part in parts if part)


def _answer(view: PageView) -> str:
    if view.headline is not None:
        head = element("h1", escape(view.headline), " ", element("small", escape(view.headline_unit)))
        say = element("p", escape(view.hotspot), class_="say") if view.hotspot else ""
    else:
        head = element("h1", "No headline", class_="none")
        say = element("p", escape(view.no_headline), class_="say")
        say += element("p", element("b", "What to do: "), _prose(view.todo), class_="say todo")
    badges = "".join(map(_badge, view.badges))
    figures = "".join(
        element("div", element("dt", escape(label)), element("dd", escape(text))) for label, text in view.figures
    )
    note = element("p", escape(view.figures_are), class_="note") if view.figures_are else ""
    return element(
        "header",
        element("div", element("p", escape(view.subject), " ", badges, class_="subject"), head, say, class_="answer"),
        element("div", element("dl", figures), note, class_="figures"),
    )


def _badge(badge: Badge) -> str:
    sign = {"valid": "\u2713 ", "degraded": "! ", "invalid": "\u2715 "}.get(badge.word, "")
    return element("span", escape(sign + badge.word), class_=f"badge {badge.pattern}")


def _button(identity: str, text: str, *, label: str | None = None, pressed: bool | None = None, hidden: bool = False) -> str:
    state = None if pressed is None else str(pressed).lower()
    return element(
        "button", escape(text), type="button", id=identity, aria_label=label, aria_pressed=state, hidden=hidden, title=label
    )


def _map(scene: Scene, fold: Scene | None) -> str:
    controls = [
        _button("clear", "Clear", label="Clear the selection", hidden=True),
        _button("look", "Zoom to it", label="Zoom to the selection", hidden=True),
        _button("fold", "Fold", label=f"Fold: {fold.label}", pressed=False) if fold is not None else "",
        _button("tall", "Full height", label="Use the full height for what is seen, not from 0", pressed=False),
        _button("pick", "Select", label="Drag selects a window (Shift and drag does too)", pressed=False),
        _button("out", "\u2212", label="Zoom out"),
        _button("in", "+", label="Zoom in"),
        _button("fit", "Fit", label="Show the whole recording"),
    ]
    worst = [
        element("button", escape(e.label), type="button", data_window=f"{e.start_s!r},{e.end_s!r}")
        for e in scene.excerpts
        if e.label
    ]
    foot = element("div", element("span", "Worst windows, raw:"), *worst, class_="worst") if worst else ""
    return element(
        "section",
        element(
            "div",
            element("h2", "Where the energy went"),
            element("span", escape(scene.label), id="what", class_="note"),
            element("span", id="selection", aria_live="polite"),
            element("span", class_="gap"),
            element("span", *controls, class_="controls"),
            class_="bar0",
        ),
        element("canvas", id="overview", aria_hidden="true", height="30"),
        element(
            "canvas",
            id="map",
            tabindex="0",
            role="application",
            aria_roledescription="power waveform and timeline",
            aria_label="Map of power over time with the slices that ran",
            aria_describedby="keys",
        ),
        element("div", foot, _button("more", "Show more tracks", hidden=True), _hints(), class_="foot"),
        element("p", escape(_KEYS), id="keys", class_="said"),
        element("p", id="said", class_="said", aria_live="polite"),
        aria_label="Map",
        class_="map",
    )


def _hints() -> str:
    pairs = (("+", "−", "zoom"), ("←", "→", "pan"), ("0", "fit"), (",", ".", "read"), ("s", "select"), ("Esc", "clear"))
    shown = " ".join(" ".join([*(element("kbd", escape(key)) for key in keys), escape(what)]) for *keys, what in pairs)
    return element("span", shown, class_="hints", aria_hidden="true")


def _no_map(why: str) -> str:
    return element(
        "section", element("div", element("h2", "Where the energy went"), class_="bar0"), element("p", escape(why), class_="empty"), aria_label="Map"
    )


def _hotspots(tables: Sequence[HotspotTable]) -> str:
    options = "".join(element("option", escape(table.label), value=table.key) for table in tables)
    grouping = element("label", "By ", element("select", options, id="grouping"), class_="by") if len(tables) > 1 else ""
    notes = "".join(
        element("p", escape(table.note), class_="empty", data_note=table.key, hidden=True) for table in tables if table.note
    )
    known = any(row.energy_j is not None for table in tables for row in table.rows)
    note = "joules per inference; press a name to find it on the map" if known else "no energies: what is known is time"
    return element(
        "section",
        element(
            "div",
            element("h2", "Hotspots"),
            element("span", note, class_="note"),
            element("span", class_="gap"),
            element("span", id="matches", aria_live="polite"),
            grouping,
            element("input", id="filter", type="search", placeholder="Filter", aria_label="Filter hotspots"),
            class_="bar0",
        ),
        element("div", *(_table(table, shown=k == 0) for k, table in enumerate(tables)), class_="scroll", tabindex="0", role="region", aria_label="Hotspot table"),
        notes,
        aria_label="Hotspots",
        class_="hotspots",
    )


_COLUMNS = (
    ("Op", "op", "wide"),
    ("In the model", "path", "path wide"),
    ("Count", "count", "num wide"),
    ("Energy \u00b1 U", "energy", "num"),
    ("", "bar", "barc"),
    ("Share", "share", "num"),
    ("Cum.", "cumulative", "num dim wide"),
    ("Time", "time", "num wide"),
    ("Power", "power", "num wide"),
    ("J/MAC", "per_mac", "num wide"),
    ("Resolved", "resolution", "dim wide"),
)


def _table(table: HotspotTable, *, shown: bool) -> str:
    # the name of a layer or of a kind begins with the operation; only a path does not say it
    empty = {field for _, field, _ in _COLUMNS if field != "bar" and all(getattr(row, field) in {DASH, ""} for row in table.rows)}
    dropped = set({"layer": {"op"}, "op": {"op", "path"}}.get(table.key, {"path"}))
    dropped |= empty | ({"bar"} if "energy" in empty else set())
    columns = [column for column in _COLUMNS if column[1] not in dropped]
    largest = max((r.energy_j + (r.expanded_j or 0.0) for r in table.rows if r.energy_j is not None), default=0.0)
    heads = element("th", escape(table.label), scope="col") + "".join(
        element("th", escape(title), scope="col", class_=_class(kind), aria_label=None if title else "Energy as a bar")
        for title, _, kind in columns
    )
    rows = [_row(table.key, row, columns, largest) for row in table.rows]
    return element(
        "table",
        element("caption", escape(f"Energy by {table.label.lower()}"), class_="said"),
        element("thead", element("tr", heads)),
        element("tbody", join(rows)),
        data_table=table.key,
        hidden=not shown,
    )


def _class(kind: str) -> str | None:
    return kind or None


def _row(key: str, row: HotspotRow, columns: Sequence[tuple[str, str, str]], largest: float) -> str:
    name = element(
        "button",
        render_swatch(row.color),
        element("span", escape(row.name)),
        type="button",
        class_="name",
        aria_pressed="false",
        data_key=f"{key}:{row.name}",
        data_names=",".join(map(str, row.names)),
        disabled=not row.names,
    )
    cells = []
    for _, field, kind in columns:
        if field == "bar":
            known = row.energy_j is not None and largest > 0
            text = render_bar(row.energy_j or 0.0, row.expanded_j or 0.0, largest, row.color) if known else ""
        else:
            text = escape(getattr(row, field))
        title = row.path if field == "path" else None
        cells.append(element("td", text, class_=_class(kind), title=title))
    return element(
        "tr", element("th", name, scope="row"), *cells, data_find=f"{row.name} {row.op} {row.path} {row.resolution}".lower()
    )


def _flame(view: PageView) -> str:
    if view.flame is None:
        return ""
    return element(
        "section",
        element("div", element("h2", "Energy by path"), element("span", "width is joules per inference", class_="note"), class_="bar0"),
        element("div", render_icicle(view.flame), class_="icicle"),
        aria_label="Energy by path",
    )


def _doubt(view: PageView) -> str:
    parts = [element("div", element("h2", "Doubt"), element("span", "what the \u00b1 is made of, and what to know before relying on it", class_="note"), class_="bar0")]
    columns = []
    if view.budget:
        items = "".join(
            element(
                "li",
                render_swatch(budget_color(k)),
                element("span", escape(f"{share.name} (type {share.kind})")),
                element("span", escape(f"{share.std}, {share.share_text} of u\u00b2"), class_="dim"),
            )
            for k, share in enumerate(view.budget)
        )
        columns.append(element("div", element("h3", "Uncertainty of the headline"), render_budget(view.budget), element("ul", items, class_="budget")))
    columns.append(element("div", element("h3", "Findings"), _findings(view)))
    if view.refused:
        rows = "".join(element("li", element("b", escape(name)), " ", escape(why)) for name, why in view.refused)
        columns.append(element("div", element("h3", "Not told apart"), element("ul", rows, class_="refused")))
    parts.append(element("div", *columns, class_="columns"))
    return element("section", *parts, aria_label="Doubt")


def _findings(view: PageView) -> str:
    if not view.findings:
        return element("p", "None.", class_="dim")
    rows = [
        element(
            "li",
            element("span", escape(_SIGNS.get(row.severity, row.severity)), class_=f"badge {'double' if row.severity == 'error' else 'dashed' if row.severity == 'warning' else 'solid'}"),
            " ",
            escape(row.message),
            ". " if row.message[-1:] not in ".!?" else " ",
            element("span", "What to do: ", _prose(row.cure), class_="dim") if row.cure else "",
            " ",
            element("code", escape(row.slug)),
        )
        for row in view.findings
    ]
    return element("ul", *rows, class_="findings")


def _prose(text: str) -> str:
    """Returns text with what stands between backticks as code."""
    parts = escape(text).split("`")
    return "".join(element("code", part) if k % 2 else part for k, part in enumerate(parts))


def _provenance(view: PageView) -> str:
    rows = "".join(element("div", element("dt", escape(label)), element("dd", escape(text))) for label, text in view.provenance)
    command = ""
    if view.command:
        command = element("p", "To reproduce: ", element("code", escape(view.command), tabindex="0"), class_="command")
    return element(
        "section",
        element("div", element("h2", "Provenance"), class_="bar0"),
        element("dl", rows, class_="facts"),
        command,
        aria_label="Provenance",
        class_="provenance",
    )
