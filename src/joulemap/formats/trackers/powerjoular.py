"""PowerJoular's CSV: local time without zero padding, powers in watts, utilisation as a share."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import local_clock, read_quantity
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines, split_fields
from joulemap.formats.ground.values import parse_stamp
from joulemap.records.recording import Recording

__all__ = ["PowerJoularReader"]

_DATE = re.compile(
    r"^\s*(\d{4})-\s*(\d{1,2})-\s*(\d{1,2})\s+(\d{1,2}):\s*(\d{1,2}):\s*(\d{1,2})(?:\.\s*(\d{1,3}))?\s*$"
)
_POWER = {
    "CPU Power": ("cpu", Boundary.PACKAGE),
    "GPU Power": ("gpu", Boundary.BOARD),
    "Total Power": ("total", Boundary.NODE),
}


class PowerJoularReader:
    """Reads PowerJoular's log. `` 43`` after the dot is 43 ms, not 430; an older header may come again in the middle.

    Total is the sum of the processor and the graphics card, so it is not added to them. A negative power is the
    counter's wrap in versions that did not add its range: a gap.

    References:
        joular/powerjoular 0c0599f9, src/csv_power.adb; FORMATS 4 (report 1).
    """

    name: ClassVar[str] = "powerjoular"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for PowerJoular's header."""
        del path
        lines = head_lines(head, 1)
        return 1.0 if lines and lines[0].startswith("Date,CPU Utilization,") and "CPU Power" in lines[0] else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per power column, the utilisation as a lane.

        Raises:
            FormatError: no row.
        """
        log = FindingLog()
        clock, shift_ns = local_clock(options, log, resolution_ns=1e6)
        book = SampleBook(clock, log)
        header: list[str] = []
        for line, text in read_lines(path):
            fields = split_fields(text)
            if not text.strip():
                continue
            if fields[0] == "Date":
                header = fields
                continue
            if len(fields) != len(header):
                log.add("row_ragged", f"{len(fields)} fields where the header has {len(header)}", f"line {line}")
            match = _DATE.match(fields[0])
            try:
                time_ns = _stamp_ns(match) + shift_ns
            except ValueError:
                log.add("stamp_unreadable", f"{fields[0]!r} is no date", f"line {line}")
                continue
            for name, cell in zip(header[1:], fields[1:], strict=False):
                self._take((name, read_quantity(log, cell, line)), time_ns, line, (book, options))
        if not header:
            raise FormatError(f"{path.name} has no header", hint="Start a new file.", slug="column-missing")
        return recording_of(self.name, path, book, overlaps=[("cpu", "total"), ("gpu", "total")])

    @staticmethod
    def _take(cell: tuple[str, float], time_ns: int, line: int, sink: tuple[SampleBook, ReadOptions]) -> None:
        name, value = cell
        book, options = sink
        if name == "CPU Utilization":
            book.lane("cpu utilisation", "1", time_ns, value)
        elif name in _POWER:
            if value < 0:
                book.log.add("impossible_power", f"{name} of {value:g} W; a gap", f"line {line}")
                value = math.nan
            channel, own = _POWER[name]
            boundary = boundary_of(options.boundary, own) if channel == "cpu" else own
            domain = Domain(boundary=boundary, provenance=Provenance.MEASURED_SAMPLED)
            book.series(channel, domain).add(time_ns, value, line)


def _stamp_ns(match: re.Match[str] | None) -> int:
    if match is None:
        raise ValueError("no date")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    milli = int(match.group(7) or 0)
    return parse_stamp(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{milli:03d}").ns
