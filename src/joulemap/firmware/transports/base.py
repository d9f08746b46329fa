"""The seams of the two kinds of link: the profile stream, and the terminal record after GATE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from joulemap.firmware.boards.base import BoardSession, BoardStop
from joulemap.records.power import PowerTerminalEnvelope
from joulemap.records.target import MemoryRegion

__all__ = ["LinkContext", "PowerTerminalReader", "PowerTerminalTransport", "ProfileDelivery", "ProfileTransport"]


class TargetMemory(Protocol):
    """Memory of a running target, reached without a reset: what every debug probe offers."""

    def read_memory(self, address: int, size_b: int) -> bytes:
        """Returns memory."""
        ...

    def write_memory(self, address: int, content: bytes) -> None:
        """Writes RAM."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkContext:
    """What a link needs to reach the running image.

    Args:
        session: the board; a link lets it run, and never resets it.
        memory: its memory, through the probe.
        symbols: of the deployed image, name -> (address, bytes).
        ram: the region that buffers may lie in.
        since_ns: board time from which a time-out counts, ns.
    """

    session: BoardSession
    memory: TargetMemory
    symbols: Mapping[str, tuple[int, int]]
    ram: MemoryRegion
    since_ns: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", MappingProxyType(dict(self.symbols)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDelivery:
    """Everything that came over the profile link, and how the board ended.

    Args:
        stream: bytes as received.
        stop: the last stop of the board.
    """

    stream: bytes
    stop: BoardStop


class PowerTerminalReader(Protocol):
    """Takes bytes off one link after GATE is low. It knows no protocol: parsing is apart from reading."""

    def read(self) -> bytes:
        """Returns what has come since the last call; empty when nothing has."""
        ...


class ProfileTransport(Protocol):
    """Takes the profile stream of an image that has just been reset."""

    @property
    def name(self) -> str:
        """Registry name, for example ``rtt``."""
        ...

    def capture(self, context: LinkContext) -> ProfileDelivery:
        """Runs the board and returns what it printed until it parked, faulted or met its deadline.

        Raises:
            CaptureError: the link delivers nonsense (``rtt-corrupt``).
            PowerError: the board is gone (``board-lost``).
            CaptureError: the probe is gone (``probe-lost``).
        """
        ...


class PowerTerminalTransport(Protocol):
    """Takes the terminal record after GATE is low, without ever resetting the target."""

    @property
    def name(self) -> str:
        """Registry name, for example ``rtt``."""
        ...

    def arm(self, context: LinkContext) -> None:
        """Makes sure that nothing of an earlier run can be taken for this one's; called after reset, before it runs."""
        ...

    def collect(self, context: LinkContext, timeout_s: float) -> PowerTerminalEnvelope:
        """Lets the board run and returns the record, at the latest ``timeout_s`` of board time after ``since_ns``.

        Raises:
            PowerError: no record in time (``terminal-missing``, ``terminal-late``), a rejected one (see
                ``wire.terminal``), nonsense in memory (``rtt-corrupt``), or the board is gone (``board-lost``).
        """
        ...
