"""AMD uProf timechart: a preamble with the date, a list of counters with units, records with a time of day."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import local_clock, read_quantity
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines, split_fields
from joulemap.formats.ground.values import parse_clock_time, parse_stamp
from joulemap.records.recording import Recording

__all__ = ["UprofReader"]

_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_START = re.compile(r"^([A-Z][a-z]{2})-(\d{2})-(\d{4})_(\d{2})-(\d{2})-(\d{2})$")
_PACKAGE = re.compile(r"^socket\d+-package-power$")
_DAY_NS = 86_400_000_000_000


@dataclass(slots=True)
class _Counters:
    header: list[str] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)
    midnight_ns: int | None = None
    last_ns: int = -1


class UprofReader:
    """Reads uProf's timechart CSV. Rows have a local time of day; the date comes from the preamble.

    Core powers are taken to lie inside the package power, so the two are never added.

    References:
        FORMATS_MORE, "AMD uProf timechart" (three public readers).
    """

    name: ClassVar[str] = "uprof"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for uProf's preamble or its records' header."""
        del path
        lines = head_lines(head, 200)
        return 1.0 if any(t.startswith(("PROFILE RECORDS", "RecordId,Timestamp,")) for t in lines) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per power counter.

        Raises:
            FormatError: no records, or a preamble without a start time.
        """
        log = FindingLog()
        clock, shift_ns = local_clock(options, log, resolution_ns=1e6)
        book = SampleBook(clock, log)
        state = _Counters()
        for line, text in read_lines(path):
            fields = split_fields(text)
            if not state.header:
                self._preamble(fields, state)
                continue
            if len(fields) < 3 or not fields[0].isdigit():
                continue
            if state.midnight_ns is None:
                raise FormatError(
                    f"{path.name} has no Profile Start Time, so its times of day have no date",
                    hint="Keep the preamble of the timechart.",
                    slug="stamp-unreadable",
                )
            try:
                of_day_ns = parse_clock_time(fields[1])
            except ValueError:
                log.add("stamp_unreadable", f"{fields[1]!r} is no time of day", f"line {line}")
                continue
            if state.last_ns >= 0 and of_day_ns < state.last_ns - _DAY_NS // 2:
                state.midnight_ns += _DAY_NS
            state.last_ns = of_day_ns
            self._take(fields, state, state.midnight_ns + of_day_ns + shift_ns, (book, options, log, line))
        packages = [name for name in book.names if _PACKAGE.match(name)]
        overlaps = [(name, whole) for name in book.names for whole in packages if name.startswith("core")]
        return recording_of(self.name, path, book, overlaps=overlaps)

    @staticmethod
    def _preamble(fields: list[str], state: _Counters) -> None:
        start = _START.match(fields[1]) if fields[0].startswith("Profile Start Time") and len(fields) > 1 else None
        if start is not None and start.group(1) in _MONTHS:
            month = _MONTHS.index(start.group(1)) // 3 + 1
            _, day, year, *_rest = start.groups()
            try:
                midnight_ns = parse_stamp(f"{year}-{month:02d}-{day}T00:00:00").ns
                last_ns = parse_clock_time(":".join(_rest))
            except ValueError:  # a day or an hour that no calendar has: as if there were no start
                return
            state.midnight_ns, state.last_ns = midnight_ns, last_ns
        elif len(fields) >= 4 and fields[0].rstrip(".").isdigit():
            state.units[fields[1]] = fields[3]
        elif fields[0] == "RecordId" and len(fields) > 2:
            state.header = fields

    @staticmethod
    def _take(
        fields: list[str], state: _Counters, time_ns: int, sink: tuple[SampleBook, ReadOptions, FindingLog, int]
    ) -> None:
        book, options, log, line = sink
        for name, cell in zip(state.header[2:], fields[2:], strict=False):
            unit = state.units.get(name, "W" if name.endswith("-power") else "")
            if not name.endswith("-power") or unit != "W":
                continue
            own = Boundary.PACKAGE if _PACKAGE.match(name) else Boundary.RAIL
            domain = Domain(
                boundary=boundary_of(options.boundary, own) if own is Boundary.PACKAGE else own,
                provenance=Provenance.MEASURED_COUNTER,
            )
            book.series(name, domain).add(time_ns, read_quantity(log, cell, line), line)
