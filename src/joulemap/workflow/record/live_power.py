"""Power and energy now, from the samples in shared memory; for people who look, never for a result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from joulemap.meters.live.sampling.ring import RingReader, RingRows
from joulemap.records.live.capture_header import CaptureHeader, qualify
from joulemap.records.live.domain import DomainReading, LiveDomain

__all__ = ["DomainNow", "LivePower"]

_FRESH_S = 3.0


@dataclass(slots=True)
class DomainNow:
    """One domain as it is now.

    Args:
        name: unique.
        domain: what it declared.
        power_w: over the last refresh, W; NaN while nothing is known. Of a signal: its value in its unit.
        energy_j: since the first sample, J; NaN of a signal.
        at_ns: stamp of the last sample that counted.
        stale_s: time since the value last moved or arrived, s.
        peak_w: largest power shown so far, W.
    """

    name: str
    domain: LiveDomain
    power_w: float = math.nan
    energy_j: float = 0.0
    at_ns: int = 0
    stale_s: float = 0.0
    peak_w: float = 0.0
    _raw: float = field(default=math.nan, repr=False)

    def take(self, rows: RingRows, column: int) -> None:
        """Adds rows that are new."""
        raw = rows.raw[:, column]
        real = np.flatnonzero(np.isfinite(raw))
        if not real.size:
            return
        stamps, values = rows.stamp_ns[real], raw[real] * self.domain.scale
        last_ns = int(stamps[-1])
        if self.domain.reading is DomainReading.SIGNAL:
            self.power_w, self.energy_j = float(values[-1]), math.nan
        elif self.domain.reading is DomainReading.POWER:
            self._add_powers(stamps.tolist(), values.tolist())
        else:
            if math.isnan(self._raw):
                self._raw, self.at_ns = float(raw[real][0]), int(stamps[0])
            self._add_counts(last_ns, float(raw[real][-1]))
            return
        self.at_ns = last_ns

    def _add_powers(self, stamps: list[int], values: list[float]) -> None:
        for stamp_ns, power_w in zip(stamps, values, strict=True):
            if self.at_ns:
                self.energy_j += power_w * (stamp_ns - self.at_ns) * 1e-9
            self.at_ns = stamp_ns
        self.power_w = math.fsum(values) / len(values)

    def _add_counts(self, stamp_ns: int, raw: float) -> None:
        if stamp_ns <= self.at_ns:
            return
        delta = raw - self._raw
        if delta < 0 and self.domain.modulus is not None:
            delta += self.domain.modulus
        span_s = (stamp_ns - self.at_ns) * 1e-9
        self.stale_s = span_s
        if delta == 0 and span_s < _FRESH_S:
            return  # it has not been renewed yet
        limit_w = self.domain.largest_w
        power_w = delta * self.domain.scale / span_s if span_s > 0 else math.nan
        if delta >= 0 and (limit_w is None or power_w <= 2.0 * limit_w):
            self.power_w = power_w
            self.energy_j += delta * self.domain.scale
        self._raw, self.at_ns = raw, stamp_ns


class LivePower:
    """Every domain of a recording as it is now.

    Args:
        header: what is sampled.
    """

    def __init__(self, header: CaptureHeader) -> None:
        self.header = header
        self.domains = [
            [DomainNow(qualify(stream.meter, domain.name), domain) for domain in stream.domains]
            for stream in header.streams
        ]

    def refresh(self, ring: RingReader | None) -> tuple[DomainNow, ...]:
        """Returns all domains after the samples that are new; unchanged when there is no memory to read."""
        if ring is not None:
            for number, stream in enumerate(self.domains):
                rows = ring.read(number)
                if rows.stamp_ns.size:
                    for column, domain in enumerate(stream):
                        domain.take(rows, column)
                        domain.peak_w = max(domain.peak_w, domain.power_w)  # NaN is never larger
        return tuple(domain for stream in self.domains for domain in stream)
