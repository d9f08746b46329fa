"""What the samples of a trace are like: how long one lasts, how noisy it is, what was lost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.autocorrelation import effective_count
from joulemap.trace import EnergyTrace, KernelKind, integrate_between
from joulemap.trace.pages import release_samples

__all__ = ["TraceFacts", "describe_trace", "shift_trace", "trace_energy_j"]

_LIMIT = 1 << 20
_PART = 1 << 24
"""Samples at a time: 64 MB of those that lie in a file."""
_LOOKS = 0.98
"""Share of a step from which a window is the step: stamps are rounded."""
_FOLLOWED = 0.05
"""Variance of steps over that of samples below which samples follow the power."""
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
    """

    energy_j: float
    seen_s: float
    lost_s: float
    sample_s: float
    step_s: float
    noise_w: float
    spread_w: float
    between_w: float = 0.0


def trace_energy_j(trace: EnergyTrace) -> tuple[float, float]:
    """Returns the energy of the whole trace, J, and the time that was seen, s."""
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


def shift_trace(trace: EnergyTrace, shift_ns: int) -> EnergyTrace:
    """Returns the trace as if it had been recorded later by some ns."""
    edges_ns = None if trace.edges_ns is None else trace.edges_ns + np.int64(shift_ns)
    return replace(trace, start_ns=trace.start_ns + shift_ns, edges_ns=edges_ns)


def describe_trace(trace: EnergyTrace) -> TraceFacts:
    """Returns the facts of a trace; scatter is taken from at most a million samples of its middle."""
    energy_j, seen_s = trace_energy_j(trace)
    middle = slice(max(trace.n // 2 - _LIMIT // 2, 0), trace.n // 2 + _LIMIT // 2)
    power_w = trace.power_w[middle].astype(np.float64)
    seen = np.ones(power_w.size, np.bool_)
    for begin, end in trace.gaps:
        seen[max(int(begin) - middle.start, 0) : max(int(end) - middle.start, 0)] = False
    power_w = power_w[seen]
    if trace.period_s is not None:
        step_s = trace.period_s
    else:
        assert trace.edges_ns is not None  # exactly one of the two is given
        step_s = float(np.median(np.diff(trace.edges_ns[middle.start : middle.stop + 1]))) * 1e-9
    quantum_w = trace.channel.kernel.quantum_w / math.sqrt(12.0)
    noise_w, between_w = quantum_w, 0.0
    if power_w.size > 2:
        steps_w = np.diff(power_w)
        scatter = float(np.median(np.abs(steps_w - np.median(steps_w))))
        noise_w = max(_MAD * scatter / math.sqrt(2.0), quantum_w)
        between_w = _unseen_share(trace, step_s) * _unseen_w(power_w, steps_w)
    return TraceFacts(
        energy_j=energy_j,
        seen_s=seen_s,
        lost_s=max(trace.duration_s - seen_s, 0.0),
        sample_s=max(step_s, trace.channel.kernel.window_s),
        step_s=step_s,
        noise_w=noise_w,
        spread_w=float(power_w.std()) if power_w.size else 0.0,
        between_w=between_w,
    )


def _unseen_w(power_w: NDArray[np.float64], steps_w: NDArray[np.float64]) -> float:
    """Returns what power does between two looks, W: what a step says where samples follow it, else its whole spread.

    Looks that beat with the work follow each other slowly and are worth fewer independent ones.
    """
    step_w2, spread_w2 = 0.5 * float(steps_w @ steps_w) / steps_w.size, float(power_w.var())
    if step_w2 < _FOLLOWED * spread_w2:
        return math.sqrt(step_w2)
    return math.sqrt(spread_w2 * power_w.size / effective_count(power_w))


def _unseen_share(trace: EnergyTrace, step_s: float) -> float:
    """Returns the root of the share of a step in which the sensor does not look."""
    kernel = trace.channel.kernel
    if kernel.kind is KernelKind.POINT:
        return 1.0
    if kernel.kind is KernelKind.COUNTER or not kernel.window_s > 0:
        return 0.0
    return math.sqrt(max(1.0 - kernel.window_s / step_s, 0.0)) if kernel.window_s < _LOOKS * step_s else 0.0
