"""The planted fault ``probe_lost``: pulls the link off a probe that can be pulled off."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from joulemap.firmware.probes.base import Probe

__all__ = ["unplug_probe"]


@runtime_checkable
class _Unpluggable(Protocol):
    def disconnect(self) -> None:
        """Pulls the link off."""
        ...


def unplug_probe(probe: Probe) -> None:
    """Pulls the link off; every later call of the probe then finds out by itself.

    Raises:
        TypeError: the probe is a real one; preflight refuses faults there.
    """
    if not isinstance(probe, _Unpluggable):
        raise TypeError(f"probe {probe.name} cannot be unplugged by software")
    probe.disconnect()
