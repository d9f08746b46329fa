"""``joulemap export RUN.jm --to FORMAT -o F``: a bundle for another tool."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, is_unicode, output_options
from joulemap.cli.map_cmd import build_request, map_options
from joulemap.cli.streams import write_result
from joulemap.report.console.style import Style
from joulemap.units import format_bytes, format_count, format_si
from joulemap.workflow.recordings.export_bundle import ExportFormat, export_bundle

__all__ = ["command"]


@click.command("export", context_settings={"show_default": True})
@click.argument("bundle", type=click.Path(path_type=Path), metavar="RUN.jm")
@click.option("--to", "wanted", type=click.Choice([str(f) for f in ExportFormat]), required=True, help="Format.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="F", required=True, help="File to write.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--table", is_flag=True, help="Rows of the map (of a profile: per inference) instead of slices.")
@map_options
@output_options
@click.pass_context
def command(
    context: click.Context,
    /,
    bundle: Path,
    *,
    wanted: str,
    output: Path,
    force: bool,
    table: bool,
    **flags: Any,
) -> int:
    """Write RUN.jm for another tool: power, slices and their energy on one clock."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    exported = export_bundle(bundle, output, ExportFormat(wanted), build_request(flags), force=force, table=table)
    if invocation.json:
        document = document_head("joulemap.export") | {
            "path": str(exported.path),
            "format": wanted,
            "size_b": exported.size_b,
            "slices": exported.slices,
            "points": exported.points,
            "bin_s": exported.bin_s,
            "rows": exported.rows,
        }
        write_result(json.dumps(document, indent=2, allow_nan=False) + "\n")
        return 0
    style = Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout))
    line = f"{exported.path}: {wanted}, {format_bytes(exported.size_b)}, "
    if table:
        line += f"{format_count(exported.rows)} rows\n"
    else:
        line += (
            f"{format_count(exported.slices)} slices, {format_count(exported.points)} points of power of"
            f" {format_si(exported.bin_s, 's', digits=3)} each\n"
        )
    write_result(style.encode(line))
    return 0
