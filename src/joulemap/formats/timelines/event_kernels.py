"""Compiled reading of the plain events of Chrome's trace format: complete events written as most writers do.

An event is taken here only when every byte of it is understood: strict JSON, phase ``X``, stamps as non-negative
decimal numbers, name and category as text, process and thread as text or whole numbers. At anything else the scan stops
before the event, and the general reader takes it; so both give the same slices. It must not know files or tracks.

References:
    RFC 8259 (JSON), 2 to 7. Trace Event Format (Chromium project document), "Complete Events".
    Fowler, Noll, Vo: FNV-1a (hash of short texts).
"""

# ruff: noqa: C901, PLR0911, PLR0912, PLR0913, PLR0915, PLR0917  a scanner is a loop over bytes with many ways out
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.kernels.compiling import compiled

__all__ = ["scan_events"]

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_QUOTE, _ESCAPE, _COMMA, _COLON = 34, 92, 44, 58
_OPEN, _CLOSE, _LEFT, _RIGHT = 123, 125, 91, 93
_ZERO, _NINE, _POINT, _MINUS, _PLUS = 48, 57, 46, 45, 43
_DEPTH = 48
_WHOLE_DIGITS = 15


@compiled
def _blank(text: Bytes, at: int) -> int:
    # the first byte at or after the place that is no white space of JSON
    while at < len(text) and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
        at += 1
    return at


@compiled
def _text(text: Bytes, at: int) -> int:
    # the place after a string that begins at its quote; -1 when it is none, or does not end here
    if at >= len(text) or text[at] != _QUOTE:
        return -1
    at += 1
    while at < len(text):
        byte = text[at]
        if byte == _QUOTE:
            return at + 1
        if byte < 32:
            return -1
        if byte == _ESCAPE:
            at += 1
            if at >= len(text):
                return -1
            mark = text[at]
            if mark == 117:  # u and four hexadecimal digits
                if at + 4 >= len(text):
                    return -1
                for k in range(at + 1, at + 5):
                    digit = text[k] | 32
                    if not (_ZERO <= text[k] <= _NINE or 97 <= digit <= 102):
                        return -1
                at += 4
            elif mark not in (_QUOTE, _ESCAPE, 47, 98, 102, 110, 114, 116):
                return -1
        at += 1
    return -1


@compiled
def _number(text: Bytes, at: int) -> int:
    # the place after a number; -1 when it is none
    if at < len(text) and text[at] == _MINUS:
        at += 1
    first = at
    while at < len(text) and _ZERO <= text[at] <= _NINE:
        at += 1
    if at == first or (text[first] == _ZERO and at > first + 1):
        return -1
    if at < len(text) and text[at] == _POINT:
        at += 1
        first = at
        while at < len(text) and _ZERO <= text[at] <= _NINE:
            at += 1
        if at == first:
            return -1
    if at < len(text) and (text[at] | 32) == 101:
        at += 1
        if at < len(text) and (text[at] == _PLUS or text[at] == _MINUS):
            at += 1
        first = at
        while at < len(text) and _ZERO <= text[at] <= _NINE:
            at += 1
        if at == first:
            return -1
    return at


@compiled
def _value(text: Bytes, at: int) -> int:
    # the place after any value; -1 when it is none, nests too deep, or does not end here
    square = 0  # of the open brackets, the innermost in the lowest bit: 1 for an array
    depth = 0
    while True:
        at = _blank(text, at)
        if at >= len(text):
            return -1
        byte = text[at]
        opened = False
        if byte == _QUOTE:
            at = _text(text, at)
        elif byte in (_OPEN, _LEFT):
            if depth == _DEPTH:
                return -1
            depth += 1
            square = (square << 1) | (1 if byte == _LEFT else 0)
            at = _blank(text, at + 1)
            if at >= len(text):
                return -1
            opened = True
            if text[at] == (_RIGHT if byte == _LEFT else _CLOSE):  # empty
                at += 1
                depth -= 1
                square >>= 1
                opened = False
        elif byte == 116 and at + 4 <= len(text):
            at = at + 4 if text[at + 1] == 114 and text[at + 2] == 117 and text[at + 3] == 101 else -1
        elif byte == 110 and at + 4 <= len(text):
            at = at + 4 if text[at + 1] == 117 and text[at + 2] == 108 and text[at + 3] == 108 else -1
        elif byte == 102 and at + 5 <= len(text):
            good = text[at + 1] == 97 and text[at + 2] == 108 and text[at + 3] == 115 and text[at + 4] == 101
            at = at + 5 if good else -1
        else:
            at = _number(text, at)
        if at < 0:
            return -1
        # after a value: its container goes on or ends, as many of them as end here
        while depth > 0 and not opened:
            at = _blank(text, at)
            if at >= len(text):
                return -1
            byte = text[at]
            at += 1
            if byte == _COMMA:
                break
            if byte != (_RIGHT if square & 1 else _CLOSE):
                return -1
            depth -= 1
            square >>= 1
        if depth == 0:
            return at
        if square & 1 == 0:  # a member's name comes first
            at = _text(text, _blank(text, at))
            if at < 0:
                return -1
            at = _blank(text, at)
            if at >= len(text) or text[at] != _COLON:
                return -1
            at += 1


@compiled
def _stamp(text: Bytes, at: int, end: int) -> int:
    # microseconds with a fraction as ns, half a ns up; -1 when it is no plain decimal
    whole = 0
    first = at
    while at < end and _ZERO <= text[at] <= _NINE:
        whole = whole * 10 + (int(text[at]) - _ZERO)
        at += 1
        if at - first > _WHOLE_DIGITS:
            return -1
    if at == first:
        return -1
    whole *= 1000
    if at < end:
        if text[at] != _POINT or end - at > 24:
            return -1
        at += 1
        weight = 100
        for k in range(at, end):
            digit = int(text[k]) - _ZERO
            if digit < 0 or digit > 9:
                return -1
            if k - at < 3:
                whole += digit * weight
                weight //= 10
            elif k - at == 3 and digit >= 5:
                whole += 1
    return whole


@compiled
def _known(
    text: Bytes, a: int, b: int, c: int, d: int, slots: Ints, spans: Ints, store: Bytes, counts: Ints, which: int
) -> int:
    # the number of the text [a, b) and [c, d), new or known; -1 when the table is full
    key = np.uint64(14695981039346656037)
    for k in range(a, b):
        key = (key ^ np.uint64(text[k])) * np.uint64(1099511628211)
    key = (key ^ np.uint64(256)) * np.uint64(1099511628211)
    for k in range(c, d):
        key = (key ^ np.uint64(text[k])) * np.uint64(1099511628211)
    key ^= key >> np.uint64(29)
    mask = slots.shape[1] - 1
    at = np.int64(key & np.uint64(mask))
    while slots[which, at] >= 0:
        number = int(slots[which, at])
        begin, first, last = spans[which, number, 0], spans[which, number, 1], spans[which, number, 2]
        if first == b - a and last == d - c:
            same = True
            for k in range(first):
                if store[begin + k] != text[a + k]:
                    same = False
                    break
            if same:
                for k in range(last):
                    if store[begin + first + k] != text[c + k]:
                        same = False
                        break
            if same:
                return number
        at = (at + 1) & mask
    size = (b - a) + (d - c)
    number = int(counts[which])
    if number == spans.shape[1] or counts[3] + size > len(store):
        return -1
    slots[which, at] = number
    spans[which, number, 0], spans[which, number, 1], spans[which, number, 2] = counts[3], b - a, d - c
    for k in range(a, b):
        store[counts[3] + k - a] = text[k]
    for k in range(c, d):
        store[counts[3] + (b - a) + k - c] = text[k]
    counts[3] += size
    counts[which] = number + 1
    return number


@compiled
def scan_events(
    text: Bytes, at: int, keep_zero: bool, rows: Ints, slots: Ints, spans: Ints, store: Bytes, counts: Ints
) -> tuple[int, int]:
    """Takes plain events that follow each other and returns how many, and the place after the last of them.

    Args:
        text: ASCII.
        at: place to begin at, before an element of the array.
        keep_zero: an event at 0 is taken like any other.
        rows: (n, 5) out: start and end, ns, then the numbers of name, kind and track.
        slots: (3, 2**k) hash tables of names, kinds and tracks, -1 for empty.
        spans: (3, m, 3) place of each in the store, and the lengths of its parts (tracks: process and thread).
        store: bytes of the texts, as they are written.
        counts: (4,) names, kinds, tracks and bytes in use.
    """
    taken, after = 0, at
    while taken < len(rows):
        at = after
        at = _blank(text, at)
        while at < len(text) and text[at] == _COMMA:
            at = _blank(text, at + 1)
        if at >= len(text) or text[at] != _OPEN:
            return taken, after
        at += 1
        phase = False
        start_ns, length_ns = -1, -1
        name_a, name_b, kind_a, kind_b = 0, 0, 0, 0
        process_a, process_b, thread_a, thread_b = 0, 0, 0, 0
        while True:
            a = _blank(text, at)
            b = _text(text, a)
            if b < 0:
                return taken, after
            at = _blank(text, b)
            if at >= len(text) or text[at] != _COLON:
                return taken, after
            c = _blank(text, at + 1)
            at = _value(text, c)
            if at < 0:
                return taken, after
            size = b - a - 2
            a += 1
            quoted = text[c] == _QUOTE
            if size == 2 and text[a] == 112 and text[a + 1] == 104:  # ph
                if phase or at - c != 3 or text[c + 1] != 88:
                    return taken, after
                phase = True
            elif size == 2 and text[a] == 116 and text[a + 1] == 115:  # ts
                if start_ns >= 0:
                    return taken, after
                start_ns = _stamp(text, c, at)
                if start_ns < 0 or (start_ns == 0 and not keep_zero):
                    return taken, after
            elif size == 3 and text[a] == 100 and text[a + 1] == 117 and text[a + 2] == 114:  # dur
                if length_ns >= 0:
                    return taken, after
                length_ns = _stamp(text, c, at)
                if length_ns < 0:
                    return taken, after
            elif size == 3 and text[a] == 99 and text[a + 1] == 97 and text[a + 2] == 116:  # cat
                if kind_b or not quoted:
                    return taken, after
                kind_a, kind_b = c, at
            elif size == 3 and text[a + 1] == 105 and text[a + 2] == 100 and (text[a] == 112 or text[a] == 116):
                whole = not quoted and _ZERO <= text[c] <= _NINE  # pid, tid
                for k in range(c, at):
                    whole = whole and _ZERO <= text[k] <= _NINE
                if not (quoted or whole) or (process_b if text[a] == 112 else thread_b):
                    return taken, after
                if text[a] == 112:
                    process_a, process_b = c, at
                else:
                    thread_a, thread_b = c, at
            elif (
                size == 4 and text[a] == 110 and text[a + 1] == 97 and text[a + 2] == 109 and text[a + 3] == 101
            ):  # name
                if name_b or not quoted:
                    return taken, after
                name_a, name_b = c, at
            else:
                for k in range(a, a + size):
                    if text[k] == _ESCAPE:  # may be one of the names above in another spelling
                        return taken, after
            at = _blank(text, at)
            if at >= len(text):
                return taken, after
            byte = text[at]
            at += 1
            if byte == _CLOSE:
                break
            if byte != _COMMA:
                return taken, after
        if not (phase and start_ns >= 0 and length_ns >= 0 and name_b):
            return taken, after
        name = _known(text, name_a, name_b, 0, 0, slots, spans, store, counts, 0)
        kind = _known(text, kind_a, kind_b, 0, 0, slots, spans, store, counts, 1)
        track = _known(text, process_a, process_b, thread_a, thread_b, slots, spans, store, counts, 2)
        if name < 0 or kind < 0 or track < 0:
            return taken, after
        rows[taken, 0], rows[taken, 1] = start_ns, start_ns + length_ns
        rows[taken, 2], rows[taken, 3], rows[taken, 4] = name, kind, track
        taken += 1
        after = at
    return taken, after
