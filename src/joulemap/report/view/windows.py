"""Which windows of a waveform deserve their raw samples in the page: where it is worst. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.trace import EnergyTrace, integrate_energy
from joulemap.trace.pages import release_samples

__all__ = ["Window", "open_window", "worst_windows"]

_OPEN_PERIODS = 3
_FEW_PERIODS = 4
_PASS = 1 << 24  # samples at a time: 64 MB of those that lie in a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of a trace, ns on its clock, and why it is looked at."""

    label: str
    start_ns: int
    end_ns: int


def open_window(periods_ns: NDArray[np.int64], *, start_ns: int, end_ns: int) -> tuple[int, int]:
    """Returns the window that the page opens on, ns: about three periods from the middle, or everything.

    Args:
        periods_ns: (p, 2) ns; empty for a run that is not periodic.
        start_ns: of the scene.
        end_ns: of the scene.
    """
    count = periods_ns.shape[0]
    if count <= _OPEN_PERIODS:
        return start_ns, end_ns
    first = (count - _OPEN_PERIODS) // 2
    left, right = int(periods_ns[first, 0]), int(periods_ns[first + _OPEN_PERIODS - 1, 1])
    margin = (right - left) // 40
    left, right = max(start_ns, left - margin), min(end_ns, right + margin)
    return (left, right) if left < right else (start_ns, end_ns)


def worst_windows(
    trace: EnergyTrace,
    periods_ns: NDArray[np.int64],
    *,
    samples: int,
    inside_ns: tuple[int, int] | None,
    at_once: int = _PASS,
) -> tuple[Window, ...]:
    """Returns the highest peak, the lowest dip, the most unusual period and the first lost samples, each with a reason.

    Args:
        trace: power over time.
        periods_ns: (p, 2) ns; empty for a run that is not periodic.
        samples: that a window may hold.
        inside_ns: where to look for peak and dip; None for the whole trace.
        at_once: samples that are read at a time.
    """
    half_ns = max(1, round(0.5 * samples * trace.duration_s * 1e9 / max(trace.n, 1)))
    left, right = inside_ns if inside_ns is not None else (trace.start_ns, trace.end_ns)
    places = _extremes(trace, _sample_at(trace, left), _sample_at(trace, right), at_once)
    odd = _odd_period(trace, periods_ns)
    if odd is not None:
        places.append((f"most unusual period (no. {odd + 1})", int(periods_ns[odd].mean())))
    if trace.gaps.size:
        places.append(("first lost samples", _start_of(trace, int(trace.gaps[0, 0]))))
    return tuple(
        Window(
            label=label,
            start_ns=max(trace.start_ns, at_ns - half_ns),
            end_ns=min(trace.end_ns, at_ns + half_ns),
        )
        for label, at_ns in places
    )


def _extremes(trace: EnergyTrace, first: int, last: int, at_once: int) -> list[tuple[str, int]]:
    """Returns label and instant, ns, of the highest and the lowest sample; none when all of them were lost."""
    most, least = (-np.inf, -1), (np.inf, -1)
    for begin, end in trace.runs:
        left, right = max(int(begin), first), min(int(end), last)
        for at in range(left, right, at_once):
            power_w = trace.power_w[at : min(at + at_once, right)]
            high, low = int(np.argmax(power_w)), int(np.argmin(power_w))
            most = max(most, (float(power_w[high]), at + high), key=lambda seen: seen[0])
            least = min(least, (float(power_w[low]), at + low), key=lambda seen: seen[0])
            release_samples(trace)
    places = (("highest peak", most[1]), ("lowest dip", least[1]))
    return [(label, _start_of(trace, k)) for label, k in places if k >= 0]


def _odd_period(trace: EnergyTrace, periods_ns: NDArray[np.int64]) -> int | None:
    """Returns the period whose energy is farthest from the median, among those that were wholly recorded."""
    integrated = integrate_energy(trace, periods_ns[:, 0].copy(), periods_ns[:, 1].copy())
    length_s = (periods_ns[:, 1] - periods_ns[:, 0]) * 1e-9
    whole = np.flatnonzero(integrated.covered_s >= length_s * (1 - 1e-9))
    if whole.size < _FEW_PERIODS:
        return None
    energy_j = integrated.energy_j[whole]
    return int(whole[np.argmax(np.abs(energy_j - np.median(energy_j)))])


def _sample_at(trace: EnergyTrace, at_ns: int) -> int:
    if trace.edges_ns is not None:
        return int(np.clip(np.searchsorted(trace.edges_ns, at_ns, side="right") - 1, 0, trace.n))
    return int(np.clip((at_ns - trace.start_ns) // trace.step_ns, 0, trace.n))


def _start_of(trace: EnergyTrace, sample: int) -> int:
    if trace.edges_ns is not None:
        return int(trace.edges_ns[sample])
    return trace.start_ns + round(sample * trace.step_ns)
