"""Oscilloscope CSV: Rigol (two forms), Keysight, Siglent (three forms), PicoScope.

References:
    Public readers of such files (FORMATS_MORE, "Rigol CSV", "Keysight", "Siglent", "PicoScope").
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.logs import rows_unreadable
from joulemap.formats.ground.text import head_lines, read_lines, split_fields
from joulemap.formats.ground.values import UnitKind, decimal_ns, parse_number, parse_unit
from joulemap.formats.waveforms.mapping import Axis, Waveform, map_waveforms
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["ScopeCsvReader"]

_INFINITE: Final = ("\u221e", "-\u221e", "+\u221e")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Where the header ends and what the columns are.

    Args:
        vendor: for the metadata.
        rows_from: first line of data.
        names: of the channels.
        factors: to SI, per channel.
        kinds: of the channels' units; None when not said.
        time_ns_per: ns in one unit of the time column; 0 when it is an index.
        start_s: and
        step_s: of an index column, s.
        stated: number of rows that the header states; None when it does not.
    """

    vendor: str
    rows_from: int
    names: tuple[str, ...]
    factors: tuple[float, ...]
    kinds: tuple[UnitKind | None, ...]
    time_ns_per: int = 1_000_000_000
    start_s: float = 0.0
    step_s: float = 0.0
    stated: int | None = None


class ScopeCsvReader:
    """Reads the channels as lanes or, with a map and the probe's ratio, as power."""

    name = "scope-csv"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.9 for one of the known headers."""
        del path
        return 0.9 if _layout(head_lines(head, 24)) is not None else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns what the columns hold; a sample out of range (infinity) is missing.

        Raises:
            FormatError: no known header, or no row that parses.
            InputError: a map that does not fit.
        """
        log = FindingLog()
        numbered = [(number, text) for number, text in _first(path, 32) if text.strip()]
        layout = _layout([text for _, text in numbered])
        if layout is None:
            raise FormatError(
                f"{path.name}: no known oscilloscope header", hint="Use a table map.", slug="column-missing"
            )
        rows_from = numbered[layout.rows_from][0] if layout.rows_from < len(numbered) else 1 << 60
        time_ns, line, columns = _rows(path, rows_from, layout, log)
        if layout.stated is not None and layout.stated != len(line):
            log.add("count_disagrees", f"the header says {layout.stated} samples, the file holds {len(line)} rows")
        clock = Clock(name="scope", kind=ClockKind.MONOTONIC)
        channels = {
            name: Waveform(name=name, kind=kind, value=column)
            for name, kind, column in zip(layout.names, layout.kinds, columns, strict=True)
        }
        axis = _axis(layout, time_ns, line, clock)
        traces, lanes = map_waveforms(channels, axis, options, log)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=traces,
            lanes=lanes,
            metadata={"vendor": layout.vendor, "channels": ", ".join(layout.names)},
            findings=log.findings(),
        )


def _first(path: Path, count: int) -> list[tuple[int, str]]:
    lines = []
    for number, text in read_lines(path):
        lines.append((number, text))
        if len(lines) >= count:
            break
    return lines


def _unit(text: str) -> tuple[float, UnitKind | None]:
    try:
        unit = parse_unit(text)
    except ValueError:
        return 1.0, None
    return unit.factor, unit.kind


def _build(vendor: str, rows_from: int, names: Sequence[str], units: Sequence[str]) -> _Layout:
    pairs = [_unit(unit) for unit in units]
    unique = tuple(name if list(names).count(name) == 1 else f"{name} {at}" for at, name in enumerate(names))
    return _Layout(
        vendor=vendor,
        rows_from=rows_from,
        names=unique,
        factors=tuple(factor for factor, _ in pairs),
        kinds=tuple(kind for _, kind in pairs),
    )


def _layout(lines: list[str]) -> _Layout | None:
    """Returns the layout of the non-blank lines of a head; ``rows_from`` counts those lines."""
    rows = [split_fields(line) for line in lines]
    rows = [row[:-1] if len(row) > 1 and row[-1] == "" else row for row in rows]
    if len(rows) < 2 or len(rows[0]) < 2:
        return None
    for known in (_rigol, _keysight, _picoscope, _siglent):
        if (layout := known(rows)) is not None:
            return layout
    return None


def _rigol(rows: list[list[str]]) -> _Layout | None:
    first, second = rows[0], rows[1]
    if first[0] == "X" and first[-2:] == ["Start", "Increment"] and second[0] == "Sequence" and len(first) > 3:
        names = first[1:-2]
        if len(second) != len(first):
            return None
        try:
            start_s, step_s = float(second[-2]), float(second[-1])
        except ValueError:
            return None
        if not (math.isfinite(start_s) and abs(start_s) < 1e9 and 0 < step_s < 1e6):
            return None
        layout = _build("Rigol DS1000Z", 2, names, second[1:-2])
        return _Layout(
            vendor=layout.vendor, rows_from=2, names=layout.names, factors=layout.factors, kinds=layout.kinds,
            time_ns_per=0, start_s=start_s, step_s=step_s,
        )  # fmt: skip
    if first[0] == "Time" and first[1].startswith("X(") and second[0] == "Second":
        names = [name[2:-1] if name.startswith("X(") else name for name in first[1:]]
        return _build("Rigol DS1000E", 2, names, second[1:]) if len(second) == len(first) else None
    return None


def _keysight(rows: list[list[str]]) -> _Layout | None:
    first, second = rows[0], rows[1]
    good = first[0] == "x-axis" and second[0] == "second" and len(first) == len(second)
    return _build("Keysight", 2, first[1:], second[1:]) if good else None


def _picoscope(rows: list[list[str]]) -> _Layout | None:
    first, second = rows[0], rows[1]
    units = [part.strip("()") for part in second]
    if first[0] != "Time" or len(first) != len(second) or not all(part.startswith("(") for part in second):
        return None
    factor, kind = _unit(units[0])
    if kind is not UnitKind.TIME:
        return None
    layout = _build("PicoScope", 2, first[1:], units[1:])
    return _Layout(
        vendor=layout.vendor, rows_from=2, names=layout.names, factors=layout.factors, kinds=layout.kinds,
        time_ns_per=max(round(factor * 1e9), 1),
    )  # fmt: skip


def _siglent(rows: list[list[str]]) -> _Layout | None:
    keys = [row[0] for row in rows]
    if "Second" not in keys:
        return None
    at = keys.index("Second")
    head = {row[0]: row[1:] for row in rows[:at]}
    if not ({"Record Length", "Source"} & set(head)) or at == 0:
        return None
    units = rows[at][1:]
    names = head.get("Source", [])
    names = names if len(names) == len(units) else [f"CH{number + 1}" for number in range(len(units))]
    if units == ["Value"] * len(units):
        stated = {part.partition(":")[0]: part.partition(":")[2] for part in head.get("Vertical Units", [])}
        units = [stated.get(name, "") for name in names]
    layout = _build("Siglent", at + 1, names, units)
    digits = head.get("Record Length", [""])[0].rpartition(":")[2]
    return _Layout(
        vendor=layout.vendor, rows_from=at + 1, names=layout.names, factors=layout.factors, kinds=layout.kinds,
        stated=int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None,
    )  # fmt: skip


def _rows(
    path: Path, rows_from: int, layout: _Layout, log: FindingLog
) -> tuple[NDArray[np.int64], array[int], list[NDArray[np.float64]]]:
    time_ns, line = array("q"), array("q")
    columns = [array("d") for _ in layout.names]
    bad = over = 0
    for number, text in read_lines(path):
        if number < rows_from or not text.strip():
            continue
        fields = split_fields(text)
        try:
            if len(fields) <= len(columns):
                raise ValueError(f"{len(fields)} fields")  # noqa: TRY301  # one place for a bad row
            stamp_ns = decimal_ns(fields[0], layout.time_ns_per or 1)
            over += sum(part in _INFINITE for part in fields[1:])
            values = [math.nan if part in _INFINITE else parse_number(part) for part in fields[1 : len(columns) + 1]]
        except ValueError as error:
            bad += 1
            log.add("line_unreadable", f"the row is left out ({error})", f"line {number}")
            continue
        time_ns.append(stamp_ns)
        line.append(number)
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    if over:
        log.add("over_range", f"{over} samples are out of the scope's range (infinity): they are missing")
    if not line or bad > len(line):
        wanted = f"a time and a number for each of {', '.join(layout.names)[:200]}"
        raise rows_unreadable(path.name, (len(line), bad), log, wanted=wanted)
    scaled = [np.array(column) * factor for column, factor in zip(columns, layout.factors, strict=True)]
    return np.array(time_ns, np.int64), line, scaled


def _axis(layout: _Layout, time_ns: NDArray[np.int64], line: array[int], clock: Clock) -> Axis:
    if layout.time_ns_per:
        return Axis(clock=clock, time_ns=time_ns, line=line)
    seconds = layout.start_s + time_ns * layout.step_s  # the column is an index
    if np.abs(seconds).max() > 4e9:
        raise FormatError("the sample index leaves the range of time", hint="Export again.", slug="time-out-of-range")
    return Axis(clock=clock, time_ns=np.round(seconds * 1e9).astype(np.int64), line=line)
