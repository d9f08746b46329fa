"""The seam of every debug probe: program, reset, and memory without a reset. A probe never touches a power line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from joulemap.firmware.boards.base import ResetOptions

__all__ = ["Probe"]


class Probe(Protocol):
    """A link to one core. Every call may raise ``CaptureError`` with slug ``probe-lost`` when the link is gone."""

    @property
    def name(self) -> str:
        """Registry name, for example ``virtual``."""
        ...

    @property
    def lost(self) -> bool:
        """True once the link is gone; it does not come back."""
        ...

    def flash(self, elf: Path, *, layer_symbols: Sequence[str] = ()) -> None:
        """Programs the image.

        Raises:
            BuildError: the image is damaged or has no entry.
            CapacityError: the image does not fit.
        """
        ...

    def reset(self, options: ResetOptions) -> None:
        """Resets the core to the start of the image."""
        ...

    def read_memory(self, address: int, size_b: int) -> bytes:
        """Returns memory by an attach without reset."""
        ...

    def write_memory(self, address: int, content: bytes) -> None:
        """Writes RAM by an attach without reset."""
        ...
