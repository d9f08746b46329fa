"""``joulemap map RUN.jm``: flags to a request, the energy map to text or JSON."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import click

from joulemap.analysis.clocks.solve import Align, AlignRequest
from joulemap.analysis.mapping.energy_map import MapRequest
from joulemap.analysis.mapping.keys import MapKey
from joulemap.cli.document import render_document
from joulemap.cli.invocation import Invocation, check_finite, is_unicode, output_options
from joulemap.cli.streams import write_result
from joulemap.cli.work_options import build_work, work_options
from joulemap.errors import UsageError
from joulemap.report.console.energy_map import render_map
from joulemap.report.console.style import Style
from joulemap.report.view.energy_map import build_map_view
from joulemap.trace.sweep import Split
from joulemap.workflow.recordings.map_bundle import BundleMapRequest, map_bundle
from joulemap.workflow.recordings.published_rule import RULES

__all__ = ["build_request", "command", "describe_flags", "map_options"]

_INVALID = 4
_LONGEST_S = 146 * 365.25 * 86_400.0
"""Span of a clock of 63 bits that counts ns, s, halved: no offset is longer."""
_DEFAULTS = {"by": "name", "split": "equal", "align": "auto"}


def map_options(command: Any) -> Any:
    """Adds the flags that say what is mapped and how."""
    for option in reversed(
        (
            click.option(
                "--by", type=click.Choice([str(k) for k in MapKey]), default="name", help="What a row stands for."
            ),
            click.option(
                "--rule",
                type=click.Choice([str(r) for r in RULES]),
                help="Figures of a published rule beside ours; mlperf takes the rule of the source.",
            ),
            click.option(
                "--per",
                default="",
                show_default=False,
                metavar="NAME",
                help="Slices (name or kind) that are one unit of work.",
            ),
            click.option("--trace", "traces", multiple=True, metavar="NAME", help="Trace to map; several are summed."),
            click.option("--timeline", default="", show_default=False, metavar="NAME", help="Timeline to lay over it."),
            click.option(
                "--split",
                type=click.Choice([str(s) for s in Split]),
                default="equal",
                help="How tracks that are busy at once share the power.",
            ),
            click.option(
                "--align",
                type=click.Choice([str(a) for a in Align]),
                default="auto",
                help="How the timeline is put on the trace's clock.",
            ),
            click.option(
                "--offset",
                metavar="S",
                type=click.FloatRange(-_LONGEST_S, _LONGEST_S),
                callback=check_finite,
                help="Trace's clock less the timeline's, s.",
            ),
            click.option(
                "--marker", metavar="LINE=SLICE", help="Edges in the power file that stand for slices of a name."
            ),
            click.option(
                "--instrument",
                default="",
                show_default=False,
                metavar="NAME",
                help="Meter of the library, where the file does not tell.",
            ),
            click.option(
                "--calibration",
                type=click.Path(path_type=Path),
                metavar="FILE.toml",
                help="Calibration of the very unit; replaces the specification.",
            ),
            click.option(
                "--recorded",
                type=click.DateTime(["%Y-%m-%d"]),
                metavar="DATE",
                help="Day of the recording, where its clock does not say it.",
            ),
        )
    ):
        command = option(command)
    return command


def build_request(flags: dict[str, Any]) -> BundleMapRequest:
    """Returns the request of the flags that :func:`map_options` adds.

    Raises:
        UsageError: a flag has no such form, or two contradict each other.
    """
    marker = flags["marker"] or ""
    line, mark, slices = marker.partition("=")
    if marker and not (line and mark and slices):
        raise UsageError(f"--marker {marker}: not LINE=SLICE", hint="for example --marker gpi0=infer", slug="flag-form")
    given = [
        flag
        for flag, used in (
            ("--offset", flags["offset"] is not None),
            ("--marker", bool(marker)),
            ("--align", flags["align"] != "auto"),
        )
        if used
    ]
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} contradict each other", hint="give one of them", slug="flags-contradict"
        )
    recorded: date | None = flags["recorded"].date() if flags["recorded"] else None
    return BundleMapRequest(
        traces=tuple(flags["traces"]),
        timeline=flags["timeline"],
        map=MapRequest(key=MapKey(flags["by"]), split=Split(flags["split"])),
        align=AlignRequest(method=Align(flags["align"]), offset_s=flags["offset"], line=line, slices=slices),
        rule=flags["rule"] or "",
        per=flags["per"],
        instrument=flags["instrument"],
        calibration=flags["calibration"],
        recorded=recorded,
    )


def describe_flags(flags: dict[str, Any]) -> tuple[str, ...]:
    """Returns the flags of :func:`map_options` that were given, as words of a command line; files by their names."""
    words: list[str] = []
    for name in ("by", "rule", "per", "traces", "timeline", "split", "align", "offset", "marker", "instrument"):
        value, flag = flags[name], f"--{'trace' if name == 'traces' else name}"
        if name == "traces":
            words += [word for trace in value for word in (flag, trace)]
        elif value not in (None, "", _DEFAULTS.get(name)):
            words += [flag, repr(value) if name == "offset" else str(value)]
    words += ["--calibration", flags["calibration"].name] if flags["calibration"] else []
    words += ["--recorded", f"{flags['recorded']:%Y-%m-%d}"] if flags["recorded"] else []
    return tuple(words)


@click.command("map", context_settings={"show_default": True})
@click.argument("bundle", type=click.Path(path_type=Path), metavar="RUN.jm")
@map_options
@work_options
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show the first N rows.")
@output_options
@click.pass_context
def command(context: click.Context, /, bundle: Path, *, top: int | None, **flags: Any) -> int:
    """Show where the joules of RUN.jm went: rows by energy, each with its uncertainty."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    work = build_work(flags)
    document = map_bundle(bundle, replace(build_request(flags), work=work))
    if top is not None:
        rows = document["rows"]
        assert isinstance(rows, Sequence)  # map_bundle made it
        document["rows_left_out"] = max(len(rows) - top, 0)
        document["rows"] = rows[:top]
    if invocation.json:
        write_result(render_document(document))
    else:
        style = Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout))
        width = shutil.get_terminal_size(fallback=(80, 24)).columns
        write_result(render_map(build_map_view(document), width=width, style=style))
    return _INVALID if document["validity"] == "invalid" else 0
