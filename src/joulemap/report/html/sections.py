"""The sections of the page as HTML: answer, map, hotspots, energy by path, doubt, provenance."""

from __future__ import annotations

from joulemap.report.html.figures import budget_color, render_budget, render_icicle, render_swatch
from joulemap.report.html.markup import element, escape, join
from joulemap.report.html.tables import render_hotspots, render_traces
from joulemap.report.view.page import Badge, PageView
from joulemap.report.view.scene import Scene

__all__ = ["render_sections"]

_SIGNS = {"error": "\u2715 error", "warning": "! warning", "info": "i info"}
_PATTERNS = {"error": "double", "warning": "dashed"}
_HINTS = (
    (("+", "\u2212"), "zoom"),
    (("\u2190", "\u2192"), "pan"),
    (("0",), "fit"),
    ((",", "."), "read"),
    (("s",), "select"),
    (("Esc",), "clear"),
)
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
        render_hotspots(view.tables, view.joules_are) if view.tables else "",
        _flame(view),
        render_traces(view.traces) if view.traces else "",
        _panels(view),
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
        say += element("p", element("b", "What to do: "), _prose(view.next_step), class_="say next-step")
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


def _button(
    identity: str, text: str, *, label: str | None = None, pressed: bool | None = None, hidden: bool = False
) -> str:
    state = None if pressed is None else str(pressed).lower()
    return element(
        "button",
        escape(text),
        type="button",
        id=identity,
        aria_label=label,
        aria_pressed=state,
        hidden=hidden,
        title=label,
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
            element("span", escape(describe_scene(scene)), id="what", class_="note"),
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


def describe_scene(scene: Scene) -> str:
    """Returns what the map holds and what 0 of its axis is; the script says the same."""
    return scene.label if scene.origin is None else f"{scene.label}; {scene.origin.label}"


def _hints() -> str:
    shown = [" ".join([*(element("kbd", escape(key)) for key in keys), escape(what)]) for keys, what in _HINTS]
    return element("span", " ".join(shown), class_="hints", aria_hidden="true")


def _no_map(why: str) -> str:
    return element(
        "section",
        element("div", element("h2", "Where the energy went"), class_="bar0"),
        element("p", escape(why), class_="empty"),
        aria_label="Map",
    )


def _flame(view: PageView) -> str:
    if view.flame is None:
        return ""
    return element(
        "section",
        element(
            "div",
            element("h2", escape(view.flame_title)),
            element("span", escape(f"width is {view.joules_are}"), class_="note"),
            class_="bar0",
        ),
        element("div", render_icicle(view.flame, view.flame_is), class_="icicle"),
        aria_label=view.flame_title,
    )


def _panels(view: PageView) -> str:
    if not view.panels:
        return ""
    panels = []
    for panel in view.panels:
        rows = "".join(
            element("div", element("dt", escape(label)), element("dd", escape(text))) for label, text in panel.rows
        )
        note = element("p", escape(panel.note), class_="note") if panel.note else ""
        panels.append(element("div", element("h3", escape(panel.title)), note, element("dl", rows, class_="facts")))
    return element(
        "section",
        element("div", element("h2", "Clocks and further figures"), class_="bar0"),
        element("div", *panels, class_="columns panels"),
        aria_label="Clocks and further figures",
    )


def _doubt(view: PageView) -> str:
    parts = [
        element(
            "div",
            element("h2", "Doubt"),
            element("span", "what the \u00b1 is made of, and what to know before relying on it", class_="note"),
            class_="bar0",
        )
    ]
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
        columns.append(
            element(
                "div",
                element("h3", escape(f"Uncertainty of {view.budget_of}")),
                render_budget(view.budget),
                element("ul", items, class_="budget"),
            )
        )
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
            element(
                "span",
                escape(_SIGNS.get(row.severity, row.severity)),
                class_=f"badge {_PATTERNS.get(row.severity, 'solid')}",
            ),
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
    rows = "".join(
        element("div", element("dt", escape(label)), element("dd", escape(text))) for label, text in view.provenance
    )
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
