"""The two ways in which a meter fails as a whole, said the same by every driver, and what discovery says of one.

Knows no driver.
"""

from __future__ import annotations

from typing import Protocol

from joulemap.errors import PowerError, SetupError
from joulemap.meters.live.base import LiveMeter
from joulemap.records.live.domain import MeterCandidate

__all__ = ["NamedMeter", "lost_meter", "refused_meter", "try_meter"]


class NamedMeter(LiveMeter, Protocol):
    """A meter that knows what it is called."""

    name: str


def lost_meter(name: str, what: str) -> PowerError:
    """Returns the error of a meter that went away while it was read."""
    return PowerError(
        f"{name}: {what}", hint="plug it in or load its driver again; readings go on when it is back",
        slug="meter-lost", phase="power",
    )  # fmt: skip


def refused_meter(name: str, problem: str, fix: str) -> SetupError:
    """Returns the error of a meter that cannot be opened, with the step that mends it."""
    return SetupError(
        f"{name}: {problem}", hint=fix or "joulemap meters lists what can be read here", slug="meter-unusable"
    )


def try_meter(meter: NamedMeter) -> MeterCandidate:
    """Returns what a meter reads, or what keeps it from being opened and the step that mends it; it is closed then."""
    try:
        meter.open()
        return MeterCandidate(name=meter.name, address=meter.address, domains=meter.domains)
    except SetupError as error:
        problem = error.message.removeprefix(f"{meter.name}: ")
        return MeterCandidate(name=meter.name, address=meter.address, problem=problem, fix=error.hint)
    finally:
        meter.close()
