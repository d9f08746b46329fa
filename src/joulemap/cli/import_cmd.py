"""``joulemap import FILE|FOLDER...``: flags to a request, what was read to text or JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from joulemap.cli.invocation import Invocation, check_finite, is_unicode, output_options
from joulemap.cli.streams import write_result
from joulemap.errors import UsageError
from joulemap.estimate import Boundary
from joulemap.formats.base import ReadOptions
from joulemap.report.console.recording import render_import
from joulemap.report.console.style import Style
from joulemap.workflow.recordings.import_recording import import_recordings
from joulemap.workflow.recordings.import_request import ImportRequest, parse_stated

__all__ = ["command"]


@click.command("import")
@click.argument("paths", type=click.Path(path_type=Path), metavar="FILE|FOLDER...", nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="RUN.jm", required=True, help="Bundle to write."
)
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
@click.option("--copy", is_flag=True, help="Keep large traces inside the bundle instead of referring to their files.")
@click.option(
    "--format", "formats", multiple=True, metavar="NAME|FILE=NAME", help="Format, where content does not say it."
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME",
    help="Column of a table: time, power, current, voltage, energy.",
)
@click.option("--unit", "units", multiple=True, metavar="ROLE=UNIT", help="Unit of a column, for example time=ms.")
@click.option(
    "--voltage",
    type=click.FloatRange(min=0, min_open=True),
    metavar="V",
    callback=check_finite,
    help="Supply of a file that holds current only, V.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="HZ",
    callback=check_finite,
    help="Sample rate of a file that does not say it, Hz.",
)
@click.option(
    "--utc-offset",
    "offsets",
    multiple=True,
    metavar="[FILE=][+-]HH:MM",
    help="Offset of local stamps from UTC, east positive.",
)
@click.option(
    "--boundary",
    type=click.Choice([str(b) for b in Boundary]),
    help="What the power feeds, where the format cannot know.",
)
@click.option(
    "--provenance",
    "provenances",
    multiple=True,
    metavar="[FILE=]simulated|measured|estimated",
    help="What the powers are at best; never more than the file says.",
)
@output_options
@click.pass_context
def command(  # noqa: PLR0913  one argument a flag
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    output: Path,
    *,
    force: bool,
    copy: bool,
    formats: tuple[str, ...],
    columns: tuple[str, ...],
    units: tuple[str, ...],
    voltage: float | None,
    rate: float | None,
    offsets: tuple[str, ...],
    boundary: str | None,
    provenances: tuple[str, ...],
) -> int:
    """Read recordings of power and of what ran into one bundle."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    zones = {path: _parse_offset(text) for path, text in parse_stated("--utc-offset", offsets, paths).items()}
    origins = parse_stated("--provenance", provenances, paths)
    options = ReadOptions(
        columns=_pairs("--column", columns),
        units=_pairs("--unit", units),
        voltage_v=voltage,
        rate_hz=rate,
        utc_offset_s=zones.pop("", None),
        boundary=boundary,
        provenance=origins.pop("", None),
    )
    request = ImportRequest(
        paths=paths,
        options=options,
        copy=copy,
        formats=parse_stated("--format", formats, paths),
        utc_offsets_s=zones,
        provenances=origins,
    )
    document = import_recordings(request, output, force=force)
    if invocation.json:
        write_result(json.dumps(document, indent=2, allow_nan=False) + "\n")
    else:
        style = Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout))
        write_result(render_import(document, style=style))
    return 0


def _pairs(flag: str, given: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        role, mark, value = text.partition("=")
        if not (role and mark and value):
            raise UsageError(f"{flag} {text}: not ROLE=VALUE", hint=f"for example {flag} power=P", slug="flag-form")
        if role in pairs:
            raise UsageError(f"{flag} {text}: {role} is given twice", hint="give it once", slug="flag-form")
        pairs[role] = value
    return pairs


def _parse_offset(text: str) -> float:
    """Returns an offset from UTC, s; hours and minutes with a sign, or seconds as a number.

    Raises:
        UsageError: it is no offset, or beyond a day.
    """
    sign = -1.0 if text.startswith("-") else 1.0
    hours, mark, minutes = text.lstrip("+-").partition(":")
    try:
        offset_s = sign * (int(hours) * 3600 + int(minutes) * 60) if mark else float(text)
    except ValueError:
        offset_s = float("nan")
    if not abs(offset_s) <= 86_400:
        raise UsageError(
            f"--utc-offset {text}: no offset from UTC", hint="for example --utc-offset=-05:00", slug="flag-form"
        )
    return offset_s
