"""Instants as positions in a trace: relative to its start without losing a nanosecond, clipped, and by interval."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Instants",
    "Timed",
    "clip_instants",
    "locate_instants",
    "order_slices",
    "relate_instants",
    "relate_spans",
    "sort_instants",
    "split_instants",
]

Instants = NDArray[np.int64] | NDArray[np.float64]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Timed(Protocol):
    """What of a trace says where its intervals lie."""

    @property
    def start_ns(self) -> int:
        """Start of the first interval, ns."""
        ...

    @property
    def end_ns(self) -> int:
        """End of the last one, ns."""
        ...

    @property
    def n(self) -> int:
        """Intervals."""
        ...

    @property
    def edges_ns(self) -> NDArray[np.int64] | None:
        """(n + 1,) ns; None when all of them have one length."""
        ...

    @property
    def step_ns(self) -> float:
        """That length, ns."""
        ...


def relate_instants(trace: Timed, instants_ns: NDArray[Any]) -> Ints:
    """Returns whole instants of the trace's clock, (k,) ns, as ns from its start; far ones are drawn near.

    Clipping comes before the difference, so that no instant can overflow.
    """
    whole_ns = np.asarray(instants_ns, np.int64)
    clipped: Ints = _clip(whole_ns, trace.start_ns, trace.end_ns + 1)
    return np.asarray(clipped - np.int64(trace.start_ns), np.int64)


def relate_spans(trace: Timed, start_ns: NDArray[Any], end_ns: NDArray[Any]) -> tuple[Instants, Instants]:
    """Returns :func:`relate_instants` of both, clipped to the trace; each end is known to be >= its start.

    Where all of them lie inside, the first start and the last end say so: two passes instead of eight.
    """
    edges_ns = trace.edges_ns
    length_ns = trace.n * trace.step_ns if edges_ns is None else float(edges_ns[-1] - edges_ns[0])
    if start_ns.size and length_ns.is_integer() and start_ns.dtype == end_ns.dtype == np.int64:
        first_ns, last_ns = int(start_ns.min()), int(end_ns.max())
        if first_ns >= trace.start_ns and last_ns <= trace.start_ns + int(length_ns):
            origin = np.int64(trace.start_ns)
            return np.asarray(start_ns - origin, np.int64), np.asarray(end_ns - origin, np.int64)
    start, end = (clip_instants(trace, relate_instants(trace, at_ns)) for at_ns in (start_ns, end_ns))
    return start, end


def _clip(values: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    # most slices lie inside their trace: two passes that only read cost far less than one that writes new memory
    inside = not values.size or (values.min() >= low and values.max() <= high)
    return values if inside else np.clip(values, low, high)


def clip_instants(trace: Timed, relative_ns: Instants) -> Instants:
    """Returns instants, (k,) ns from the start of the trace, moved to its ends where they lie outside."""
    clipped: NDArray[Any]  # int64 stays int64: only numpy's stubs lose the width
    if trace.edges_ns is not None:
        clipped = _clip(relative_ns, 0, int(trace.edges_ns[-1]) - int(trace.edges_ns[0]))
        return clipped
    end_ns = trace.n * trace.step_ns
    if relative_ns.dtype == np.int64 and end_ns.is_integer():
        clipped = _clip(relative_ns, 0, int(end_ns))
    else:
        clipped = _clip(np.asarray(relative_ns, np.float64), 0.0, end_ns)
    return clipped


def split_instants(relative_ns: Instants) -> tuple[Ints, Floats]:
    """Returns whole ns, (k,), and what rounding down took away, (k,) or (0,) when all of them are whole."""
    if relative_ns.dtype == np.int64:
        return np.asarray(relative_ns, np.int64), np.empty(0)
    whole_ns = np.floor(relative_ns)
    return whole_ns.astype(np.int64), np.asarray(relative_ns - whole_ns, np.float64)


def locate_instants(trace: Timed, relative_ns: Instants) -> tuple[Ints, Floats]:
    """Returns the interval of every clipped instant, (k,), and ns into it, (k,); (n, 0) at the very end.

    Exact: whole ns over a whole period by integers, everything else by ``fmod``, which does not round.
    """
    if trace.edges_ns is not None:
        whole_ns, part_ns = split_instants(relative_ns)
        whole_ns = whole_ns + np.int64(trace.start_ns)
        index = np.searchsorted(trace.edges_ns, whole_ns, side="right").astype(np.int64) - 1
        offset_ns = (whole_ns - trace.edges_ns[index]).astype(np.float64)
        return index, offset_ns + part_ns if part_ns.size else offset_ns
    step_ns = trace.step_ns
    if relative_ns.dtype == np.int64 and step_ns.is_integer():
        index = np.floor_divide(relative_ns, np.int64(step_ns), dtype=np.int64)  # in vectors, unlike divmod
        rest_ns = index * np.int64(step_ns)
        np.subtract(relative_ns, rest_ns, out=rest_ns)
        return index, rest_ns.astype(np.float64)
    offset_ns = np.fmod(relative_ns.astype(np.float64), step_ns)
    return np.rint((relative_ns - offset_ns) / step_ns).astype(np.int64), offset_ns


def sort_instants(clipped_ns: Instants) -> tuple[Instants, Ints]:
    """Returns the instants, (k,), in order, and their places before, (k,).

    Whole instants are sorted together with their place in one word where both fit (73 minutes for a million slices):
    numpy sorts words several times faster than it sorts places.
    """
    bits = int(clipped_ns.size).bit_length()
    if clipped_ns.dtype != np.int64 or (clipped_ns.size and int(clipped_ns.max()).bit_length() + bits > 62):
        order = np.argsort(clipped_ns)
        return clipped_ns[order], order
    words = np.asarray(clipped_ns, np.int64) << bits
    words |= np.arange(words.size)
    words.sort()
    order = words & ((1 << bits) - 1)
    words >>= bits
    return words, order


def order_slices(start_ns: Ints, end_ns: Ints) -> Ints:
    """Returns the rows of slices, (n,), in order of start, the longer first, then as they stood.

    Args:
        start_ns: (n,) ns.
        end_ns: (n,) ns.
    """
    if not start_ns.size:
        return np.empty(0, np.int64)
    first = int(start_ns.min())
    if int(start_ns.max()) - first >= 1 << 62:
        return np.lexsort((-end_ns, start_ns))
    since_ns, order = sort_instants(np.asarray(start_ns - np.int64(first), np.int64))
    same = since_ns[1:] == since_ns[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if tied.size:
        rows = order[tied]
        order[tied] = rows[np.lexsort((rows, -end_ns[rows], start_ns[rows]))]
    return order
