"""How one call of the program speaks: to people or to scripts, how much, in colour or not. Knows no command."""

from __future__ import annotations

import locale
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from joulemap.errors import JoulemapError, UsageError
from joulemap.records.failure import FailureReport

__all__ = ["Invocation", "check_finite", "is_unicode", "output_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(slots=True, kw_only=True)
class Invocation:
    """What the flags that every command shares say; filled while click parses.

    Args:
        json: stdout carries one JSON document.
        verbosity: 0, 1 with ``-v``, 2 with ``-vv``.
        quiet: no progress on stderr.
        no_color: asked by flag.
        report_failure: turns an error into the report of the run that it ended; None outside a run.
    """

    json: bool = False
    verbosity: int = 0
    quiet: bool = False
    no_color: bool = False
    report_failure: Callable[[JoulemapError], FailureReport] | None = None

    def check(self) -> None:
        """Refuses flags that contradict each other.

        Raises:
            UsageError: ``--quiet`` together with ``-v``.
        """
        if self.quiet and self.verbosity:
            raise UsageError(
                "--quiet and -v contradict each other", hint="give one of the two", slug="flags-contradict"
            )

    def color(self, stream: Any) -> bool:
        """True when the stream is a terminal that takes colour and nothing forbids it."""
        forbidden = self.no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        return not forbidden and bool(stream.isatty())


def is_unicode(stream: Any) -> bool:
    """True when the stream's encoding can write the signs of a result."""
    encoding = getattr(stream, "encoding", None) or locale.getpreferredencoding(do_setlocale=False)
    try:
        "\u00b5\u00b1\u2588\u258c\u00b7\u2009".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def check_finite(_context: click.Context, _parameter: click.Parameter, value: float | None) -> float | None:
    """Returns the value of a flag; refuses ``nan`` and ``inf``, which a range of click lets pass."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


def _kept(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        setattr(context.ensure_object(Invocation), name, value)

    return callback


def output_options(command: _Command) -> _Command:
    """Adds ``--json -v --quiet --no-color`` to a command; their values go to the :class:`Invocation`."""
    shared: dict[str, Any] = {"expose_value": False, "is_eager": True}
    for option in (
        click.option(
            "--no-color", is_flag=True, callback=_kept("no_color"), help="No colour; NO_COLOR does the same.", **shared
        ),
        click.option("--quiet", is_flag=True, callback=_kept("quiet"), help="No progress on stderr.", **shared),
        click.option(
            "-v",
            "verbosity",
            count=True,
            show_default=False,
            callback=_kept("verbosity"),
            help="Checkpoints and stage times; -vv: diagnostics.",
            **shared,
        ),
        click.option("--json", is_flag=True, callback=_kept("json"), help="One JSON document on stdout.", **shared),
    ):
        command = option(command)
    return command
