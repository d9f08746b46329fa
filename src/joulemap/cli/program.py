"""The command ``joulemap`` itself: its options, and the list of its commands.

Loads no command before it is called for, so that ``--help`` stays quick.
"""

from __future__ import annotations

import importlib

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


class _LazyGroup(click.Group):
    """Commands by name; a command's module is imported when the command runs, never for the list of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click calls it by this name
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  as above
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"joulemap.cli.{cmd_name.replace('-', '_')}_cmd").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="joulemap")
def program() -> None:
    """Show where the joules of neural-network inference go, with an error bar on every figure."""
