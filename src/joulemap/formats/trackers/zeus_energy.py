"""Zeus' energy log: one row when a measurement window ends, with the joules of each card over it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import key_of, read_quantity
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, open_table
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind, Slice, Timeline

__all__ = ["ZeusEnergyReader"]

_COLUMN = re.compile(r"^(gpu|cpu|dram|soc)(\d*)_energy$")


class ZeusEnergyReader:
    """Reads Zeus' windows as slices, with the energy of each as a stated figure.

    A row is written when its window ends, so an outer window follows its inner ones and holds their energy: only
    windows that do not overlap become a trace.

    References:
        PyPI zeus-ml 0.11.0.post1 (a file written by it); FORMATS 4 (reports 4, 21, 53).
    """

    name: ClassVar[str] = "zeus-energy"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the header of the log."""
        del path
        lines = head_lines(head, 1)
        return 1.0 if lines and lines[0].startswith("start_time,window_name,elapsed_time") else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the windows, their energies, and a trace over the windows that do not overlap.

        Raises:
            FormatError: no window.
        """
        log = FindingLog()
        clock = Clock(name="host", kind=ClockKind.UTC)
        book = SampleBook(clock, log)
        table = open_table(path, delimiter=",")
        slices: list[Slice] = []
        for row in table.rows():
            cells = dict(zip(table.header, row.fields, strict=True))
            try:
                start_ns = decimal_ns(cells["start_time"])
                end_ns = start_ns + decimal_ns(cells["elapsed_time"])
            except (ValueError, KeyError):
                log.add("stamp_unreadable", "a window without start or length; left out", f"line {row.line}")
                continue
            if end_ns < start_ns:
                log.add("backward_stamp", "a window ends before it starts; left out", f"line {row.line}")
                continue
            window = cells.get("window_name", "")
            slices.append(Slice(name=window, start_ns=start_ns, end_ns=end_ns, track="zeus", kind="window"))
            for label, cell in cells.items():
                match = _COLUMN.match(label)
                if match is None:
                    continue
                own = Boundary.PACKAGE if match.group(1) == "cpu" else Boundary.BOARD
                own = Boundary.RAIL if match.group(1) == "dram" else own
                domain = Domain(
                    boundary=boundary_of(options.boundary, own) if match.group(1) == "gpu" else own,
                    provenance=Provenance.MEASURED_COUNTER,
                    meaning=Meaning.STEP,
                )
                energy_j = read_quantity(log, cell, row.line)
                name = "".join(match.groups())
                book.series(name, domain).add_interval(start_ns, end_ns, energy_j, row.line)
                key = f"window_{len(slices)}_{key_of(window)}_{name}_energy_j"
                book.state(key, energy_j, domain, f"line {row.line}")
        slices.sort(key=lambda piece: (piece.start_ns, -piece.end_ns))
        timelines = (Timeline.from_slices(clock, slices),) if slices else ()
        return recording_of(self.name, path, book, timelines=timelines)
