"""Power and energy now, from the samples in shared memory; for people who look, never for a result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joulemap.meters.live.sampling.ring import RingReader, RingRows
from joulemap.records.live.capture_header import CaptureHeader, qualify
from joulemap.records.live.domain import DomainReading, LiveDomain

__all__ = ["DomainNow", "LivePower"]

_FRESH_S = 3.0
_UPDATES = 3.0
"""Readings or updates that may stay out before a value is no longer that of now."""
_SHORT_S = 0.01
"""Steps of a counter are held against the power limit over at least so long: two stamps may lie close together."""


@dataclass(slots=True)
class DomainNow:
    """One domain as it is now.

    Args:
        name: unique.
        domain: what it declared.
        fresh_s: how long a value counts as that of now, s.
        power_w: over the last refresh, W; NaN while nothing is known. Of a signal: its value in its unit.
        energy_j: since the first sample, J, without what is in ``lost_s``; NaN of a signal.
        lost_s: time whose energy is not known and is not in ``energy_j``, s.
        at_ns: stamp of the last sample that counted.
        stale_s: time since the value last moved or arrived, s.
        peak_w: largest power shown so far, W.
    """

    name: str
    domain: LiveDomain
    fresh_s: float = _FRESH_S
    power_w: float = math.nan
    energy_j: float = 0.0
    lost_s: float = 0.0
    at_ns: int = 0
    stale_s: float = 0.0
    peak_w: float = 0.0
    _raw: float = field(default=math.nan, repr=False)

    @property
    def known(self) -> bool:
        """True when there was a reading at all."""
        return math.isfinite(self.power_w)

    @property
    def stale(self) -> bool:
        """True when the last value is not that of now: the meter is gone, frozen, or says nothing."""
        return self.stale_s > self.fresh_s

    def take(self, rows: RingRows, column: int) -> None:
        """Adds rows that are new."""
        raw = rows.raw[:, column]
        real = np.flatnonzero(np.isfinite(raw))
        if not real.size:
            return
        stamps_ns, values = rows.stamp_ns[real], raw[real]
        if self.domain.reading is DomainReading.SIGNAL:
            self.power_w, self.energy_j = float(values[-1]) * self.domain.scale, math.nan
            self.at_ns = int(stamps_ns[-1])
        elif self.domain.reading is DomainReading.POWER:
            self._add_powers(stamps_ns, values * self.domain.scale)
        else:
            self._add_counts(stamps_ns, values)
        self.peak_w = max(self.peak_w, self.power_w)  # NaN is never larger

    def look(self, now_ns: int) -> None:
        """Says how old the last value is at an instant, ns."""
        if self.at_ns:
            self.stale_s = max(now_ns - self.at_ns, 0) * 1e-9

    def _add_powers(self, stamps_ns: NDArray[np.int64], powers_w: NDArray[np.float64]) -> None:
        before_ns = self.at_ns or int(stamps_ns[0])
        spans_s = np.diff(np.concatenate([[before_ns], stamps_ns])) * 1e-9
        seen = spans_s <= self.fresh_s  # nothing says what was drawn while no reading came
        self.energy_j += float((powers_w * spans_s)[seen].sum())
        self.lost_s += float(spans_s[~seen].sum())
        self.power_w = float(powers_w.mean())
        self.at_ns = int(stamps_ns[-1])

    def _add_counts(self, stamps_ns: NDArray[np.int64], counts: NDArray[np.float64]) -> None:
        if math.isnan(self._raw):
            self._raw, self.at_ns = float(counts[0]), int(stamps_ns[0])
        moved = np.flatnonzero(np.diff(np.concatenate([[self._raw], counts])) != 0.0)
        if not moved.size:
            return  # it has not been renewed yet
        stamps_ns, counts = stamps_ns[moved], counts[moved]
        spans_s = np.diff(np.concatenate([[self.at_ns], stamps_ns])) * 1e-9
        steps = np.diff(np.concatenate([[self._raw], counts]))
        if self.domain.modulus is not None:
            steps = np.where(steps < 0, steps + self.domain.modulus, steps)
        steps_j = steps * self.domain.scale
        limit_w = math.inf if self.domain.largest_w is None else 2.0 * self.domain.largest_w
        possible = (steps_j >= 0) & (steps_j <= limit_w * np.maximum(spans_s, _SHORT_S))
        if self.domain.modulus is not None and self.domain.largest_w is not None:  # who knows how often it wrapped
            round_s = self.domain.modulus * self.domain.scale / self.domain.largest_w
            possible &= (spans_s <= self.fresh_s) | (spans_s < round_s)
        added_j, added_s = float(steps_j[possible].sum()), float(spans_s[possible].sum())
        self.energy_j += added_j
        self.lost_s += float(spans_s[~possible].sum())
        if added_s > 0:
            self.power_w = added_j / added_s
        self._raw, self.at_ns = float(counts[-1]), int(stamps_ns[-1])


class LivePower:
    """Every domain of a recording as it is now.

    Args:
        header: what is sampled.
        now_ns: the present instant on the clock of the samples, ns.
    """

    def __init__(self, header: CaptureHeader, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.header = header
        self._now_ns = now_ns
        self.domains = [
            [
                DomainNow(qualify(stream.meter, domain.name), domain, fresh_s=_fresh_s(domain, header.rate_hz))
                for domain in stream.domains
            ]
            for stream in header.streams
        ]

    def refresh(self, ring: RingReader | None) -> tuple[DomainNow, ...]:
        """Returns all domains after the samples that are new; they only age when there is no memory to read."""
        for number, stream in enumerate(self.domains):
            rows = None if ring is None else ring.read(number)
            for column, domain in enumerate(stream):
                if rows is not None and rows.stamp_ns.size:
                    domain.take(rows, column)
                domain.look(self._now_ns())
        return tuple(domain for stream in self.domains for domain in stream)


def _fresh_s(domain: LiveDomain, rate_hz: float) -> float:
    """Returns how long a value counts as that of now, s: three readings or updates, and three seconds at the least."""
    return max(_FRESH_S, _UPDATES * (domain.update_period_s or 0.0), _UPDATES / rate_hz)
