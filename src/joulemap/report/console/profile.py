"""The result table of ``joulemap profile`` as text that fits the terminal: bars go first, then MAC, then cycles."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from joulemap.report.console.style import Style
from joulemap.report.view.profile import LayerRow, ProfileView
from joulemap.report.view.text import printable

__all__ = ["render_profile"]

_GAP = "  "
_COUNTS = ("MAC", "cycles")  # what a target may not count at all
_NOTHING = frozenset({"", "—", "-"})
_BAR_MIN = 8
_BAR_MAX = 24
_DROP_ORDER = ((), ("MAC",), ("MAC", "cycles"))  # after the bar
_COLUMNS = (
    ("#", "index", ">"),
    ("op", "op", "<"),
    ("MAC", "macs", ">"),
    ("cycles", "cycles", ">"),
    ("time", "time", ">"),
    ("energy ± U", "energy", ">"),
    ("share", "share", ">"),
)


def render_profile(view: ProfileView, *, width: int, style: Style, bundle: str | None) -> str:
    """Returns the result as lines of at most ``width`` cells (where the table can be made to fit at all).

    Args:
        view: what to show.
        width: of the terminal, cells.
        style: colour and character set.
        bundle: where the bundle lies; None when none was written.
    """
    rows = [_encoded(row, style) for row in view.rows]  # before the layout: "±" is one cell, "+-" is two
    lines = [style.bold(view.title), style.dim(view.badge), "", *_table(rows, width, style), ""]
    if view.headline is not None:
        lines.append(style.bold(view.headline))
        if view.hotspot:
            lines.append(view.hotspot)
    else:
        lines.extend(style.warn(line) for line in textwrap.wrap(view.no_headline, width))
    lines.append("")
    label_width = max(len(label) for label, _ in view.figures)
    for label, text in view.figures:
        lines.extend(_hang(f"{label:<{label_width}}  ", text, width))
    if view.findings:
        lines.append("")
        for severity, slug, message in view.findings:
            wrapped = _hang(f"{severity}: ", f"{message} ({slug})", width)
            lines.extend(style.warn(line) if severity != "info" else line for line in wrapped)
    if bundle is not None:
        lines.extend(("", f"bundle  {printable(bundle)}"))
    return style.encode("\n".join(lines) + "\n")


def _hang(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, len(head) + 20), initial_indent=head, subsequent_indent=" " * len(head)) or [
        head.rstrip()
    ]


def _encoded(row: LayerRow, style: Style) -> LayerRow:
    cells = {field: style.encode(getattr(row, field)) for _, field, _ in _COLUMNS}
    return LayerRow(**cells, fill=row.fill)


def _table(rows: Sequence[LayerRow], width: int, style: Style) -> list[str]:
    told = [column for column in _COLUMNS if column[0] not in _COUNTS or not _is_empty(column[1], rows)]
    for dropped in _DROP_ORDER:
        columns = [column for column in told if column[0] not in dropped]
        widths = [_column_width(title, field, rows) for title, field, _ in columns]
        used = sum(widths) + len(_GAP) * (len(widths) - 1)
        if used <= width:
            break
    bar_width = min(width - used - len(_GAP), _BAR_MAX)
    bars = bar_width >= _BAR_MIN and not dropped and any(row.fill is not None for row in rows)
    titles = [f"{style.encode(title):{align}{cells}}" for (title, _, align), cells in zip(columns, widths, strict=True)]
    lines = [style.dim(_GAP.join(titles).rstrip())]
    for number, row in enumerate(rows):
        cells = [f"{getattr(row, field):{align}{n}}" for (_, field, align), n in zip(columns, widths, strict=True)]
        line = _GAP.join(cells)
        if bars and row.fill is not None:
            line += _GAP + style.bar(row.fill, bar_width)
        last = number == len(rows) - 1
        lines.append(style.bold(line.rstrip()) if last else line.rstrip())
    return lines


def _is_empty(field: str, rows: Sequence[LayerRow]) -> bool:
    """Returns whether no row has a figure in a column: a host counts no cycles."""
    return all(getattr(row, field) in _NOTHING for row in rows)


def _column_width(title: str, field: str, rows: Sequence[LayerRow]) -> int:
    return max(len(title), *(len(getattr(row, field)) for row in rows))
