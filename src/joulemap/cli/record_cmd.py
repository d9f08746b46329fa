"""``joulemap record -- COMMAND...``: flags to a request, a live line on stderr, the command's status as ours."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, check_finite, is_unicode, output_options
from joulemap.cli.live_options import meter_options
from joulemap.cli.streams import tell, write_result
from joulemap.errors import JoulemapError, PowerError, UsageError
from joulemap.meters.live.sampling.plan import Priority
from joulemap.records.failure import FailureReport
from joulemap.report.console.failure import render_failure
from joulemap.report.console.record import render_live_line, render_record
from joulemap.report.console.style import Style
from joulemap.workflow.record.command import status_of_failure
from joulemap.workflow.record.record import RecordOutcome, default_output, record
from joulemap.workflow.record.request import LiveLine, RecordRequest
from joulemap.workflow.record.server import parse_count

__all__ = ["command"]

_UNMEASURED = PowerError.exit_code


@click.command("record", context_settings={"show_default": True, "allow_interspersed_args": False})
@click.argument("argv", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="RUN.jm", help="Bundle to write.")
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
@meter_options
@click.option("--repeats", type=click.IntRange(min=1), default=1, metavar="R", help="Runs of the command.")
@click.option(
    "--baseline",
    type=click.FloatRange(0, 86400),
    default=0.0,
    metavar="S",
    callback=check_finite,
    help="Time at rest before and after the runs, s; gives the energy above idle.",
)
@click.option(
    "--measure-overhead", is_flag=True, help="Run as often again without sampling, and tell what sampling changes."
)
@click.option(
    "--priority",
    type=click.Choice([str(p) for p in Priority]),
    default=str(Priority.NORMAL),
    help="Of the sampling process, as far as the system grants it.",
)
@click.option(
    "--headline",
    multiple=True,
    metavar="NAME|sum",
    help="Domain that the total is made of; given again, their sum. sum: all that no other contains. Default: those of "
    "the widest boundary.",
)
@click.option(
    "--server",
    metavar="URL",
    help="Metrics of a server that the command loads (Prometheus text): joules per request, inference, token.",
)
@click.option(
    "--count",
    "counts",
    multiple=True,
    metavar="UNIT=METRIC",
    help="Counter of the server and what it counts. Default: what is known of Triton, vLLM and HTTP servers.",
)
@click.option("--keep-capture", is_flag=True, help="Leave RUN.jm.live, to import it together with other recordings.")
@output_options
@click.pass_context
def command(  # noqa: PLR0913  one argument a flag
    context: click.Context,
    /,
    argv: tuple[str, ...],
    output: Path | None,
    *,
    force: bool,
    meters: tuple[str, ...],
    rate: float,
    repeats: int,
    baseline: float,
    measure_overhead: bool,
    priority: str,
    headline: tuple[str, ...],
    server: str | None,
    counts: tuple[str, ...],
    keep_capture: bool,
) -> int:
    """Measure the energy of a command: joulemap record -- COMMAND...

    The command's own streams are untouched; the figures go to stderr, with --json as a document to stdout after
    whatever the command printed there. The command's status is passed on.
    """
    invocation = context.ensure_object(Invocation)
    invocation.check()
    invocation.report_failure = _report
    if counts and not server:
        raise UsageError("--count is of a server", hint="name it with --server URL", slug="flags-contradict")
    request = RecordRequest(
        command=argv,
        output=output or default_output(argv, time.gmtime()),
        meters=meters,
        rate_hz=rate,
        repeats=repeats,
        baseline_s=baseline,
        overhead=measure_overhead,
        priority=Priority(priority),
        force=force,
        keep=keep_capture,
        headline=headline,
        server=server or "",
        counted=dict(parse_count(text) for text in counts),
    )
    line = _Line(invocation)
    try:
        outcome = record(request, line.show)
    finally:
        line.clear()
    return _close(outcome, invocation)


class _Line:
    """The live line: one line of stderr that is drawn over, only on a terminal."""

    def __init__(self, invocation: Invocation) -> None:
        self._shown = sys.stderr.isatty() and not invocation.quiet
        self._style = Style(color=False, unicode=is_unicode(sys.stderr))
        self._drawn = False

    def show(self, line: LiveLine) -> None:
        """Draws the line anew."""
        if self._shown:
            place = line.run, line.runs
            text = render_live_line(line.phase, line.elapsed_s, line.power_w, line.energy_j, place=place)
            tell(f"\r\033[K{self._style.encode(text)[: _columns() - 1]}")
            self._drawn = True

    def clear(self) -> None:
        """Takes the line away."""
        if self._drawn:
            tell("\r\033[K")
            self._drawn = False


def _columns() -> int:
    import shutil  # noqa: PLC0415  only a terminal needs it

    return shutil.get_terminal_size().columns


def _close(outcome: RecordOutcome, invocation: Invocation) -> int:
    """Writes what came of it; returns the command's status, or 4 when that is 0 and nothing was measured."""
    if outcome.failure is not None:
        report = _report(outcome.failure)
        tell(render_failure(report))
        if invocation.json:
            document = {**document_head("joulemap.failure", validity="invalid"), "error": report.to_json()}
            write_result(json.dumps(document, indent=2) + "\n")
        return outcome.status or _UNMEASURED
    assert outcome.document is not None  # there is a failure or a document
    if invocation.json:
        write_result(json.dumps(outcome.document, indent=2, allow_nan=False) + "\n")
    if not invocation.json or invocation.verbosity:
        style = Style(color=invocation.color(sys.stderr), unicode=is_unicode(sys.stderr))
        tell(render_record(outcome.document, style=style))
    return outcome.status or (0 if outcome.document["validity"] == "valid" else _UNMEASURED)


def _report(error: JoulemapError) -> FailureReport:
    code = status_of_failure(error.slug)
    return FailureReport(
        slug=error.slug,
        message=error.message,
        hint=error.hint,
        exit_code=error.exit_code if code is None else code,
    )
