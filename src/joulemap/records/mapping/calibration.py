"""How good an instrument is: a published specification, or a calibration of the very unit that replaces it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

__all__ = ["AccuracyRange", "Calibration", "Evidence", "InstrumentAccuracy"]


class Evidence(StrEnum):
    """How a figure was found; what stands on memory is never used in a budget."""

    READ = "V"  # read in the source, or in a copy that quotes it
    DERIVED = "D"  # derived from figures that were read
    MEMORY = "M"  # from memory: excluded


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyRange:
    """Limits of one measuring range.

    Args:
        max_a: largest current of the range, A; None for an instrument that states power.
        min_a: smallest current of the range, A.
        gain: relative limit of the reading.
        offset_a: limit, A.
        offset_w: limit, W.
        typical: the source says typical: the figure is taken as one standard deviation, not as a limit.
        evidence: how the figure was found.
        source: where.
    """

    max_a: float | None = None
    min_a: float = 0.0
    gain: float
    offset_a: float = 0.0
    offset_w: float = 0.0
    typical: bool = False
    evidence: Evidence
    source: str

    def __post_init__(self) -> None:
        if min(self.gain, self.offset_a, self.offset_w, self.min_a) < 0:
            raise ValueError("limits of an instrument are not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentAccuracy:
    """A model of instrument.

    Args:
        name: key of the library, kebab-case.
        title: as its maker calls it.
        ranges: from small to large current.
        formats: readers whose files it writes; empty when a file cannot tell.
        note: what a reader should know of the figures.
    """

    name: str
    title: str
    ranges: tuple[AccuracyRange, ...]
    formats: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A unit compared with a reference: its readings are corrected, what is left uncertain replaces the specification.

    Args:
        instrument: name of the unit's model.
        serial: of the unit.
        calibrated: day of the comparison.
        expires: last day on which it holds.
        gain: reading per reference; 1 for a perfect unit.
        gain_std: standard uncertainty of it.
        offset_w: reading at no load, W.
        offset_std_w: standard uncertainty of it, W.
        reference: against what.
    """

    instrument: str
    serial: str
    calibrated: date
    expires: date
    gain: float = 1.0
    gain_std: float
    offset_w: float = 0.0
    offset_std_w: float
    reference: str

    def __post_init__(self) -> None:
        if not (self.gain > 0 and self.gain_std >= 0 and self.offset_std_w >= 0):
            raise ValueError("a calibration needs gain > 0 and standard uncertainties >= 0")
        if self.expires < self.calibrated:
            raise ValueError("a calibration does not expire before it was made")

    def holds(self, day: date) -> bool:
        """Returns whether it holds on a day."""
        return self.calibrated <= day <= self.expires
