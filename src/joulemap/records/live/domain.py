"""What a live meter declares of itself before it is read: domains, their units, moduli, delays and overlaps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from joulemap.estimate import Boundary, Provenance

__all__ = ["DomainReading", "LiveDomain", "MeterAddress", "MeterCandidate"]


class DomainReading(StrEnum):
    """What one raw reading of a domain is."""

    ENERGY_COUNTER = "energy_counter"  # cumulative; differenced with its modulus
    POWER = "power"  # mean over the sensor's window
    SIGNAL = "signal"  # no power: utilisation, frequency, temperature, throttle flag


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveDomain:
    """One thing that a meter reads.

    Args:
        name: unique within its meter, by path and not by label (``package-0/dram``).
        reading: what one raw reading is.
        unit: of ``raw * scale``: ``J`` for a counter, ``W`` for power, else the SI unit of the signal (``1`` for a
            share of 0..1).
        scale: SI units per raw unit, > 0.
        provenance: how the figure comes about; a model is ``modelled`` or ``estimated``, never measured.
        boundary: what the power feeds; None for a signal.
        modulus: raw units after which a counter starts anew; None when it is not known: a fall is then invalid.
        largest_w: physical limit, W; a larger step is no energy. None when nothing is declared.
        update_period_s: how often the source itself renews the value, s; None when it is not known.
        window_s: averaging window of a power reading, s; None when it is not known.
        latency_s: delay of a reading behind the end of its window, s.
        gain_std: relative standard uncertainty of the gain; None when the maker declares none.
        inside: names of domains (``name`` of the same meter, ``meter:name`` of another) that contain this one.
        source: where the declared figures come from.
        machine: whose power it is: empty for the machine that records, else a name; what is inside what is known within
            one machine only.
    """

    name: str
    reading: DomainReading
    unit: str
    scale: float
    provenance: Provenance
    boundary: Boundary | None = None
    modulus: float | None = None
    largest_w: float | None = None
    update_period_s: float | None = None
    window_s: float | None = None
    latency_s: float = 0.0
    gain_std: float | None = None
    inside: tuple[str, ...] = ()
    source: str = ""
    machine: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"domain {self.name}: scale must be finite and > 0, got {self.scale}")
        if (self.boundary is None) != (self.reading is DomainReading.SIGNAL):
            raise ValueError(f"domain {self.name}: power has a boundary and a signal has none")
        for name in ("modulus", "largest_w", "update_period_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"domain {self.name}: {name} must be > 0 or None, got {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterAddress:
    """Names one meter so that any process can open it.

    Args:
        driver: registry name, for example ``powercap``.
        options: what the driver needs, as text (root folder, index, address, port); no secrets are kept in bundles.
    """

    driver: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    def __reduce__(self) -> tuple[object, ...]:
        return (_address, (self.driver, dict(self.options)))


def _address(driver: str, options: dict[str, str]) -> MeterAddress:
    return MeterAddress(driver=driver, options=options)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterCandidate:
    """What discovery found: a meter that can be read, or one that cannot and the exact step that mends it.

    Args:
        name: shown to the user and accepted by ``--meter``; unique among candidates (``powercap``, ``nvml:0``).
        address: to open it with.
        domains: that it would read; empty when it cannot be opened.
        problem: why it cannot be read; empty when it can.
        fix: the exact command or step; empty when there is none or none is needed.
    """

    name: str
    address: MeterAddress
    domains: tuple[LiveDomain, ...] = ()
    problem: str = ""
    fix: str = ""

    @property
    def usable(self) -> bool:
        """True when nothing keeps it from being read."""
        return not self.problem
