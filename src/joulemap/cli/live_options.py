"""Options of the commands that read live meters, in one place so that they mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from joulemap.cli.invocation import check_finite

__all__ = ["endpoint_options", "meter_options", "seconds_option"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def meter_options(command: _Command) -> _Command:
    """Adds ``--meter`` and ``--rate``."""
    rate = click.option(
        "--rate",
        type=click.FloatRange(0.001, 100_000),
        default=10.0,
        metavar="HZ",
        callback=check_finite,
        help="Readings per second.",
    )
    meter = click.option(
        "--meter",
        "meters",
        multiple=True,
        metavar="NAME",
        help="Meter to read; see joulemap meters. Default: all usable.",
    )
    return meter(rate(command))


def seconds_option(command: _Command) -> _Command:
    """Adds ``--seconds``."""
    return click.option(
        "--seconds",
        type=click.FloatRange(min=0),
        default=0.0,
        metavar="S",
        callback=check_finite,
        help="End after so long; 0: when interrupted.",
    )(command)


def endpoint_options(command: _Command) -> _Command:
    """Adds ``--prometheus`` and ``--listen``."""
    port = click.option(
        "--prometheus", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Serve /metrics; 0: any free port."
    )
    listen = click.option(
        "--listen", default="127.0.0.1", metavar="ADDRESS", help="Address of --prometheus; loopback unless changed."
    )
    return port(listen(command))
