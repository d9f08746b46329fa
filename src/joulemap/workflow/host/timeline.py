"""The slices of one window: the run, its inferences, and operators placed by their shares of the time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.records.host.campaign import LoadWindow
from joulemap.records.host.model import HostModel
from joulemap.trace import Clock, Timeline

__all__ = ["build_host_timeline"]

_MOST_SLICES = 60_000
"""Operators are placed only while they are fewer, inferences likewise."""


def build_host_timeline(
    model: HostModel, window: LoadWindow, durations_s: NDArray[np.float64], clock: Clock
) -> Timeline:
    """Returns the run, its inferences, and the operators of as many of them in the middle as can be shown.

    Inferences are where they were timed; inside each, operators have their mean shares in order of execution: nothing
    says where they were in this very inference.

    Args:
        model: names of the operators.
        window: of the model as it is, with its latencies.
        durations_s: (operators,) mean times, s; NaN counts as 0.
        clock: of the window.
    """
    latency_s = window.latency_s if window.latency_s.size <= _MOST_SLICES else np.empty(0)
    ends_s = np.cumsum(latency_s)
    slack_s = max(window.duration_s - float(ends_s[-1]), 0.0) if latency_s.size else 0.0
    starts_s = ends_s - latency_s + 0.5 * slack_s
    operators = len(model.operators) if float(np.nansum(durations_s)) > 0 else 0
    shown = _middle(latency_s.size, (_MOST_SLICES - latency_s.size) // operators) if operators else slice(0, 0)
    start = [np.array([0.0]), starts_s]
    end = [np.array([window.duration_s]), starts_s + latency_s]
    if operators and latency_s.size:
        inner = _inside(durations_s, float(latency_s.mean()))
        start.append((starts_s[shown, None] + latency_s[shown, None] * inner[0]).ravel())
        end.append((starts_s[shown, None] + latency_s[shown, None] * inner[1]).ravel())
    placed = sum(part.size for part in start[2:])
    kinds = np.repeat(np.arange(3, dtype=np.int32), [1, latency_s.size, placed])
    names = kinds.copy()
    if placed:
        names[-placed:] = np.tile(np.arange(2, operators + 2, dtype=np.int32), placed // operators)
    start_ns = window.start_ns + np.rint(np.concatenate(start) * 1e9).astype(np.int64)
    end_ns = window.start_ns + np.rint(np.concatenate(end) * 1e9).astype(np.int64)
    order = np.lexsort((kinds, start_ns))
    return Timeline(
        clock=clock,
        start_ns=start_ns[order],
        end_ns=np.maximum(end_ns, start_ns)[order],
        name_index=names[order],
        names=("gate", "inference", *(f"{o.op} #{o.index}" for o in model.operators)),
        track_index=np.zeros(start_ns.size, np.int32),
        tracks=("host",),
        kind_index=kinds[order],
        kinds=("run", "inference", "layer"),
    )


def _middle(size: int, most: int) -> slice:
    """Returns the middle of a range, of at most so many."""
    count = max(min(size, most), 0)
    first = (size - count) // 2
    return slice(first, first + count)


def _inside(durations_s: NDArray[np.float64], latency_s: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns starts and ends of the operators inside a mean inference, (operators,) as shares of it.

    Times that add up to more than the inference (of a profiler that adds its own) are scaled down to fill it.
    """
    shares = np.nan_to_num(durations_s) / latency_s
    shares /= max(float(shares.sum()), 1.0)
    ends = np.cumsum(shares)
    head = 0.5 * (1.0 - float(ends[-1]))
    return head + ends - shares, head + ends
