"""CodeCarbon's emissions.csv: one row at the end (or at each flush) of a run, energies in kWh since its start."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.logs import local_clock, read_quantity, read_stamp
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import Row, head_lines, open_table, split_fields
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording

__all__ = ["CodeCarbonReader"]

_KWH = 3.6e6
_PARTS = {"cpu_energy": "cpu", "gpu_energy": "gpu", "ram_energy": "ram"}
_TOTAL = "energy_consumed"
_SAME_START_NS = 1_500_000_000  # the stamps are whole seconds


@dataclass(slots=True)
class _Run:
    """The flush before, of the run that is being read."""

    start_ns: int = 0
    end_ns: int = 0
    project: str = ""
    known: dict[str, tuple[int, float]] = field(default_factory=dict)


class CodeCarbonReader:
    """Reads CodeCarbon's table, of any of its header generations.

    Energies are totals since the start of the run; rows of one run that follow each other (same start) are
    differenced. The power columns are the last reading, not the mean, and are not used. Whether the processor was
    measured or a constant was assumed is not in the file, so every channel is an estimate; memory is always a model.
    Rows of several trackers at one time (one per rank) count the same machine once.

    References:
        FORMATS 2 and 3 (codecarbon), 4 (reports 2, 7, 25, 26, 27); recordings with 11 to 38 columns.
    """

    name: ClassVar[str] = "codecarbon"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a header with timestamp, duration, emissions and energy_consumed."""
        del path
        lines = head_lines(head, 1)
        labels = set(split_fields(lines[0])) if lines else set()
        return 0.95 if {"timestamp", "duration", "emissions", _TOTAL} <= labels else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns energies per component and in total, each over its run, and each row's total as stated.

        Raises:
            FormatError: a column is missing, or no row has an energy.
        """
        log = FindingLog()
        clock, shift_ns = local_clock(options, log, resolution_ns=1e9)
        book = SampleBook(clock, log)
        table = open_table(path, delimiter=",")
        at = {name: k for k, name in enumerate(table.header)}
        if not {"timestamp", "duration", _TOTAL} <= set(at):
            raise FormatError(
                f"{path.name} lacks timestamp, duration or energy", hint="Export again.", slug="column-missing"
            )
        run = _Run()
        metadata: dict[str, str] = {}
        for row in table.rows():
            stamp = read_stamp(log, row.fields[at["timestamp"]], row.line)
            duration_s = read_quantity(log, row.fields[at["duration"]], row.line)
            if stamp is None or not (math.isfinite(duration_s) and 0 < duration_s < 4e9):
                log.add("row_unreadable", "a row without an end or a duration; left out", f"line {row.line}")
                continue
            for key in ("codecarbon_version", "cpu_model", "gpu_model", "tracking_mode", "pue"):
                if key in at and row.fields[at[key]]:
                    metadata[key] = row.fields[at[key]]
            energy_kwh = {k: read_quantity(log, row.fields[at[k]], row.line) for k in (*_PARTS, _TOTAL) if k in at}
            self._check(row, at, energy_kwh, log)
            self._take(
                row, stamp.ns + shift_ns, duration_s, (book, run, energy_kwh, row.fields[at.get("project_name", 0)])
            )
        overlaps = [(name, "total") for name in _PARTS.values()]
        return recording_of(self.name, path, book, overlaps=overlaps, metadata=metadata)

    @staticmethod
    def _check(row: Row, at: dict[str, int], energy_kwh: dict[str, float], log: FindingLog) -> None:
        if energy_kwh.get("gpu_energy") == 0.0 and "gpu_power" in at:
            power_w = read_quantity(log, row.fields[at["gpu_power"]], row.line)
            if power_w > 0:
                energy_kwh["gpu_energy"] = math.nan
                log.add(
                    "gpu_energy_zero",
                    f"the GPU drew {power_w:g} W and its energy is 0: it has no energy counter; taken as missing",
                    f"line {row.line}",
                )
        parts = [energy_kwh[key] for key in _PARTS if key in energy_kwh]
        total = energy_kwh[_TOTAL]
        if len(parts) == 3 and all(map(math.isfinite, (*parts, total))) and abs(sum(parts) - total) > 1e-9 * abs(total):
            log.add(
                "stated_disagrees",
                f"cpu + gpu + ram is {sum(parts):.6g} kWh, energy_consumed {total:.6g} kWh",
                f"line {row.line}",
            )

    @staticmethod
    def _take(row: Row, end_ns: int, duration_s: float, sink: tuple[SampleBook, _Run, dict[str, float], str]) -> None:
        book, run, energy_kwh, project = sink
        start_ns = end_ns - round(duration_s * 1e9)
        again = project == run.project and abs(start_ns - run.start_ns) <= _SAME_START_NS and end_ns > run.end_ns
        if not again:
            run.known = {}
        for key, value in energy_kwh.items():
            name = _PARTS.get(key, "total")
            provenance = Provenance.MODELLED if name == "ram" else Provenance.ESTIMATED
            boundary = Boundary.BOARD if name == "gpu" else Boundary.PACKAGE if name == "cpu" else Boundary.NODE
            domain = Domain(
                boundary=Boundary.RAIL if name == "ram" else boundary,
                provenance=provenance,
                meaning=Meaning.STEP,
                scale=_KWH,
            )
            from_ns, before_kwh = run.known.get(key, (start_ns, 0.0))
            if math.isfinite(value):
                book.series(name, domain).add_interval(from_ns, end_ns, value - before_kwh, row.line)
                run.known[key] = (end_ns, value)
            if name == "total":
                book.state(f"line_{row.line}_energy_j", value * _KWH, domain, f"line {row.line}")
        run.start_ns, run.end_ns, run.project = start_ns, end_ns, project
        if again:
            book.log.add(
                "run_flushed", "a later flush of the run before; differenced", f"line {row.line}", Severity.INFO
            )
