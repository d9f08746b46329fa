"""Shelly's stored records (EMData): one row per minute with the energy of that minute and its extremes, per phase."""

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
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["ShellyReader"]

_ENERGY = re.compile(r"^([abcn])_total_act_energy$")
_RECORD_NS = 60_000_000_000
_RECORD_S = 60.0


class ShellyReader:
    """Reads ``/emdata/0/data.csv?add_keys=true``: watt-hours of each minute, checked against its extremes of power.

    References:
        shelly-api-docs, Gen2 EMData (records of 60 s, stamps of their start, Wh); FORMATS_MORE, "Smart plugs".
    """

    name: ClassVar[str] = "shelly"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a header with timestamp and the active energy of a phase."""
        del path
        lines = head_lines(head, 1)
        labels = split_fields(lines[0]) if lines else []
        return 1.0 if "timestamp" in labels and any(_ENERGY.match(label) for label in labels) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per phase, voltage and current as lanes.

        Raises:
            FormatError: no time column or no record.
        """
        log = FindingLog()
        book = SampleBook(Clock(name="plug", kind=ClockKind.UTC, resolution_ns=1e9), log)
        domain = Domain(
            boundary=boundary_of(options.boundary, Boundary.WALL),
            provenance=Provenance.MEASURED_COUNTER,
            meaning=Meaning.STEP,
            scale=3600.0,
        )
        table = open_table(path, delimiter=",")
        if table.index("timestamp") is None:
            raise FormatError(f"{path.name} has no timestamp column", hint="Use add_keys=true.", slug="column-missing")
        for row in table.rows():
            cells = dict(zip(table.header, row.fields, strict=True))
            try:
                start_ns = decimal_ns(cells["timestamp"])
            except ValueError:
                log.add("stamp_unreadable", f"{cells['timestamp']!r} is no epoch time", f"line {row.line}")
                continue
            for label, cell in cells.items():
                match = _ENERGY.match(label)
                if match is None:
                    continue
                phase = match.group(1)
                energy_wh = read_quantity(log, cell, row.line)
                book.series(f"phase {phase}", domain).add_interval(start_ns, start_ns + _RECORD_NS, energy_wh, row.line)
                low, high = (
                    read_quantity(log, cells.get(f"{phase}_{end}_act_power", ""), row.line) for end in ("min", "max")
                )
                mean_w = energy_wh * 3600.0 / _RECORD_S
                if mean_w < low - 0.05 * abs(low) - 0.5 or mean_w > high + 0.05 * abs(high) + 0.5:
                    log.add(
                        "stated_disagrees",
                        f"{mean_w:.4g} W over the minute lies outside its own extremes {low:g} to {high:g} W",
                        f"line {row.line}",
                    )
                for what, unit in (("voltage", "V"), ("current", "A")):
                    value = read_quantity(log, cells.get(f"{phase}_avg_{what}", ""), row.line)
                    book.lane(f"phase {phase} {what}", unit, start_ns + _RECORD_NS, value)
        return recording_of(self.name, path, book)
