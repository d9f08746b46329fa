"""The CSV of jtop's logger: local time with microseconds, rails in mW, loads in percent or OFF."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import local_clock, read_quantity, read_stamp
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, open_table, split_fields
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import KernelKind

__all__ = ["JtopReader"]

_TOTAL = "TOT"


class JtopReader:
    """Reads jtop logs (jetson_stats 4 to 7).

    ``Power TOT`` is what jtop takes for the board: the input rail where there is one, else the sum of the rails, so
    it contains every other rail.

    References:
        rbonghi/jetson_stats f41d5cad, examples/jtop_logger.py and jtop/jtop.py (stats); FORMATS 4 (reports 33, 34).
    """

    name: ClassVar[str] = "jtop"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a header with time, uptime and jtop's own columns."""
        del path
        lines = head_lines(head, 1)
        labels = set(split_fields(lines[0])) if lines else set()
        return 0.95 if {"time", "uptime"} <= labels and labels & {"nvpmodel", "jetson_clocks", "Power TOT"} else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per rail, loads and temperatures as lanes.

        Raises:
            FormatError: no time column or no row.
        """
        log = FindingLog()
        clock, shift_ns = local_clock(options, log, resolution_ns=1e3)
        book = SampleBook(clock, log)
        table = open_table(path, delimiter=",")
        time_at = table.index("time")
        if time_at is None:
            raise FormatError(f"{path.name} has no time column", hint="Use jtop's logger.", slug="column-missing")
        rails = [name for name in table.header if name.startswith("Power ")]
        metadata: dict[str, str] = {}
        for row in table.rows():
            if row.ragged:
                log.add("row_ragged", "the row has another number of fields than the header", f"line {row.line}")
            stamp = read_stamp(log, row.fields[time_at], row.line)
            if stamp is None:
                continue
            for name, cell in zip(table.header, row.fields, strict=True):
                self._take((name, cell, row.line), stamp.ns + shift_ns, (book, options, log))
                if name in ("nvpmodel", "jetson_clocks") and cell:
                    metadata.setdefault(name, cell)
                    if metadata[name] != cell:
                        log.add("mode_changed", f"{name} changes to {cell}", f"line {row.line}", Severity.WARNING)
                        metadata[name] = cell
        overlaps = [(name[6:], _TOTAL) for name in rails if name[6:] != _TOTAL]
        return recording_of(self.name, path, book, overlaps=overlaps, metadata=metadata)

    @staticmethod
    def _take(cell: tuple[str, str, int], time_ns: int, sink: tuple[SampleBook, ReadOptions, FindingLog]) -> None:
        name, text, line = cell
        book, options, log = sink
        off = text.upper() == "OFF"
        if name.startswith("Power "):
            own = Boundary.BOARD if name[6:] == _TOTAL else Boundary.RAIL
            domain = Domain(
                boundary=boundary_of(options.boundary, own) if own is Boundary.BOARD else own,
                kind=KernelKind.POINT,
                window_s=0.0,
            )
            book.series(name[6:], domain).add(time_ns, read_quantity(log, text, line, "mW"), line)
        elif name.startswith("CPU") or name == "GPU":
            value = math.nan if off else read_quantity(log, text, line, "%")
            book.lane(f"{name.lower()} utilisation", "1", time_ns, value)
        elif name.startswith("Temp "):
            value = math.nan if off else read_quantity(log, text, line)
            book.lane(f"{name[5:]} temperature", "degC", time_ns, math.nan if value <= -256 else value)
        elif name in ("RAM", "SWAP", "EMC"):
            book.lane(f"{name.lower()} share", "1", time_ns, math.nan if off else read_quantity(log, text, line))
