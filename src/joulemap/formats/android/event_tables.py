"""Tables that compiled loops fill: numbers by key, distinct words, and open slices by track.

All of them are plain arrays of a fixed room. Whoever owns them makes them larger between two calls: a table of keys is
kept at most half full, a free row and a free node are kept ready.

Imported late: numba comes along.

References:
    D. E. Knuth, The Art of Computer Programming, vol. 3, 6.4 (open addressing).
"""

# ruff: noqa: D103, PLR0917  compiled functions take plain positional arrays; what one returns stands in its first comment
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.kernels.compiling import borrowed

__all__ = [
    "EMPTY",
    "Words",
    "close_slice",
    "find_key",
    "find_track",
    "intern_word",
    "load_eight",
    "open_slice",
    "put_key",
]

EMPTY: Final = -(1 << 63)
"""A free place of a table of keys."""

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


class Words(NamedTuple):
    """Distinct words in order of first use.

    Args:
        pool: their bytes.
        span: (n, 2) where each begins and ends in the pool.
        mark: (n,) hash of each.
        place: hash table of words, -1 for free; twice as long as ``span``, a power of two.
        used: words, bytes of the pool.
    """

    pool: Bytes
    span: Ints
    mark: Ints
    place: Shorts
    used: Ints


@borrowed
def find_key(table: Ints, key: int) -> int:
    # the value of a key; EMPTY when it is not there
    mask = len(table) - 1
    at = ((key ^ (key >> 29)) * 0x2545F4914F6CDD1D >> 24) & mask
    while table[at, 1] != EMPTY and table[at, 0] != key:
        at = (at + 1) & mask
    return table[at, 1]  # type: ignore[no-any-return]


@borrowed
def put_key(table: Ints, key: int, value: int) -> bool:
    # True when the key is new; a table is kept at most half full by its owner
    mask = len(table) - 1
    at = ((key ^ (key >> 29)) * 0x2545F4914F6CDD1D >> 24) & mask
    while table[at, 1] != EMPTY and table[at, 0] != key:
        at = (at + 1) & mask
    new = table[at, 1] == EMPTY
    table[at, 0], table[at, 1] = key, value
    return new  # type: ignore[no-any-return]


@borrowed
def load_eight(data: Bytes, at: int) -> int:
    # eight bytes as one number: the shifts become one load
    value: Any = 0
    for k in range(8):
        value |= np.int64(data[np.uint64(at + k)]) << (8 * k)
    return int(value)


@borrowed
def _hash_word(data: Bytes, begin: int, end: int) -> int:
    mark = end - begin
    while end - begin >= 8:
        mark = (mark ^ load_eight(data, begin)) * 0x2545F4914F6CDD1D
        mark ^= mark >> 29
        begin += 8
    rest: Any = 0
    while begin < end:
        rest = rest << 8 | np.int64(data[np.uint64(begin)])
        begin += 1
    mark = (mark ^ rest) * 0x2545F4914F6CDD1D
    return int(mark ^ (mark >> 29))


@borrowed
def intern_word(
    pool: Bytes, span: Ints, marks: Ints, table: Shorts, used: Ints, data: Bytes, begin: int, end: int
) -> int:
    # the index of data[begin:end], new or known; -1 when there is no room
    mark = _hash_word(data, begin, end)
    mask = len(table) - 1
    at = mark & mask
    while table[at] >= 0:
        word = table[at]
        first = span[word, 0]
        if marks[word] == mark and span[word, 1] - first == end - begin:
            k = 0
            while k + 8 <= end - begin and load_eight(pool, first + k) == load_eight(data, begin + k):
                k += 8
            while k < end - begin and pool[np.uint64(first + k)] == data[np.uint64(begin + k)]:
                k += 1
            if k == end - begin:
                return word  # type: ignore[no-any-return]
        at = (at + 1) & mask
    word, first = used[0], used[1]
    if word >= len(span) or first + end - begin > len(pool):
        return -1
    for k in range(end - begin):
        pool[first + k] = data[begin + k]
    span[word, 0], span[word, 1] = first, first + end - begin
    marks[word] = mark
    table[at] = word
    used[0], used[1] = word + 1, first + end - begin
    return word  # type: ignore[no-any-return]


@borrowed
def find_track(tracks: Ints, track: Ints, top: Ints, used: Ints, uuid: int) -> int:
    # the row of a track, new or known; its owner leaves room for one
    row = find_key(tracks, uuid)
    if row == EMPTY:
        row = used[0]
        put_key(tracks, uuid, row)
        track[row] = uuid
        top[row] = -1
        used[0] = row + 1
    return row


@borrowed
def open_slice(nodes: Ints, top: Ints, used: Ints, row: int, name: int, time_ns: int, kind: int) -> None:
    # its owner leaves room for one
    node = used[1]
    used[1] = nodes[node, 0]
    nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3] = top[row], name, time_ns, kind
    top[row] = node


@borrowed
def close_slice(nodes: Ints, top: Ints, used: Ints, row: int) -> tuple[int, int, int]:
    # name, start and kind of the innermost open slice, which is taken away
    node = top[row]
    top[row] = nodes[node, 0]
    nodes[node, 0] = used[1]
    used[1] = node
    return nodes[node, 1], nodes[node, 2], nodes[node, 3]
