"""Protocol buffers as Perfetto's trace needs them: single messages, and many of one shape at once.

Millions of packets differ in a few numbers only. They are laid out once with numbers of fixed width (a varint may be
padded with empty groups) and filled in by columns: 60 times faster than one message after another.

References:
    Protocol Buffers, Encoding ("Base 128 varints", "Message structure"). A padded varint is valid: a reader takes
    groups until one has no continuation bit, up to ten.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Stamped",
    "double_field",
    "fixed_varint",
    "interleave",
    "message_field",
    "text_field",
    "varint",
    "varint_field",
]

_LENGTH, _FIXED64 = 2, 1


def varint(value: int) -> bytes:
    """Returns an unsigned number of up to 64 bits, base 128; a negative one as its two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_field(number: int, value: int) -> bytes:
    """Returns a field that holds a number."""
    return varint(number << 3) + varint(value)


def double_field(number: int, value: float) -> bytes:
    """Returns a field that holds a float64."""
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def message_field(number: int, body: bytes) -> bytes:
    """Returns a field that holds a message or bytes."""
    return varint(number << 3 | _LENGTH) + varint(len(body)) + body


def text_field(number: int, text: str) -> bytes:
    """Returns a field that holds text; what UTF-8 cannot say becomes a question mark."""
    return message_field(number, text.encode("utf-8", errors="replace"))


def fixed_varint(values: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """Returns (n, width) varints padded to one width.

    Args:
        values: (n,) >= 0, each below 2**(7 width).
        width: bytes, 1 to 9.

    Raises:
        ValueError: a value is negative or too large.
    """
    if values.size and (int(values.min()) < 0 or int(values.max()) >> (7 * width)):
        raise ValueError(f"a varint of {width} bytes cannot hold {int(values.min())}..{int(values.max())}")
    out = np.empty((values.size, width), np.uint8)
    rest = values.astype(np.int64)
    for column in range(width):
        out[:, column] = (rest & 0x7F) | (0x80 if column < width - 1 else 0)
        rest = rest >> 7
    return out


def interleave(parts: Sequence[tuple[NDArray[np.int64], NDArray[np.uint8]]], count: int) -> memoryview:
    """Returns messages of several shapes one after another, each at its place.

    Args:
        parts: for each shape the places of its messages, (k,), and their bytes, (k, size); places are disjoint and
            cover ``count``.
        count: messages in all.
    """
    size = np.empty(count, np.int64)
    for place, messages in parts:
        size[place] = messages.shape[1]
    end = np.cumsum(size)
    out = np.empty(int(end[-1]) if count else 0, np.uint8)
    for place, messages in parts:
        width = messages.shape[1]
        # every window of that width in the output, of which the places of this shape do not overlap
        np.lib.stride_tricks.sliding_window_view(out, width, writeable=True)[end[place] - width] = messages
    return out.data


@dataclass(slots=True)
class Stamped:
    """A message of one shape, many times: constant bytes with gaps that are filled by column."""

    _body: bytearray = field(default_factory=bytearray)
    _gaps: list[tuple[int, int]] = field(default_factory=list)

    def constant(self, data: bytes) -> Stamped:
        """Appends bytes that are the same in every message."""
        self._body += data
        return self

    def number(self, number: int, width: int) -> Stamped:
        """Appends a field whose varint of that width is filled later."""
        self._body += varint(number << 3)
        self._gaps.append((len(self._body), width))
        self._body += bytes(width)
        return self

    def double(self, number: int) -> Stamped:
        """Appends a field whose float64 is filled later."""
        self._body += varint(number << 3 | _FIXED64)
        self._gaps.append((len(self._body), 8))
        self._body += bytes(8)
        return self

    def nested(self, number: int, inner: Stamped) -> Stamped:
        """Appends a message of a shape of its own."""
        self._body += varint(number << 3 | _LENGTH) + varint(len(inner._body))
        base = len(self._body)
        self._gaps += [(base + at, width) for at, width in inner._gaps]
        self._body += inner._body
        return self

    def fill(self, columns: Sequence[NDArray[np.int64] | NDArray[np.float64]]) -> NDArray[np.uint8]:
        """Returns (n, size) messages.

        Args:
            columns: (n,) for each gap in order: integers for varints, floats for doubles.

        Raises:
            ValueError: another number of columns than of gaps, or a value that does not fit.
        """
        if len(columns) != len(self._gaps):
            raise ValueError(f"{len(columns)} columns for {len(self._gaps)} gaps")
        n = columns[0].size
        out = np.tile(np.frombuffer(bytes(self._body), np.uint8), (n, 1))
        for (at, width), column in zip(self._gaps, columns, strict=True):
            if column.dtype == np.float64:
                packed = np.ascontiguousarray(column, "<f8").view(np.uint8).reshape(n, 8)
            else:
                packed = fixed_varint(np.asarray(column, np.int64), width)
            out[:, at : at + width] = packed
        return out
