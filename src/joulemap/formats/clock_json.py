"""A clock as JSON: the one form that every format of a bundle uses."""

from __future__ import annotations

from typing import Any

from joulemap.trace import Clock, ClockKind

__all__ = ["describe_clock", "parse_clock"]


def describe_clock(clock: Clock) -> dict[str, object]:
    """Returns the clock as JSON."""
    return {
        "name": clock.name,
        "kind": str(clock.kind),
        "resolution_ns": clock.resolution_ns,
        "rate_std_ppm": clock.rate_std_ppm,
    }


def parse_clock(document: Any) -> Clock:
    """Returns the clock that JSON describes.

    Raises:
        KeyError, TypeError, ValueError: it describes none.
    """
    rate = document["rate_std_ppm"]
    return Clock(
        name=str(document["name"]),
        kind=ClockKind(document["kind"]),
        resolution_ns=float(document["resolution_ns"]),
        rate_std_ppm=None if rate is None else float(rate),
    )
