"""A trace whose samples stay where they were recorded: they are streamed part by part, as often as a pass needs them.

It says everything of a trace but its samples, so that instants are placed on it as on an :class:`EnergyTrace`. What
its samples hold is found by :mod:`joulemap.trace.passes`. It must not know a file, a format or a process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.channel import Channel
from joulemap.trace.clock import Clock
from joulemap.trace.trace import EnergyTrace, whole_step_ns

__all__ = [
    "Factor",
    "Found",
    "SampleSource",
    "StreamedTrace",
    "Trace",
    "cut_window",
    "gap_ranges",
    "multiply",
    "shift_trace",
]

Factor = NDArray[np.float32] | NDArray[np.float64]


class SampleSource(Protocol):
    """Where samples lie."""

    def stream(self, first: int, count: int) -> Iterator[tuple[int, tuple[Factor, ...]]]:
        """Yields (index of the first sample of the part, its factors) in order, without a hole.

        The power of a sample is the product of the factors, one or two; a lost sample is not finite. The arrays may
        be overwritten by the next step.

        Args:
            first: sample to begin with.
            count: samples.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """What every pass finds.

    Args:
        energy_j: of the seen time, J.
        lost: samples.
        gaps: (m, 2) half-open ranges of lost samples.
        low_w: smallest sample, or 0 where that is smaller, W.
        high_w: largest sample, or 0, W.
    """

    energy_j: float
    lost: int
    gaps: NDArray[np.int64]
    low_w: float
    high_w: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamedTrace:
    """Uniform power over time, each sample the mean over its interval; its samples are streamed.

    Args:
        clock: the clock of start_ns.
        channel: what was measured and how.
        start_ns: start of the first interval, ns.
        period_s: length of every interval, s.
        n: samples.
        source: of the samples.
        scale: W per unit of the product of the factors (the supply, for a source of current alone).
        offset_w: to be taken out of every sample first, W.
        gain: to divide by then.
        gaps: (m, 2) half-open ranges of lost samples; None where they were not kept.
        found: what passes found, by scale, offset and gain: samples do not change between two of them.
    """

    clock: Clock
    channel: Channel
    start_ns: int
    period_s: float
    n: int
    source: SampleSource
    scale: float = 1.0
    offset_w: float = 0.0
    gain: float = 1.0
    gaps: NDArray[np.int64] | None = None
    found: dict[tuple[float, float, float], Found] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.period_s) and self.period_s > 0 and self.n > 0):
            raise ValueError(f"a streamed trace needs a period and samples, got {self.period_s} s and {self.n}")

    @property
    def correction(self) -> tuple[float, float, float]:
        """Scale, offset (W) and gain of the samples."""
        return self.scale, self.offset_w, self.gain

    @property
    def uniform(self) -> bool:
        """True: every interval has the same length."""
        return True

    @property
    def edges_ns(self) -> None:
        """None: the edges follow from the period."""
        return

    @property
    def step_ns(self) -> float:
        """Length of every interval, ns: whole when the period was meant as whole nanoseconds."""
        return whole_step_ns(self.period_s)

    @property
    def duration_s(self) -> float:
        """Length from the first interval's start to the last one's end, s."""
        return self.n * self.period_s

    @property
    def end_ns(self) -> int:
        """Instant at which the last interval ends, ns (rounded)."""
        return self.start_ns + round(self.duration_s * 1e9)

    @property
    def lost_samples(self) -> int:
        """Number of samples inside the gaps that are known."""
        return 0 if self.gaps is None else int((self.gaps[:, 1] - self.gaps[:, 0]).sum())

    def load(self, first: int, last: int) -> EnergyTrace:
        """Returns the samples of a window as a trace of its own; the window must fit in memory.

        Args:
            first: sample to begin with, >= 0.
            last: sample after the last one, <= n.
        """
        power_w = np.empty(max(last - first, 0))
        lost = np.zeros(power_w.size, np.bool_)
        for at, factors in self.source.stream(first, power_w.size):
            begin = at - first
            part = power_w[begin : begin + factors[0].size]
            multiply(factors, self.correction, part)
            bad = ~np.isfinite(part)
            part[bad] = 0.0
            lost[begin : begin + part.size] = bad
        return EnergyTrace(
            clock=self.clock,
            channel=self.channel,
            power_w=power_w,
            start_ns=self.start_ns + round(first * self.step_ns),
            period_s=self.period_s,
            gaps=gap_ranges(lost),
        )


Trace = EnergyTrace | StreamedTrace
"""A trace in memory, or one that is streamed."""


def shift_trace(trace: Trace, shift_ns: int) -> Trace:
    """Returns the trace as if it had been recorded later by some ns."""
    if isinstance(trace, StreamedTrace):
        return replace(trace, start_ns=trace.start_ns + shift_ns)
    edges_ns = None if trace.edges_ns is None else trace.edges_ns + np.int64(shift_ns)
    return replace(trace, start_ns=trace.start_ns + shift_ns, edges_ns=edges_ns)


def cut_window(trace: Trace, first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Returns the samples of a window, (k,) W, and which of them were seen; a lost one is 0.

    Args:
        trace: in memory or streamed.
        first: sample to begin with.
        last: sample after the last one; both are moved into the trace.
    """
    first, last = max(first, 0), min(last, trace.n)
    if isinstance(trace, StreamedTrace):
        window = trace.load(first, last)
        power_w, gaps, origin = window.power_w.astype(np.float64), window.gaps, 0
    else:
        power_w, gaps, origin = trace.power_w[first:last].astype(np.float64), trace.gaps, first
    seen = np.ones(power_w.size, np.bool_)
    for begin, end in gaps:
        seen[max(int(begin) - origin, 0) : max(int(end) - origin, 0)] = False
    return power_w, seen


def multiply(factors: tuple[Factor, ...], correction: tuple[float, float, float], out: NDArray[np.float64]) -> None:
    """Fills the power of samples, (n,) W, in float64: (product times scale less offset) over gain."""
    scale, offset_w, gain = correction
    with np.errstate(over="ignore", invalid="ignore"):
        if len(factors) == 2:
            np.multiply(factors[0], factors[1], out=out, dtype=np.float64)
        else:
            out[:] = factors[0]
        if scale != 1.0:
            out *= scale
        if offset_w != 0.0:
            out -= offset_w
        if gain != 1.0:
            out /= gain


def gap_ranges(missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns the half-open index ranges (m, 2) in which ``missing`` is True."""
    padded = np.zeros(missing.size + 2, np.int8)
    padded[1:-1] = missing
    steps = np.diff(padded)
    return np.stack([np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)], axis=1).astype(np.int64)
