"""The program ``joulemap``: finds the command, and turns whatever ends it into an exit code and a message.

The only place of the house, beside the roots of processes, that catches every exception. Loads no command before it
is called for, so that ``--help`` stays quick.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Sequence

import click

from joulemap import __version__
from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, silence_stdout, write_result
from joulemap.errors import JoulemapError
from joulemap.records.failure import FailureReport

__all__ = ["main", "run"]

_COMMANDS = {
    "profile": "Profile a model's energy per inference and per layer.",
    "report": "Write a run as a page that opens offline, or as Markdown.",
    "import": "Read recordings of power and of what ran into one bundle.",
    "map": "Show where the joules of a recording or a profile went.",
    "export": "Write a bundle for another tool: Perfetto, Chrome, CSV, Parquet.",
    "score": "Compare a simulated run with the truth that its board kept.",
    "boards": "List the targets and whether each can run here.",
    "doctor": "Say what is missing here, with the exact fix.",
}
_INTERRUPTED = 130


class _LazyGroup(click.Group):
    """Commands by name; a command's module is imported when the command runs, never for the list of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click calls it by this name
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  as above
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"joulemap.cli.{cmd_name}_cmd").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="joulemap")
def _program() -> None:
    """Show where the joules of neural-network inference go, with an error bar on every figure."""


def main() -> None:
    """Runs the program on the process's arguments and ends the process with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one call and returns its exit code; no exception but ``SystemExit`` of the interpreter leaves it."""
    # read here too, for whatever ends the call before click has parsed it
    invocation = Invocation(json="--json" in arguments, verbosity=2 if "-vv" in arguments else 0)
    try:
        code = _program.main(args=list(arguments), prog_name="joulemap", standalone_mode=False, obj=invocation)
    except click.ClickException as error:
        return _tell_usage(error, invocation)
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("joulemap: interrupted; nothing was left behind\n")
        return _INTERRUPTED
    except BrokenPipeError:
        silence_stdout()
        return 0
    except JoulemapError as error:
        report = invocation.report_failure(error) if invocation.report_failure else _report(error)
        return _tell(report, invocation, error)
    except Exception as error:  # noqa: BLE001  the root of the program: a fault of joulemap is told, never dumped
        return _tell(_report_fault(error), invocation, error)
    return code if isinstance(code, int) else 0


def _report(error: JoulemapError) -> FailureReport:
    return FailureReport(slug=error.slug, message=error.message, hint=error.hint, exit_code=error.exit_code)


def _report_fault(error: Exception) -> FailureReport:
    what = f"{type(error).__name__}: {error}".strip().rstrip(":")
    hint = "this is a fault of joulemap itself; repeat the command with -vv and file the trace with it"
    return FailureReport(slug="internal-fault", message=what, hint=hint, exit_code=JoulemapError.exit_code)


def _tell(report: FailureReport, invocation: Invocation, error: Exception) -> int:
    from joulemap.report.console.failure import render_failure  # noqa: PLC0415  only a failure needs it

    sys.stderr.write(render_failure(report))
    if invocation.verbosity > 1:
        sys.stderr.write("".join(traceback.format_exception(error)))
    if invocation.json:
        _write_document(report)
    return report.exit_code


def _tell_usage(error: click.ClickException, invocation: Invocation) -> int:
    error.show(sys.stderr)
    if invocation.json:
        hint = "see joulemap --help"
        _write_document(
            FailureReport(slug="usage", message=error.format_message(), hint=hint, exit_code=error.exit_code)
        )
    return error.exit_code


def _write_document(report: FailureReport) -> None:
    document = {**document_head("joulemap.failure", validity="invalid"), "error": report.to_json()}
    write_result(json.dumps(document, indent=2, default=str) + "\n")
