"""``joulemap score RUN.jm``: how far a simulated run is from the truth that its board kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from joulemap.cli.invocation import Invocation, check_finite, is_unicode, output_options
from joulemap.cli.streams import write_result
from joulemap.report.console.score import render_score
from joulemap.report.console.style import Style
from joulemap.workflow.score import score_bundle

__all__ = ["command"]


@click.command("score")
@click.argument("bundle", type=click.Path(path_type=Path), metavar="RUN.jm")
@click.option(
    "--max-error",
    type=click.FloatRange(min=0),
    callback=check_finite,
    metavar="X",
    help="Exit 1 when the total's relative error is beyond X (0.002 is 0.2 %).",
)
@output_options
@click.pass_context
def command(context: click.Context, /, bundle: Path, *, max_error: float | None) -> int:
    """Compare the estimates of a simulated run with the truth that its board kept."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    score = score_bundle(bundle, max_error=max_error)
    if invocation.json:
        write_result(json.dumps(score.document, indent=2, allow_nan=False) + "\n")
    else:
        style = Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout))
        write_result(render_score(score.document, style=style))
    return 0 if score.passed else 1
