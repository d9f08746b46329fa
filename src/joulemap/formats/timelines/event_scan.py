"""The quick way through a large trace: runs of plain events to columns, everything else left to the general reader.

It pays from some ten megabytes on, when numba is installed; what comes out is the same with and without it.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from joulemap.formats.timelines.trace_events import TraceEvents

__all__ = ["EventScan", "open_scan"]

_PAYS_B: Final = 16 << 20
_ROWS: Final = 1 << 14
_TEXTS: Final = 1 << 18
_STORE_B: Final = 1 << 25
_REST: Final = 256
"""Events for which the scan rests at most after it found nothing to take."""


def open_scan(path: Path, events: TraceEvents, *, force: bool = False) -> EventScan | None:
    """Returns the quick way for a file, or None where it does not pay or cannot be gone.

    Args:
        path: the trace.
        events: takes what is read.
        force: however small the file is.
    """
    if events.rename is not None or importlib.util.find_spec("numba") is None:
        return None
    return EventScan(events) if force or path.stat().st_size >= _PAYS_B else None


class EventScan:
    """Takes runs of plain events from a text.

    Args:
        events: takes them.
    """

    def __init__(self, events: TraceEvents) -> None:
        from joulemap.formats.timelines.event_kernels import scan_events  # noqa: PLC0415  imports numba

        self._scan = scan_events
        self._events = events
        self._rows = np.empty((_ROWS, 5), np.int64)
        self._slots = np.full((3, 2 * _TEXTS), -1, np.int64)
        self._spans = np.zeros((3, _TEXTS, 3), np.int64)
        self._store = np.empty(_STORE_B, np.uint8)
        self._counts = np.zeros(4, np.int64)
        self._lookup = [np.empty(0, np.int32) for _ in range(3)]
        self._rest = self._wait = 0

    def take(self, text: bytes, at: int) -> int:
        """Takes the plain events from a place on and returns the place after the last of them.

        Args:
            text: ASCII.
            at: place before an element.
        """
        if self._wait:
            self._wait -= 1
            return at
        view = np.frombuffer(text, np.uint8)
        begin = at
        while True:
            taken, at = self._scan(
                view, at, not self._events.skip_zero, self._rows, self._slots, self._spans, self._store, self._counts
            )
            if taken:
                self._put(self._rows[:taken])
            if taken < _ROWS:
                break
        self._rest = min(2 * self._rest + 1, _REST) if at == begin else 0
        self._wait = self._rest
        return at

    def _put(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        slices = self._events.slices
        for which, put in enumerate((slices.name_number, slices.kind_number, slices.track_number)):
            known = self._lookup[which]
            highest = int(rows[:, 2 + which].max()) + 1  # numbered as they appear: later ones belong to later rows
            if highest > known.size:
                fresh = [put(self._word(which, number)) for number in range(known.size, highest)]
                self._lookup[which] = np.concatenate([known, np.array(fresh, np.int32)])
        self._events.seen += len(rows)
        slices.append_numbered(rows[:, 0], rows[:, 1], tuple(self._lookup[k][rows[:, 2 + k]] for k in range(3)))

    def _word(self, which: int, number: int) -> Any:
        begin, first, last = self._spans[which, number].tolist()
        parts = [
            self._store[begin : begin + first].tobytes(),
            self._store[begin + first : begin + first + last].tobytes(),
        ]
        texts = tuple(str(json.loads(part)) if part else "" for part in parts)
        return texts if which == 2 else texts[0]
