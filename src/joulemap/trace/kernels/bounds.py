"""Bounds of slices as sortable words and back as positions in a uniform trace, one pass each.

A word holds an instant above the place of its bound, so that one sort of plain words orders both. The twin in plain
numpy is in ``instants``.
"""

# ruff: noqa: PLR0917  compiled functions take plain positional arrays: numba knows no records
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.kernels.compiling import borrowed

__all__ = ["pack_bounds", "unpack_bounds"]

Ints = NDArray[np.int64]


@borrowed
def pack_bounds(start_ns: Ints, end_ns: Ints, bits: int, words: Ints) -> None:
    """Fills the words of all bounds: starts by their rows, then ends.

    Args:
        start_ns: (m,) ns from the start of the trace, >= 0 and small enough for ``bits`` more.
        end_ns: (m,) ns, likewise.
        bits: that hold every place below 2 m.
        words: (2 m,) out.
    """
    m = len(start_ns)
    starts, ends = words[:m], words[m:]
    for k in range(m):
        starts[k] = start_ns[k] << bits | k
    for k in range(m):
        ends[k] = end_ns[k] << bits | (k + m)


@borrowed
def unpack_bounds(words: Ints, bits: int, step_ns: int, index: Ints, offset_ns: NDArray[np.float64]) -> None:
    """Fills interval and offset of every word, and leaves its place in the word itself.

    Args:
        words: (2 m,) sorted; instants below 2**52, so that a float64 holds them.
        bits: as they were packed.
        step_ns: length of an interval, whole ns.
        index: (2 m,) out, interval.
        offset_ns: (2 m,) out, ns into it.
    """
    mask = (1 << bits) - 1
    inverse = 1.0 / step_ns
    for k in range(len(words)):
        at_ns = words[k] >> bits
        place = np.int64(np.float64(at_ns) * inverse)  # off by one at most: the remainder says which way
        rest_ns = at_ns - place * step_ns
        below, above = np.int64(rest_ns < 0), np.int64(rest_ns >= step_ns)
        index[k] = place - below + above
        offset_ns[k] = np.float64(rest_ns + (below - above) * step_ns)
        words[k] &= mask
