"""dcgmi dmon: fixed-width table of DCGM fields per entity, without any time column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import index_clock, read_quantity
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording

__all__ = ["DcgmiDmonReader"]

_ENTITY = re.compile(r"^(GPU|GPU-I|GPU-CI|CPU|CPU Core|Switch)\s+(\d+)\s")
_POWER = {"POWER": "", "PWRINS": " instant", "POWINST": " instant", "PWRAVG": " average"}
_LANES = {
    "SMCLK": ("sm clock", "Hz", "MHz"),
    "MMCLK": ("memory clock", "Hz", "MHz"),
    "TMPTR": ("temperature", "degC", ""),
    "GPUTL": ("utilisation", "1", "%"),
    "MCUTL": ("memory utilisation", "1", "%"),
}


class DcgmiDmonReader:
    """Reads dcgmi dmon tables by column position: a blank cell shifts every field of a row that is split.

    Rows of MIG instances repeat the power of the whole card and are left out. TOTEC is the energy counter (mJ); it is
    kept beside the power readings as its own channel and never merged with them.

    References:
        NVIDIA/DCGM 72fa3fea, dcgmi/DeviceMonitor.cpp and dcgmlib/src/dcgm_fields.cpp; FORMATS 4 (reports 19, 20).
    """

    name: ClassVar[str] = "dcgmi-dmon"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the header ``#Entity``."""
        del path
        lines = head_lines(head, 1)
        return 1.0 if lines and lines[0].startswith("#Entity") else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power and energy counter of each card, on a clock of polls at the stated rate.

        Raises:
            FormatError: no reading.
            InputError: no poll rate was stated.
        """
        log = FindingLog()
        clock, period_ns = index_clock(options, path.name)
        book = SampleBook(clock, log)
        boundary = boundary_of(options.boundary, Boundary.BOARD)
        power = Domain(boundary=boundary, polled=True)
        counter = Domain(boundary=boundary, meaning=Meaning.COUNTER, scale=1e-3)
        bounds: list[tuple[str, int, int]] = []
        polls: dict[str, int] = {}
        overlaps: set[tuple[str, str]] = set()
        for line, text in read_lines(path):
            if text.startswith("#Entity"):
                bounds = _bounds(text)
                continue
            entity = _ENTITY.match(text)
            if entity is None or not bounds:
                continue  # units, blanks and the message of a signal
            kind, number = entity.groups()
            if kind not in ("GPU", "CPU"):
                log.add(
                    "mig_whole_device", f"rows of {kind} repeat the whole card; left out", f"line {line}", Severity.INFO
                )
                continue
            card = f"{kind.lower()}{number}"
            polls[card] = polls.get(card, -1) + 1
            time_ns = polls[card] * period_ns
            for name, first, last in bounds:
                cell = text[first:last].strip()
                if cell.endswith("..."):
                    log.add("value_unreadable", f"{name} is cut short ({cell}); taken as missing", f"line {line}")
                    cell = ""
                if name in _POWER:
                    value = read_quantity(log, cell, line)
                    book.series(card + _POWER[name], power).add(time_ns, value, line)
                    overlaps |= {(card + _POWER[name], card)} if _POWER[name] else set()
                elif name == "TOTEC":
                    book.series(f"{card} counter", counter).add(time_ns, read_quantity(log, cell, line), line)
                    overlaps.add((card, f"{card} counter"))
                elif name in _LANES:
                    lane, unit, written = _LANES[name]
                    book.lane(f"{card} {lane}", unit, time_ns, read_quantity(log, cell, line, written))
        return recording_of(self.name, path, book, overlaps=sorted(overlaps))


def _bounds(header: str) -> list[tuple[str, int, int]]:
    starts = [(match.group(), match.start()) for match in re.finditer(r"\S+", header)][1:]
    ends = [start for _, start in starts[1:]] + [1 << 16] * bool(starts)  # a header may name no column
    return [(name, start, end) for (name, start), end in zip(starts, ends, strict=True)]
