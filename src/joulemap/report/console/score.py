"""The score of a simulated run as text: truth, estimate, error, whether the interval holds the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from joulemap.report.console.style import Style
from joulemap.report.view.text import DASH, printable
from joulemap.units import format_si

__all__ = ["render_score"]


def render_score(document: Mapping[str, Any], *, style: Style) -> str:
    """Returns a line per layer, group, gap and the total, with a verdict when a limit was given."""
    rows = [("", "truth", "estimate", "error", "in U")]
    rows += [(f"layer {layer['index']}", *_cells(layer)) for layer in document["layers"]]
    rows += [(f"{group['id']}: {_members(group['layers'])}", *_cells(group)) for group in document["groups"]]
    rows += [("between layers", *_cells(document["gap"])), ("one inference", *_cells(document["total"]))]
    encoded = [tuple(style.encode(cell) for cell in row) for row in rows]
    widths = [max(len(row[k]) for row in encoded) for k in range(5)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(row[k].rjust(widths[k]) for k in range(1, 5))]).rstrip()
        for row in encoded
    ]
    lines[0], lines[-1] = style.dim(lines[0]), style.bold(lines[-1])
    head = printable(f"{document['model']} on {document['target']}, against the truth of its virtual board")
    if document["max_error"] is not None:
        verdict = "pass" if document["passed"] else "fail"
        lines += ["", f"{verdict}: limit {_percent(document['max_error'])}"]
    return style.encode("\n".join([style.bold(head), "", *lines]) + "\n")


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    figures = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join((row[0].ljust(widths[0]), *figures)).rstrip()


def _members(layers: list[int]) -> str:
    return f"{layers[0]}-{layers[-1]}" if len(layers) > 1 else str(layers[0])


def _cells(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    truth = format_si(row["truth_j"], "J", digits=5)
    if row["estimate_j"] is None:
        return truth, DASH, DASH, DASH
    error = DASH if row["error_rel"] is None else _percent(row["error_rel"], sign="+")
    return truth, format_si(row["estimate_j"], "J", digits=5), error, "yes" if row["covered"] else "no"


def _percent(ratio: float, *, sign: str = "") -> str:
    return f"{100 * ratio:{sign}.3f}\u2009%"
