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
from joulemap.records.recording import Recording
from joulemap.units import format_duration, format_estimate, format_si
from joulemap.workflow.record.command import CommandEnd
from joulemap.workflow.record.request import Recorded
from joulemap.workflow.record.result import describe_record
from joulemap.workflow.record.save import open_writer, write_recording

__all__ = ["Measured", "render_html", "save_measurement"]


class Measured(Protocol):
    """What a measurement offers once it has ended."""

    name: str
    duration_s: float
    findings: tuple[Finding, ...]
    recording: Recording | None
    windows: dict[str, list[tuple[int, int]]]
    parts: tuple[DomainRuns, ...]

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


def save_measurement(measured: Measured, header: CaptureHeader, output: Path, *, force: bool) -> Path:
    """Writes the bundle and returns its path.

    Raises:
        UsageError, SetupError, ReportError: as the writer of bundles.
    """
    assert measured.recording is not None  # asked by the caller
    run_id = uuid.uuid4().hex
    ends = tuple(
        CommandEnd(start_ns=begin, end_ns=end, status=0, user_s=0.0, system_s=0.0, peak_rss_b=0)
        for begin, end in measured.windows["run"]
    )
    recorded = Recorded(recording=measured.recording, ends=ends, baselines=tuple(measured.windows["baseline"]))
    argv = [Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python", *sys.argv[1:]]
    document, _ = describe_record(recorded, header, argv=argv, run_id=run_id)
    document["command"] = {"argv": argv, "status": None, "rusage": None}  # a part of a program has none of its own
    with open_writer(output, run_id, force=force) as writer:
        run: dict[str, object] = {"command": argv, "measured": measured.name, "rate_hz": header.rate_hz}
        write_recording(writer, measured.recording, (document, run, header), (output, output))
    return output


def render_html(measured: Measured) -> str:
    """Returns the measurement as an HTML table."""
    rows = [
        ("time", format_duration(measured.duration_s)),
        ("energy", _figure(measured.energy_j, "J")),
        ("power", _figure(measured.average_power_w, "W")),
        *((name, _figure(energy, "J")) for name, energy in measured.domains.items()),
    ]
    body = "".join(f"<tr><th>{html.escape(key)}</th><td>{html.escape(value)}</td></tr>" for key, value in rows)
    doubts = _doubts(measured.findings)
    return f"<table><caption>{html.escape(measured.name)}</caption>{body}</table>{doubts}"


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
