"""CSV exports of Nordic's Power Profiler app, 2020 to today.

References:
    nordicsemi/pc-nrfconnect-ppk at 5709279e: src/actions/exportChartAction.ts and Changelog.md (FORMATS_MORE,
    "PPK2 CSV").
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.errors import FormatError, InputError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import (
    FindingLog,
    TimedColumns,
    boundary_of,
    source_file,
    timed_trace,
    uniform_trace,
    voltage_of,
)
from joulemap.formats.ground.levels import level_records
from joulemap.formats.ground.text import DelimitedTable, head_lines, normal_label, open_table, split_fields
from joulemap.formats.ground.values import decimal_ns, parse_number
from joulemap.records.finding import Severity
from joulemap.records.recording import MarkerTrack, Recording
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel, Timeline

__all__ = ["Ppk2CsvReader"]

_TIME: Final = "timestamp(ms)"
_CURRENT: Final = "current(ua)"
_PACKED: Final = ("d0-d7", "bits")
_EDGES_MAX: Final = 500_000


@dataclass(slots=True)
class _Columns:
    """What the rows hold; a line's level is 0, 1, or nothing where the export says invalid."""

    time_ns: array[int] = field(default_factory=lambda: array("q"))
    current_a: array[float] = field(default_factory=lambda: array("d"))
    line: array[int] = field(default_factory=lambda: array("q"))
    changes: list[tuple[array[int], array[int]]] = field(
        default_factory=lambda: [(array("q"), array("b")) for _ in range(8)]
    )
    busy: set[int] = field(default_factory=set)


class Ppk2CsvReader:
    """Reads any of the exported column sets; the supply is not in the file and must be stated."""

    name = "ppk2-csv"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a header with ``Current(uA)`` and at least one other of the app's columns."""
        del path
        lines = head_lines(head, 1)
        labels = {normal_label(field) for field in split_fields(lines[0])} if lines else set()
        others = {_TIME, *_PACKED, *(f"d{k}" for k in range(8))}
        return 1.0 if _CURRENT in labels and labels - {_CURRENT} and labels - {_CURRENT} <= others else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power (current times the stated supply) and the digital inputs.

        Rows that the app left out, because their sample was lost, show as jumps of the time column: they are gaps.

        Raises:
            InputError: no supply was stated, or the export has neither a time column nor a stated rate.
            FormatError: no current column, or no row that parses.
        """
        log = FindingLog()
        voltage_v = voltage_of(options.voltage_v, path.name)
        table = open_table(path)
        if table.index(_CURRENT) is None:
            raise FormatError(
                f"{path.name}: the header has no column Current(uA)",
                hint="Export with the current.",
                slug="column-missing",
            )
        columns = _read(table, log)
        clock = Clock(name="ppk2", kind=ClockKind.MONOTONIC, resolution_ns=1e4)
        if table.index("bits") is not None:
            log.add(
                "bit_order_old",
                "an export of 2020-21: bits are reversed before app 3.1.1, digital columns wrong before 4.1.3",
                f"line {table.header_line}",
            )
        trace = _trace(columns, table, (options, voltage_v, clock), log)
        timelines, markers = _lines(columns, trace, clock, log)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=(trace,),
            timelines=timelines,
            markers=markers,
            metadata={"columns": ", ".join(table.header[:16]), "supply_v": f"{voltage_v:g}"},
            findings=log.findings(),
        )


def _read(table: DelimitedTable, log: FindingLog) -> _Columns:
    columns = _Columns()
    at_time, at_current = table.index(_TIME), table.index(_CURRENT)
    at_packed = table.index(*_PACKED)
    single = [table.index(f"d{k}") for k in range(8)]
    assert at_current is not None  # checked by the caller
    bad = 0
    for row in table.rows():
        try:
            time_ns = decimal_ns(row.fields[at_time].replace(",", "."), 1_000_000) if at_time is not None else 0
            current_a = parse_number(row.fields[at_current], table.decimal) * 1e-6
        except ValueError as error:
            bad += 1
            log.add("line_unreadable", f"the row is left out ({error})", f"line {row.line}")
            continue
        if row.ragged:
            log.add("row_ragged", f"the row has not {len(table.header)} fields", f"line {row.line}")
        columns.time_ns.append(time_ns)
        columns.current_a.append(current_a)
        columns.line.append(row.line)
        packed = row.fields[at_packed] if at_packed is not None else ""
        for number in range(8):
            at = single[number]
            text = row.fields[at] if at is not None else packed[number : number + 1]
            _follow(columns, number, text)
    if not columns.time_ns or bad > len(columns.time_ns):
        raise FormatError(
            f"{table.path.name}: {bad} rows do not parse and {len(columns.time_ns)} do",
            hint="Export the selection again; a selection of one sample exports no row.",
            slug="recording-empty",
        )
    return columns


def _follow(columns: _Columns, number: int, text: str) -> None:
    if number in columns.busy or text not in {"0", "1", "X"}:
        return
    level = 0 if text == "0" else 1  # X: both levels within the sample
    index, levels = columns.changes[number]
    if not levels or levels[-1] != level:
        index.append(len(columns.time_ns) - 1)
        levels.append(level)
        if len(index) > _EDGES_MAX:
            columns.busy.add(number)


def _trace(
    columns: _Columns, table: DelimitedTable, context: tuple[ReadOptions, float, Clock], log: FindingLog
) -> EnergyTrace:
    options, voltage_v, clock = context
    power_w = np.array(columns.current_a) * voltage_v
    timed = table.index(_TIME) is not None
    period_ns = _period_ns(columns, options)
    channel = Channel(
        name="power",
        boundary=boundary_of(options.boundary, Boundary.RAIL),
        provenance=Provenance.MEASURED_SAMPLED,
        kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=(period_ns or 0) * 1e-9),
    )
    if timed:
        return timed_trace(
            TimedColumns(
                time_ns=columns.time_ns,
                value=power_w,
                line=columns.line,
                stamp="start",
                gap_factor=1.5,
                period_ns=period_ns,
            ),
            channel=channel,
            clock=clock,
            log=log,
        )
    if period_ns is None:
        raise InputError(
            f"{table.path.name} was exported without its time column",
            hint="Say the sample rate with --rate, in Hz, or export with Timestamp.",
            slug="rate-needed",
        )
    log.add("rows_may_be_missing", "without a time column, samples that the app left out cannot be seen")
    return uniform_trace(power_w, channel=channel, clock=clock, start_ns=0, period_s=period_ns * 1e-9, log=log)


def _period_ns(columns: _Columns, options: ReadOptions) -> int | None:
    """Returns the sample period: the stated one, else the smallest step, since rows can only be missing."""
    if options.rate_hz is not None and 0 < options.rate_hz <= 1e9:
        return round(1e9 / options.rate_hz)
    steps = np.diff(np.array(columns.time_ns, np.int64))
    steps = steps[steps > 0]
    return int(steps.min()) if steps.size else None


def _lines(
    columns: _Columns, trace: EnergyTrace, clock: Clock, log: FindingLog
) -> tuple[tuple[Timeline, ...], tuple[MarkerTrack, ...]]:
    timelines, markers = [], []
    times_ns = np.array(columns.time_ns, np.int64)
    if trace.uniform and trace.period_s is not None:
        times_ns = np.round(np.arange(times_ns.size) * (trace.period_s * 1e9)).astype(np.int64)
    times_ns = np.maximum.accumulate(times_ns)
    for number, (index, level) in enumerate(columns.changes):
        if number in columns.busy:
            log.add(
                "line_too_busy",
                f"D{number} toggles more than {_EDGES_MAX} times and is left out",
                severity=Severity.INFO,
            )
            continue
        if not index:
            continue
        changes = (times_ns[np.array(index, np.int64)], np.array(level, np.int64))
        timeline, edges = level_records(f"D{number}", changes, clock=clock, end_ns=trace.end_ns, log=log)
        timelines += [timeline] if timeline is not None else []
        markers += [edges] if edges is not None else []
    return tuple(timelines), tuple(markers)
