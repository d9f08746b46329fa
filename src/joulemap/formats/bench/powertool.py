"""CSV exports of Monsoon's PowerTool: averages per row, units in the header.

References:
    Public readers of such files (FORMATS_MORE, "Monsoon PowerTool CSV").
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import (
    FindingLog,
    TimedColumns,
    boundary_of,
    sampled_channel,
    source_file,
    timed_trace,
    voltage_of,
)
from joulemap.formats.ground.text import DelimitedTable, Row, head_lines, open_table, split_fields
from joulemap.formats.ground.values import decimal_ns, header_unit, parse_number, parse_unit
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind, EnergyTrace

__all__ = ["PowerToolReader"]

_COLUMN: Final = re.compile(r"(main|usb|aux) avg (current|power|voltage)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Column:
    """Where a quantity of a rail stands and what it is multiplied by."""

    at: int
    factor: float


class PowerToolReader:
    """Reads the power column of each rail, or current times voltage where there is none."""

    name = "powertool-csv"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a header with ``Time (s)`` and ``Main Avg Current`` or its like."""
        del path
        lines = head_lines(head, 1)
        labels = split_fields(lines[0]) if lines else []
        named = any(_COLUMN.match(label) for label in labels)
        return 1.0 if named and labels[0].lower().startswith("time") else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per rail.

        Raises:
            FormatError: no time or no rail column, or no row that parses.
            InputError: a rail has a current only and no supply was stated.
        """
        log = FindingLog()
        table = open_table(path)
        rails, time_unit_ns = _columns(table)
        columns = _read(table, rails, time_unit_ns, log)
        time_ns, line, values = columns
        clock = Clock(name="monsoon", kind=ClockKind.MONOTONIC, resolution_ns=1e5)
        traces: list[EnergyTrace] = []
        steps = np.diff(np.array(time_ns, np.int64))
        window_s = float(np.median(steps)) * 1e-9 if steps.size else 0.0
        named = {rail: {name: np.array(values[rail, name]) for name in columns} for rail, columns in rails.items()}
        for rail, power_w in _powers(named, path.name, options, log).items():
            quiet = log if not traces else FindingLog()
            traces.append(
                timed_trace(
                    TimedColumns(time_ns=time_ns, value=power_w, line=line, stamp="start"),
                    channel=sampled_channel(rail, boundary_of(options.boundary, Boundary.RAIL), window_s),
                    clock=clock,
                    log=quiet,
                )
            )
        if not traces:
            raise FormatError(f"{path.name} holds no power", hint="Export current or power.", slug="column-missing")
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=tuple(traces),
            metadata={"columns": ", ".join(table.header[:24])},
            findings=log.findings(),
        )


def _columns(table: DelimitedTable) -> tuple[dict[str, dict[str, _Column]], int]:
    time_name, time_unit = header_unit(table.header[0])
    if not time_name.lower().startswith("time"):
        raise FormatError(
            f"{table.path.name}: the first column is {table.header[0]!r}, not the time",
            hint="Export with the time column.",
            slug="column-missing",
        )
    rails: dict[str, dict[str, _Column]] = {}
    defaults = {"current": "mA", "power": "mW", "voltage": "V"}
    for at, label in enumerate(table.header):
        name, unit = header_unit(label)
        if found := _COLUMN.fullmatch(name):
            quantity = found[2].lower()
            factor = (unit or parse_unit(defaults[quantity])).factor
            rails.setdefault(found[1].lower(), {})[quantity] = _Column(at, factor)
    if not rails:
        raise FormatError(
            f"{table.path.name}: no column such as 'Main Avg Current (mA)'", hint="Export again.", slug="column-missing"
        )
    return rails, round((time_unit or parse_unit("s")).factor * 1e9)


def _read(
    table: DelimitedTable, rails: dict[str, dict[str, _Column]], time_unit_ns: int, log: FindingLog
) -> tuple[array[int], array[int], dict[tuple[str, str], array[float]]]:
    places = {(rail, name): column for rail, columns in rails.items() for name, column in columns.items()}
    values: dict[tuple[str, str], array[float]] = {key: array("d") for key in places}
    time_ns: array[int] = array("q")
    line: array[int] = array("q")
    bad = 0
    for row in table.rows():
        try:
            stamp_ns = decimal_ns(row.fields[0], time_unit_ns)
            parsed = {key: _cell(row, column, table.decimal) for key, column in places.items()}
        except ValueError as error:
            bad += 1
            log.add("line_unreadable", f"the row is left out ({error})", f"line {row.line}")
            continue
        time_ns.append(stamp_ns)
        line.append(row.line)
        for key, value in parsed.items():
            values[key].append(value)
    if not time_ns or bad > len(time_ns):
        raise FormatError(
            f"{table.path.name}: {bad} rows do not parse and {len(time_ns)} do",
            hint="Export again.",
            slug="recording-empty",
        )
    return time_ns, line, values


def _cell(row: Row, column: _Column, decimal: str) -> float:
    return parse_number(row.fields[column.at], decimal) * column.factor


def _powers(
    rails: dict[str, dict[str, NDArray[np.float64]]], name: str, options: ReadOptions, log: FindingLog
) -> dict[str, NDArray[np.float64]]:
    """Returns the power of each rail that has one, W.

    The app writes the columns of the USB and aux channels whether or not they are wired: an empty rail, or a current
    without a voltage beside a rail that has power, is said and left out.
    """
    powers: dict[str, NDArray[np.float64]] = {}
    lone: dict[str, NDArray[np.float64]] = {}
    for rail, columns in rails.items():
        filled = {quantity: values for quantity, values in columns.items() if not np.isnan(values).all()}
        if "power" in filled:
            powers[rail] = filled["power"]
        elif "current" in filled and "voltage" in filled:
            powers[rail] = filled["current"] * filled["voltage"]
        elif "current" in filled:
            lone[rail] = filled["current"]
        elif not filled:
            log.add("channel_empty", f"all values of the {rail} channel are missing", severity=Severity.INFO)
    for rail, current_a in lone.items():
        if powers and options.voltage_v is None:
            log.add("channel_without_voltage", f"the {rail} current has no voltage and is left out")
        else:
            powers[rail] = current_a * voltage_of(options.voltage_v, name)
    return powers
