"""The table of ``joulemap map`` as text that fits the terminal: bars go first, then counts and running shares."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from joulemap.report.console.style import Style
from joulemap.report.view.energy_map import MapTableRow, MapView
from joulemap.report.view.text import printable

__all__ = ["render_map"]

_GAP = "  "
_BAR_MIN, _BAR_MAX = 8, 24
_KEY_MIN = 16
_COLUMNS = (
    ("", "key", "<"),
    ("count", "count", ">"),
    ("time", "time", ">"),
    ("power", "power", ">"),
    ("energy ± U", "energy", ">"),
    ("self ± U", "own", ">"),
    ("share", "share", ">"),
    ("sum", "running", ">"),
    ("needs", "runs", ">"),
)
_DROPPED = ((), ("sum",), ("sum", "count"), ("sum", "count", "power"), ("sum", "count", "power", "time"))


def render_map(view: MapView, *, width: int, style: Style) -> str:
    """Returns the map as lines of at most ``width`` cells (where the table can be made to fit at all).

    Args:
        view: what to show.
        width: of the terminal, cells.
        style: colour and character set.
    """
    lines = [style.bold(view.title), style.dim(view.badge), ""]
    rows = [_encoded(row, style) for row in view.rows]
    lines += [*_table(rows, width, style), "", style.bold(view.headline)]
    if view.hotspot:
        lines.append(view.hotspot)
    lines.append("")
    label_width = max(len(label) for label, _ in view.figures)
    for label, text in view.figures:
        lines += _hang(f"{label:<{label_width}}  ", text, width)
    if view.findings:
        lines.append("")
        for severity, slug, message in view.findings:
            wrapped = _hang(f"{severity}: ", f"{message} ({slug})", width)
            lines += [style.warn(line) if severity != "info" else line for line in wrapped]
    lines += ["", f"bundle  {printable(view.bundle)}"]
    return style.encode("\n".join(lines) + "\n")


def _hang(head: str, text: str, width: int) -> list[str]:
    wide = max(width, len(head) + 20)
    return textwrap.wrap(text, wide, initial_indent=head, subsequent_indent=" " * len(head)) or [head.rstrip()]


def _encoded(row: MapTableRow, style: Style) -> MapTableRow:
    return MapTableRow(**{field: style.encode(getattr(row, field)) for _, field, _ in _COLUMNS}, fill=row.fill)


def _table(rows: Sequence[MapTableRow], width: int, style: Style) -> list[str]:
    planned = any(row.runs for row in rows)
    nested = any(row.own and row.own != row.energy for row in rows)
    for dropped in _DROPPED:
        columns = [
            c for c in _COLUMNS if c[0] not in dropped and (nested or c[1] != "own") and (planned or c[1] != "runs")
        ]
        widths = [max(len(title), *(len(getattr(row, field)) for row in rows)) for title, field, _ in columns]
        used = sum(widths) + len(_GAP) * (len(widths) - 1)
        if used <= width:
            break
    if used > width:  # long names are cut, never figures
        widths[0] = max(widths[0] - (used - width), _KEY_MIN)
        used = sum(widths) + len(_GAP) * (len(widths) - 1)
    bar_width = min(width - used - len(_GAP), _BAR_MAX)
    bars = bar_width >= _BAR_MIN and any(row.fill is not None for row in rows)
    titles = [f"{style.encode(title):{align}{cells}}" for (title, _, align), cells in zip(columns, widths, strict=True)]
    lines = [style.dim(_GAP.join(titles).rstrip())]
    for number, row in enumerate(rows):
        cells = []
        for (_, field, align), cell_width in zip(columns, widths, strict=True):
            text = getattr(row, field)
            cells.append(f"{text if len(text) <= cell_width else text[: cell_width - 1] + '~':{align}{cell_width}}")
        line = _GAP.join(cells)
        if bars and row.fill is not None:
            line += _GAP + style.bar(row.fill, bar_width)
        lines.append(style.bold(line.rstrip()) if number == len(rows) - 1 else line.rstrip())
    return lines
