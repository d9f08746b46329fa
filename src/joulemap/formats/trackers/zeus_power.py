"""Zeus' power log: no header, epoch seconds and one column of watts per card."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import read_quantity
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines, split_fields
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["ZeusPowerReader"]

_EPOCH = re.compile(r"^1[0-9]{9}(\.[0-9]{1,9})?$")
_ROW = re.compile(r"^1\d{9}\.\d{1,9}(,\d{1,5}(\.\d+)?){1,64}$")


class ZeusPowerReader:
    """Reads Zeus' polled powers; a value is repeated at the poll rate, so repeats are one sample.

    References:
        PyPI zeus-ml 0.11.0.post1 (a file written by it).
    """

    name: ClassVar[str] = "zeus-power"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.8 when the first lines are epoch seconds with a fraction and plain watts."""
        del path
        lines = head_lines(head, 3)
        return 0.8 if lines and all(_ROW.match(text) for text in lines[:2]) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per column.

        Raises:
            FormatError: no row.
        """
        log = FindingLog()
        book = SampleBook(Clock(name="host", kind=ClockKind.UTC), log)
        domain = Domain(boundary=boundary_of(options.boundary, Boundary.BOARD), polled=True)
        width = 0
        for line, text in read_lines(path):
            if not text.strip():
                continue
            fields = split_fields(text)
            width = width or len(fields)
            if len(fields) != width:
                log.add("row_ragged", f"{len(fields)} fields where the first row has {width}", f"line {line}")
            if not _EPOCH.match(fields[0]):
                log.add("stamp_unreadable", f"{fields[0]!r} is no epoch time", f"line {line}")
                continue
            time_ns = decimal_ns(fields[0])
            for number, cell in enumerate(fields[1:width]):
                book.series(f"gpu{number}", domain).add(time_ns, read_quantity(log, cell, line), line)
        return recording_of(self.name, path, book)
