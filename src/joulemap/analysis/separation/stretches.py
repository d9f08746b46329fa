"""Stretches of time in which a row's slice is the innermost one, and the same stretches freed of the jitter of stamps.

Stamps that jitter are errors in the design, and errors in a design pull powers towards each other (METHODS 1.5: 21 %
at 5 us). Where the work repeats, each stretch may lie where the mean schedule puts it, run by run.

References:
    METHODS 1.5 in docs/methods.md (mean schedule, start of each run from all its stamps).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.sweep import GroupedSlices

__all__ = [
    "PathTable",
    "Stretches",
    "build_stretches",
    "find_period",
    "redraw_schedule",
    "stamp_jitter_s",
    "toward_mean_schedule",
]

_MIN_RUNS = 8
"""Repetitions from which a mean schedule is a mean."""

_NEVER = 1 << 62

Ints = NDArray[np.int64]
PathTable = Mapping[tuple[int, int], int]
"""Row of (row above, name), where rows are paths."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretches:
    """Disjoint stretches in order of time; one of no length stands where stamps left a slice none.

    Args:
        start_ns: (m,) ns.
        end_ns: (m,) ns, each >= its start and <= the next start.
        row: (m,) row whose slice is innermost.
        inside_s: (rows, rows) time in which a slice of the first row is open and one of the second is innermost, s.
    """

    start_ns: NDArray[np.float64]
    end_ns: NDArray[np.float64]
    row: Ints
    inside_s: NDArray[np.float64]

    def of(self, row: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns starts and ends of one row, ns."""
        own = self.row == row
        return self.start_ns[own], self.end_ns[own]


def _walk(
    columns: tuple[list[int], list[int], list[int]], rows: int, paths: PathTable | None
) -> tuple[list[int], list[int]]:
    """Returns start, end and row of every stretch, one after the other; and ns inside, row by row of the open one.

    A hundred thousand slices are walked one by one: the steps stand here in one piece, since calls cost more than they.
    """
    found: list[int] = []
    inside = [0] * (rows * rows)
    ends: list[int] = []  # of the slices that are open
    own: list[int] = []  # their rows
    at = -_NEVER
    for start, end, group in chain(zip(*columns, strict=True), ((_NEVER, _NEVER, -1),)):
        while ends and ends[-1] <= start:
            until, row = ends[-1], own[-1]
            if until > at:
                found += (at, until, row)
                for above in set(own):
                    inside[above * rows + row] += until - at
                at = until
            while ends and ends[-1] <= at:  # ended while something inside it went on
                ends.pop()
                own.pop()
        row = group if paths is None else paths.get((own[-1] if own else -1, group), -1)
        if row < 0:
            continue
        if ends and start > at:
            found += (at, start, own[-1])
            for above in set(own):
                inside[above * rows + own[-1]] += start - at
        at = max(at, start)
        if end == start:
            found += (start, start, row)
        else:
            ends.append(end)
            own.append(row)
    return found, inside


def build_stretches(slices: GroupedSlices, origin_ns: int, rows: int, paths: PathTable | None = None) -> Stretches:
    """Returns where each row is innermost, counted from an origin so that floats hold every ns.

    Args:
        slices: of at most one busy track at a time, in order.
        origin_ns: instant that becomes 0.
        rows: number of rows.
        paths: rows of paths; None when a slice's group is its row.
    """
    counted = slices.group >= 0
    start, end, group = (column[counted].tolist() for column in (slices.start_ns, slices.end_ns, slices.group))
    found, inside = _walk((start, end, group), rows, paths)
    table = np.array(found, np.int64).reshape(-1, 3)
    return Stretches(
        start_ns=(table[:, 0] - origin_ns).astype(np.float64),
        end_ns=(table[:, 1] - origin_ns).astype(np.float64),
        row=table[:, 2].copy(),
        inside_s=np.array(inside, np.float64).reshape(rows, rows) * 1e-9,
    )


def find_period(stretches: Stretches) -> int:
    """Returns after how many stretches the rows repeat, all along; 0 when they do not, or too seldom."""
    row = stretches.row
    if row.size < 2 * _MIN_RUNS:
        return 0
    for again in np.flatnonzero(row[1 : row.size // _MIN_RUNS + 1] == row[0])[:64].tolist():
        period = again + 1
        if bool(np.all(row[period:] == row[:-period])):
            return int(period)
    return 0


def toward_mean_schedule(stretches: Stretches, period: int, weight: float) -> Stretches:
    """Returns the stretches with their stamps moved towards the mean schedule; the last incomplete run stays.

    Args:
        stretches: that repeat.
        period: stretches of a run.
        weight: 0 leaves the stamps, 1 puts all of them on the schedule.
    """
    runs = stretches.row.size // period
    whole = runs * period
    stamps = np.stack([stretches.start_ns[:whole], stretches.end_ns[:whole]], axis=1).reshape(runs, 2 * period)
    middle = stamps.mean(axis=1, keepdims=True)
    schedule = (stamps - middle).mean(axis=0)
    moved = (1.0 - weight) * stamps + weight * (middle + schedule)
    moved = np.maximum.accumulate(moved.reshape(-1)).reshape(whole, 2)
    start_ns, end_ns = stretches.start_ns.copy(), stretches.end_ns.copy()
    start_ns[:whole], end_ns[:whole] = moved[:, 0], moved[:, 1]
    if whole < start_ns.size:
        start_ns[whole:] = np.maximum(start_ns[whole:], end_ns[whole - 1])
        end_ns[whole:] = np.maximum(end_ns[whole:], start_ns[whole:])
    return replace(stretches, start_ns=start_ns, end_ns=end_ns)


def redraw_schedule(stretches: Stretches, period: int, stamp_std_s: float, rng: np.random.Generator) -> Stretches:
    """Returns stretches on a mean schedule as other stamps of the same jitter would have placed them.

    Args:
        stretches: on their mean schedule.
        period: stretches of a run.
        stamp_std_s: jitter of one stamp, 1 sd, s.
        rng: of the redrawing.
    """
    runs = stretches.row.size // period
    whole = runs * period
    edge_ns = stamp_std_s * 1e9 / np.sqrt(runs) * rng.standard_normal(period + 1)
    start_ns = stamp_std_s * 1e9 / np.sqrt(period + 1.0) * rng.standard_normal((runs, 1))
    moved = np.empty((runs, period, 2))
    moved[:, :, 0] = stretches.start_ns[:whole].reshape(runs, period) + edge_ns[:-1] + start_ns
    moved[:, :, 1] = stretches.end_ns[:whole].reshape(runs, period) + edge_ns[1:] + start_ns
    flat = np.maximum.accumulate(moved.reshape(-1)).reshape(whole, 2)
    return replace(
        stretches,
        start_ns=np.concatenate([flat[:, 0], np.maximum(stretches.start_ns[whole:], flat[-1, 1])]),
        end_ns=np.concatenate([flat[:, 1], np.maximum(stretches.end_ns[whole:], flat[-1, 1])]),
    )


def stamp_jitter_s(stretches: Stretches, period: int) -> float:
    """Returns how far single stamps lie from the mean schedule of their run, 1 sd, s."""
    runs = stretches.row.size // period
    whole = runs * period
    stamps = np.stack([stretches.start_ns[:whole], stretches.end_ns[:whole]], axis=1).reshape(runs, 2 * period)
    left = stamps - stamps.mean(axis=1, keepdims=True)
    left -= left.mean(axis=0)
    return float(np.sqrt(np.mean(left**2))) * 1e-9
