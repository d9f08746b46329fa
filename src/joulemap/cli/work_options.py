"""Flags of ``map`` that ask for more than the map: a plan, repetition in place, operations, a duty cycle."""

from __future__ import annotations

from typing import Any

import click

from joulemap.errors import UsageError
from joulemap.units import parse_duration_s
from joulemap.workflow.recordings.map_extras import WorkRequest

__all__ = ["build_work", "work_options"]

_FLAGS = ("half_width", "in_place", "ops", "duty")


def work_options(command: Any) -> Any:
    """Adds the flags."""
    for option in reversed(
        (
            click.option(
                "--half-width", metavar="SHARE", help="Say how often to record the work for it, row by row: 5%."
            ),
            click.option(
                "--in-place",
                default="",
                show_default=False,
                metavar="PATTERN",
                help="Slices that repeat a layer in place, for slow sensors: '{layer} x{k} n{n}'.",
            ),
            click.option("--ops", type=float, metavar="N", help="Operations of one unit of work, as you count them."),
            click.option("--duty", metavar="PERIOD", help="Average over one unit of work every PERIOD: 10 s."),
        )
    ):
        command = option(command)
    return command


def build_work(flags: dict[str, Any]) -> WorkRequest:
    """Returns the request of the flags, and takes them out.

    Raises:
        UsageError: a flag has no such form, or lacks the unit of work that it is of.
    """
    half_width, in_place, ops, duty = (flags.pop(flag) for flag in _FLAGS)
    if (ops is not None or duty) and not flags["per"]:
        given = "--ops" if ops is not None else "--duty"
        raise UsageError(
            f"{given} is of one unit of work", hint="say which slices are one: --per inference", slug="flags-contradict"
        )
    if ops is not None and not ops > 0:
        raise UsageError(f"--ops {ops:g}: not above 0", hint="for example --ops 4e9", slug="flag-form")
    if in_place and (flags["per"] or half_width):
        raise UsageError(
            "--in-place says what one pass costs; --per and --half-width are of slices as they are",
            hint="give one of them",
            slug="flags-contradict",
        )
    return WorkRequest(
        half_width=None if half_width is None else _share(half_width),
        in_place=in_place,
        ops=ops,
        duty_s=None if not duty else parse_duration_s(duty),
    )


def _share(text: str) -> float:
    plain = text.strip()
    try:
        value = float(plain.removesuffix("%")) * (0.01 if plain.endswith("%") else 1.0)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise UsageError(f"--half-width {text}: not a share between 0 and 1", hint="for example 5%", slug="flag-form")
    return value
