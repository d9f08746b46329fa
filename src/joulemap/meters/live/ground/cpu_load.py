"""Utilisation of the processors from ``/proc/stat``: the share of their time that was not idle.

References:
    proc(5), /proc/stat (times in ticks; guest time is counted in user time already).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

from joulemap.meters.live.ground.number_file import read_text

__all__ = ["CpuLoad"]

_LINE_B = 256
_IDLE, _IO_WAIT, _GUEST = 3, 4, 8


class CpuLoad:
    """The share over intervals of at least ``every_s``: a source.

    Args:
        path: of ``/proc/stat``.
        every_s: least interval, s; the kernel counts in ticks of 10 ms, so a short one is coarse.
        now_ns: the clock.
    """

    def __init__(self, path: Path, *, every_s: float = 0.1, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._path = path
        self._every_ns = round(every_s * 1e9)
        self._now_ns = now_ns
        self._descriptor = -1
        self._before = (0, 0)
        self._due_ns = 0
        self._share = math.nan

    @property
    def gone(self) -> bool:
        """True when it is not open."""
        return self._descriptor < 0

    @property
    def absent(self) -> bool:
        """True when there is no such file, or it does not begin like ``/proc/stat``."""
        return not (read_text(self._path) or "").startswith("cpu ")

    def open(self) -> None:
        """Opens the file and begins the first interval; no effect when it is open.

        Raises:
            OSError: it is not there.
        """
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            self._before = self._counts() or (0, 0)
            self._due_ns = self._now_ns() + self._every_ns

    def read(self) -> float:
        """Returns the share, 0..1, of the last whole interval; NaN before the first has passed."""
        now_ns = self._now_ns()
        if now_ns < self._due_ns:
            return self._share
        counts = self._counts()
        if counts is None:
            self._share = math.nan
        elif counts[1] > self._before[1]:
            busy, whole = counts[0] - self._before[0], counts[1] - self._before[1]
            self._before = counts
            self._share = min(1.0, max(0.0, busy / whole))
        self._due_ns = now_ns + self._every_ns
        return self._share

    def close(self) -> None:
        """Closes the file; idempotent."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _counts(self) -> tuple[int, int] | None:
        try:
            fields = os.pread(self._descriptor, _LINE_B, 0).split(b"\n", 1)[0].split()[1:]
            ticks = [int(field) for field in fields[:_GUEST]]
        except (OSError, ValueError):
            return None
        if len(ticks) <= _IDLE:
            return None
        whole = sum(ticks)
        return whole - sum(ticks[_IDLE : _IO_WAIT + 1]), whole
