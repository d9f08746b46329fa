"""nvidia-smi dmon: a text table per second with names and units in comment lines, optional local date and time."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import index_clock, local_clock, read_quantity, read_stamp
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.records.recording import Recording
from joulemap.trace import Clock

__all__ = ["NvidiaDmonReader"]

_LANES = {
    "sm": ("utilisation", "1", "%"),
    "mem": ("memory utilisation", "1", "%"),
    "enc": ("encoder utilisation", "1", "%"),
    "dec": ("decoder utilisation", "1", "%"),
    "jpg": ("jpeg utilisation", "1", "%"),
    "ofa": ("optical flow utilisation", "1", "%"),
    "gtemp": ("temperature", "degC", "degC"),
    "temp": ("temperature", "degC", "degC"),
    "mtemp": ("memory temperature", "degC", "degC"),
    "mclk": ("memory clock", "Hz", "MHz"),
    "pclk": ("sm clock", "Hz", "MHz"),
}


class NvidiaDmonReader:
    """Reads dmon logs; power is whole watts, a dash is missing, columns depend on ``-s`` and the driver.

    Without ``-o T`` there is no time: the poll rate must be stated.

    References:
        FORMATS_MORE, "nvidia-smi dmon / pmon" (several public readers).
    """

    name: ClassVar[str] = "nvidia-dmon"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a comment line that names the columns gpu and pwr (or sm and mem) and no process."""
        del path
        lines = head_lines(head, 1)
        words = lines[0].replace("#", " ").lower().split() if lines and lines[0].lstrip().startswith("#") else []
        known = "gpu" in words and ("pwr" in words or {"sm", "mem"} <= set(words))
        return 0.95 if known and "pid" not in words else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per card and its counters as lanes.

        Raises:
            FormatError: no reading.
            InputError: the rows have no time and no rate was stated.
        """
        log = FindingLog()
        rows = _DmonRows(path, options, log)
        book: SampleBook | None = None
        domain = Domain(
            boundary=boundary_of(options.boundary, Boundary.BOARD), window_s=1.0, gap_factor=2.5, resolution_w=1.0
        )
        for line, text in read_lines(path):
            row = rows.take(text, line)
            if row is None:
                continue
            time_ns, cells = row
            book = book or SampleBook(rows.clock, log)
            card = f"gpu{cells.get('gpu', '')}"
            if "pwr" in cells:
                book.series(card, domain).add(time_ns, read_quantity(log, cells["pwr"], line, "W"), line)
            for column, (lane, unit, written) in _LANES.items():
                if column in cells:
                    book.lane(f"{card} {lane}", unit, time_ns, read_quantity(log, cells[column], line, written))
        if book is None:
            raise FormatError(f"{path.name} holds no row", hint="Let dmon run longer.", slug="recording-empty")
        return recording_of(self.name, path, book)


class _DmonRows:
    """Splits rows by the names line above them; knows the time of each."""

    def __init__(self, path: Path, options: ReadOptions, log: FindingLog) -> None:
        self.path, self.options, self.log = path, options, log
        self.names: list[str] = []
        self._clock: Clock | None = None
        self._shift_ns = 0
        self._period_ns = 0
        self._polls: dict[str, int] = {}
        self._day = ""

    @property
    def clock(self) -> Clock:
        """The clock of the rows; known after the first."""
        assert self._clock is not None  # set by take
        return self._clock

    def take(self, text: str, line: int) -> tuple[int, dict[str, str]] | None:
        """Returns (time, cells by column) of a row; None for a header, a blank or an unreadable line."""
        words = text.split()
        if not words:
            return None
        if words[0].startswith("#"):
            cut = text.replace("#", " ", 1).lower().split()
            if "gpu" in cut:
                self.names = cut
                return None
            if len(words) < 2 or not cut[0].isdigit():  # the units line; some drivers print a mark before values
                return None
            words = cut
        if not self.names or len(words) != len(self.names):
            self.log.add("row_ragged", f"{len(words)} fields for {len(self.names)} columns", f"line {line}")
            return None
        cells = dict(zip(self.names, words, strict=True))
        time_ns = self._time(cells, line)
        return None if time_ns is None else (time_ns, cells)

    def _time(self, cells: dict[str, str], line: int) -> int | None:
        if "time" not in cells:
            if self._clock is None:
                self._clock, self._period_ns = index_clock(self.options, self.path.name)
            card = cells.get("gpu", "")
            self._polls[card] = self._polls.get(card, -1) + 1
            return self._polls[card] * self._period_ns
        if self._clock is None:
            self._clock, self._shift_ns = local_clock(self.options, self.log, resolution_ns=1e9)
        day = cells.get("date", "19700101")
        stamp = read_stamp(self.log, f"{day[:4]}-{day[4:6]}-{day[6:]}T{cells['time']}", line)
        return None if stamp is None else stamp.ns + self._shift_ns
