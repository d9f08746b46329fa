"""The command ``joulemap`` itself: its options, and the list of its commands.

Loads no command before it is called for, so that ``--help`` stays quick.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import click

from joulemap import __version__

__all__ = ["program"]

_COMMANDS = {
    "profile": "Profile a model's energy per inference and per layer.",
    "record": "Measure the energy of any command.",
    "watch": "Show power and energy of every domain, live.",
    "export-metrics": "Offer live energy and power to Prometheus or OpenTelemetry.",
    "report": "Write a run as a page that opens offline, or as Markdown.",
    "import": "Read recordings of power and of what ran into one bundle.",
    "map": "Show where the joules of a recording or a profile went.",
    "export": "Write a bundle for another tool: Perfetto, Chrome, CSV, Parquet.",
    "score": "Compare a simulated run with the truth that its board kept.",
    "meters": "List the power meters of this machine, and the fix for what cannot be read.",
    "boards": "List the targets and whether each can run here.",
    "doctor": "Say what is missing here, with the exact fix.",
}


_SOLVING = frozenset({"map", "report", "export"})
_THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def _single_solver(command: str) -> Iterator[None]:
    """Has numpy loaded with one thread for its matrices where a command solves small systems beside reading.

    On two processors of which one is taken, its threads wait for each other ten times as long as the work takes. The
    variable is read once, when numpy loads, and is taken back then: no process that is started later inherits it.
    """
    wanted = command in _SOLVING and _THREADS not in os.environ
    if wanted:
        os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        if wanted:
            del os.environ[_THREADS]


class _LazyGroup(click.Group):
    """Commands by name; a command's module is imported when the command runs, never for the list of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click calls it by this name
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  as above
        if cmd_name not in _COMMANDS:
            return None
        with _single_solver(cmd_name):
            module = importlib.import_module(f"joulemap.cli.{cmd_name.replace('-', '_')}_cmd")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="joulemap")
def program() -> None:
    """Show where the joules of neural-network inference go, with an error bar on every figure."""
