"""Mark files of recorded programs, read again as one table a process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.ground.building import FindingLog
from joulemap.records.live.mark_layout import END, SLOTS, START, WORDS

__all__ = ["MarkTable", "read_marks"]

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
        lost: marks for which the disk had no room; None when it had none for any.
    """

    program: str
    pid: int
    names: dict[int, tuple[str, str]]
    words: NDArray[np.int64]
    place: NDArray[np.int64]
    lost: int | None = 0


def read_marks(folder: Path, log: FindingLog) -> tuple[MarkTable, ...]:
    """Returns the marks of every process that left files in a folder, in order of their first mark.

    Args:
        folder: need not be there.
        log: takes ``marks_damaged`` and ``marks_lost``.
    """
    tables = []
    for names in sorted(folder.glob("*.names")) if folder.is_dir() else ():
        try:
            tables.append(_read_table(names))
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.add("marks_damaged", f"{names.name}: {error}; the marks of that process are left out")
            continue
        if tables[-1].lost is None:
            log.add("marks_lost", f"{_label(tables[-1])}: the disk had no room for any of its marks")
        elif tables[-1].lost:
            log.add("marks_lost", f"{_label(tables[-1])}: the disk had no room for {tables[-1].lost} of its marks")
    return tuple(sorted((t for t in tables if t.words.size), key=lambda t: int(t.words[:, START].min())))


def _label(table: MarkTable) -> str:
    return f"{table.program or 'process'} {table.pid}"


def _read_table(path: Path) -> MarkTable:
    lines = path.read_text("utf-8", errors="replace").splitlines()
    if not lines and path.stat().st_size == 0:  # not even its first line found room
        return _no_marks("", int(path.name.partition("-")[0]), {})
    head = json.loads(lines[0])
    names: dict[int, tuple[str, str]] = {}
    for line in lines[1:]:
        try:
            number, name, kind = json.loads(line)
        except ValueError:
            break  # cut while it was written
        names[int(number)] = (str(name), str(kind))
    base, program, pid = int(head["base"]), str(head["program"]), int(head["pid"])
    parts, places, lost = [], [], 0
    for number in range(1 << 16):
        file = path.with_name(f"{path.stem}-{number}.marks")
        if not file.is_file():
            break
        data = file.read_bytes()
        words = np.frombuffer(data[: len(data) // (8 * WORDS) * 8 * WORDS], np.int64).reshape(-1, WORDS)
        if not number and len(words) > SLOTS:
            lost = max(int(words[SLOTS, END]), 0)
        words = words[:SLOTS]
        real = np.flatnonzero((words[:, START] > 0) & (words[:, START] < _LATEST_NS) & (words[:, END] < _LATEST_NS))
        parts.append(words[real])
        places.append(base + (number * SLOTS + real) * WORDS)
    if not parts:
        return _no_marks(program, pid, names)
    words, place = np.concatenate(parts), np.concatenate(places).astype(np.int64)
    return MarkTable(program=program, pid=pid, names=names, words=words, place=place, lost=lost)


def _no_marks(program: str, pid: int, names: dict[int, tuple[str, str]]) -> MarkTable:
    nothing, nowhere = np.empty((0, WORDS), np.int64), np.empty(0, np.int64)
    return MarkTable(program=program, pid=pid, names=names, words=nothing, place=nowhere, lost=None)
