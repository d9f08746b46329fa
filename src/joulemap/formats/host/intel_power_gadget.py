"""Intel Power Gadget's CSV: time of day with a colon before the milliseconds, powers beside running energies."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import key_of, read_quantity
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines, split_fields
from joulemap.formats.ground.values import decimal_ns, parse_clock_time
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["IntelPowerGadgetReader"]

_POWER = re.compile(r"^(Processor|Package|IA|GT|DRAM|Platform) Power_(\d+)\s?\(Watts?\)$")
_ENERGY = re.compile(r"^Cumulative (Processor|Package|IA|GT|DRAM|Platform) Energy_(\d+)\s?\(Joules\)$")
_SUMMARY = re.compile(
    r"^(Total Elapsed Time|Cumulative \w+ Energy_\d+|Average \w+ Power_\d+) \((sec|Joules|Watt|Watts)\) = ([-+0-9.eE]+)"
)
_UNIT_KEY = {"sec": "s", "Joules": "j", "Watt": "w", "Watts": "w"}
_INNER = ("IA", "GT")


class IntelPowerGadgetReader:
    """Reads Intel Power Gadget's log. The first row comes after one interval; energies start at 0 in every file.

    Power columns hold interval means; the running energy (3 decimals) and the summary are kept as stated figures.
    The log has a time of day and no date. Without administrator rights the power columns are missing.

    References:
        FORMATS 2 and 3 (Intel Power Gadget), 4 (report 61); FORMATS_MORE (mozpower's reader of the summary).
    """

    name: ClassVar[str] = "intel-power-gadget"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a header with System Time, RDTSC and Elapsed Time."""
        del path
        lines = head_lines(head, 1)
        labels = set(split_fields(lines[0])) if lines else set()
        return 1.0 if {"System Time", "RDTSC", "Elapsed Time (sec)"} <= labels else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per power column, and what the file states about its energies.

        Raises:
            FormatError: no power column, or no row.
        """
        log = FindingLog()
        book = SampleBook(Clock(name="time of day", kind=ClockKind.LOCAL, resolution_ns=1e6), log)
        header: list[str] = []
        first: tuple[int, int] | None = None
        last: dict[str, tuple[float, int]] = {}
        for line, text in read_lines(path):
            fields = split_fields(text)
            if not header:
                header = fields if len(fields) > 1 else []
                continue
            summary = _SUMMARY.match(text.strip().strip('"'))
            if summary is not None:
                self._state(summary, line, (book, options, log))
            if len(fields) < 4:
                continue
            cells = dict(zip(header, fields, strict=False))
            try:
                elapsed_ns = decimal_ns(cells["Elapsed Time (sec)"])
                of_day_ns = parse_clock_time(cells["System Time"])
            except (ValueError, KeyError):
                log.add("row_unreadable", f"no time in {text[:40]!r}", f"line {line}")
                continue
            first = first or (of_day_ns, elapsed_ns)
            time_ns = first[0] + elapsed_ns - first[1]  # the elapsed time does not break at midnight
            self._row(cells, (time_ns, first[0] - first[1], line), last, (book, options, log))
        if not any(_POWER.match(label) for label in header):
            raise FormatError(
                f"{path.name} has no power column",
                hint="Run Intel Power Gadget with administrator rights on a supported processor.",
                slug="column-missing",
            )
        for name, (energy_j, line) in last.items():
            book.state(f"{key_of(name)}_cumulative_energy_j", energy_j, _domain("", options), f"line {line}")
        packages = [name for name in book.names if name.startswith("package")]
        overlaps = [(name, whole) for name in book.names for whole in packages if name.split("_")[0] in ("ia", "gt")]
        return recording_of(self.name, path, book, overlaps=overlaps)

    @staticmethod
    def _row(
        cells: dict[str, str],
        place: tuple[int, int, int],
        last: dict[str, tuple[float, int]],
        sink: tuple[SampleBook, ReadOptions, FindingLog],
    ) -> None:
        time_ns, start_ns, line = place
        book, options, log = sink
        for label, cell in cells.items():
            power, energy = _POWER.match(label), _ENERGY.match(label)
            if power is not None:
                series = book.series(_name(power), _domain(power.group(1), options))
                series.first_ns = start_ns
                series.add(time_ns, read_quantity(log, cell, line), line)
            elif energy is not None:
                last[_name(energy)] = (read_quantity(log, cell, line), line)
            elif label == "CPU Utilization(%)":
                book.lane("cpu utilisation", "1", time_ns, read_quantity(log, cell, line, "%"))
            elif label.startswith("Package Temperature"):
                book.lane("package temperature", "degC", time_ns, read_quantity(log, cell, line))

    @staticmethod
    def _state(match: re.Match[str], line: int, sink: tuple[SampleBook, ReadOptions, FindingLog]) -> None:
        book, options, log = sink
        value = read_quantity(log, match.group(3), line)
        if math.isfinite(value):
            key = f"stated_{key_of(match.group(1))}_{_UNIT_KEY[match.group(2)]}"
            book.state(key, value, _domain("", options), f"line {line}")


def _name(match: re.Match[str]) -> str:
    kind = match.group(1)
    word = "package" if kind in ("Processor", "Package") else kind.lower()
    return f"{word}_{match.group(2)}"


def _domain(kind: str, options: ReadOptions) -> Domain:
    if kind in (*_INNER, "DRAM"):
        return Domain(boundary=Boundary.RAIL, provenance=Provenance.MEASURED_COUNTER)
    own = Boundary.NODE if kind == "Platform" else Boundary.PACKAGE
    return Domain(boundary=boundary_of(options.boundary, own), provenance=Provenance.MEASURED_COUNTER)
