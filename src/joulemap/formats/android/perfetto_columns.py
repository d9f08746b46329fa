"""Plain packets of a large Perfetto trace by the compiled scan, the rest by the reader of messages, in file order.

The scan stops before every packet that is more than one event whose names, clock and track are known. The reader of
messages takes that one, and :meth:`PacketColumns.learn` copies what it defined into the tables of the scan.

References:
    google/perfetto docs, "Interning" (names belong to a sequence until its state is cleared), "Clock synchronization".
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import SetupError
from joulemap.formats.android.perfetto_events import EventBook
from joulemap.formats.android.perfetto_packets import ClockTable, first
from joulemap.formats.android.perfetto_schema import PACKET, SCHEMA
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.protobuf import Message
from joulemap.formats.ground.slices import SliceColumns
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, Timeline
from joulemap.trace.integrate import Backend

__all__ = ["PacketColumns", "takes_compiled"]

_NUMBA_PAYS_B: Final = 4_000_000  # of packets: below it they are read before numba is loaded
_ROWS: Final = 1 << 16
_PATIENCE: Final = 64  # most packets that the reader of messages takes before the scan is tried again
_STAMP_LIMIT: Final = 1 << 62


def takes_compiled(path: Path, backend: Backend) -> bool:
    """Returns True for a trace that is large enough for the compiled scan to pay, where numba is installed.

    Raises:
        SetupError: backend ``numba`` without numba (``missing-extra``).
    """
    installed = importlib.util.find_spec("numba") is not None
    if backend == "numba" and not installed:
        raise SetupError("numba is not installed", hint="pip install 'joulemap[fast]'", slug="missing-extra")
    if backend != "auto":
        return backend == "numba"
    size_b = path.stat().st_size if path.is_file() else 0
    loaded = "joulemap.trace.kernels" in sys.modules and size_b > 100_000
    return installed and (loaded or size_b >= _NUMBA_PAYS_B)


class PacketColumns:
    """The slices of a trace: those that the scan takes and those that the reader of messages adds.

    Args:
        clock: of the stamps.
        log: takes what :class:`SliceColumns` says.
    """

    def __init__(self, clock: Clock, log: FindingLog) -> None:
        from joulemap.formats.android import event_tables, perfetto_kernels  # noqa: PLC0415  only a large trace pays for numba

        self._kernels, self._made = perfetto_kernels, event_tables
        self._log = log
        self._columns = SliceColumns(clock, log)
        self._tables = self._empty()
        self._sequences: dict[int, int] = {}  # sequence -> row of rules
        self._lanes: list[tuple[str, str, int, float]] = []
        self._known: list[list[int]] = [[], [], []]  # name, track, kind of the scan -> of the columns
        self._iids, self._told, self._told_b = 0, 0, 0
        self._far: dict[int, int] = {}  # open slice -> its start, where that is out of range
        self._wait, self._skip = 1, 0
        self.events: EventBook | None = None
        self.clocks: ClockTable | None = None

    def _empty(self) -> Any:
        kernels = self._kernels
        wanted = np.zeros(78, np.bool_)
        wanted[[number for number in SCHEMA[PACKET] if number < wanted.size]] = True
        nodes = np.zeros((1 << 10, 4), np.int64)
        nodes[:, 0] = np.append(np.arange(1, len(nodes)), -1)  # each leads to the next free one
        return kernels.EventTables(
            wanted=wanted,
            sequences=_places(1 << 8),
            rules=np.zeros((1 << 7, 5), np.int64),
            iids=_places(1 << 12),
            told=np.empty((1 << 10, 2), np.int64),
            pool=np.empty(1 << 16, np.uint8),
            tracks=_places(1 << 10),
            track=np.zeros(1 << 9, np.int64),
            top=np.full(1 << 9, -1, np.int64),
            lanes=_places(1 << 8),
            names=self._words(1 << 10),
            kinds=self._words(1 << 6),
            nodes=nodes,
            used=np.zeros(4, np.int64),
            stamps=np.empty((_ROWS, 2), np.int64),
            marks=np.empty((_ROWS, 3), np.int32),
            counted=np.empty((_ROWS, 4), np.int64),
        )

    def _words(self, room: int, *, before: Any = None, pool_b: int = 1 << 16) -> Any:
        pool, span = np.empty(pool_b, np.uint8), np.empty((room, 2), np.int64)
        words = self._made.Words(
            pool, span, np.empty(room, np.int64), np.full(2 * room, -1, np.int32), np.zeros(2, np.int64)
        )
        if before is not None:
            for begin, end in before.span[: before.used[0]].tolist():
                self._made.intern_word(*words, before.pool, begin, end)
        return words

    # the scan

    def scan(self, pending: bytes, at: int) -> int:
        """Returns the offset of the first packet at or after ``at`` that the reader of messages has to take."""
        if self._skip:
            self._skip -= 1
            return at
        data = np.frombuffer(pending, np.uint8)
        begin = at
        while True:
            at, why = self._kernels.scan_events(self._tables, data, at)
            if why != self._kernels.FULL:
                break
            self.flush()
            self._grow(data, at)
        self._wait = 1 if at - begin > 64 else min(2 * self._wait, _PATIENCE)
        if why == self._kernels.ODD:
            self._skip = self._wait - 1
        self.flush()
        return at

    def _grow(self, data: NDArray[np.uint8], at: int) -> None:
        tables = self._tables
        rows = int(tables.used[0])
        if 2 * rows >= len(tables.track):
            track, top = (np.concatenate([column, np.zeros_like(column)]) for column in (tables.track, tables.top))
            tables = tables._replace(track=track, top=top, tracks=_grown(tables.tracks))
        free, node = 0, int(tables.used[1])
        while free < 8 and tables.nodes[node, 0] >= 0:
            free, node = free + 1, int(tables.nodes[node, 0])
        if free < 8:
            old = len(tables.nodes)
            nodes = np.concatenate([tables.nodes, np.zeros_like(tables.nodes)])
            nodes[old:, 0] = np.append(np.arange(old + 1, 2 * old), -1)
            nodes[node, 0] = old
            tables = tables._replace(nodes=nodes)
        longest = data.size - at  # the packet that did not fit may hold one long name
        for field in ("names", "kinds"):
            words = getattr(tables, field)
            count, pool_b = words.used.tolist()
            if 2 * count >= len(words.span) or pool_b + min(longest, 1 << 16) > len(words.pool):
                room = 2 * len(words.span)
                wider = self._words(room, before=words, pool_b=2 * len(words.pool) + min(longest, 1 << 27))
                tables = tables._replace(**{field: wider})
        self._tables = tables

    def flush(self) -> None:
        """Moves what the scan filled into the columns and lanes."""
        tables = self._tables
        slices, counted = int(tables.used[2]), int(tables.used[3])
        tables.used[2:] = 0
        if slices or self._has_new_words():
            self._pour(slices)
        if counted and self.events is not None:
            rows = tables.counted[:counted]
            for lane in np.flatnonzero(np.bincount(rows[:, 0])).tolist():
                _, stamps, raw, double = rows[rows[:, 0] == lane].T
                name, unit, multiplier, scale = self._lanes[lane]
                values = np.where(double == 1, np.ascontiguousarray(raw).view(np.float64), raw.astype(np.float64))
                self.events.book.extend_lane(name, unit, stamps, values * multiplier * scale)

    def _has_new_words(self) -> bool:
        tables = self._tables
        counts = (tables.names.used[0], tables.used[0], tables.kinds.used[0])
        return any(len(known) < count for known, count in zip(self._known, counts, strict=True))

    def _pour(self, slices: int) -> None:
        tables, known, columns = self._tables, self._known, self._columns
        known[0] += columns.intern("name", _texts(tables.names, len(known[0])))
        known[1] += columns.intern("track", [_unsigned(row) for row in tables.track[len(known[1]) : tables.used[0]]])
        known[2] += columns.intern("kind", _texts(tables.kinds, len(known[2])))
        if slices:
            marks = tables.marks[:slices]
            name, track, kind = (np.array(known[k], np.int32)[marks[:, k]] for k in range(3))
            columns.append(tables.stamps[:slices, 0], tables.stamps[:slices, 1], name, track, kind)

    # what the reader of messages defines

    def learn(self, packet: Message) -> None:
        """Copies what a packet defines into the tables of the scan, after the books have taken it."""
        kernels, tables = self._kernels, self._tables
        assert self.events is not None  # set by the reader before the first packet
        if "track_descriptor" in packet:
            self._tables = tables = tables._replace(lanes=_places(1 << 8))
            self._lanes = []
        sequence = first(packet, "trusted_packet_sequence_id", 0)
        if sequence < _STAMP_LIMIT:
            for one in [*self._sequences] if "clock_snapshot" in packet else []:
                self._learn_sequence(one)
            self._learn_sequence(sequence)
        state = self.events.state_of(sequence)
        for interned in packet.get("interned_data", []):
            for field, category in (("event_names", 0), ("event_categories", kernels.CATEGORY)):
                for word in interned.get(field, []):
                    if 0 <= first(word, "iid", 0) < 1 << 31:
                        key = kernels.name_key(state, first(word, "iid", 0), category)
                        self._learn_iid(key, self._tell(first(word, "name", "")))
        for event in packet.get("track_event", []):
            self._learn_event(event, sequence)

    def _learn_sequence(self, sequence: int) -> None:
        assert self.events is not None  # set by the reader before the first packet
        assert self.clocks is not None
        tables = self._tables
        row = self._sequences.setdefault(sequence, len(self._sequences))
        if row == len(tables.rules):
            rules = np.concatenate([tables.rules, np.zeros_like(tables.rules)])
            self._tables = tables = tables._replace(rules=rules, sequences=_grown(tables.sequences))
        rule = self.clocks.plain_rule(sequence)
        plain = rule is not None and all(abs(number) < _STAMP_LIMIT for number in rule) and rule[0] > 0
        if rule is not None and plain:
            state, track = self.events.state_of(sequence), self.events.track_of(sequence)
            largest = (_STAMP_LIMIT - 1) // rule[0]
            tables.rules[row] = (state, _signed(track), *rule, largest)
        self._made.put_key(tables.sequences, sequence, row if plain else -1)

    def _tell(self, text: str) -> int:
        tables, data = self._tables, text.encode("utf-8", "replace")
        begin, end = self._told_b, self._told_b + len(data)
        if self._told == len(tables.told):
            tables = tables._replace(told=np.concatenate([tables.told, tables.told]))
        if end > len(tables.pool):
            tables = tables._replace(pool=np.concatenate([tables.pool, np.empty(end, np.uint8)]))
        tables.told[self._told] = begin, end
        tables.pool[begin:end] = np.frombuffer(data, np.uint8)
        self._tables = tables
        self._told, self._told_b = self._told + 1, end
        return -1 - self._told

    def _learn_iid(self, key: int, word: int) -> None:
        if 2 * self._iids >= len(self._tables.iids):
            self._tables = self._tables._replace(iids=_grown(self._tables.iids))
        self._iids += self._made.put_key(self._tables.iids, key, word)

    def _learn_event(self, event: Message, sequence: int) -> None:
        assert self.events is not None  # set by the reader before the first packet
        if first(event, "type", 0) == 4:
            track = first(event, "track_uuid", self.events.track_of(sequence))
            lane = self.events.lane_of(track)
            if lane is not None and self._made.find_key(self._tables.lanes, _signed(track)) == self._made.EMPTY:
                self._made.put_key(self._tables.lanes, _signed(track), len(self._lanes))
                self._lanes.append(lane)
                if 2 * len(self._lanes) >= len(self._tables.lanes):
                    self._tables = self._tables._replace(lanes=_grown(self._tables.lanes))

    def _intern(self, field: str, text: str) -> int:
        data = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
        while True:
            pool, span, marks, place, used = getattr(self._tables, field)
            word = self._made.intern_word(pool, span, marks, place, used, data, 0, data.size)
            if word >= 0:
                return int(word)
            self._grow(data, 0)

    # the same as SliceColumns, for the reader of messages

    def begin(self, track: Hashable, name: str, time_ns: int, kind: str = "") -> None:
        """Opens a slice on a track."""
        at, word, sort = self._row(track), self._intern("names", name), self._intern("kinds", kind)
        tables = self._tables
        if not abs(time_ns) < _STAMP_LIMIT:  # no word of the table holds it, and the scan leaves its end to this reader
            self._far[int(tables.used[1])] = time_ns
            time_ns = _STAMP_LIMIT
        self._made.open_slice(tables.nodes, tables.top, tables.used, at, word, time_ns, sort)

    def end(self, track: Hashable, time_ns: int) -> None:
        """Closes the innermost open slice of a track."""
        at = self._row(track)
        self.flush()
        if self._tables.top[at] < 0:
            self._columns.end(track, time_ns)  # says that it was never opened
            return
        tables = self._tables
        node = int(tables.top[at])
        name, start_ns, kind = self._made.close_slice(tables.nodes, tables.top, tables.used, at)
        start_ns = self._far.pop(node, start_ns)
        names, _, kinds = self._known
        self._columns.put((names[name], self._known[1][at], kinds[kind]), start_ns, time_ns)

    def mark(self, name: str, time_ns: int) -> None:
        """Appends an instant."""
        if abs(time_ns) < _STAMP_LIMIT:
            self._intern("names", name)
            self.flush()
        self._columns.mark(name, time_ns)

    def _row(self, track: Hashable) -> int:
        assert isinstance(track, int)  # a Perfetto track is a number
        self._grow(np.empty(0, np.uint8), 0)
        tables = self._tables
        return int(self._made.find_track(tables.tracks, tables.track, tables.top, tables.used, _signed(track)))

    def close(self) -> None:
        """Hands everything to the columns; what is open stays open there."""
        self.flush()
        tables = self._tables
        names, kinds = _texts(tables.names, 0), _texts(tables.kinds, 0)
        for row in range(int(tables.used[0])):
            stack: list[list[int]] = []
            node = int(tables.top[row])
            while node >= 0:
                stack.append(tables.nodes[node].tolist())
                node = stack[-1][0]
            for _, name, time_ns, kind in reversed(stack):
                self._columns.begin(_unsigned(tables.track[row]), names[name], time_ns, kinds[kind])
            tables.top[row] = -1

    def timelines(self, namer: Any = str) -> tuple[Timeline, ...]:
        """Returns the slices as one timeline."""
        self.close()
        return self._columns.timelines(namer)

    def markers(self) -> tuple[MarkerTrack, ...]:
        """Returns the instants."""
        return self._columns.markers()


def _places(room: int) -> NDArray[np.int64]:
    table = np.zeros((room, 2), np.int64)
    table[:, 1] = -(1 << 63)
    return table


def _grown(table: NDArray[np.int64]) -> NDArray[np.int64]:
    from joulemap.formats.android import event_tables  # noqa: PLC0415  loaded already

    wider = _places(2 * len(table))
    for key, value in table[table[:, 1] != event_tables.EMPTY].tolist():
        event_tables.put_key(wider, key, value)
    return wider


def _texts(words: Any, since: int) -> list[str]:
    pool = words.pool
    return [pool[begin:end].tobytes().decode("utf-8", "replace") for begin, end in words.span[since : words.used[0]]]


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _unsigned(number: Any) -> int:
    return int(number) & ((1 << 64) - 1)
