"""Mark files of a recorded program to slices: nested as it nested them, one track a thread, more where tasks overlap.

A mark lies on the track of the mark around it, unless another mark inside that one is still running there: then it
lies on a further track, so that what runs at once is not taken as nested.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
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
    words = table.words[order]
    starts, ends = words[:, START].tolist(), words[:, END].tolist()
    opened = sum(1 for end in ends if end <= 0)
    if opened:
        log.add(
            "mark_unclosed",
            f"{label}: {opened} marks were still open when the process or the recording ended; they end with it",
            severity=Severity.INFO,
        )
    ends = [end if end > 0 else max(end_ns, start) for start, end in zip(starts, ends, strict=True)]
    places = table.place[order].tolist()
    row_of = {place: row for row, place in enumerate(places)}
    lanes: dict[tuple[str, int], list[_Lane]] = {}
    threads: dict[int, str] = {}
    track_of: list[str] = []
    slices = []
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        outer = row_of.get(int(words[row, PARENT]))
        if outer is not None and outer < row and ends[outer] >= end:
            inside = ("mark", outer)
            base = track_of[outer]
        else:
            inside = ("thread", int(words[row, THREAD]))
            base = threads.setdefault(inside[1], label if not threads else f"{label} thread {len(threads) + 1}")
        track = _take_lane(lanes.setdefault(inside, [_Lane(base)]), start, end)
        track_of.append(track)
        name, kind = table.names.get(int(words[row, NAME]), ("unnamed", "mark"))
        slices.append(Slice(name=name, start_ns=start, end_ns=max(end, start), track=track, kind=kind))
    return slices


@dataclass(slots=True)
class _Lane:
    """A track inside one mark or thread, and when the last mark on it ends."""

    track: str
    busy_until_ns: int = 0


def _take_lane(lanes: list[_Lane], start: int, end: int) -> str:
    """Returns the first track that is free at ``start``, a new one when none is."""
    for lane in lanes:
        if lane.busy_until_ns <= start:
            lane.busy_until_ns = end
            return lane.track
    lanes.append(_Lane(f"{lanes[0].track} #{len(lanes) + 1}", end))
    return lanes[-1].track
