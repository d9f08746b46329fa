"""Operator times of each inference from a profile that one of our readers has read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.records.recording import Recording
from joulemap.trace import Timeline

__all__ = ["operator_runs"]


def operator_runs(recording: Recording, *, whole: str, kind: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns (runs, operators) s of the operators in order of execution, and (runs,) s of the whole inferences.

    Operators inside another operator (the body of a loop) are left out: the outer one holds their time. Inferences
    that show another number of operators than most are left out too.

    Args:
        recording: of a profiled session.
        whole: name of the slices that are one inference.
        kind: of the slices that are operators.
    """
    runs: list[tuple[int, int]] = []
    slices: list[tuple[int, int]] = []
    for timeline in recording.timelines:
        runs += _pick(timeline, [name == whole for name in timeline.names], timeline.name_index)
        slices += _pick(timeline, [k == kind for k in timeline.kinds], timeline.kind_index)
    runs.sort()
    slices.sort(key=lambda bounds: (bounds[0], -bounds[1]))
    outer: list[tuple[int, int]] = []
    for start_ns, end_ns in slices:
        if not outer or start_ns >= outer[-1][1]:
            outer.append((start_ns, end_ns))
    starts_ns = np.array([start for start, _ in outer], np.int64)
    rows, latency_s = [], []
    for start_ns, end_ns in runs:
        first, last = np.searchsorted(starts_ns, start_ns), np.searchsorted(starts_ns, end_ns)
        rows.append([(b - a) * 1e-9 for a, b in outer[first:last]])
        latency_s.append((end_ns - start_ns) * 1e-9)
    lengths = [len(row) for row in rows]
    usual = max(set(lengths), key=lengths.count) if lengths else 0
    kept = [k for k, row in enumerate(rows) if len(row) == usual]
    table = np.array([rows[k] for k in kept], np.float64).reshape(len(kept), usual)
    return table, np.array([latency_s[k] for k in kept], np.float64)


def _pick(timeline: Timeline, wanted: list[bool], index: NDArray[np.int32]) -> list[tuple[int, int]]:
    rows = np.flatnonzero(np.array(wanted, np.bool_)[index]) if wanted else np.empty(0, np.int64)
    return list(zip(timeline.start_ns[rows].tolist(), timeline.end_ns[rows].tolist(), strict=True))
