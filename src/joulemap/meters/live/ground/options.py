"""Options of a meter address: text in, checked values out. Knows no driver."""

from __future__ import annotations

import math
from collections.abc import Iterable

from joulemap.errors import UsageError
from joulemap.records.live.domain import MeterAddress

__all__ = ["check_options", "choose_option", "number_option", "whole_option"]


def check_options(address: MeterAddress, known: Iterable[str]) -> None:
    """Refuses options that the driver does not have.

    Raises:
        UsageError: there is one (``meter-option``).
    """
    names = tuple(known)
    unknown = sorted(set(address.options) - set(names))
    if unknown:
        raise _refusal(address, f"has no option {', '.join(unknown)}", f"its options: {', '.join(names) or 'none'}")


def number_option(
    address: MeterAddress, name: str, default: float, *, least: float = 0.0, exclusive: bool = False
) -> float:
    """Returns a finite number of at least ``least``.

    Raises:
        UsageError: it is none (``meter-option``).
    """
    text = address.options.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < least or (exclusive and value == least):
        sign = ">" if exclusive else ">="
        raise _refusal(address, f"cannot take {name}={text}", f"{name} is a number {sign} {least:g}")
    return value


def whole_option(address: MeterAddress, name: str, default: int) -> int:
    """Returns a whole number >= 0.

    Raises:
        UsageError: it is none (``meter-option``).
    """
    text = address.options.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit():
        raise _refusal(address, f"cannot take {name}={text}", f"{name} is a whole number")
    return int(text)


def choose_option(address: MeterAddress, name: str, choices: tuple[str, ...]) -> str:
    """Returns one of the choices, the first when none is given.

    Raises:
        UsageError: it is none of them (``meter-option``).
    """
    text = address.options.get(name, choices[0])
    if text not in choices:
        raise _refusal(address, f"cannot take {name}={text}", f"{name} is one of {', '.join(choices)}")
    return text


def _refusal(address: MeterAddress, what: str, hint: str) -> UsageError:
    return UsageError(f"meter {address.driver} {what}", hint=hint, slug="meter-option")
