"""The probe of a virtual board: the debug link is the board's own session, and it can be pulled off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from joulemap.errors import CaptureError
from joulemap.firmware.boards.base import BoardSession, ResetOptions

__all__ = ["VirtualProbe"]


class VirtualProbe:
    """A probe that reads the board's memory directly.

    Args:
        session: the board.
    """

    name = "virtual"

    def __init__(self, session: BoardSession) -> None:
        self._session = session
        self._lost = False

    @property
    def lost(self) -> bool:
        """True once the link was pulled off."""
        return self._lost

    def disconnect(self) -> None:
        """Pulls the link off: the fault ``probe_lost``. The board itself runs on."""
        self._lost = True

    def flash(self, elf: Path, *, layer_symbols: Sequence[str] = ()) -> None:
        """Programs the image."""
        self._attached().flash(elf, layer_symbols=layer_symbols)

    def reset(self, options: ResetOptions) -> None:
        """Resets the core to the start of the image."""
        self._attached().reset(options)

    def read_memory(self, address: int, size_b: int) -> bytes:
        """Returns memory by an attach without reset."""
        return self._attached().read_memory(address, size_b)

    def write_memory(self, address: int, content: bytes) -> None:
        """Writes RAM by an attach without reset."""
        self._attached().write_memory(address, content)

    def _attached(self) -> BoardSession:
        if self._lost:
            raise CaptureError(
                "the debug probe is gone",
                hint="check the probe's cable and start the run again",
                slug="probe-lost",
                phase="profile",
            )
        return self._session
