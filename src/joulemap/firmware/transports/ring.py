"""Reads a ring with the public RTT layout out of target memory, and believes nothing that lies there.

References:
    SEGGER UM08001, "J-Link / J-Trace User Guide", chapter RTT: control block and buffer descriptors.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from joulemap.firmware.transports.base import LinkContext, TargetMemory

__all__ = ["RING_SYMBOL", "RingDefectError", "RttRing", "forget_ring"]

RING_SYMBOL = "hpx_rtt_block"
_ID = b"SEGGER RTT".ljust(16, b"\0")
_HEAD = struct.Struct("<16sii")
_RING = struct.Struct("<6I")  # name, buffer, size, write offset, read offset, flags
_MOST_RINGS = 16


class RingDefectError(ValueError):
    """The control block or its ring is nonsense; the transport turns it into the error of its boundary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    buffer: int
    size: int
    write_at: int
    read_at: int


class RttRing:
    """The first up-ring of the control block at the image's own symbol; a :class:`PowerTerminalReader`.

    Args:
        context: the link.

    Raises:
        RingDefectError: the image has no control block, or its symbol lies outside RAM.
    """

    def __init__(self, context: LinkContext) -> None:
        if RING_SYMBOL not in context.symbols:
            raise RingDefectError(f"the image has no symbol {RING_SYMBOL}")
        self._context = context
        self._block = context.symbols[RING_SYMBOL][0]
        self._check_inside(self._block, _HEAD.size + _RING.size, RING_SYMBOL)

    def read(self) -> bytes:
        """Returns the bytes that were not read yet and marks them read; nothing while the ring is not ready.

        Raises:
            RingDefectError: a count, address or offset is impossible.
        """
        window = self._open()
        if window is None or window.write_at == window.read_at:
            return b""
        memory = self._context.memory
        if window.write_at > window.read_at:
            content = memory.read_memory(window.buffer + window.read_at, window.write_at - window.read_at)
        else:
            content = memory.read_memory(window.buffer + window.read_at, window.size - window.read_at)
            if window.write_at:
                content += memory.read_memory(window.buffer, window.write_at)
        memory.write_memory(self._block + _HEAD.size + 16, struct.pack("<I", window.write_at))
        return content

    def _open(self) -> _Window | None:
        memory = self._context.memory
        ident, up_count, _ = _HEAD.unpack(memory.read_memory(self._block, _HEAD.size))
        if ident != _ID:
            return None
        if not 1 <= up_count <= _MOST_RINGS:
            raise RingDefectError(f"the control block says {up_count} up-rings")
        _, buffer, size, write_at, read_at, _ = _RING.unpack(memory.read_memory(self._block + _HEAD.size, _RING.size))
        if not 2 <= size <= self._context.ram.size_b:
            raise RingDefectError(f"the ring says {size} bytes")
        self._check_inside(buffer, size, "the ring's buffer")
        if write_at >= size or read_at >= size:
            raise RingDefectError(f"offsets {write_at} and {read_at} lie outside the ring of {size} bytes")
        return _Window(buffer=buffer, size=size, write_at=write_at, read_at=read_at)

    def _check_inside(self, address: int, size_b: int, what: str) -> None:
        ram = self._context.ram
        if not ram.origin <= address <= ram.origin + ram.size_b - size_b:
            raise RingDefectError(f"{what} at {address:#x} (+{size_b} bytes) lies outside {ram.name}")


def forget_ring(memory: TargetMemory, block_address: int) -> None:
    """Erases the id of a control block, so that what an earlier run left in RAM cannot be found."""
    memory.write_memory(block_address, bytes(len(_ID)))
