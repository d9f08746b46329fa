"""perf stat: RAPL energy events of a run, of its intervals or of repeated runs, in any of perf's three forms."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import key_of
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_head
from joulemap.formats.host.perf_rows import PerfRow, form_of, read_rows
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording, StatedTotal
from joulemap.trace import Clock, ClockKind

__all__ = ["PerfStatReader"]

_ENERGY = re.compile(r"^(?:power|power_core)/(energy-(\w+))/|^(energy-(pkg|cores|ram|gpu|psys))$")
_NAMES = {"pkg": "package", "cores": "cores", "ram": "dram", "gpu": "graphics", "psys": "platform"}
_BOUNDARY = {"package": Boundary.PACKAGE, "platform": Boundary.NODE}
_STARTED = re.compile(rb"^# started on (.+?)\r?$", re.MULTILINE)


class PerfStatReader:
    """Reads perf stat's output.

    With ``-I`` each value is the energy (or count) since the last print; the last interval is shorter. A run without
    intervals gives stated energies, and a trace of one interval when perf says how long it took. ``<not counted>``
    and ``<not supported>`` are missing, never 0. psys contains package and dram; cores and gpu lie in the package.

    References:
        FORMATS 3 (perf stat), FORMATS_MORE; Linux Documentation/admin-guide/perf and tools/perf (CSV and JSON format).
    """

    name: ClassVar[str] = "perf-stat"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.9 for perf's own banner above a row, 0.6 for a row alone."""
        del path
        lines = head_lines(head, 12)
        if not form_of(lines):
            return 0.0
        own = any(text.startswith("# started on") or "Performance counter stats" in text for text in lines)
        return 0.9 if own or '"counter-value"' in " ".join(lines[:3]) else 0.6

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns energies as traces or stated figures, other counters as lanes.

        Raises:
            FormatError: no counter that was counted.
        """
        log = FindingLog()
        head = read_head(path)
        form = form_of(head_lines(head, 12))
        if not form:
            raise FormatError(f"{path.name} is no output of perf stat", hint="Use perf stat -o.", slug="format-unknown")
        book = SampleBook(Clock(name="perf start", kind=ClockKind.MONOTONIC), log)
        started = _STARTED.search(head)
        metadata = {"started_on": started.group(1).decode("utf-8", "replace")} if started else {}
        whole: list[PerfRow] = []
        last_ns: dict[tuple[str, str], int] = {}
        for row in read_rows(path, form, log):
            if row.time_ns is None:
                whole.append(row)
                continue
            key = (row.event, row.where)
            start_ns = last_ns.get(key, 0)
            last_ns[key] = row.time_ns
            self._interval(row, start_ns, (book, options, log))
        self._whole(whole, (book, options, log))
        names = book.names
        suffixes = {name.partition(" ")[2] for name in names}
        overlaps = [
            (_full(inner, suffix), _full(outer, suffix))
            for suffix in suffixes
            for inner, outer in (("cores", "package"), ("graphics", "package"), ("package", "platform"),
                                 ("dram", "platform"), ("cores", "platform"), ("graphics", "platform"))
        ]  # fmt: skip
        return recording_of(self.name, path, book, overlaps=overlaps, metadata=metadata)

    @staticmethod
    def _interval(row: PerfRow, start_ns: int, sink: tuple[SampleBook, ReadOptions, FindingLog]) -> None:
        book, options, log = sink
        assert row.time_ns is not None  # asked by the caller
        name = _energy_name(row)
        if name is not None:
            book.series(name, _domain(name, options)).add_interval(start_ns, row.time_ns, row.value, row.line)
            return
        span_s = (row.time_ns - start_ns) * 1e-9
        if span_s <= 0:
            log.add("backward_stamp", f"{row.event}: time does not move forward", f"line {row.line}")
        elif row.unit == "msec":
            book.lane(_full(row.event, row.where), "1", row.time_ns, row.value * 1e-3 / span_s)
        else:
            book.lane(_full(f"{row.event} rate", row.where), "Hz", row.time_ns, row.value / span_s)

    @staticmethod
    def _whole(rows: list[PerfRow], sink: tuple[SampleBook, ReadOptions, FindingLog]) -> None:
        book, options, log = sink
        elapsed = next((row.value for row in rows if row.elapsed), None)
        for row in rows:
            name = _energy_name(row)
            if name is None or not math.isfinite(row.value):
                if not row.elapsed and math.isfinite(row.value):
                    book.totals.append(_count(row))
                elif not row.elapsed:
                    log.add("not_counted", f"{row.event} was not counted", f"line {row.line}", Severity.INFO)
                continue
            domain = _domain(name, options)
            book.state(f"{key_of(name)}_energy_j", row.value, domain, f"line {row.line}")
            if row.spread is not None:
                log.add(
                    "mean_of_runs",
                    f"{name}: {row.value:g} J is the mean of repeated runs, with a standard error of {row.spread:.2%}",
                    f"line {row.line}",
                    Severity.INFO,
                )
            elif elapsed:
                book.series(name, domain).add_interval(0, round(elapsed * 1e9), row.value, row.line)


def _energy_name(row: PerfRow) -> str | None:
    match = _ENERGY.match(row.event)
    if match is None or row.unit not in ("Joules", ""):
        return None
    kind = match.group(2) or match.group(4)
    return _full(_NAMES.get(kind, kind), row.where)


def _count(row: PerfRow) -> StatedTotal:
    return StatedTotal(
        key=f"{key_of(_full(row.event, row.where))}_{_unit_key(row)}",
        value=row.value * _scale(row),
        provenance=Provenance.MEASURED_COUNTER,
        span=f"line {row.line}",
    )


def _full(name: str, where: str) -> str:
    return f"{name} {where}" if where else name


def _unit_key(row: PerfRow) -> str:
    return {"msec": "s", "Joules": "j"}.get(row.unit, "count")


def _scale(row: PerfRow) -> float:
    return 1e-3 if row.unit == "msec" else 1.0


def _domain(name: str, options: ReadOptions) -> Domain:
    own = _BOUNDARY.get(name.partition(" ")[0], Boundary.RAIL)
    boundary = boundary_of(options.boundary, own) if own is Boundary.PACKAGE else own
    return Domain(boundary=boundary, provenance=Provenance.MEASURED_COUNTER, meaning=Meaning.STEP)
