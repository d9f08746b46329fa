"""A measurement of the Python API as a bundle, and as a table for notebooks."""

from __future__ import annotations

import html
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from joulemap.analysis.recorded.runs import DomainRuns
from joulemap.estimate import Estimate, Quantity
from joulemap.records.finding import Finding
from joulemap.records.live.capture_header import CaptureHeader
from joulemap.records.mapping.energy_map import MapRow
from joulemap.records.recording import Recording
from joulemap.units import format_duration, format_estimate, format_si
from joulemap.workflow.record.command import CommandEnd
from joulemap.workflow.record.request import Recorded
from joulemap.workflow.record.result import describe_record
from joulemap.workflow.record.save import open_writer, write_recording

__all__ = ["Measured", "render_html", "render_text", "save_measurement"]

_SHOWN = 20
_QUICK = 10_000_000
"""Marks times names whose energies are found while somebody waits for the text."""


class Measured(Protocol):
    """What a measurement offers once it has ended."""

    name: str
    duration_s: float
    findings: tuple[Finding, ...]
    recording: Recording | None
    windows: dict[str, list[tuple[int, int]]]
    parts: tuple[DomainRuns, ...]
    headline: tuple[str, ...]

    @property
    def energy_j(self) -> Quantity:
        """J."""
        ...

    @property
    def average_power_w(self) -> Quantity:
        """W."""
        ...

    @property
    def domains(self) -> dict[str, Quantity]:
        """Energy of every domain, J."""
        ...

    def rows(self) -> tuple[MapRow, ...]:
        """What the marks took."""
        ...


def save_measurement(measured: Measured, header: CaptureHeader, output: Path, *, force: bool) -> Path:
    """Writes the bundle and returns its path.

    Raises:
        UsageError, SetupError, ReportError: as the writer of bundles.
    """
    assert measured.recording is not None  # asked by the caller
    run_id = uuid.uuid4().hex
    ends = tuple(
        CommandEnd(start_ns=begin, end_ns=end, status=0, user_s=0.0, system_s=0.0, peak_rss_b=None)
        for begin, end in measured.windows["run"]
    )
    recorded = Recorded(
        recording=measured.recording,
        ends=ends,
        baselines=tuple(measured.windows["baseline"]),
        headline=measured.headline,
    )
    argv = [Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python", *sys.argv[1:]]
    document, _ = describe_record(recorded, header, argv=argv, run_id=run_id)
    document["command"] = {"argv": argv, "status": None, "rusage": None}  # a part of a program has none of its own
    with open_writer(output, run_id, force=force) as writer:
        run: dict[str, object] = {"command": argv, "measured": measured.name, "rate_hz": header.rate_hz}
        write_recording(writer, measured.recording, (document, run, header), (output, output))
    return output


def render_html(measured: Measured) -> str:
    """Returns the measurement as HTML: its figures, what the marks took, and every doubt."""
    body = "".join(f"<tr><th>{html.escape(key)}</th>{_cells(rest)}</tr>" for key, *rest in _figures(measured))
    marks = ""
    if kept := _marks(measured):
        heads = "".join(f"<th>{head}</th>" for head in ("mark", "count", "time", "energy"))
        marks = f"<table><tr>{heads}</tr>" + "".join(f"<tr>{_cells(row)}</tr>" for row in kept) + "</table>"
    return f"<table><caption>{html.escape(measured.name)}</caption>{body}</table>{marks}{_doubts(measured.findings)}"


def render_text(measured: Measured) -> str:
    """Returns the measurement as lines of text."""
    rows = [("", key, *rest) for key, *rest in _figures(measured)]
    if marks := _marks(measured):
        rows += [("marks", "count", "time", "energy"), *marks]
    lines = [measured.name]
    for row in rows:
        cells = [cell for cell in row if cell or row[0]]
        lines.append("  " + "  ".join(f"{cell:<{20 if k == 0 else 0}}" for k, cell in enumerate(cells)).rstrip())
    return "\n".join([*lines, *(f"  {f.severity}: {f.message} ({f.slug})" for f in measured.findings)])


def _figures(measured: Measured) -> list[tuple[str, str, str]]:
    """Returns (label, figure, what kind of figure it is)."""
    if not measured.windows["run"]:
        return [("energy", "not available (not_ended)", "")]
    return [
        ("time", format_duration(measured.duration_s), ""),
        ("energy", _figure(measured.energy_j, "J"), _kind(measured.energy_j)),
        ("power", _figure(measured.average_power_w, "W"), _kind(measured.average_power_w)),
        *((name, _figure(energy, "J"), _kind(energy)) for name, energy in measured.domains.items()),
    ]


def _marks(measured: Measured) -> list[tuple[str, str, str, str]]:
    """Returns (name, count, time, energy) of the names that took most, and how many more there are."""
    recording = measured.recording
    if recording is None or not recording.timelines or "mark" not in recording.timelines[0].kinds:
        return []
    if not measured.domains:
        return []
    timeline = recording.timelines[0]
    if len(timeline) * len(timeline.names) > _QUICK:
        return [(f"{len(timeline.names)} names: rows() has them", f"{len(timeline)}", "", "")]
    rows = sorted(measured.rows(), key=lambda row: -row.duration_s)
    shown = [(r.key, str(r.count), format_duration(r.duration_s), _figure(r.energy_j, "J")) for r in rows[:_SHOWN]]
    more = len(rows) - _SHOWN
    return [*shown, *([(f"{more} more names", "", "", "")] if more > 0 else [])]


def _cells(row: Sequence[str]) -> str:
    return "".join(f"<td>{html.escape(cell)}</td>" for cell in row)


def _kind(quantity: Quantity) -> str:
    if not isinstance(quantity, Estimate):
        return ""
    boundary = "" if quantity.boundary is None else f"{quantity.boundary}, "
    return f"{boundary}{quantity.provenance}".replace("_", " ")


def _doubts(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    items = "".join(f"<li>{html.escape(f.message)} ({html.escape(f.slug)})</li>" for f in findings)
    return f"<ul>{items}</ul>"


def _figure(quantity: Quantity, unit: str) -> str:
    if not isinstance(quantity, Estimate):
        return f"not available ({quantity.reason})"
    if not quantity.expanded:
        return format_si(quantity.value, unit)
    return format_estimate(quantity.value, quantity.expanded, unit)
