"""The seam of every power meter that is armed before a capture and read after it."""

from __future__ import annotations

from typing import Protocol

from joulemap.records.instrument import InstrumentSpec, MeterRecording

__all__ = ["PowerMeter"]


class PowerMeter(Protocol):
    """An instrument with logic inputs. Armed before reset, so that nothing of the capture is missed."""

    @property
    def spec(self) -> InstrumentSpec:
        """What the instrument declares of itself."""
        ...

    def arm(self, *, repeat: int) -> None:
        """Starts continuous recording of the repeat (counted from 1).

        Raises:
            PowerError: the instrument is lost.
        """
        ...

    def collect(self) -> MeterRecording:
        """Stops and returns the recording; what was lost is a gap with a finding.

        Raises:
            PowerError: the instrument was lost or delivered nothing (slug ``instrument-lost``, ``capture-empty``).
        """
        ...

    def close(self) -> None:
        """Releases the instrument; idempotent."""
        ...
