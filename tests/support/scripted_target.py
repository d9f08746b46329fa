"""A target whose RAM and time a test writes by hand: enough of board and probe for a transport, and it never resets."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from joulemap.firmware.boards.base import BoardStop, ResetOptions, StopReason
from joulemap.firmware.transports.base import LinkContext
from joulemap.firmware.transports.ring import RING_SYMBOL
from joulemap.records.rail import BoardTruth, RailActivity
from joulemap.records.target import Line, MemoryRegion

__all__ = ["BLOCK", "BUFFER", "RAM", "RING_B", "ScriptedTarget"]

RAM = MemoryRegion(name="ram", origin=0x20000000, size_b=0x10000)
BLOCK, BUFFER, RING_B = 0x20000100, 0x20000200, 1024
_ID = b"SEGGER RTT".ljust(16, b"\0")


class ScriptedTarget:
    """Board session and probe memory in one.

    Args:
        script: what the firmware does at board times: (time s, action); an action may write RAM.
        stop: why a run ends when the script has nothing left to do.
    """

    target_id = "scripted"

    def __init__(
        self,
        script: Sequence[tuple[float, Callable[[ScriptedTarget], None]]] = (),
        stop: StopReason = StopReason.IDLE,
    ) -> None:
        self._script = list(script)
        self._stop = stop
        self.ram = bytearray(RAM.size_b)
        self.time_s = 0.0

    def link(self, *, since_s: float = 0.0, with_ring: bool = True) -> LinkContext:
        """Returns the way to it."""
        symbols = {RING_SYMBOL: (BLOCK, 72)} if with_ring else {}
        return LinkContext(session=self, memory=self, symbols=symbols, ram=RAM, since_ns=round(since_s * 1e9))

    def put_ring(self, *, write_at: int = 0, read_at: int = 0, **odd: int) -> None:
        """Writes a control block; odd values replace what belongs there."""
        head = struct.pack("<16sii", _ID, odd.get("up_count", 1), 1)
        ring = (0, odd.get("buffer", BUFFER), odd.get("size", RING_B), write_at, read_at, 2)
        self.write_memory(BLOCK, head + struct.pack("<6I", *ring))

    def print(self, text: bytes) -> None:
        """Puts text into the ring as the firmware does."""
        _, _, _, write_at, read_at, _ = struct.unpack("<6I", self.read_memory(BLOCK + 24, 24))
        for byte in text:
            self.ram[BUFFER - RAM.origin + write_at] = byte
            write_at = (write_at + 1) % RING_B
        self.put_ring(write_at=write_at, read_at=read_at)

    def read_memory(self, address: int, size_b: int) -> bytes:
        """Returns RAM; asking for anything else is the test's failure."""
        start = address - RAM.origin
        assert 0 <= start <= start + size_b <= RAM.size_b
        return bytes(self.ram[start : start + size_b])

    def write_memory(self, address: int, content: bytes) -> None:
        """Writes RAM."""
        start = address - RAM.origin
        assert 0 <= start <= start + len(content) <= RAM.size_b
        self.ram[start : start + len(content)] = content

    def run(self, *, until: frozenset[Line] = frozenset()) -> BoardStop:
        """Does what the script says up to now."""
        assert not until
        while self._script and self._script[0][0] <= self.time_s:
            self._script.pop(0)[1](self)
        reason = self._stop if not self._script else StopReason.IDLE
        return BoardStop(reason=reason, time_ns=round(self.time_s * 1e9))

    def advance(self, duration_s: float) -> None:
        """Lets time pass."""
        self.time_s += duration_s

    def reset(self, options: ResetOptions) -> None:
        """Fails: a transport never resets."""
        raise AssertionError(f"a transport must never reset the target, got {options}")

    def flash(self, elf: Path, *, layer_symbols: Sequence[str]) -> None:
        """Fails: a transport never programs."""
        raise AssertionError(f"a transport must never program the target, got {elf} {layer_symbols}")

    def set_line(self, line: Line, level: bool) -> None:
        """Fails: a transport drives no line."""
        raise AssertionError(f"a transport must never drive a line, got {line} {level}")

    def layer_instructions(self) -> tuple[int, ...] | None:
        """Returns nothing: it counts none."""
        return None

    def throttled_share(self) -> float:
        """Returns 0: it has no clamp."""
        return 0.0

    def rail(self) -> RailActivity:
        """Fails: it has no rail."""
        raise AssertionError("a transport must never look at the rail")

    def truth(self) -> BoardTruth:
        """Fails: it has no truth."""
        raise AssertionError("a transport must never look at the truth")

    def close(self) -> None:
        """Does nothing."""
