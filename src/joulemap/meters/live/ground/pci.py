"""Which graphics devices sit in this machine, whether or not their driver is loaded. Knows no driver."""

from __future__ import annotations

from pathlib import Path

from joulemap.meters.live.ground.number_file import read_text

__all__ = ["AMD", "NVIDIA", "has_display_device"]

NVIDIA = "0x10de"
AMD = "0x1002"
_DISPLAY = ("0x03", "0x12")
"""Base classes of display controllers and of processing accelerators."""


def has_display_device(vendor: str, root: Path = Path("/sys")) -> bool:
    """True when a display device or accelerator of the vendor is on the PCI bus.

    References:
        PCI Code and ID Assignment Specification, base classes 03h and 12h.
    """
    devices = (root / "bus" / "pci" / "devices").glob("*")
    return any(
        read_text(device / "vendor") == vendor and (read_text(device / "class") or "").startswith(_DISPLAY)
        for device in devices
    )
