"""EnergiBridge's CSV: epoch milliseconds, energies since boot, columns sorted by name and different on every host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import read_quantity
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, open_table, split_fields
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["EnergiBridgeReader"]

_COLUMN = re.compile(r"^(\w+?)_(ENERGY|POWER) \((J|Watts|W|mWatts|mW)\)$")
_SCALE = {"J": 1.0, "Watts": 1.0, "W": 1.0, "mWatts": 1e-3, "mW": 1e-3}
_USAGE = re.compile(r"^CPU_USAGE_(\d+)$")
_CORE = re.compile(r"^CORE\d+$")
_INNER = ("PP0", "PP1", "CPU")


class EnergiBridgeReader:
    """Reads EnergiBridge's CSV.

    ``Time`` is the clock; ``Delta`` sums to less. On AMD a core's counter is repeated for its second thread: the twin
    is left out, since a sum over it would double. On macOS the system power is updated about once a second.

    References:
        FORMATS 3 (EnergiBridge), 5 (quirk 10); tdurieux/EnergiBridge README.
    """

    name: ClassVar[str] = "energibridge"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a header with Delta, Time and an energy or system power column."""
        del path
        lines = head_lines(head, 1)
        labels = split_fields(lines[0]) if lines else []
        return 0.95 if {"Delta", "Time"} <= set(labels) and any(_COLUMN.match(label) for label in labels) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per counter or power column, loads as lanes.

        Raises:
            FormatError: no time column or no reading.
        """
        log = FindingLog()
        book = SampleBook(Clock(name="host", kind=ClockKind.UTC, resolution_ns=1e6), log)
        table = open_table(path, delimiter=",")
        time_at = table.index("time")
        if time_at is None:
            raise FormatError(f"{path.name} has no Time column", hint="Export again.", slug="column-missing")
        columns = [(at, match) for at, label in enumerate(table.header) if (match := _COLUMN.match(label))]
        usage = [(at, match.group(1)) for at, label in enumerate(table.header) if (match := _USAGE.match(label))]
        twins = self._twins(table.header, columns)
        for row in table.rows():
            if row.ragged:
                log.add("row_ragged", "the row has another number of fields than the header", f"line {row.line}")
            try:
                time_ns = decimal_ns(row.fields[time_at], 1_000_000)
            except ValueError:
                log.add("stamp_unreadable", f"{row.fields[time_at]!r} is no epoch time", f"line {row.line}")
                continue
            for at, match in columns:
                value = read_quantity(log, row.fields[at], row.line)
                domain = _domain(match, options)
                book.series(match.group(1), domain).add(time_ns, value, row.line)
            for at, number in usage:
                book.lane(f"cpu{number} utilisation", "1", time_ns, read_quantity(log, row.fields[at], row.line, "%"))
            twins = {pair for pair in twins if row.fields[pair[0]] == row.fields[pair[1]]}
        for kept, twin in sorted(twins):
            name = _channel(table.header[twin])
            if name in book.names and _channel(table.header[kept]) in book.names:
                book.drop(name)
                log.add(
                    "thread_twin",
                    f"{name} repeats {_channel(table.header[kept])} in every row: two threads of one core; left out",
                    severity=Severity.INFO,
                )
        names = book.names
        overlaps = [(n, "PACKAGE") for n in names if _CORE.match(n) or n in _INNER]
        overlaps += [(n, "SYSTEM") for n in names if n != "SYSTEM"]
        return recording_of(self.name, path, book, overlaps=overlaps)

    @staticmethod
    def _twins(header: list[str], columns: list[tuple[int, re.Match[str]]]) -> set[tuple[int, int]]:
        cores = sorted(
            (int(match.group(1)[4:]), at) for at, match in columns if _CORE.match(match.group(1)) and header[at]
        )
        return {(first, second) for (a, first), (b, second) in zip(cores[::2], cores[1::2], strict=False) if b == a + 1}


def _channel(label: str) -> str:
    match = _COLUMN.match(label)
    return match.group(1) if match else label


def _domain(match: re.Match[str], options: ReadOptions) -> Domain:
    name, kind, unit = match.groups()
    own = {"PACKAGE": Boundary.PACKAGE, "SYSTEM": Boundary.NODE}.get(name, Boundary.RAIL)
    if name.startswith("GPU"):
        own = Boundary.BOARD
    boundary = boundary_of(options.boundary, own) if name in ("PACKAGE", "SYSTEM") else own
    if kind == "ENERGY":
        return Domain(
            boundary=boundary, provenance=Provenance.MEASURED_COUNTER, meaning=Meaning.COUNTER, scale=_SCALE[unit]
        )
    return Domain(boundary=boundary, scale=_SCALE[unit], polled=True)
