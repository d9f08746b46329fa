"""One meter as the sampling loop sees it: rows in memory, losses noted, opened again when it comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import JoulemapError, PowerError
from joulemap.meters.live.base import LiveMeter
from joulemap.meters.live.sampling.ring import RingWriter
from joulemap.records.live.capture_layout import SampleRows
from joulemap.records.live.domain import LiveDomain, MeterAddress

__all__ = ["MeterStream", "match_domains"]

_REOPEN_NS: Final = 1_000_000_000
_PATIENCE_NS: Final = 10_000_000_000
"""How long a meter that came back in part may take for the rest: drivers load one after the other."""
_LONGEST_NS: Final = 0xFFFFFFFF

_SAME: Final = ("reading", "unit", "scale", "modulus", "boundary", "provenance", "machine", "source")

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
        # a store through a memoryview touches far less code than one through numpy: after a sleep all of it is cold
        self._views = self._stamp_ns.data, self._tick.data, self._took_ns.data, self._raw.reshape(-1).data
        self._row_view = self._row.data
        self._width, self._capacity = len(self.domains), capacity
        self._tried_ns = self._lost_ns = self._partial_ns = 0
        self._told: str | None = None
        self._columns: NDArray[np.intp] | None = None
        self._other = np.empty(0)
        self._failing = False
        self.ring: RingWriter | None = None
        self.overrun = 0
        self.threaded = False

    def read(self, tick: int) -> int:
        """Reads once into the next row; returns how long it took, ns. A failure is a row of NaN and a note.

        The reading itself holds no lock: a slow meter does not delay who takes the rows.
        """
        began_ns = self._now_ns()
        meter = self._meter
        if meter is None or self._columns is not None:
            self._read_row(began_ns)
        else:  # the way of nearly all readings: as little code as can be, since after a sleep all of it is cold
            try:
                meter.read(self._row)
                self._failing = False
            except (OSError, ValueError, JoulemapError) as error:
                self._fail(meter, error, began_ns)
        ended_ns = self._now_ns()
        took_ns = ended_ns - began_ns
        if self.threaded:
            with self._lock:
                self._keep(tick, ended_ns, took_ns)
        else:
            self._keep(tick, ended_ns, took_ns)
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

    def _keep(self, tick: int, ended_ns: int, took_ns: int) -> None:
        at = self._filled
        if at == self._capacity:
            self.overrun += 1
            return
        stamps, ticks, costs, raws = self._views
        stamps[at] = ended_ns
        ticks[at] = tick
        costs[at] = min(_LONGEST_NS, took_ns)
        width = self._width
        raws[at * width : (at + 1) * width] = self._row_view
        self._filled = at + 1
        if self.ring is not None:
            self.ring.write(self.number, ended_ns, self._row_view)

    def _read_row(self, at_ns: int) -> None:
        """Reads a meter that is away, or that came back in another order or in part."""
        if self._meter is None:
            self._try_again(at_ns)
        meter, row = self._meter, self._row
        if meter is None:
            row.fill(np.nan)
            return
        try:
            if self._columns is None:
                meter.read(row)
            else:
                meter.read(self._other)
                row[:] = np.where(self._columns >= 0, self._other[self._columns], np.nan)
            self._failing = False
        except (OSError, ValueError, JoulemapError) as error:
            self._fail(meter, error, at_ns)

    def _fail(self, meter: LiveMeter, error: Exception, at_ns: int) -> None:
        self._row.fill(np.nan)
        if isinstance(error, PowerError):
            self._meter = None
            self._tried_ns = self._lost_ns = at_ns
            self._partial_ns, self._told = 0, None
            self._note("meter_lost", f"{self.name}: {error.message}", at_ns)
            meter.close()
        elif not self._failing:
            self._failing = True
            self._note("meter_unreadable", f"{self.name}: {error}", at_ns)

    def _try_again(self, at_ns: int) -> None:
        if at_ns - self._tried_ns < _REOPEN_NS:
            return
        self._tried_ns = at_ns
        try:
            meter = self._reopen(self._address)
        except (OSError, ValueError, JoulemapError):
            return
        columns, differs = match_domains(self.domains, meter.domains)
        missing = [domain.name for domain, at in zip(self.domains, columns, strict=True) if at < 0]
        if len(missing) == len(self.domains):
            meter.close()
            if differs != self._told:
                self._told = differs
                what = f"{self.name} came back as something else ({differs}); it stays lost until it is as it was"
                self._note("meter_changed", what, at_ns)
            return
        self._partial_ns = self._partial_ns or at_ns
        if missing and at_ns - self._partial_ns < _PATIENCE_NS:
            meter.close()
            return
        self._meter = meter
        same = columns == list(range(len(meter.domains)))
        self._columns = None if same else np.array(columns, np.intp)
        self._other = np.empty(len(meter.domains))
        if missing:
            what = f"{self.name} came back in part ({differs}); {', '.join(missing)} stays lost"
            self._note("meter_changed", what, at_ns)
        self._note("meter_back", f"{self.name} was opened again after {(at_ns - self._lost_ns) * 1e-9:.3g} s", at_ns)


def match_domains(before: Sequence[LiveDomain], after: Sequence[LiveDomain]) -> tuple[list[int], str]:
    """Returns where each domain is found again, -1 for one that is not, and what differs, in words.

    A domain is the same when its name, its device and what its numbers mean are: a counter with its modulus. Limits,
    periods and accuracy may have been declared anew.
    """
    at = {domain.name: number for number, domain in enumerate(after)}
    columns, words = [], []
    for domain in before:
        number = at.get(domain.name, -1)
        changed = [] if number < 0 else [key for key in _SAME if getattr(domain, key) != getattr(after[number], key)]
        if number < 0:
            words.append(f"no {domain.name}")
        elif changed:
            key = changed[0]
            words.append(f"{domain.name}: {key} {getattr(after[number], key)}, not {getattr(domain, key)}")
        columns.append(-1 if changed else number)
    return columns, "; ".join(words)
