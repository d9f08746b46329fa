"""What a program asks of a measurement, checked when it asks and not when its work is done."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from joulemap.errors import UsageError
from joulemap.meters.live.sampling.plan import Priority

__all__ = ["MeasureRequest"]

_SLOWEST_HZ, _FASTEST_HZ = 0.001, 100_000.0
_LONGEST_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """One measurement.

    Args:
        name: of the stretch.
        meters: names; empty for every usable one.
        rate_hz: readings per second.
        baseline_s: at rest before and after, s; 0 for none.
        output: bundle to write; None for none.
        force: replace a bundle that is there.
        priority: of the sampling process.
        headline: domains whose sum is the headline, or ``sum`` alone; empty for those of the widest boundary.
    """

    name: str
    meters: tuple[str, ...]
    rate_hz: float
    baseline_s: float
    output: Path | None
    force: bool
    priority: Priority
    headline: tuple[str, ...]

    @classmethod
    def check(
        cls,
        name: object,
        *,
        meters: Any,
        rate_hz: Any,
        baseline_s: Any,
        output: Any,
        force: bool,
        priority: Any,
        headline: Any,
    ) -> Self:
        """Returns the request.

        Raises:
            UsageError: an argument that cannot be (``measure-argument``); the message names it.
        """
        return cls(
            name=str(name),
            meters=_names("meters", meters, "a list of names, as joulemap meters shows them"),
            rate_hz=_number("rate_hz", rate_hz, (_SLOWEST_HZ, _FASTEST_HZ), "Hz"),
            baseline_s=_number("baseline_s", baseline_s, (0.0, _LONGEST_S), "s"),
            output=_path(output),
            force=bool(force),
            priority=_priority(priority),
            headline=_names("headline", headline, "a name of a domain, a list of them, or 'sum'"),
        )

    def for_call(self, name: str, number: int) -> Self:
        """Returns the request of one call of a decorated function.

        Args:
            name: of the function; used when no name was given.
            number: of the call, from 1; later ones write NAME-2.jm and so on, unless they replace.
        """
        output = self.output
        if output is not None and number > 1 and not self.force:
            output = output.with_name(f"{output.stem}-{number}{output.suffix}")
        return replace(self, name=name if self.name == "measured" else self.name, output=output)


def _refuse(argument: str, value: object, wanted: str) -> UsageError:
    shown = repr(value)
    return UsageError(
        f"joulemap.measure: {argument}={shown if len(shown) < 80 else shown[:77] + '...'}",
        hint=f"{argument} is {wanted}",
        slug="measure-argument",
    )


def _names(argument: str, value: Any, wanted: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = (value,)
    names = tuple(value)
    if not all(isinstance(name, str) and name for name in names):
        raise _refuse(argument, value, wanted)
    return names


def _number(argument: str, value: Any, limits: tuple[float, float], unit: str) -> float:
    least, most = limits
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not least <= number <= most:
        raise _refuse(argument, value, f"a number from {least:g} to {most:g} {unit}")
    return number


def _path(output: Any) -> Path | None:
    if output is None:
        return None
    wanted = "the path of a bundle to write, such as train.jm"
    if not isinstance(output, str | os.PathLike):
        raise _refuse("output", output, wanted)
    path = Path(output)
    if not path.name or "\0" in str(path):
        raise _refuse("output", output, wanted)
    return path


def _priority(priority: Any) -> Priority:
    try:
        return Priority(priority)
    except ValueError as error:
        raise _refuse("priority", priority, "one of: " + ", ".join(Priority)) from error
