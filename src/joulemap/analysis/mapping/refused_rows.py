"""Rows of a map that have no figure, some at a time in columns: of a million names most may be too short to be told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joulemap.analysis.mapping.rows import RowTable

__all__ = ["RefusedRows", "list_refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRows:
    """Rows without a figure and without a plan: two of one kind differ in nothing but these columns.

    Args:
        key: of each row.
        count: slices inside the recorded time.
        outside: slices that reach beyond it.
        duration_s: of slices, s.
        self_s: of their own, s.
        kind: why there is no figure, as numbers that are equal for equal reasons.
    """

    key: list[str]
    count: list[int]
    outside: list[int]
    duration_s: list[float]
    self_s: list[float]
    kind: list[int]


def list_refused(table: RowTable, first: int, last: int) -> RefusedRows | None:
    """Returns rows ``first`` to ``last`` of a table; None where one of them has a figure or a plan."""
    group, inputs = table.order[first:last], table.inputs
    held, own = table.held.reasons[group], table.own.reasons[group]
    if not (held.all() and own.all()):
        return None
    if inputs.separated is not None and np.isfinite(inputs.separated.runs_needed[group]).any():
        return None
    swept = inputs.swept
    return RefusedRows(
        key=[table.keys[row] for row in group.tolist()],
        count=swept.count[group].tolist(),
        outside=table.outside[group].tolist(),
        duration_s=swept.duration_s[group].tolist(),
        self_s=swept.self_s[group].tolist(),
        kind=(held.astype(np.int64) << 8 | own).tolist(),
    )
