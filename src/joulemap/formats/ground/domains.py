"""What a series of samples measures, and the samples themselves, before anything is made of them."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.records.recording import StatedTotal
from joulemap.trace import KernelKind

__all__ = ["SPAN_LIMIT_NS", "Domain", "Meaning", "Series"]

SPAN_LIMIT_NS: Final = 1 << 62
"""Stamps stay within +-146 years, so that sums of two fit int64."""


class Meaning(StrEnum):
    """What one value of a series is."""

    POWER = "power"  # W, mean of the interval that ends at its stamp
    COUNTER = "counter"  # cumulative energy
    STEP = "step"  # energy of the interval that ends at its stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What a series measures.

    Args:
        boundary: what the power feeds.
        provenance: how the values came about.
        meaning: what one value is.
        scale: SI units in one written unit.
        window_s: averaging window of the sensor, s; None when it is the interval itself.
        kind: of the sensor kernel; a counter series is always ``counter``.
        modulus: written units per wrap of a counter; None when the source does not say.
        largest_w: physical limit, W; a step beyond it is lost.
        polled: the source repeats a value when it polls faster than the sensor updates.
        renewal_s: between two renewals of a polled sensor, s; None to tell it from how long its values stay.
        slowest_renewal_s: the slowest renewal that is told so, s.
        gap_factor: a step longer than this many median steps is a gap; None when values cover all time.
        resolution_w: what the last digit of a written power stands for, W; 0 where the format does not fix it.
    """

    boundary: Boundary
    provenance: Provenance = Provenance.MEASURED_SAMPLED
    meaning: Meaning = Meaning.POWER
    scale: float = 1.0
    window_s: float | None = None
    kind: KernelKind = KernelKind.INTERVAL_MEAN
    modulus: float | None = None
    largest_w: float | None = None
    polled: bool = False
    renewal_s: float | None = None
    slowest_renewal_s: float = math.inf
    gap_factor: float | None = 1.75
    resolution_w: float = 0.0

    def stated(self, key: str, value: float, span: str = "") -> StatedTotal:
        """Returns a figure that the source states about this domain."""
        return StatedTotal(key=key, value=value, provenance=self.provenance, boundary=self.boundary, span=span)


@dataclass(slots=True)
class Series:
    """Values of one channel in file order.

    Args:
        name: of the channel.
        domain: what it measures.
        first_ns: start of the first interval where the source knows it.
        pauses: begin and end of stretches in which nothing was to be measured, ns, in order.
    """

    name: str
    domain: Domain
    first_ns: int | None = None
    pauses: tuple[tuple[int, int], ...] = ()
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    time_ns: array[int] = field(default_factory=lambda: array("q"))
    value: array[float] = field(default_factory=lambda: array("d"))
    line: array[int] = field(default_factory=lambda: array("q"))

    def add(self, time_ns: int, value: float, line: int) -> None:
        """Appends one value in its written unit; NaN for a missing one.

        Raises:
            FormatError: the stamp is beyond +-146 years.
        """
        if abs(time_ns) >= SPAN_LIMIT_NS:
            raise FormatError(
                f"{self.name}: the time stamp in line {line} leaves the range of 146 years",
                hint="The time column is damaged, or in another unit.",
                slug="time-out-of-range",
            )
        self.time_ns.append(time_ns)
        self.value.append(value)
        self.line.append(line)

    def add_interval(self, start_ns: int, end_ns: int, value: float, line: int) -> None:
        """Appends one value that states its own interval; a series holds either such values or plain stamps.

        Raises:
            FormatError: a stamp is beyond +-146 years.
        """
        self.add(end_ns, value, line)
        self.start_ns.append(max(start_ns, -SPAN_LIMIT_NS))
