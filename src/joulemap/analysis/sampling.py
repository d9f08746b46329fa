"""What the samples of a trace are like: how long one lasts, how noisy it is, what was lost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.autocorrelation import effective_count, highest_variance
from joulemap.analysis.intervals.rounding import rounding_std
from joulemap.trace import KernelKind, integrate_between
from joulemap.trace.pages import release_samples
from joulemap.trace.passes import run_pass
from joulemap.trace.streamed import StreamedTrace, Trace, cut_window

__all__ = ["TraceFacts", "describe_samples", "describe_trace", "sample_lengths_s", "trace_energy_j"]

_LIMIT = 1 << 18
_PART = 1 << 24
"""Samples at a time: 64 MB of those that lie in a file."""
_LOOKS = 0.98
"""Share of a step from which a window is the step: stamps are rounded."""
_FOLLOWED = 0.05
"""Variance of steps over that of samples below which samples follow the power."""
_FOLLOWED_IN_NOISE = 0.01
"""The same of what noise leaves: work of a few steps a turn looks like a slow wave, so little is asked for."""
_MAD = 1.4826  # of a normal distribution: standard deviation per median absolute deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """What the budget of a trace needs.

    Args:
        energy_j: of the seen time, J.
        seen_s: s.
        lost_s: s.
        sample_s: time that one sample stands for, the sensor's averaging window included, s.
        step_s: distance of two samples, s.
        noise_w: of one sample, 1 sd, W: from the scatter of neighbours, so an upper bound.
        spread_w: standard deviation of the samples, W.
        between_w: what power did between samples that do not look all the time, 1 sd of one step, W; 0 for means over
            the whole step.
        rounding_w: what rounding to the resolution leaves of a mean of many samples, 1 sd, W.
    """

    energy_j: float
    seen_s: float
    lost_s: float
    sample_s: float
    step_s: float
    noise_w: float
    spread_w: float
    between_w: float = 0.0
    rounding_w: float = 0.0


def trace_energy_j(trace: Trace) -> tuple[float, float]:
    """Returns the energy of the whole trace, J, and the time that was seen, s."""
    if isinstance(trace, StreamedTrace):
        found = run_pass(trace, ())
        return found.energy_j, (trace.n - found.lost) * trace.step_ns * 1e-9
    parts = trace.n // _PART + 1
    edges_ns = trace.start_ns + np.rint(np.linspace(0.0, 1.0, parts + 1) * (trace.end_ns - trace.start_ns)).astype(
        np.int64
    )
    energy_j, seen_s = [], []
    for part in range(parts):
        held = integrate_between(trace, edges_ns[part : part + 2])
        energy_j.append(float(held.energy_j[0]))
        seen_s.append(float(held.covered_s[0]))
        release_samples(trace)
    return math.fsum(energy_j), math.fsum(seen_s)


def sample_lengths_s(trace: Trace) -> tuple[float, float]:
    """Returns the time that a sample stands for, the sensor's window included, and the distance of two samples, s."""
    if trace.period_s is not None:
        step_s = trace.period_s
    else:
        assert trace.edges_ns is not None  # exactly one of the two is given
        first, last = _middle(trace.n)
        step_s = float(np.median(np.diff(trace.edges_ns[first : last + 1]))) * 1e-9
    return max(step_s, trace.channel.kernel.window_s), step_s


def describe_trace(trace: Trace) -> TraceFacts:
    """Returns the facts of a trace; scatter is taken from at most a quarter of a million samples of its middle."""
    energy_j, seen_s = trace_energy_j(trace)
    lost_s = max(trace.duration_s - seen_s, 0.0)
    if isinstance(trace, StreamedTrace):
        lost_s = run_pass(trace, ()).lost * trace.step_ns * 1e-9
    return describe_samples(trace, energy_j, seen_s, lost_s)


def describe_samples(trace: Trace, energy_j: float, seen_s: float, lost_s: float) -> TraceFacts:
    """Returns the facts of a trace whose sums are known.

    Args:
        trace: in memory or streamed.
        energy_j: of the seen time, J.
        seen_s: s.
        lost_s: s.
    """
    power_w, seen = cut_window(trace, *_middle(trace.n))
    power_w = power_w[seen]
    sample_s, step_s = sample_lengths_s(trace)
    rounding_w = _rounding_w(power_w, trace.channel.kernel.quantum_w)
    # rounding is at least in every sample; what of it no number of samples averages down is told by itself
    quantum_w = math.sqrt(max(trace.channel.kernel.quantum_w**2 / 12.0 - rounding_w**2, 0.0))
    noise_w, between_w = quantum_w, 0.0
    if power_w.size == 2:
        noise_w = max(abs(float(power_w[1] - power_w[0])) / math.sqrt(2.0), quantum_w)
    elif power_w.size > 2:
        steps_w = np.diff(power_w)
        scatter = float(np.median(np.abs(steps_w - np.median(steps_w))))
        noise_w = max(_MAD * scatter / math.sqrt(2.0), quantum_w)
        if trace.channel.kernel.kind is KernelKind.POINT:  # looks follow the power: their steps are hardly noise
            noise_w = max(min(noise_w, math.sqrt(highest_variance(power_w))), quantum_w)
        between_w = _unseen_share(trace, step_s) * _unseen_w(power_w, steps_w)
    return TraceFacts(
        energy_j=energy_j,
        seen_s=seen_s,
        lost_s=lost_s,
        sample_s=sample_s,
        step_s=step_s,
        noise_w=noise_w,
        spread_w=float(power_w.std()) if power_w.size else 0.0,
        between_w=between_w,
        rounding_w=rounding_w,
    )


def _rounding_w(power_w: NDArray[np.float64], quantum_w: float) -> float:
    """Returns what rounding leaves of the mean of samples: nothing while neighbours are a resolution apart or more."""
    steps_w = np.abs(np.diff(power_w))
    moved_w = _MAD * float(np.median(steps_w)) / math.sqrt(2.0) if steps_w.size else 0.0
    return rounding_std(quantum_w, math.sqrt(max(moved_w**2 - quantum_w**2 / 12.0, 0.0)))


def _unseen_w(power_w: NDArray[np.float64], steps_w: NDArray[np.float64]) -> float:
    """Returns what power does between two looks, W: what a step says where samples follow it, else its whole spread.

    Samples follow a power when little of their spread is in their steps, or little of what noise leaves of both. Looks
    that beat with the work, also with work of uneven length, wander slowly as power may by itself: nobody can tell the
    two apart, so such samples are worth as few as are independent.
    """
    step_w2, spread_w2 = 0.5 * float(steps_w @ steps_w) / steps_w.size, float(power_w.var())
    noise_w2 = min(highest_variance(power_w), step_w2)
    if step_w2 < _FOLLOWED * spread_w2 or step_w2 - noise_w2 < _FOLLOWED_IN_NOISE * (spread_w2 - noise_w2):
        return math.sqrt(step_w2)
    return math.sqrt(spread_w2 * power_w.size / effective_count(power_w))


def _unseen_share(trace: Trace, step_s: float) -> float:
    """Returns the root of the share of a step in which the sensor does not look."""
    kernel = trace.channel.kernel
    if kernel.kind is KernelKind.POINT:
        return 1.0
    if kernel.kind is KernelKind.COUNTER or not kernel.window_s > 0:
        return 0.0
    return math.sqrt(max(1.0 - kernel.window_s / step_s, 0.0)) if kernel.window_s < _LOOKS * step_s else 0.0


def _middle(samples: int) -> tuple[int, int]:
    return max(samples // 2 - _LIMIT // 2, 0), samples // 2 + _LIMIT // 2
