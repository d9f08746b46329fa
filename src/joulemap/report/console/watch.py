"""Live domains as a table on a terminal, or as plain lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from joulemap.report.console.style import Style
from joulemap.report.view.text import printable
from joulemap.units import format_duration, format_si

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["WatchedDomain", "build_table", "render_watch"]

_BAR = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedDomain:
    """One row.

    Args:
        name: of the domain.
        value: power, W, or what a signal shows; NaN while nothing is known.
        unit: ``W``, or the signal's.
        energy_j: since the watch began, J; NaN for a signal.
        boundary: what it feeds; empty for a signal.
        provenance: of the figure.
        stale: it has not been renewed for seconds.
        peak: largest value shown so far.
    """

    name: str
    value: float
    unit: str
    energy_j: float
    boundary: str
    provenance: str
    stale: bool = False
    peak: float = 0.0


def _cells(row: WatchedDomain, largest_w: float, style: Style) -> tuple[str, str, str, str, str]:
    known = math.isfinite(row.value)
    unit = "" if row.unit == "1" else row.unit
    value = (
        format_si(row.value, unit, digits=4) if known and unit else (f"{row.value:.4g}" if known else "no reading yet")
    )
    energy = format_si(row.energy_j, "J", digits=5) if known and math.isfinite(row.energy_j) else ""
    fill = row.value / largest_w if known and row.unit == "W" and largest_w > 0 else 0.0
    bar = style.bar(min(max(fill, 0.0), 1.0), _BAR)
    state = f"{row.boundary} {row.provenance}".replace("_", " ").strip() + (", stale" if row.stale else "")
    return printable(row.name), value, energy, bar, state


def build_table(rows: Sequence[WatchedDomain], elapsed_s: float, style: Style) -> Table:
    """Returns the table for a live display."""
    from rich.table import Table  # noqa: PLC0415  only a terminal needs it

    largest_w = max((row.peak for row in rows if row.unit == "W"), default=0.0)
    table = Table(box=None, pad_edge=False, title=f"{format_duration(elapsed_s)}   Ctrl-C ends", title_justify="left")
    for label, justify in (
        ("domain", "left"),
        ("now", "right"),
        ("energy", "right"),
        ("", "left"),
        ("what it is", "left"),
    ):
        table.add_column(label, justify="right" if justify == "right" else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(style.encode(cell) for cell in _cells(row, largest_w, style)))
    return table


def render_watch(rows: Sequence[WatchedDomain], *, style: Style) -> str:
    """Returns the domains as plain lines."""
    largest_w = max((row.peak for row in rows if row.unit == "W"), default=0.0)
    cells = [_cells(row, largest_w, style) for row in rows]
    width = max((len(cell[0]) for cell in cells), default=0)
    lines = [f"{c[0]:<{width}}  {c[1]:>14}  {c[2]:>14}  {c[4]}" for c in cells]
    return style.encode("\n".join(lines) + "\n")
