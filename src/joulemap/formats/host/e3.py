"""Windows' Energy Estimation Engine (E3) in the text of xperf's dumper action: estimated energy per process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.logs import read_quantity
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import read_lines, split_fields
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["EtwE3Reader"]

_EVENT = "Microsoft-Windows-Energy-Estimation-Engine/QueryStats/EnergyEstimate"
_COMPONENTS = ("cpu", "soc", "display", "disk", "network", "mbb", "loss", "other", "emi")
_FIRST_ENERGY, _SPAN = 11, 21
_NAME = re.compile(r'"([^"]*)"')


class EtwE3Reader:
    """Reads E3's energy estimates. Each row is the energy of a process over the span that ends at its stamp.

    The unit is not in the file; it is taken as mJ, the unit in which SRUM writes the same fields. Rows of hardware
    meters (EMI) stand in a column of their own and are not added to the estimates.

    References:
        FORMATS_MORE, "ETW E3" (Microsoft's browser power test, event EnergyEstimate).
    """

    name: ClassVar[str] = "etw-e3"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for an event of the Energy Estimation Engine."""
        del path
        return 1.0 if b"Microsoft-Windows-Energy-Estimation-Engine/" in head else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per process and component that is not 0, on the trace's own clock.

        Raises:
            FormatError: no estimate.
        """
        del options
        log = FindingLog()
        book = SampleBook(Clock(name="etw", kind=ClockKind.COUNTER, resolution_ns=1e3), log)
        sums: dict[tuple[str, int, int], float] = {}
        lines: dict[tuple[str, int, int], int] = {}
        for line, text in read_lines(path):
            if not text.startswith(_EVENT + ","):
                continue
            fields = split_fields(text)
            if len(fields) <= _SPAN:
                log.add("row_ragged", f"an estimate with {len(fields)} fields", f"line {line}")
                continue
            try:
                end_ns = decimal_ns(fields[1], 1000)
                span_ns = decimal_ns(fields[_SPAN], 1_000_000)
            except ValueError:
                if not fields[1].isalpha():
                    log.add("stamp_unreadable", f"no time in {text[:60]!r}", f"line {line}")
                continue
            named = _NAME.search(text)
            process = named.group(1) if named else fields[9]
            for offset, component in enumerate(_COMPONENTS):
                energy = read_quantity(log, fields[_FIRST_ENERGY + offset], line)
                if energy > 0:
                    key = (f"{process} {component}", end_ns - span_ns, end_ns)
                    sums[key] = sums.get(key, 0.0) + energy
                    lines[key] = line
        domain = Domain(boundary=Boundary.NODE, provenance=Provenance.ESTIMATED, meaning=Meaning.STEP, scale=1e-3)
        for (name, start_ns, end_ns), energy in sums.items():
            book.series(name, domain).add_interval(start_ns, end_ns, energy, lines[name, start_ns, end_ns])
        if sums:
            log.add(
                "unit_not_written", "the energies are taken as mJ; the file does not say so", severity=Severity.INFO
            )
        return recording_of(self.name, path, book)
