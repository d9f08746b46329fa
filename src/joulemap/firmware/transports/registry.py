"""The transports that a run can name. The one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from joulemap.errors import UsageError
from joulemap.firmware.transports.base import PowerTerminalTransport, ProfileTransport
from joulemap.firmware.transports.rtt import RttProfileTransport, RttTerminalTransport

__all__ = ["profile_transport", "terminal_transport", "transport_names"]

_Transport = TypeVar("_Transport")
_PROFILE: dict[str, Callable[[], ProfileTransport]] = {"rtt": RttProfileTransport}
_TERMINAL: dict[str, Callable[[], PowerTerminalTransport]] = {"rtt": RttTerminalTransport}


def transport_names() -> tuple[str, ...]:
    """Returns the names that a terminal record can come over."""
    return tuple(_TERMINAL)


def profile_transport(name: str) -> ProfileTransport:
    """Returns the profile transport of that name.

    Raises:
        UsageError: there is none (``unknown-transport``).
    """
    return _find(name, _PROFILE)()


def terminal_transport(name: str) -> PowerTerminalTransport:
    """Returns the terminal transport of that name.

    Raises:
        UsageError: there is none (``unknown-transport``).
    """
    return _find(name, _TERMINAL)()


def _find(name: str, table: dict[str, Callable[[], _Transport]]) -> Callable[[], _Transport]:
    if name not in table:
        raise UsageError(f"no transport named {name}", hint=f"one of: {', '.join(table)}", slug="unknown-transport")
    return table[name]
