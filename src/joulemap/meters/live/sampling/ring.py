"""The latest samples in memory that two processes share: one writes, any number read, nobody waits.

Each stream has a counter of rows ever written and room for the last ``capacity`` of them. The writer fills a row and
then counts it; a reader copies and then looks at the counter again: rows that were overwritten meanwhile are left out.
The memory has no name, so nothing is left behind, however its users end.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RingReader", "RingRows", "RingWriter", "open_ring_memory"]


def open_ring_memory() -> int:
    """Returns a descriptor of memory without a name, empty, to be handed to the writer."""
    create = getattr(os, "memfd_create", None)
    if create is not None:
        return int(create("joulemap-ring"))
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RingRows:
    """Rows of a stream in order of time.

    Args:
        stamp_ns: (n,) ns, monotonic.
        raw: (n, domains) raw readings.
        lost: rows that were overwritten before they were read.
    """

    stamp_ns: NDArray[np.int64]
    raw: NDArray[np.float64]
    lost: int


class _Layout:
    """Views of the memory: (counter, stamps, raw) of each stream."""

    def __init__(self, memory: mmap.mmap, widths: Sequence[int], capacity: int) -> None:
        self.capacity = capacity
        self.count: list[NDArray[np.int64]] = []
        self.stamp_ns: list[NDArray[np.int64]] = []
        self.raw: list[NDArray[np.float64]] = []
        at = 0
        for width in widths:
            self.count.append(np.frombuffer(memory, np.int64, 1, at))
            self.stamp_ns.append(np.frombuffer(memory, np.int64, capacity, at + 8))
            raw = np.frombuffer(memory, np.float64, capacity * width, at + 8 + 8 * capacity)
            self.raw.append(raw.reshape(capacity, width))
            at += _size_b(width, capacity)


def _size_b(width: int, capacity: int) -> int:
    return 8 + 8 * capacity * (1 + width)


class RingWriter:
    """The sampling process's side.

    Args:
        descriptor: of the memory; sized here.
        widths: domains of each stream.
        capacity: rows of each stream that are kept.
    """

    def __init__(self, descriptor: int, widths: Sequence[int], capacity: int) -> None:
        size = sum(_size_b(width, capacity) for width in widths)
        os.ftruncate(descriptor, size)
        layout = _Layout(mmap.mmap(descriptor, size), widths, capacity)
        self._capacity = capacity
        self._next = [0] * len(widths)
        self._views = [
            (count.data, stamp_ns.data, raw.reshape(-1).data, width)
            for count, stamp_ns, raw, width in zip(layout.count, layout.stamp_ns, layout.raw, widths, strict=True)
        ]

    def write(self, stream: int, stamp_ns: int, raw: memoryview) -> None:
        """Adds one row: ``raw`` holds (domains,) float64 readings."""
        number = self._next[stream]
        at = number % self._capacity
        count, stamps, raws, width = self._views[stream]
        stamps[at] = stamp_ns
        raws[at * width : (at + 1) * width] = raw
        self._next[stream] = number + 1
        count[0] = number + 1


class RingReader:
    """A live reader's side.

    Args:
        descriptor: of the memory, as the writer has sized it.
        widths: domains of each stream.
        capacity: rows of each stream that are kept.
    """

    def __init__(self, descriptor: int, widths: Sequence[int], capacity: int) -> None:
        size = sum(_size_b(width, capacity) for width in widths)
        self._layout = _Layout(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ), widths, capacity)
        self._seen = [0] * len(widths)

    def read(self, stream: int) -> RingRows:
        """Returns the rows of a stream that are new since the last call."""
        layout, seen = self._layout, self._seen[stream]
        count = int(layout.count[stream][0])
        first = max(seen, count - layout.capacity)
        rows = np.arange(first, count) % layout.capacity
        stamp_ns, raw = layout.stamp_ns[stream][rows], layout.raw[stream][rows]
        safe = int(layout.count[stream][0]) - layout.capacity + 1  # the row that is being written counts as gone
        late = min(max(safe - first, 0), count - first)
        self._seen[stream] = count
        return RingRows(stamp_ns=stamp_ns[late:], raw=raw[late:], lost=first - seen + late)
