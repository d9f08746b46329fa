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
    """Returns the run, then each inference followed by its operators, as far as they are not too many to show.

    Inferences are where they were timed; inside each, operators have their mean shares in order of execution: nothing
    says where they were in this very inference.

    Args:
        model: names of the operators.
        window: of the model as it is, with its latencies.
        durations_s: (operators,) mean times, s; NaN counts as 0.
        clock: of the window.
    """
    latency_s = window.latency_s
    size = len(model.operators)
    ends_s = np.cumsum(latency_s)
    slack_s = max(window.duration_s - float(ends_s[-1]), 0.0) if latency_s.size else 0.0
    starts_s = ends_s - latency_s + 0.5 * slack_s
    inferences = latency_s.size if latency_s.size <= _MOST_SLICES else 0
    operators = size if inferences * (size + 1) <= _MOST_SLICES and np.nansum(durations_s) > 0 else 0
    start = [np.array([0.0])]
    end = [np.array([window.duration_s])]
    names = [np.zeros(1, np.int32)]
    kinds = [np.zeros(1, np.int32)]
    if inferences:
        inner = _inside(durations_s, operators, float(latency_s.mean()))
        scale = latency_s / float(latency_s.mean())
        start.append((starts_s[:, None] + scale[:, None] * np.concatenate([[0.0], inner[0]])).ravel())
        stop_s = np.concatenate([[float(latency_s.mean())], inner[1]])
        end.append((starts_s[:, None] + scale[:, None] * stop_s).ravel())
        names.append(np.tile(np.arange(1, operators + 2, dtype=np.int32), inferences))
        kinds.append(np.tile(np.array([1] + [2] * operators, np.int32), inferences))
    start_ns = window.start_ns + np.rint(np.concatenate(start) * 1e9).astype(np.int64)
    end_ns = window.start_ns + np.rint(np.concatenate(end) * 1e9).astype(np.int64)
    shown = model.operators[:operators]
    return Timeline(
        clock=clock,
        start_ns=start_ns,
        end_ns=np.maximum(end_ns, start_ns),
        name_index=np.concatenate(names),
        names=("gate", "inference", *(f"{o.op} #{o.index}" for o in shown)),
        track_index=np.zeros(start_ns.size, np.int32),
        tracks=("host",),
        kind_index=np.concatenate(kinds),
        kinds=("run", "inference", "layer"),
    )


def _inside(
    durations_s: NDArray[np.float64], operators: int, latency_s: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns starts and ends of the operators inside a mean inference, (operators,) s each."""
    lengths_s = np.nan_to_num(durations_s[:operators])
    total_s = float(lengths_s.sum())
    if total_s > latency_s:
        lengths_s = lengths_s * (latency_s / total_s)
    ends_s = np.cumsum(lengths_s)
    head_s = max(latency_s - float(ends_s[-1]), 0.0) * 0.5 if operators else 0.0
    return head_s + ends_s - lengths_s, head_s + ends_s
