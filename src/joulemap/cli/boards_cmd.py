"""``joulemap boards``: the targets, and whether each can run here."""

from __future__ import annotations

import json
import sys

import click

from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, is_unicode, output_options
from joulemap.cli.streams import write_result
from joulemap.report.console.style import Style
from joulemap.units import format_bytes, format_si
from joulemap.workflow.machine.doctor import BoardStatus, survey_boards

__all__ = ["command"]


@click.command("boards")
@output_options
@click.pass_context
def command(context: click.Context, /) -> int:
    """List the targets that --target takes, and whether each can run here."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    boards = survey_boards()
    if invocation.json:
        write_result(json.dumps(_document(boards), indent=2) + "\n")
    else:
        style = Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout))
        write_result(style.encode("".join(_lines(status) for status in boards)))
    return 0


def _lines(status: BoardStatus) -> str:
    target = status.board.target
    memory = ", ".join(f"{region.name} {format_bytes(region.size_b)}" for region in target.regions)
    clock = format_si(target.operating_point.core_hz, "Hz", digits=4)
    state = "can run" if not status.problems else "cannot run"
    lines = [
        f"{target.name}  {state}",
        f"  {target.description}",
        f"  {target.cpu.core}, {clock}, {memory}; energies {target.provenance} at the {target.boundary}",
    ]
    lines += [f"  {problem}\n    fix: {fix}" for problem, fix in status.problems]
    return "".join(f"{line}\n" for line in lines)


def _document(boards: tuple[BoardStatus, ...]) -> dict[str, object]:
    return {
        **document_head("joulemap.boards"),
        "boards": [_board_document(status) for status in boards],
    }


def _board_document(status: BoardStatus) -> dict[str, object]:
    target = status.board.target
    return {
        "name": target.name,
        "description": target.description,
        "core": target.cpu.core,
        "features": sorted(target.cpu.features),
        "core_hz": target.operating_point.core_hz,
        "supply_v": target.operating_point.supply_v,
        "memory_b": {region.name: region.size_b for region in target.regions},
        "boundary": str(target.boundary),
        "provenance": str(target.provenance),
        "transports": list(target.transports),
        "runnable": not status.problems,
        "problems": [{"problem": problem, "fix": fix} for problem, fix in status.problems],
    }
