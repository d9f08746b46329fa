"""The program ``joulemap``: runs one call, and turns whatever ends it into an exit code and a message.

The only place of the house, beside the roots of processes, that catches every exception. Its imports are late, so
that an interrupt while they load is told like any other.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

from joulemap.cli.streams import open_missing_streams, tell, write_result
from joulemap.errors import JoulemapError, SetupError

if TYPE_CHECKING:
    import click

    from joulemap.cli.invocation import Invocation
    from joulemap.records.failure import FailureReport

__all__ = ["main", "run"]

_INTERRUPTED = 130
_COMPILING = frozenset({"map", "export", "report"})
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_EXHAUSTED = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
)
"""What the operating system says when it has no room left; no fault of ours, wherever it is said."""


def main() -> None:
    """Runs the program on the process's arguments and ends the process with its exit code."""
    open_missing_streams()
    for number in _ENDINGS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # what nohup ignores stays ignored
            signal.signal(number, _interrupt)
    if _COMPILING.intersection(sys.argv[1:3]):  # numba loads scipy, where it is, for what nothing here compiles
        sys.modules.setdefault("scipy", None)  # type: ignore[arg-type]
    code = run(sys.argv[1:])
    tell("")  # what a broken stderr still holds must not fail at exit
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said and done
    sys.exit(code)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Ends the run, once: what it has opened is closed, and no second signal breaks into that."""
    for number in _ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def run(arguments: Sequence[str]) -> int:
    """Runs one call and returns its exit code; no exception but ``SystemExit`` of the interpreter leaves it."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        tell("joulemap: interrupted; nothing was left behind\n")
        return _INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    import click  # noqa: PLC0415  an interrupt while it loads is told too

    from joulemap.cli.invocation import Invocation  # noqa: PLC0415  as above
    from joulemap.cli.program import program  # noqa: PLC0415  as above

    # read here too, for whatever ends the call before click has parsed it
    invocation = Invocation(json="--json" in arguments, verbosity=2 if "-vv" in arguments else 0)
    try:
        try:
            code = program.main(args=list(arguments), prog_name="joulemap", standalone_mode=False, obj=invocation)
        except click.Abort as error:
            raise KeyboardInterrupt from error
        except click.ClickException as error:
            return _tell_usage(error, invocation)
        return code if isinstance(code, int) else 0
    except JoulemapError as error:
        return _tell(error, error, invocation)
    except Exception as error:  # noqa: BLE001  the root of the program: a fault of joulemap is told, never dumped
        return _tell(_name(error), error, invocation)


def _name(error: Exception) -> JoulemapError:
    """Returns an exception that no room of the house has named as one that can be told."""
    what = f"{type(error).__name__}: {error}".strip().rstrip(":")
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _EXHAUSTED):
        return SetupError(
            f"this machine has no room left ({what})",
            hint="look at ulimit -a and df, free what is short, or ask for less (--window-s, --repeats)",
            slug="machine-exhausted",
        )
    if isinstance(error, FileNotFoundError) and error.filename is None and _is_folder_gone():
        return SetupError(
            "the current folder was removed",
            hint="change to one that exists, or give paths from the root",
            slug="output-unwritable",
        )
    hint = "this is a fault of joulemap itself; repeat the command with -vv and file the trace with it"
    return JoulemapError(what, hint=hint)


def _is_folder_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  Path.cwd() is the same call
    except FileNotFoundError:
        return True
    return False


def _tell(error: JoulemapError, cause: Exception, invocation: Invocation) -> int:
    """Tells a failure on stderr, and with ``--json`` as a document too; returns its exit code."""
    from joulemap.report.console.failure import render_failure  # noqa: PLC0415  only a failure needs it

    report = invocation.report_failure(error) if invocation.report_failure else _report(error)
    tell(render_failure(report))
    if invocation.verbosity > 1:
        import traceback  # noqa: PLC0415  as above

        tell("".join(traceback.format_exception(cause)))
    if invocation.json:
        _write_document(report)
    return report.exit_code


def _report(error: JoulemapError) -> FailureReport:
    from joulemap.records.failure import FailureReport  # noqa: PLC0415  only a failure needs it

    return FailureReport(slug=error.slug, message=error.message, hint=error.hint, exit_code=error.exit_code)


def _tell_usage(error: click.ClickException, invocation: Invocation) -> int:
    import contextlib  # noqa: PLC0415  only a failure needs it

    with contextlib.suppress(OSError):  # nobody there to see it
        error.show(sys.stderr)
    if invocation.json:
        from joulemap.records.failure import FailureReport  # noqa: PLC0415  only a failure needs it

        message, hint = error.format_message(), "see joulemap --help"
        _write_document(FailureReport(slug="usage", message=message, hint=hint, exit_code=error.exit_code))
    return error.exit_code


def _write_document(report: FailureReport) -> None:
    import contextlib  # noqa: PLC0415  only a failure needs these
    import json  # noqa: PLC0415

    from joulemap.cli.document import document_head  # noqa: PLC0415

    document = {**document_head("joulemap.failure", validity="invalid"), "error": report.to_json()}
    with contextlib.suppress(SetupError):  # the failure was told on stderr, and its exit code stands
        write_result(json.dumps(document, indent=2, default=str) + "\n")
