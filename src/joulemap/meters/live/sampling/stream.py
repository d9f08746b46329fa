"""One meter as the sampling loop sees it: rows in memory, losses noted, opened again when it comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import JoulemapError, PowerError
from joulemap.meters.live.base import LiveMeter
from joulemap.meters.live.sampling.ring import RingWriter
from joulemap.records.live.capture_layout import SampleRows
from joulemap.records.live.domain import MeterAddress

__all__ = ["MeterStream"]

_REOPEN_NS: Final = 1_000_000_000
_LONGEST_NS: Final = 0xFFFFFFFF

Note = Callable[[str, str, int], None]


class MeterStream:
    """Reads one meter into rows.

    Args:
        number: of the stream in the header.
        name: of the meter.
        meter: opened.
        every: the meter is read at every n-th deadline.
        capacity: rows kept until they are taken.
        reopen: opens an address again.
        note: told what happens: slug, message, instant.
        now_ns: the monotonic clock.
    """

    def __init__(
        self,
        number: int,
        name: str,
        meter: LiveMeter,
        *,
        every: int,
        capacity: int,
        reopen: Callable[[MeterAddress], LiveMeter],
        note: Note,
        now_ns: Callable[[], int],
    ) -> None:
        self.number = number
        self.name = name
        self.every = every
        self.domains = meter.domains
        self._meter: LiveMeter | None = meter
        self._address = meter.address
        self._reopen = reopen
        self._note = note
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._filled = 0
        self._stamp_ns = np.empty(capacity, np.int64)
        self._tick = np.empty(capacity, np.uint32)
        self._took_ns = np.empty(capacity, np.uint32)
        self._raw = np.empty((capacity, len(self.domains)), np.float64)
        self._row: NDArray[np.float64] = np.empty(len(self.domains), np.float64)
        self._tried_ns = 0
        self._failing = False
        self.ring: RingWriter | None = None
        self.overrun = 0
        self.threaded = False

    def read(self, tick: int) -> int:
        """Reads once into the next row; returns how long it took, ns. A failure is a row of NaN and a note.

        The reading itself holds no lock: a slow meter does not delay who takes the rows.
        """
        row = self._row
        began_ns = self._now_ns()
        if self._meter is None:
            self._try_again(began_ns)
        if self._meter is None:
            row.fill(np.nan)
        else:
            self._read_row(self._meter, row, began_ns)
        ended_ns = self._now_ns()
        took_ns = ended_ns - began_ns
        with self._lock:
            at = self._filled
            if at == self._stamp_ns.size:
                self.overrun += 1
                return took_ns
            self._stamp_ns[at] = ended_ns
            self._tick[at] = tick
            self._took_ns[at] = min(_LONGEST_NS, took_ns)
            self._raw[at] = row
            self._filled = at + 1
        if self.ring is not None:
            self.ring.write(self.number, ended_ns, row)
        return took_ns

    def take(self) -> SampleRows | None:
        """Returns the rows since the last call; None when there is none."""
        with self._lock:
            n = self._filled
            if not n:
                return None
            self._filled = 0
            return SampleRows(
                stamp_ns=self._stamp_ns[:n].copy(),
                tick=self._tick[:n].copy(),
                took_ns=self._took_ns[:n].copy(),
                raw=self._raw[:n].copy(),
            )

    def close(self) -> None:
        """Releases the meter."""
        if self._meter is not None:
            self._meter.close()

    def _read_row(self, meter: LiveMeter, row: NDArray[np.float64], at_ns: int) -> None:
        try:
            meter.read(row)
        except PowerError as error:
            row.fill(np.nan)
            self._meter = None
            self._tried_ns = at_ns
            self._note("meter_lost", f"{self.name}: {error.message}", at_ns)
            meter.close()
        except (OSError, ValueError, JoulemapError) as error:
            row.fill(np.nan)
            if not self._failing:
                self._failing = True
                self._note("meter_unreadable", f"{self.name}: {error}", at_ns)
        else:
            self._failing = False

    def _try_again(self, at_ns: int) -> None:
        if at_ns - self._tried_ns < _REOPEN_NS:
            return
        self._tried_ns = at_ns
        try:
            meter = self._reopen(self._address)
        except (OSError, ValueError, JoulemapError):
            return
        if meter.domains != self.domains:
            self._note("meter_changed", f"{self.name} came back with other domains; it stays lost", at_ns)
            self._tried_ns = 1 << 62
            meter.close()
            return
        self._meter = meter
        self._note("meter_back", f"{self.name} could be opened again", at_ns)
