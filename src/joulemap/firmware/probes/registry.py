"""The probes that a run can name. The one place that knows them all, and says which this build has."""

from __future__ import annotations

from collections.abc import Callable

from joulemap.errors import SetupError, UsageError
from joulemap.firmware.boards.base import BoardSession
from joulemap.firmware.probes.base import Probe
from joulemap.firmware.probes.virtual import VirtualProbe

__all__ = ["probe_names", "resolve_probe"]

_PROBES: dict[str, Callable[[BoardSession], Probe]] = {"virtual": VirtualProbe}
_NOT_BUILT = {"jlink": "J-Link", "cmsis-dap": "CMSIS-DAP", "gdb": "GDB remote"}


def probe_names() -> tuple[str, ...]:
    """Returns the names of the probes that this build has."""
    return tuple(_PROBES)


def resolve_probe(name: str, session: BoardSession) -> Probe:
    """Returns the probe of that name, attached to the board.

    Raises:
        SetupError: this build has no driver for it (``probe-unavailable``).
        UsageError: no probe has that name (``unknown-probe``).
    """
    if name in _PROBES:
        return _PROBES[name](session)
    if name in _NOT_BUILT:
        raise SetupError(
            f"this build of joulemap has no driver for a {_NOT_BUILT[name]} probe",
            hint=f"use a target whose probe is one of: {', '.join(_PROBES)}",
            slug="probe-unavailable",
        )
    known = ", ".join((*_PROBES, *_NOT_BUILT))
    raise UsageError(f"no probe named {name}", hint=f"one of: {known}", slug="unknown-probe")
