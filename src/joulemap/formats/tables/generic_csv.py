"""Any CSV, by the map that the user states, or by a heading that leaves no doubt.

References:
    RFC 4180; the decimal comma and the semicolon of European spreadsheets (FORMATS 3).
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.logs import rows_unreadable
from joulemap.formats.ground.text import DelimitedTable, guess_delimiter, head_lines, open_table, split_fields
from joulemap.formats.ground.values import Stamp, decimal_ns, parse_number, parse_stamp
from joulemap.formats.tables.mapping import ColumnMap, TimeForm, build_traces, say_heading, table_clock, table_map
from joulemap.records.recording import Recording

__all__ = ["GenericCsvReader"]

_SURE: Final = 0.1


class GenericCsvReader:
    """Reads a delimited table with one header line; it claims what no other reader knows."""

    name = "csv"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.1 for a header of at least two labels over rows of as many fields with a number in them."""
        del path
        lines = head_lines(head, 4)
        if len(lines) < 2:
            return 0.0
        delimiter = guess_delimiter(lines)
        header, row = split_fields(lines[0], delimiter), split_fields(lines[1], delimiter)
        named = len(header) > 1 and all(label and not _numeric(label) for label in header if label)
        same = abs(len(row) - len(header)) <= 1
        return _SURE if named and same and any(map(_numeric, row)) and not lines[0].startswith(("{", "[", "<")) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the rails of the map.

        Raises:
            InputError: no map, or one that does not fit; the hint shows what the header suggests.
            FormatError: no table, or no row that parses.
        """
        log = FindingLog()
        table = open_table(path)
        mapped = table_map(table.header, options, path.name)
        say_heading(mapped, log)
        time_ns, line, values, zoned = _read(table, mapped, options, log)
        clock = table_clock(mapped.time, zoned=zoned)
        times = (np.array(time_ns, np.int64) if mapped.time is not None else None, clock, line)
        quanta = {role: table.resolution(mapped.columns[role]) * mapped.factors[role] for role in values}
        traces = build_traces(
            {role: np.array(column) for role, column in values.items()}, times, options, log, quanta=quanta
        )
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=traces,
            metadata={"columns": ", ".join(table.header[:32]), "decimal": table.decimal},
            findings=log.findings(),
        )


def _numeric(text: str) -> bool:
    try:
        parse_number(text, "," if "," in text else ".")
    except ValueError:
        return False
    return True


def _time(text: str, form: TimeForm, decimal: str) -> tuple[int, Stamp | None]:
    if form.unit_ns:
        return decimal_ns(text.replace(",", ".") if decimal == "," else text, form.unit_ns), None
    stamp = parse_stamp(text.replace(",", "."))
    return stamp.ns - (stamp.offset_s or 0) * 1_000_000_000, stamp


def _wanted(table: DelimitedTable, mapped: ColumnMap) -> str:
    sign = "decimal comma" if table.decimal == "," else "decimal point"
    numbers = [table.header[at] for role, at in mapped.columns.items() if role != "time"]
    time = "" if mapped.time is None else f"a time in {table.header[mapped.columns['time']]!r} "
    if mapped.time is not None:
        time += "as a number, " if mapped.time.unit_ns else "like 2026-01-02T03:04:05.678, "
    return f"{time}a number with a {sign} in {', '.join(map(repr, numbers))}; else state another map"


def _read(
    table: DelimitedTable, mapped: ColumnMap, options: ReadOptions, log: FindingLog
) -> tuple[array[int], array[int], dict[str, array[float]], bool | None]:
    roles = {role: (at, mapped.factors[role]) for role, at in mapped.columns.items() if role != "time"}
    values: dict[str, array[float]] = {role: array("d") for role in roles}
    time_ns, line = array("q"), array("q")
    zones: set[bool] = set()
    shift_ns = round(options.utc_offset_s * 1e9) if options.utc_offset_s is not None else None
    bad = 0
    for row in table.rows():
        try:
            stamp_ns, stamp = 0, None
            if mapped.time is not None:
                stamp_ns, stamp = _time(row.fields[mapped.columns["time"]], mapped.time, table.decimal)
            parsed = {
                role: parse_number(row.fields[at], table.decimal) * factor for role, (at, factor) in roles.items()
            }
        except ValueError as error:
            bad += 1
            log.add("line_unreadable", f"the row is left out ({error})", f"line {row.line}")
            continue
        if row.ragged:
            log.add("row_ragged", f"the row has not {len(table.header)} fields", f"line {row.line}")
        if stamp is not None:
            local = stamp.offset_s is None
            zones.add(not local or shift_ns is not None)
            stamp_ns -= shift_ns if local and shift_ns is not None else 0
        time_ns.append(stamp_ns)
        line.append(row.line)
        for role, value in parsed.items():
            values[role].append(value)
    if len(zones) > 1:
        raise FormatError(
            f"{table.path.name}: some stamps have a zone while others have none",
            hint="State the zone of the others with --utc-offset.",
            slug="recording-empty",
        )
    if not line or bad > len(line):
        raise rows_unreadable(table.path.name, (len(line), bad), log, wanted=_wanted(table, mapped))
    return time_ns, line, values, zones.pop() if zones else None
