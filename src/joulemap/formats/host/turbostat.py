"""turbostat: a tab table per interval whose long column names lose their tab, one row for the system, ragged rows."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import index_clock, read_quantity
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, Series, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["TurbostatReader"]

_NAMES = tuple(sorted((
    "usec", "Time_Of_Day_Seconds", "Package", "Node", "Die", "Core", "CPU", "APIC", "X2APIC", "Avg_MHz", "Busy%",
    "Bzy_MHz", "TSC_MHz", "IPC", "IRQ", "NMI", "SMI", "POLL", "CPU%c1", "CPU%c3", "CPU%c6", "CPU%c7", "CoreTmp",
    "CoreThr", "PkgTmp", "GFX%rc6", "GFXMHz", "GFXAMHz", "SAM%mc6", "SAMMHz", "SAMAMHz", "Totl%C0", "Any%C0", "GFX%C0",
    "CPUGFX%", "Pkg%pc2", "Pkg%pc3", "Pkg%pc6", "Pkg%pc7", "Pkg%pc8", "Pkg%pc9", "Pk%pc10", "CPU%LPI", "SYS%LPI",
    "PkgWatt", "CorWatt", "GFXWatt", "RAMWatt", "SysWatt", "PKG_%", "RAM_%", "Pkg_J", "Cor_J", "GFX_J", "RAM_J",
    "Sys_J", "UncMHz", "Mod%c6", "CPU%c1e", "Die%c6", "C1", "C1E", "C3", "C6", "C7", "C8", "C10", "C1%", "C1E%", "C3%",
    "C6%", "C7%", "C8%", "C9%", "C10%", "C1-", "C1+", "LLCkRPS", "LLC%hit",
), key=len, reverse=True))  # fmt: skip
_POWER = {
    "PkgWatt": ("package", Meaning.POWER), "CorWatt": ("cores", Meaning.POWER), "GFXWatt": ("graphics", Meaning.POWER),
    "RAMWatt": ("dram", Meaning.POWER), "SysWatt": ("system", Meaning.POWER), "Pkg_J": ("package", Meaning.STEP),
    "Cor_J": ("cores", Meaning.STEP), "GFX_J": ("graphics", Meaning.STEP), "RAM_J": ("dram", Meaning.STEP),
    "Sys_J": ("system", Meaning.STEP),
}  # fmt: skip
_BOUNDARY = {"package": Boundary.PACKAGE, "system": Boundary.NODE}
_LANES = {"Busy%": ("cpu utilisation", "1", "%"), "Bzy_MHz": ("busy clock", "Hz", "MHz"),
          "PkgTmp": ("package temperature", "degC", ""), "CoreTmp": ("core temperature", "degC", "")}  # fmt: skip
_FORKED = re.compile(r"^(\d+\.\d+) sec$")
_OVERLAPS = [("cores", "package"), ("graphics", "package"), ("package", "system"), ("dram", "system"),
             ("cores", "system"), ("graphics", "system")]  # fmt: skip


def split_names(token: str) -> list[str]:
    """Returns the column names in one token: turbostat leaves out the tab after a name of eight or more characters."""
    names: list[str] = []
    rest = token
    while rest and rest not in _NAMES:
        known = next((name for name in _NAMES if rest.startswith(name) and len(rest) > len(name)), None)
        if known is None:
            return [token]  # a name that nobody told us: kept whole, and the count of values decides
        names.append(known)
        rest = rest[len(known) :]
    return [*names, rest]


class TurbostatReader:
    """Reads turbostat's system rows (``-``): the sum over packages, as turbostat adds it.

    Watts are means over the interval; with ``--Joules`` the columns are energies of the interval. In forked mode one
    table follows the line ``N sec``, and SysWatt is bogus before Linux commit 44207567fa64: it is left out.

    References:
        FORMATS 3 (turbostat); Linux tools/power/x86/turbostat/turbostat.8.
    """

    name: ClassVar[str] = "turbostat"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a tab table with turbostat's columns."""
        del path
        for text in head_lines(head, 40):
            tokens = text.split("\t")
            names = {name for token in tokens for name in split_names(token.strip())}
            if len(tokens) > 2 and len(names & set(_NAMES)) >= 4 and names & {"Avg_MHz", "Busy%", "PkgWatt", "Pkg_J"}:
                return 0.95
        return 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per power column of the system rows.

        Raises:
            FormatError: no system row with a power, or a header whose names do not fit its values.
            InputError: several intervals without a time column and no stated rate.
        """
        log = FindingLog()
        rows, forked_s = _system_rows(path, log)
        timed = all("Time_Of_Day_Seconds" in cells for _, cells in rows)
        if timed:
            clock, period_ns = Clock(name="host", kind=ClockKind.UTC, resolution_ns=1e3), 0
        elif forked_s is not None and len(rows) == 1:
            clock, period_ns = Clock(name="turbostat", kind=ClockKind.MONOTONIC), decimal_ns(forked_s)
        else:
            clock, period_ns = index_clock(options, path.name)
        book = SampleBook(clock, log)
        for number, (line, cells) in enumerate(rows):
            try:
                time_ns = decimal_ns(cells["Time_Of_Day_Seconds"]) if timed else (number + 1) * period_ns
            except ValueError:
                log.add("stamp_unreadable", f"{cells['Time_Of_Day_Seconds']!r} is no time", f"line {line}")
                continue
            for name, cell in cells.items():
                if name in _LANES:
                    lane, unit, written = _LANES[name]
                    book.lane(lane, unit, time_ns, read_quantity(log, cell, line, written))
                if name not in _POWER:
                    continue
                if name.startswith("Sys") and forked_s is not None:
                    log.add(
                        "system_power_bogus", "SysWatt of a forked run is not the run's mean; left out", f"line {line}"
                    )
                    continue
                series = self._series(book, name, options)
                if not timed:
                    series.first_ns = 0
                series.add(time_ns, read_quantity(log, cell, line), line)
        return recording_of(self.name, path, book, overlaps=_OVERLAPS)

    @staticmethod
    def _series(book: SampleBook, column: str, options: ReadOptions) -> Series:
        name, meaning = _POWER[column]
        own = _BOUNDARY.get(name, Boundary.RAIL)
        boundary = boundary_of(options.boundary, own) if name == "package" else own
        return book.series(name, Domain(boundary=boundary, provenance=Provenance.MEASURED_COUNTER, meaning=meaning))


def _system_rows(path: Path, log: FindingLog) -> tuple[list[tuple[int, dict[str, str]]], str | None]:
    """Returns the system rows as (line, cells), and the seconds of a forked run as written."""
    header: list[str] = []
    forked_s: str | None = None
    rows: list[tuple[int, dict[str, str]]] = []
    for line, text in read_lines(path):
        forked = _FORKED.match(text.strip())
        if forked is not None:
            forked_s = forked.group(1)
            continue
        tokens = [token.strip() for token in text.rstrip().split("\t")]
        names = [name for token in tokens for name in split_names(token)]
        if len(names) > 2 and sum(name in _NAMES for name in names) * 2 > len(names):
            header = names
            continue
        if not header or len(tokens) < 2:
            continue
        identity = [
            token
            for name, token in zip(header, tokens, strict=False)
            if name in ("Package", "Core", "CPU", "Node", "Die")
        ]
        if identity and set(identity) != {"-"}:
            continue  # a thread: power only on the first of a package, and the rows are ragged
        if len(tokens) != len(header):
            raise FormatError(
                f"{path.name}, line {line}: {len(tokens)} values under {len(header)} column names",
                hint="Show only the columns that you need, with --show.",
                slug="columns-unclear",
            )
        cells = dict(zip(header, tokens, strict=True))
        if not any(math.isfinite(read_quantity(log, cells[name], line)) for name in _POWER if name in cells):
            log.add("no_power", "a system row without power columns", f"line {line}")
        rows.append((line, cells))
    if not rows:
        raise FormatError(
            f"{path.name} holds no system row", hint="Let turbostat finish an interval.", slug="recording-empty"
        )
    return rows, forked_s
