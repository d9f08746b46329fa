"""What an import read, as text: one block a recording, then what is doubtful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from joulemap.report.console.style import Style
from joulemap.report.view.recording.next_step import suggest_next
from joulemap.report.view.text import printable
from joulemap.units import format_bytes, format_count, format_duration

__all__ = ["render_import"]


def render_import(document: Mapping[str, Any], *, style: Style) -> str:
    """Returns the lines of an import document."""
    lines: list[str] = []
    for recording in document["recordings"]:
        lines.extend(_block(recording, style))
    for finding in document["findings"]:
        where = f" [{finding['span']}]" if finding["span"] else ""
        line = printable(f"{finding['severity']}: {finding['message']}{where} ({finding['slug']})")
        lines.append(style.warn(line) if finding["severity"] != "info" else line)
    if document["findings"]:
        lines.append("")
    lines.append(f"bundle  {document['bundle']}")
    lines.append(f"next    {printable(suggest_next(document))}")
    return style.encode("\n".join(lines) + "\n")


def _shown(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _counted(count: int, one: str) -> str:
    return f"{format_count(count)} {one if count == 1 else f'{one}s'}"


def _block(recording: Mapping[str, Any], style: Style) -> list[str]:
    names = ", ".join(source["name"] for source in recording["sources"][:4])
    more = len(recording["sources"]) - 4
    size = format_bytes(sum(source["size_b"] for source in recording["sources"]))
    kept = "kept inside" if recording["embedded"] else "referred to"
    head = f"{names}{f' and {more} more' if more > 0 else ''}: {recording['format']}, {size}, {kept}"
    lines = [style.bold(printable(head))]
    for trace in recording["traces"]:
        lost = f", {format_count(trace['lost_samples'])} lost" if trace["lost_samples"] else ""
        lines.append(
            printable(
                f"  trace     {trace['name']}: {_counted(trace['samples'], 'sample')} in "
                f"{format_duration(trace['duration_s'])}{lost}, {trace['boundary']}, clock {trace['clock']['name']} "
                f"({trace['clock']['kind']})"
            )
        )
    lines += [
        printable(
            f"  timeline  {timeline['name']}: {_counted(timeline['slices'], 'slice')} of "
            f"{_counted(timeline['names'], 'name')} on {_counted(timeline['tracks'], 'track')}"
            f"{_shown(timeline['first_names'])}, clock "
            f"{timeline['clock']['name']} ({timeline['clock']['kind']})"
        )
        for timeline in recording["timelines"]
    ]
    if recording["lanes"]:
        lines.append(printable(f"  lanes     {', '.join(lane['name'] for lane in recording['lanes'][:6])}"))
    lines += [
        printable(f"  markers   {track['name']}: {format_count(track['count'])}") for track in recording["markers"]
    ]
    return [*lines, ""]
