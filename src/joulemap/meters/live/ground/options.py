"""Options of a meter address: text in, checked values out. Knows no driver."""

from __future__ import annotations

import ipaddress
import math
import socket
from collections.abc import Iterable

from joulemap.errors import UsageError
from joulemap.records.live.domain import MeterAddress

__all__ = ["THIS", "check_options", "choose_option", "machine_option", "number_option", "whole_option"]

THIS = "this"
"""What option ``machine`` says of the machine that records."""


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


def machine_option(address: MeterAddress, host: str) -> str:
    """Returns the machine that a meter measures; empty for the one that records.

    What a machine draws contains what its parts draw, and nothing of another machine's.

    Args:
        address: option ``machine`` states it: ``this``, or any name; two meters of one name are of one machine.
        host: that answers: the machine when nothing is stated, unless it is this one; empty for this one.
    """
    stated = address.options.get("machine")
    if stated is not None:
        return "" if stated == THIS else stated
    return "" if not host or _is_own(host) else host


def _is_own(host: str) -> bool:
    if host in {"localhost", socket.gethostname()}:
        return True
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        return False  # a name is not looked up: that may take seconds, and asks somebody
    if literal.is_loopback:
        return True
    family = socket.AF_INET if literal.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))  # only an address of one's own can be bound
    except OSError:
        return False
    return True


def _refusal(address: MeterAddress, what: str, hint: str) -> UsageError:
    return UsageError(f"meter {address.driver} {what}", hint=hint, slug="meter-option")
