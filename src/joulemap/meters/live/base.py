"""The seam of meters that are polled, and of the sessions that record them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from joulemap.records.live.domain import LiveDomain, MeterAddress
from joulemap.records.recording import Recording
from joulemap.trace import Clock

__all__ = ["LiveMeter", "RecordingSession"]


class LiveMeter(Protocol):
    """A polled source. Opened in the process that reads it; keeps its descriptors open between reads."""

    @property
    def address(self) -> MeterAddress:
        """What opens it again in another process."""
        ...

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """What it reads, in the order of the readings; constant after ``open``."""
        ...

    def open(self) -> None:
        """Opens what is read.

        Raises:
            SetupError: it is not there or not permitted; the hint is the exact fix.
        """
        ...

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes one raw reading per domain, NaN for one that could not be read now; the caller stamps it after.

        Args:
            raw: (len(domains),) raw units, overwritten. Counters stay exact below 2**53.

        Raises:
            PowerError: the whole meter is gone (slug ``meter-lost``); the sampler notes it and tries to open it again.
        """
        ...

    def close(self) -> None:
        """Releases it; idempotent."""
        ...


class RecordingSession(Protocol):
    """Records meters from ``start`` to ``stop``: the sampling process, or a simulated runtime with its own meter."""

    @property
    def clock(self) -> Clock:
        """The clock of the traces; marks of the program under test are taken on the same one."""
        ...

    def now_ns(self) -> int:
        """Returns the present instant on ``clock``, ns."""
        ...

    def start(self) -> None:
        """Begins; returns when the first readings are in.

        Raises:
            SetupError: no meter can be read.
        """
        ...

    def stop(self) -> Recording:
        """Ends and returns what was recorded; what was lost is a gap with a finding.

        Raises:
            PowerError: nothing was recorded.
        """
        ...
