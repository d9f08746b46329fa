"""Marks on tracks: one a thread where marks nest, further ones for what runs at once inside one mark.

A mark lies on the track of the mark around it, unless another mark inside that one is still running there: then it
lies on a further track, so that what runs at once is not taken as nested. Marks that all nest, as those of a program
without tasks do, are placed as columns; others one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.marks import MarkTable
from joulemap.records.finding import Severity
from joulemap.records.live.mark_layout import END, NAME, PARENT, START, THREAD
from joulemap.trace import Clock, Timeline

__all__ = ["PlacedMarks", "place_marks"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedMarks:
    """Marks of all processes, as columns.

    Args:
        start_ns: (n,) ns.
        end_ns: (n,) ns.
        name: (n,) index into ``names``.
        names: of marks; one may stand there for several processes.
        track: (n,) index into ``tracks``.
        tracks: of all processes.
        kind: (n,) index into ``kinds``.
        kinds: of marks.
    """

    start_ns: Ints
    end_ns: Ints
    name: Ints
    names: tuple[str, ...]
    track: Ints
    tracks: tuple[str, ...]
    kind: Ints
    kinds: tuple[str, ...]

    def timeline(self, clock: Clock, chosen: NDArray[np.bool_]) -> Timeline:
        """Returns some of the marks, (n,) True for each, as a timeline; words in the order in which they first come."""
        name, names = _renumber(self.name[chosen], self.names)
        track, tracks = _renumber(self.track[chosen], self.tracks)
        kind, kinds = _renumber(self.kind[chosen], self.kinds)
        return Timeline(
            clock=clock,
            start_ns=self.start_ns[chosen],
            end_ns=self.end_ns[chosen],
            name_index=name,
            names=names,
            track_index=track,
            tracks=tracks,
            kind_index=kind,
            kinds=kinds,
        )


def place_marks(tables: Sequence[MarkTable], end_ns: int, log: FindingLog) -> PlacedMarks:
    """Returns the marks on tracks, process by process in order of their starts.

    Args:
        tables: of all processes.
        end_ns: end of the recording: a mark that is open ends there.
        log: takes ``mark_unclosed``.
    """
    words: dict[str, dict[str, int]] = {"name": {}, "kind": {}, "track": {}}
    columns: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
    for table in tables:
        label = f"{table.program or 'process'} {table.pid}"
        rows = _Rows.of(table, end_ns)
        opened = int((rows.words[:, END] <= 0).sum())
        if opened:
            message = (
                f"{label}: {opened} marks were still open when the process or the recording ended; they end with it"
            )
            log.add("mark_unclosed", message, severity=Severity.INFO)
        track, found = _nested_tracks(rows, label) or _searched_tracks(rows, label)
        name, kind = _spell(rows.words[:, NAME], table.names, words)
        place = np.array([words["track"].setdefault(word, len(words["track"])) for word in found], np.int64)
        columns.append((rows.start_ns, rows.end_ns, name, place[track], kind))
    start, end, name, track, kind = (
        np.concatenate([part[column] for part in columns]) if columns else np.empty(0, np.int64) for column in range(5)
    )
    names, kinds, tracks = (tuple(words[which]) for which in ("name", "kind", "track"))
    return PlacedMarks(
        start_ns=start, end_ns=end, name=name, names=names, track=track, tracks=tracks, kind=kind, kinds=kinds
    )


def _renumber(index: Ints, words: tuple[str, ...]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    found, first = np.unique(index, return_index=True)
    ranked = found[np.argsort(first)]
    place = np.zeros(len(words), np.int32)
    place[ranked] = np.arange(ranked.size, dtype=np.int32)
    return place[index], tuple(words[number] for number in ranked.tolist())


def _spell(ids: Ints, names: dict[int, tuple[str, str]], words: dict[str, dict[str, int]]) -> tuple[Ints, Ints]:
    """Returns the indices of name and kind of each mark."""
    found, at = np.unique(ids, return_inverse=True)
    spelt = [names.get(number, ("unnamed", "mark")) for number in found.tolist()]
    name = np.array([words["name"].setdefault(word, len(words["name"])) for word, _ in spelt], np.int64)
    kind = np.array([words["kind"].setdefault(word, len(words["kind"])) for _, word in spelt], np.int64)
    return name[at], kind[at]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """Marks of one process in order of their starts.

    Args:
        words: (n, WORDS).
        start_ns: (n,) ns.
        end_ns: (n,) ns; of an open one the end of the recording.
        outer: (n,) row of the mark around each; its own row where there is none that began before.
    """

    words: Ints
    start_ns: Ints
    end_ns: Ints
    outer: Ints

    @classmethod
    def of(cls, table: MarkTable, end_ns: int) -> _Rows:
        """Returns the rows of a table."""
        order = np.argsort(table.words[:, START], kind="stable")
        words, place = table.words[order], table.place[order]
        start_ns, own = words[:, START].copy(), np.arange(order.size)
        until_ns = np.maximum(np.where(words[:, END] > 0, words[:, END], end_ns), start_ns)
        by_place = np.argsort(place)
        at = np.minimum(np.searchsorted(place[by_place], words[:, PARENT]), max(order.size - 1, 0))
        known = by_place[at] if order.size else own
        outer = np.where((place[known] == words[:, PARENT]) & (known < own), known, own)
        return cls(words=words, start_ns=start_ns, end_ns=until_ns, outer=outer)


def _nested_tracks(rows: _Rows, label: str) -> tuple[Ints, list[str]] | None:
    """Returns the track of each mark where all nest and none is beside another, one a thread; else None.

    That is so when each mark ends within the one around it, and each begins after the one before it inside the same
    mark, or outside of all on the same thread, has ended.
    """
    own = np.arange(rows.outer.size)
    child = rows.outer < own
    around = rows.outer[child]
    if not own.size or (rows.end_ns[child] > rows.end_ns[around]).any():
        return None
    if (rows.start_ns[child] >= rows.end_ns[around]).any():
        return None
    threads, thread = np.unique(rows.words[:, THREAD], return_inverse=True)
    beside = np.where(child, rows.outer + threads.size, thread)
    by_parent = np.argsort(beside, kind="stable")
    same = beside[by_parent][1:] == beside[by_parent][:-1]
    if (same & (rows.start_ns[by_parent][1:] < rows.end_ns[by_parent][:-1])).any():
        return None
    root = rows.outer
    while not np.array_equal(root[root], root):
        root = root[root]
    track, names = _renumber(thread[root], tuple(str(number) for number in range(threads.size)))
    return track.astype(np.int64), [_thread_name(label, number) for number in range(len(names))]


def _thread_name(label: str, number: int) -> str:
    return label if not number else f"{label} thread {number + 1}"


def _searched_tracks(rows: _Rows, label: str) -> tuple[Ints, list[str]]:
    """Returns the track of each mark, looking for room on one after the other."""
    tracks = _Tracks(label)
    track_of: list[_Track] = []
    columns = rows.start_ns.tolist(), rows.end_ns.tolist(), rows.outer.tolist(), rows.words[:, THREAD].tolist()
    for row, (start, until, outer, thread) in enumerate(zip(*columns, strict=True)):
        around = (outer, track_of[outer]) if outer < row else None
        track = tracks.choose(start, until, around, thread)
        track.open_rows.append((row, until))
        track_of.append(track)
    number = {name: k for k, name in enumerate(dict.fromkeys(track.name for track in track_of))}
    return np.array([number[track.name] for track in track_of], np.int64), list(number)


@dataclass(slots=True)
class _Track:
    """A track and the marks that are open on it, the innermost last: (row, end)."""

    name: str
    open_rows: list[tuple[int, int]] = field(default_factory=list)

    def close_until(self, start_ns: int) -> None:
        """Closes what has ended by an instant."""
        while self.open_rows and self.open_rows[-1][1] <= start_ns:
            self.open_rows.pop()


class _Tracks:
    """Tracks of one process: one a thread, and further ones for what runs at once inside one mark."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._threads: dict[int, _Track] = {}
        self._further: list[_Track] = []

    def choose(self, start_ns: int, end_ns: int, around: tuple[int, _Track] | None, thread: int) -> _Track:
        """Returns the track of a mark: that of the mark around it, or of its thread, when it nests there."""
        if around is not None:
            outer, track = around
            track.close_until(start_ns)
            if track.open_rows and track.open_rows[-1][0] == outer and end_ns <= track.open_rows[-1][1]:
                return track
        else:
            track = self._threads.setdefault(thread, _Track(_thread_name(self._label, len(self._threads))))
            track.close_until(start_ns)
            if not track.open_rows:
                return track
        for further in self._further:
            further.close_until(start_ns)
            if not further.open_rows:
                return further
        self._further.append(_Track(f"{self._label} #{len(self._further) + 2}"))
        return self._further[-1]
