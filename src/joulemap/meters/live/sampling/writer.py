"""Appends blocks to a capture. Neither a full disk nor a slow one costs a sample as long as memory lasts.

The sampling loop hands its blocks to a thread: a file system that blocks for a second delays no reading.
"""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from pathlib import Path
from typing import Final

from joulemap.records.live.capture_layout import MAGIC, BlockKind, encode_block

__all__ = ["BackgroundWriter", "CaptureWriter"]

_KEPT_B: Final = 32 << 20
"""Blocks that wait for room on the disk; beyond it the oldest are dropped and counted."""


class CaptureWriter:
    """An open capture.

    Args:
        path: file to append to; made when it is not there.
        kept_b: bytes that may wait for room.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path, *, kept_b: int = _KEPT_B) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._waiting: deque[bytes] = deque()
        self._waiting_b = 0
        self._kept_b = kept_b
        self.dropped = 0
        self.problem = ""
        if os.fstat(self._descriptor).st_size == 0:
            self.append(MAGIC)

    def append(self, *blocks: bytes) -> None:
        """Writes blocks, or keeps them until there is room; never raises for a disk that is full."""
        for block in blocks:
            self._waiting.append(block)
            self._waiting_b += len(block)
        while self._waiting_b > self._kept_b and len(self._waiting) > 1:
            self._waiting_b -= len(self._waiting.popleft())
            self.dropped += 1
        try:
            while self._waiting:
                data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
                written = os.write(self._descriptor, data)
                self._forget(written)
        except OSError as error:
            self.problem = error.strerror or str(error)
            return
        if self.problem:
            problem, self.problem = self.problem, ""
            self.note("capture_unwritable", f"the capture could not be written for a while: {problem}")

    def note(self, slug: str, message: str, at_ns: int = 0, stream: int = -1) -> None:
        """Writes that something happened; ``stream`` is the number of the meter that it happened to."""
        self.append(encode_note(slug, message, at_ns, stream))

    def close(self) -> None:
        """Puts the file on the disk and closes it."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self.problem = self.problem or error.strerror or str(error)
        os.close(self._descriptor)

    def _forget(self, written: int) -> None:
        """Drops what was written from the front; the rest of a block that was written in part stays first."""
        self._waiting_b -= written
        while written and self._waiting:
            first = self._waiting.popleft()
            if len(first) > written:
                self._waiting.appendleft(first[written:])
                return
            written -= len(first)


class BackgroundWriter:
    """Hands blocks to a thread that writes them.

    Args:
        writer: to write with; the thread's alone from now on.
        kept_b: bytes that may wait for the thread; beyond it the oldest are dropped and counted.
    """

    def __init__(self, writer: CaptureWriter, *, kept_b: int = _KEPT_B) -> None:
        self._writer = writer
        self._kept_b = kept_b
        self._waiting: deque[bytes] = deque()
        self._waiting_b = 0
        self._lost = 0
        self._changed = threading.Condition()
        self._ended = False
        self._busy = False
        self._thread = threading.Thread(target=self._run, name="joulemap-writer", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Blocks that were dropped for want of room."""
        return self._lost + self._writer.dropped

    @property
    def problem(self) -> str:
        """Why the last write failed; empty when it did not."""
        return self._writer.problem

    def append(self, *blocks: bytes) -> None:
        """Hands blocks over; returns at once."""
        with self._changed:
            for block in blocks:
                self._waiting.append(block)
                self._waiting_b += len(block)
            while self._waiting_b > self._kept_b and len(self._waiting) > 1:
                self._waiting_b -= len(self._waiting.popleft())
                self._lost += 1
            self._changed.notify_all()

    def note(self, slug: str, message: str, at_ns: int = 0, stream: int = -1) -> None:
        """Writes that something happened; ``stream`` is the number of the meter that it happened to."""
        self.append(encode_note(slug, message, at_ns, stream))

    def drain(self, timeout_s: float) -> bool:
        """Waits until everything was handed to the file system; returns False when that took too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout_s)

    def close(self, timeout_s: float = 4.0) -> None:
        """Writes what waits and closes the capture; gives a file system that hangs up after a while."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._writer.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                blocks = list(self._waiting)
                self._waiting.clear()
                self._waiting_b = 0
                if not blocks and self._ended:
                    return
                self._busy = True
            self._writer.append(*blocks)
            with self._changed:
                self._busy = False
                self._changed.notify_all()


def encode_note(slug: str, message: str, at_ns: int, stream: int = -1) -> bytes:
    """Returns the block of a note; ``stream`` is -1 where it concerns no one meter."""
    told = {"slug": slug, "message": message, "at_ns": at_ns, "stream": stream}
    return encode_block(BlockKind.NOTE, json.dumps(told).encode())
