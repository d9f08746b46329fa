"""Appends blocks to a capture. A full disk costs no sample as long as memory lasts, and what it costs is told."""

from __future__ import annotations

import json
import os
from collections import deque
from pathlib import Path
from typing import Final

from joulemap.records.live.capture_layout import MAGIC, BlockKind, encode_block

__all__ = ["CaptureWriter"]

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

    def note(self, slug: str, message: str, at_ns: int = 0) -> None:
        """Writes that something happened."""
        told = {"slug": slug, "message": message, "at_ns": at_ns}
        self.append(encode_block(BlockKind.NOTE, json.dumps(told).encode()))

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
