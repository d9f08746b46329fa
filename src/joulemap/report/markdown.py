"""The page as Markdown: answer, hotspots, doubt and provenance; for a pull request, a wiki, a mail. No map."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from joulemap.report.view.page import HotspotRow, PageView
from joulemap.report.view.text import DASH

__all__ = ["render_markdown"]

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&]|^(?:[-+=]|\d+[.)](?=\s)))")  # the last two mean something at the start only
_COLUMNS = (
    ("Layer", "name", ":--"),
    ("Energy ± U", "energy", "--:"),
    ("Self ± U", "own", "--:"),
    ("Share", "share", "--:"),
    ("Cum.", "cumulative", "--:"),
    ("Time", "time", "--:"),
    ("Power", "power", "--:"),
    ("J/MAC", "per_mac", "--:"),
    ("Resolved", "resolution", ":--"),
)


def render_markdown(view: PageView) -> str:
    """Returns the report as Markdown that any renderer shows alike; every text from data means itself there."""
    parts = [*_answer(view), *_hotspots(view), *_traces(view), *_panels(view), *_doubt(view), *_provenance(view)]
    return "\n".join(parts) + "\n"


def _text(text: str) -> str:
    """Returns text without anything that Markdown or HTML would obey."""
    return _SPECIAL.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text.replace("\n", " "))


def _code(text: str) -> str:
    """Returns text as a code span: fenced by one more backtick than it holds in a row."""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _answer(view: PageView) -> list[str]:
    badges = ", ".join(badge.word for badge in view.badges)
    lines = [f"# {_text(view.subject)}", ""]
    if view.headline is not None:
        lines += [f"**{_text(view.headline)}** {_text(view.headline_unit)} ({_text(badges)})", ""]
        lines += [_text(view.hotspot), ""] if view.hotspot else []
    else:
        lines += [f"**No headline** ({_text(badges)})", "", _text(view.no_headline), ""]
        lines += [f"What to do: {_prose(view.next_step)}", ""] if view.next_step else []
    if view.figures_are:
        lines += [f"What follows is {_text(view.figures_are)}:", ""]
    return [*lines, *(f"- {_text(label)}: {_text(text)}" for label, text in view.figures), ""]


def _hotspots(view: PageView) -> list[str]:
    lines: list[str] = []
    for table in view.tables:
        own = {"name": table.label, "own": table.own_label}
        heads = [own.get(field, title) for title, field, _ in _COLUMNS]
        fields = [field for _, field, _ in _COLUMNS]
        kept = [k for k, field in enumerate(fields) if field in {"name", "energy"} or _known(table.rows, field)]
        lines += [f"## Hotspots by {table.label.lower()}", ""]
        lines += [_row(heads[k] for k in kept), _row(_COLUMNS[k][2] for k in kept)]
        lines += [_row(_text(getattr(row, fields[k])) for k in kept) for row in table.rows]
        lines += ["", table.note, ""] if table.note else [""]
    return lines


def _traces(view: PageView) -> list[str]:
    if not view.traces:
        return []
    lines = ["## Traces", "", _row(("Trace", "Inside", "Energy ± U", "Mean power", "Samples", "On this page"))]
    lines.append("| :-- | :-- | --: | --: | --: | :-- |")
    lines += [_row(map(_text, (t.name, t.inside or DASH, t.energy, t.power, t.sampling, t.role))) for t in view.traces]
    return [*lines, ""]


def _panels(view: PageView) -> list[str]:
    lines: list[str] = []
    for panel in view.panels:
        lines += [f"## {_text(panel.title)}", ""]
        lines += [f"{_text(panel.note[:1].upper() + panel.note[1:])}.", ""] if panel.note else []
        lines += [*(f"- {_text(label)}: {_text(text)}" for label, text in panel.rows), ""]
    return lines


def _known(rows: Sequence[HotspotRow], field: str) -> bool:
    return any(getattr(row, field) not in {DASH, ""} for row in rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _doubt(view: PageView) -> list[str]:
    lines = ["## Doubt", ""]
    if view.budget:
        lines += [
            _row(("Contribution to U", "Type", "Standard uncertainty", "Share of u²")),
            "| :-- | :-- | --: | --: |",
        ]
        lines += [_row(map(_text, (s.name, s.kind, s.std, s.share_text))) for s in view.budget]
        lines.append("")
    for finding in view.findings:
        cure = f" What to do: {_prose(finding.cure)}" if finding.cure else ""
        lines.append(f"- **{finding.severity}**: {_text(finding.message)} ({_code(finding.slug)}).{cure}")
    if not view.findings:
        lines.append("No findings.")
    lines += [f"- {_text(name)}: {_text(why)}" for name, why in view.refused]
    return [*lines, ""]


def _prose(text: str) -> str:
    """Returns words of ours, in which backticks mean code already."""
    parts = text.split("`")
    return "".join(_code(part) if k % 2 else _text(part) for k, part in enumerate(parts))


def _provenance(view: PageView) -> list[str]:
    lines = ["## Provenance", "", *(f"- {_text(label)}: {_text(text)}" for label, text in view.provenance)]
    if view.command:
        lines += ["", f"To reproduce: {_code(view.command)}"]
    return lines
