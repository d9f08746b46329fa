"""nvidia-smi pmon: which process used how much of a card. No power; utilisation of processes as lanes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.logs import read_quantity
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import parse_clock_time
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["NvidiaPmonReader"]

_SHARES = {"sm": "utilisation", "mem": "memory utilisation", "enc": "encoder utilisation", "dec": "decoder utilisation"}


class NvidiaPmonReader:
    """Reads pmon logs: types C, G and C+G, a row of dashes for an idle card, a command that may hold blanks.

    References:
        FORMATS_MORE, "nvidia-smi dmon / pmon".
    """

    name: ClassVar[str] = "nvidia-pmon"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a comment line that names gpu, pid, type and command."""
        del path
        lines = head_lines(head, 1)
        words = set(lines[0].replace("#", " ").split()) if lines and lines[0].lstrip().startswith("#") else set()
        return 0.95 if {"gpu", "pid", "type", "command"} <= words else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the utilisation of each process as lanes; without a time column on a clock of polls.

        Raises:
            FormatError: no process in any row.
        """
        log = FindingLog()
        period_ns = round(1e9 / options.rate_hz) if options.rate_hz else 1
        book: SampleBook | None = None
        polls = _Polls(period_ns)
        for line, words, names in _rows(path, log):
            cells = dict(zip(names, words, strict=False))
            if book is None:
                book = SampleBook(_clock("time" in names), log)
                if "time" not in names:
                    log.add("clock_missing", "there is no time column; lanes count polls", severity=Severity.INFO)
            try:
                time_ns = polls.time_ns(cells)
            except ValueError:
                log.add("stamp_unreadable", f"{cells['time']!r} is no time of day", f"line {line}")
                continue
            if cells["pid"] == "-":
                continue
            process = f"gpu{cells['gpu']} pid {cells['pid']} {' '.join(words[len(names) - 1 :])}"
            for column, what in _SHARES.items():
                if column in cells:
                    book.lane(f"{process} {what}", "1", time_ns, read_quantity(log, cells[column], line, "%"))
        return recording_of(self.name, path, book or SampleBook(_clock(timed=False), log))


class _Polls:
    """Counts polls: a poll ends where a process of a card comes again."""

    def __init__(self, period_ns: int) -> None:
        self._period_ns = period_ns
        self._poll = 0
        self._seen: set[tuple[str, str]] = set()

    def time_ns(self, cells: dict[str, str]) -> int:
        """Returns the time of a row: its own, or that of its poll.

        Raises:
            ValueError: its own time is none.
        """
        key = (cells["gpu"], cells["pid"])
        if key in self._seen:
            self._poll, self._seen = self._poll + 1, set()
        self._seen.add(key)
        return parse_clock_time(cells["time"]) if "time" in cells else self._poll * self._period_ns


def _rows(path: Path, log: FindingLog) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yields (line, words, column names) of the rows."""
    names: list[str] = []
    for line, text in read_lines(path):
        words = text.split()
        if not words:
            continue
        if words[0].startswith("#"):
            cut = text.replace("#", " ", 1).split()
            names = [word.lower() for word in cut] if {"gpu", "pid"} <= set(cut) else names
        elif not names or len(words) < len(names):
            log.add("row_ragged", f"{len(words)} fields for {len(names)} columns", f"line {line}")
        else:
            yield line, words, names


def _clock(timed: bool) -> Clock:
    if timed:
        return Clock(name="time of day", kind=ClockKind.LOCAL, resolution_ns=1e9)
    return Clock(name="poll", kind=ClockKind.SAMPLE_INDEX)
