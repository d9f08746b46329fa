"""``joulemap report RUN.jm``: a bundle as a page that opens offline, or as Markdown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, is_unicode, output_options
from joulemap.cli.map_cmd import build_request, describe_flags, map_options
from joulemap.cli.streams import write_result
from joulemap.report.console.style import Style
from joulemap.report.view.text import printable
from joulemap.units import format_bytes
from joulemap.workflow.report import ReportRequest, WrittenReport, write_reports

__all__ = ["command"]


@click.command("report", context_settings={"show_default": True})
@click.argument("bundle", type=click.Path(path_type=Path), metavar="RUN.jm")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write the page: one file, offline.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Write Markdown, without the map.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@map_options
@output_options
@click.pass_context
def command(
    context: click.Context, /, bundle: Path, *, html: Path | None, markdown: Path | None, force: bool, **flags: Any
) -> int:
    """Write RUN.jm as a page: where the joules go, and whether to believe it."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    request = ReportRequest(map=build_request(flags), flags=describe_flags(flags))
    targets = {form: path for form, path in (("html", html), ("markdown", markdown)) if path is not None}
    written = write_reports(bundle, targets, force=force, request=request)
    if invocation.json:
        write_result(json.dumps(_document(written), indent=2) + "\n")
    else:
        style = Style(color=False, unicode=is_unicode(sys.stdout))
        lines = (f"{'page' if w.form == 'html' else w.form:<9} {w.path}, {format_bytes(w.size_b)}" for w in written)
        write_result(style.encode("".join(f"{printable(line)}\n" for line in lines)))
    return 0


def _document(written: tuple[WrittenReport, ...]) -> dict[str, object]:
    return {
        **document_head("joulemap.report"),
        "files": [{"form": w.form, "path": str(w.path), "size_b": w.size_b} for w in written],
    }
