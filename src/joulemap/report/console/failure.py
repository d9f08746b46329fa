"""A failure for a person: what failed, how far it came, the one thing to do next. Plain text, always."""

from __future__ import annotations

from joulemap.records.failure import FailureReport
from joulemap.report.view.text import printable, shorten

__all__ = ["render_failure"]

_LONGEST = 2000  # of a line, characters: names from a file may have no end


def render_failure(report: FailureReport) -> str:
    """Returns the lines for stderr, each ended; control characters in messages are shown, never sent."""
    lines = [f"joulemap: {report.message}"]
    if report.phase:
        lines.append(f"  failed in   {report.phase}{f' / {report.stage}' if report.stage else ''}")
    if report.completed:
        lines.append(f"  completed   {len(report.completed)} stages, last {report.completed[-1]}")
    if report.artifact_role:
        lines.append(f"  firmware    {report.artifact_role}")
    if report.last_checkpoint:
        lines.append(f"  checkpoint  {report.last_checkpoint}")
    if report.firmware_phase:
        lines.append(f"  its phase   {report.firmware_phase}")
    if report.hint:
        lines.append(f"  next        {report.hint}")
    lines.append(f"  more        docs/errors.md#{report.slug} (exit {report.exit_code})")
    return "".join(f"{shorten(printable(part), _LONGEST)}\n" for line in lines for part in line.splitlines())
