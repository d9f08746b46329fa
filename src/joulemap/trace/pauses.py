"""Stretches of which nothing is claimed: gaps of a trace that are no loss.

It must not know why there is a pause, nor who ordered it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cut_at_pauses", "less_pauses_ns", "list_paused", "no_pauses", "unite_pauses"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def no_pauses() -> Ints:
    """Returns no pause, (0, 2)."""
    return np.empty((0, 2), np.int64)


def unite_pauses(pauses: Ints) -> Ints:
    """Returns pauses in order and disjoint, (q, 2) ns: what overlaps or touches is one, what has no length is none.

    Args:
        pauses: (p, 2) begin and end, ns.
    """
    spans = pauses[pauses[:, 1] > pauses[:, 0]]
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    if not spans.size:
        return no_pauses()
    reach = np.maximum.accumulate(spans[:, 1])
    apart = spans[1:, 0] > reach[:-1]
    begins = spans[np.concatenate(([True], apart)), 0]
    return np.stack([begins, reach[np.concatenate((apart, [True]))]], axis=1)


def list_paused(edges_ns: Ints, pauses: Ints) -> Flags:
    """Returns which intervals reach into a pause, (n,).

    Args:
        edges_ns: (n + 1,) ns, in order; an instant twice is an interval of no length, in a pause when it lies inside.
        pauses: (p, 2) begin and end, ns, in order and disjoint.
    """
    begun = np.searchsorted(pauses[:, 0], edges_ns[1:])
    ended = np.searchsorted(pauses[:, 1], edges_ns[:-1], "right")
    return np.asarray(begun > ended, np.bool_)


def less_pauses_ns(stamp_ns: Ints, pauses: Ints) -> Ints:
    """Returns stamps, none of them in a pause, on a time that stands still in pauses, (n,) ns."""
    before_ns = np.concatenate(([0], np.cumsum(pauses[:, 1] - pauses[:, 0])))
    return np.asarray(stamp_ns - before_ns[np.searchsorted(pauses[:, 1], stamp_ns, "right")], np.int64)


def cut_at_pauses(bounds: Ints, value: NDArray[np.float64], pauses: Ints) -> tuple[Ints, NDArray[np.float64], Flags]:
    """Returns bounds and values cut where pauses begin and end, and which samples lie in one.

    The sample that comes first after a pause says nothing of the time before it, so the gap begins where the last
    sample before the pause ends.

    Args:
        bounds: (n + 1,) ns of the samples, strictly increasing.
        value: (n,) of each sample.
        pauses: (p, 2) begin and end, ns, in order and disjoint.
    """
    inside = (pauses[:, 1] > bounds[0]) & (pauses[:, 0] < bounds[-1])
    if not inside.any():
        return bounds, value, np.zeros(value.size, np.bool_)
    begins = bounds[np.maximum(np.searchsorted(bounds, pauses[inside, 0], "right") - 1, 0)]
    ends = np.minimum(pauses[inside, 1], bounds[-1])
    edges = np.unique(np.concatenate((bounds, begins, ends)))
    firsts = edges[:-1]
    paused = np.searchsorted(begins, firsts, "right") > np.searchsorted(ends, firsts, "right")
    return edges, value[np.searchsorted(bounds, firsts, "right") - 1], np.asarray(paused, np.bool_)
