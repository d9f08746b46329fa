"""What a measurement on this machine is made of: windows in which one load ran again and again, and operator times.

A load is the model as it is, the model with some operators executed several times in place, or what remains when no
operator runs. Every load of a window is known exactly; that is what the analysis turns into energies of operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from joulemap.records.finding import Finding

__all__ = ["BARE", "BASE", "EXACT", "InPlaceError", "Load", "LoadKind", "LoadWindow", "OperatorTimes", "TimeSource"]


class LoadKind(StrEnum):
    """What ran in a window."""

    BASE = "base"  # the model as it is
    REPEATED = "repeated"  # some operators several times in place
    BARE = "bare"  # the call and its inputs and outputs, without an operator
    IDLE = "idle"  # nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One load.

    Args:
        kind: what it is.
        operators: executed ``copies`` times instead of once; empty but for ``repeated``.
        copies: how often, >= 2 for ``repeated``.
    """

    kind: LoadKind
    operators: tuple[int, ...] = ()
    copies: int = 1

    def __post_init__(self) -> None:
        if (self.kind is LoadKind.REPEATED) != (bool(self.operators) and self.copies > 1):
            raise ValueError(f"only a repeated load has operators and copies, got {self}")


BASE = Load(kind=LoadKind.BASE)
BARE = Load(kind=LoadKind.BARE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadWindow:
    """One window of one load, on the clock of the meter's trace.

    Args:
        load: what ran.
        block: repeat that it belongs to, from 0.
        start_ns: ns.
        end_ns: ns, after the last execution.
        count: executions of the load inside it; 0 when idle.
        latency_s: (count,) s of each execution, in order; (0,) where they were not kept.
    """

    load: Load
    block: int
    start_ns: int
    end_ns: int
    count: int
    latency_s: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.end_ns <= self.start_ns:
            raise ValueError(f"a window must end after it starts, got {self.start_ns}..{self.end_ns} ns")
        latency_s = np.array(self.latency_s, np.float64)
        latency_s.setflags(write=False)
        object.__setattr__(self, "latency_s", latency_s)

    @property
    def duration_s(self) -> float:
        """Length, s."""
        return (self.end_ns - self.start_ns) * 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlaceError:
    """What an operator repeated in place may cost more or less than within its model.

    Args:
        relative: half-width.
        absolute_s: half-width for each execution, s: what a runtime does for a copy and not for the operator.
    """

    relative: float = 0.0
    absolute_s: float = 0.0

    def half_width(self, value: float, *, executions: int, per_s: float = 1.0) -> float:
        """Returns the half-width of a time or an energy.

        Args:
            value: s or J.
            executions: of operators in it.
            per_s: 1.0 for a time; power for an energy, W.
        """
        return self.relative * abs(value) + self.absolute_s * executions * per_s


EXACT = InPlaceError()
"""It costs the same by construction."""


class TimeSource(StrEnum):
    """How the times of operators came about."""

    PROFILER = "profiler"  # the runtime's own, in a session of its own
    REPETITION = "repetition"  # each operator executed several times in place, timed without a meter
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorTimes:
    """Times of the operators in a session that is not the measured one.

    Args:
        source: how they came about.
        duration_s: (passes, operators) s; NaN for an operator that the source does not tell.
        latency_s: (k,) s of whole inferences of that session.
        providers: of each operator as the source names it; empty when it does not.
        findings: doubts.
    """

    source: TimeSource
    duration_s: NDArray[np.float64]
    latency_s: NDArray[np.float64]
    providers: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        for name in ("duration_s", "latency_s"):
            values = np.array(getattr(self, name), np.float64)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if self.duration_s.ndim != 2:
            raise ValueError(f"duration_s must be (passes, operators), got {self.duration_s.shape}")

    @property
    def usual_s(self) -> NDArray[np.float64]:
        """(operators,) s in a usual pass; NaN for an operator that the source does not tell.

        The mean without the tenth of passes on either side: while another program had the core, whichever operator
        waited for it took no energy of its own. A median would keep the steps of a clock that counts microseconds.
        """
        return _trimmed_mean(self.duration_s) if self.duration_s.size else np.full(self.duration_s.shape[1], np.nan)

    @property
    def usual_latency_s(self) -> float | None:
        """Likewise of whole inferences of that session; None without any."""
        return float(_trimmed_mean(self.latency_s)) if self.latency_s.size else None


def _trimmed_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the mean over the first axis without a tenth on either side, of three or more at least one."""
    size = len(values)
    cut = max(size // 10, 1) if size > 2 else 0
    return np.asarray(np.sort(values, axis=0)[cut : size - cut].mean(axis=0) if size else np.nan, np.float64)
