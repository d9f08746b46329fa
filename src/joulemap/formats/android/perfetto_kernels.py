"""Track events of a Perfetto trace read straight from its bytes: begins and ends into slices, counters into columns.

``scan_events`` takes plain packets, which are nearly all of a large trace: a stamp, a sequence and one event whose
names, clock and track are known already. It stops before anything else and says so; the reader of messages then takes
that packet, says what is doubtful in it, and teaches the tables what it defines. So both ways give the same figures,
and this one knows nothing that could be wrong with a trace.

Imported late: numba comes along.

References:
    Protocol Buffers, "Encoding"; google/perfetto protos trace_packet and track_event (field numbers).
"""

# ruff: noqa: C901, D103, PLR0911, PLR0912, PLR0915, PLR1714  one loop takes a packet: see scan_events
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.android.event_tables import (
    EMPTY,
    Words,
    close_slice,
    find_key,
    find_track,
    intern_word,
    load_eight,
    open_slice,
    put_key,
)
from joulemap.trace.kernels.compiling import borrowed

__all__ = ["CATEGORY", "FULL", "MORE", "ODD", "EventTables", "name_key", "scan_events"]

MORE, ODD, FULL = 0, 1, 2
"""Why a scan ended: no whole packet is left, the packet is for the reader of messages, a table is full."""

CATEGORY: Final = 1
_LIMIT: Final = 1 << 62
_BEGIN, _END, _COUNTER = 1, 2, 4
_STAMP, _SEQUENCE, _EVENT, _FLAGS = 8, 10, 11, 13
_NUMBERS: Final = sum(1 << number for number in (1, 3, 9, 10, 11, 16, 30))  # fields of an event by how they are written
_TEXTS: Final = 1 << 22 | 1 << 23
_DOUBLE: Final = 1 << 44
_FIELDS: Final = 63  # field numbers of an event that are read lie below
_KEYS = 78  # field numbers of a packet that are read lie below

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


class EventTables(NamedTuple):
    """What a scan knows and fills; keys lie in tables of places (key, value), ``EMPTY`` where free.

    Args:
        wanted: (78,) packet fields that the reader of messages takes.
        sequences: (s, 2) sequence -> row of ``rules``, -1 for one that is not plain.
        rules: (r, 5) number of the sequence's state, default track, ns per unit, offset in ns, largest stamp.
        iids: (i, 2) interned name -> word; -2 - d when it is defined as ``told[d]`` and was never used, -1 for unknown.
        told: (d, 2) where each definition begins and ends in ``pool``.
        pool: bytes of the definitions.
        tracks: (t, 2) track -> its row.
        track: (n,) track of each row.
        top: (n,) innermost open slice of each row, -1 for none.
        lanes: (l, 2) track of a counter -> lane, -1 for not plain.
        names: words of slices.
        kinds: words of categories.
        nodes: (m, 4) open slices: the one around it (or the next free), name, start, kind.
        used: rows of tracks, first free node, slices, counter values.
        stamps: (k, 2) out, start and end of slices in ns.
        marks: (k, 3) out, name, track and kind of slices.
        counted: (c, 4) out, lane, stamp, value as it is written, 1 for a double.
    """

    wanted: NDArray[np.bool_]
    sequences: Ints
    rules: Ints
    iids: Ints
    told: Ints
    pool: Bytes
    tracks: Ints
    track: Ints
    top: Ints
    lanes: Ints
    names: Words
    kinds: Words
    nodes: Ints
    used: Ints
    stamps: Ints
    marks: Shorts
    counted: Ints


@borrowed
def name_key(state: int, iid: int, category: int) -> int:
    # interned names belong to one state of one sequence
    return (state << 33) | (iid << 1) | category


@borrowed
def _varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    # (value, offset after it), -1 for a number that does not end
    value: Any = 0
    shift = 0
    while at < end and shift <= 63:
        byte = np.int64(data[np.uint64(at)])  # an unsigned index needs no wrap-around check
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return value, -1


@borrowed
def scan_events(tables: EventTables, data: Bytes, at: int) -> tuple[int, int]:
    """Takes packets from ``at`` on and returns where the first one lies that was not taken, and why.

    One loop with every array at hand: to pass so many arrays on costs more than a packet does.

    Args:
        tables: what is known; filled.
        data: whole packets one after another; the last one may be cut.
        at: offset of a packet.
    """
    wanted, sequences, rules, iids, lanes = tables.wanted, tables.sequences, tables.rules, tables.iids, tables.lanes
    tracks, track_of, top, nodes, used = tables.tracks, tables.track, tables.top, tables.nodes, tables.used
    stamps, marks, counted = tables.stamps, tables.marks, tables.counted
    told, told_pool = tables.told, tables.pool
    pool, spans, hashes, places, words = tables.names
    kind_pool, kind_spans, kind_hashes, kind_places, kind_words = tables.kinds
    size = len(data)
    before, rule = -1, -1
    while size - at >= 2:
        if data[at] != 0x0A:
            return at, ODD
        length, place = _varint(data, at + 1, size)
        if place < 0 or length < 0:
            return at, ODD
        if length > size - place:
            break
        end = place + length
        stamp, sequence, begin, stop = -1, 0, -1, -1
        while place < end:
            key, place = _varint(data, place, end)
            if place < 0 or key < 8:
                return at, ODD
            number, wire = key >> 3, key & 7
            known = number < _KEYS and wanted[number]
            if wire == 0:
                value, place = _varint(data, place, end)
                if place < 0:
                    return at, ODD
                if number == _STAMP:
                    stamp = value
                    if value < 0:
                        return at, ODD
                elif number == _SEQUENCE:
                    sequence = value
                elif known and (number != _FLAGS or value & 1):
                    return at, ODD
            elif wire == 2:
                length, place = _varint(data, place, end)
                if place < 0 or length < 0 or length > end - place:
                    return at, ODD
                if number == _EVENT and begin < 0:
                    begin, stop = place, place + length
                elif known:
                    return at, ODD
                place += length
            elif wire == 1 or wire == 5:
                place += 8 if wire == 1 else 4
                if place > end or known:
                    return at, ODD
            else:
                return at, ODD
        if sequence != before or rule < 0:
            before, rule = sequence, find_key(sequences, sequence)
            if rule < 0:
                return at, ODD
        if begin < 0:
            at = end
            continue
        if stamp < 0 or stamp > rules[rule, 4]:
            return at, ODD
        time_ns = stamp * rules[rule, 2] + rules[rule, 3]
        if abs(time_ns) >= _LIMIT:
            return at, ODD
        state, track = rules[rule, 0], rules[rule, 1]
        kind, iid, category = 0, 0, 0
        name_begin, name_end, word_begin, word_end = -1, -1, -1, -1
        categories, amount, double = 0, 0, 0
        place = begin
        while place < stop:
            key, place = _varint(data, place, stop)
            if place < 0 or key < 8:
                return at, ODD
            number, wire = key >> 3, key & 7
            if wire == 0:
                value, place = _varint(data, place, stop)
                if place < 0:
                    return at, ODD
                if number == 9:
                    kind = value
                elif number == 11:
                    track = value
                elif number == 10:
                    iid = value
                elif number == 3:
                    category = value
                    categories += 1
                elif number == 30:
                    amount = amount if double else value
                elif number < _FIELDS and (_TEXTS | _DOUBLE) >> number & 1:
                    return at, ODD
            elif wire == 2:
                length, place = _varint(data, place, stop)
                if place < 0 or length < 0 or length > stop - place:
                    return at, ODD
                if number == 23:
                    name_begin, name_end = place, place + length
                elif number == 22:
                    word_begin, word_end = place, place + length
                    categories += 1
                elif number < _FIELDS and (_NUMBERS | _DOUBLE) >> number & 1:
                    return at, ODD
                place += length
            elif wire == 1 or wire == 5:
                width = 8 if wire == 1 else 4
                if width > stop - place:
                    return at, ODD
                if number == 44 and wire == 1:
                    double = 1
                    amount = load_eight(data, place)
                elif number < _FIELDS and (_NUMBERS | _TEXTS | _DOUBLE) >> number & 1:
                    return at, ODD
                place += width
            else:
                return at, ODD
        if kind == _BEGIN:
            if used[0] >= len(track_of) or nodes[used[1], 0] < 0:
                return at, FULL
            if categories > 1 or iid < 0 or iid >= 1 << 31 or category < 0 or category >= 1 << 31:
                return at, ODD
            if name_begin < 0:
                key = name_key(state, iid, 0)
                name = find_key(iids, key)
                if name < 0:
                    if name == EMPTY or name == -1:
                        return at, ODD
                    name = -2 - name
                    name = intern_word(pool, spans, hashes, places, words, told_pool, told[name, 0], told[name, 1])
                    if name < 0:
                        return at, FULL
                    put_key(iids, key, name)
            else:
                name = intern_word(pool, spans, hashes, places, words, data, name_begin, name_end)
            if categories == 1 and word_begin < 0:
                key = name_key(state, category, CATEGORY)
                word = find_key(iids, key)
                if word < 0:
                    if word == EMPTY or word == -1:
                        return at, ODD
                    word = -2 - word
                    word = intern_word(
                        kind_pool, kind_spans, kind_hashes, kind_places, kind_words,
                        told_pool, told[word, 0], told[word, 1],
                    )  # fmt: skip
                    if word < 0:
                        return at, FULL
                    put_key(iids, key, word)
            else:
                word_begin, word_end = max(word_begin, 0), max(word_end, 0)
                word = intern_word(
                    kind_pool, kind_spans, kind_hashes, kind_places, kind_words, data, word_begin, word_end
                )
            if name < 0 or word < 0:
                return at, FULL
            open_slice(nodes, top, used, find_track(tracks, track_of, top, used, track), name, time_ns, word)
        elif kind == _END:
            row = find_key(tracks, track)
            if row < 0 or top[row] < 0 or nodes[top[row], 2] > time_ns:
                return at, ODD
            out = used[2]
            if out >= len(stamps):
                return at, FULL
            name, start_ns, word = close_slice(nodes, top, used, row)
            stamps[out, 0], stamps[out, 1] = start_ns, time_ns
            marks[out, 0], marks[out, 1], marks[out, 2] = name, row, word
            used[2] = out + 1
        elif kind == _COUNTER:
            lane = find_key(lanes, track)
            if lane < 0:
                return at, ODD
            out = used[3]
            if out >= len(counted):
                return at, FULL
            counted[out, 0], counted[out, 1], counted[out, 2], counted[out, 3] = lane, time_ns, amount, double
            used[3] = out + 1
        else:
            return at, ODD
        at = end
    return at, MORE
