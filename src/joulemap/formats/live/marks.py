"""Mark files of a recorded program to slices: nested as it nested them, one track a thread, more where tasks overlap.

A mark lies on the track of the mark around it, unless another mark inside that one is still running there: then it
lies on a further track, so that what runs at once is not taken as nested.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.ground.building import FindingLog
from joulemap.records.finding import Severity
from joulemap.records.live.mark_layout import END, NAME, PARENT, SLOTS, START, THREAD, WORDS
from joulemap.trace import Slice

__all__ = ["MarkTable", "place_marks", "read_marks"]

_LATEST_NS: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkTable:
    """Marks of one process.

    Args:
        program: file name of what it ran.
        pid: process id.
        names: (id) -> (name, kind).
        words: (n, WORDS) int64, see :mod:`joulemap.records.live.mark_layout`; filled slots only.
        place: (n,) place of each slot.
    """

    program: str
    pid: int
    names: dict[int, tuple[str, str]]
    words: NDArray[np.int64]
    place: NDArray[np.int64]


def read_marks(folder: Path, log: FindingLog) -> tuple[MarkTable, ...]:
    """Returns the marks of every process that left files in a folder, in order of their first mark.

    Args:
        folder: need not be there.
        log: takes ``marks_damaged``.
    """
    tables = []
    for names in sorted(folder.glob("*.names")) if folder.is_dir() else ():
        try:
            tables.append(_read_table(names))
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.add("marks_damaged", f"{names.name}: {error}; the marks of that process are left out")
    return tuple(sorted((t for t in tables if t.words.size), key=lambda t: int(t.words[:, START].min())))


def _read_table(path: Path) -> MarkTable:
    lines = path.read_text("utf-8", errors="replace").splitlines()
    head = json.loads(lines[0])
    names: dict[int, tuple[str, str]] = {}
    for line in lines[1:]:
        try:
            number, name, kind = json.loads(line)
        except ValueError:
            break  # cut while it was written
        names[int(number)] = (str(name), str(kind))
    base = int(head["base"])
    parts, places = [], []
    for number in range(1 << 16):
        file = path.with_name(f"{path.stem}-{number}.marks")
        if not file.is_file():
            break
        data = file.read_bytes()
        words = np.frombuffer(data[: len(data) // (8 * WORDS) * 8 * WORDS], np.int64).reshape(-1, WORDS)
        real = np.flatnonzero((words[:, START] > 0) & (words[:, START] < _LATEST_NS) & (words[:, END] < _LATEST_NS))
        parts.append(words[real])
        places.append(base + (number * SLOTS + real) * WORDS)
    return MarkTable(
        program=str(head["program"]),
        pid=int(head["pid"]),
        names=names,
        words=np.concatenate(parts) if parts else np.empty((0, WORDS), np.int64),
        place=np.concatenate(places).astype(np.int64) if places else np.empty(0, np.int64),
    )


def place_marks(tables: tuple[MarkTable, ...], end_ns: int, log: FindingLog) -> list[Slice]:
    """Returns the marks as slices on tracks.

    Args:
        tables: of all processes.
        end_ns: end of the recording: a mark that is open ends there.
        log: takes ``mark_unclosed``.
    """
    slices: list[Slice] = []
    for table in tables:
        label = f"{table.program or 'process'} {table.pid}"
        slices.extend(_place(table, label, end_ns, log))
    return slices


def _place(table: MarkTable, label: str, end_ns: int, log: FindingLog) -> list[Slice]:
    order = np.argsort(table.words[:, START], kind="stable")
    words, places = table.words[order], table.place[order].tolist()
    starts, ends = words[:, START].tolist(), words[:, END].tolist()
    opened = sum(1 for end in ends if end <= 0)
    if opened:
        log.add(
            "mark_unclosed",
            f"{label}: {opened} marks were still open when the process or the recording ended; they end with it",
            severity=Severity.INFO,
        )
    row_of = {place: row for row, place in enumerate(places)}
    tracks = _Tracks(label)
    track_of: list[_Track] = []
    slices = []
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        until = max(end, start) if end > 0 else max(end_ns, start)
        outer = row_of.get(int(words[row, PARENT]), row)
        around = (outer, track_of[outer]) if outer < row else None
        track = tracks.choose(start, until, around, int(words[row, THREAD]))
        track.open_rows.append((row, until))
        track_of.append(track)
        name, kind = table.names.get(int(words[row, NAME]), ("unnamed", "mark"))
        slices.append(Slice(name=name, start_ns=start, end_ns=until, track=track.name, kind=kind))
    return slices


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
            name = self._label if not self._threads else f"{self._label} thread {len(self._threads) + 1}"
            track = self._threads.setdefault(thread, _Track(name))
            track.close_until(start_ns)
            if not track.open_rows:
                return track
        for further in self._further:
            further.close_until(start_ns)
            if not further.open_rows:
                return further
        self._further.append(_Track(f"{self._label} #{len(self._further) + 2}"))
        return self._further[-1]
