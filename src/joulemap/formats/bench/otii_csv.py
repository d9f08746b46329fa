"""CSV exports of Otii 3: one file per channel, the channel and the device in the file's name, no unit in it.

References:
    PyPI otiio 0.1.1 ``export.py`` and two files that it wrote (``generated/otii``); FORMATS_MORE, "Otii 3 CSV".
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import (
    FindingLog,
    TimedColumns,
    boundary_of,
    sampled_channel,
    sources_of,
    timed_trace,
    voltage_of,
)
from joulemap.formats.ground.levels import hold_value
from joulemap.formats.ground.text import HEAD_B, open_bytes, open_table
from joulemap.formats.ground.values import UnitKind, decimal_ns, parse_number, parse_unit
from joulemap.records.recording import Lane, Recording
from joulemap.trace import Clock, ClockKind, EnergyTrace

__all__ = ["OtiiCsvReader"]

_HEADER: Final = re.compile(rb'^(\xef\xbb\xbf)?"Timestamp","Value"\r?\n')
_NAME: Final = re.compile(r"(?P<channel>.+?) - (?P<device>.+)\.csv", re.IGNORECASE)
_WORDS: Final = {
    "current": (UnitKind.CURRENT, "A"),
    "voltage": (UnitKind.VOLTAGE, "V"),
    "power": (UnitKind.POWER, "W"),
    "temperature": (UnitKind.TEMPERATURE, "degC"),
}
_FILES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class _Series:
    """One file."""

    path: Path
    device: str
    rail: str
    kind: UnitKind | None
    time_ns: NDArray[np.int64]
    value: NDArray[np.float64]
    line: array[int]


class OtiiCsvReader:
    """Reads one exported channel, or a folder of them: current and voltage of one rail become power."""

    name = "otii-csv"
    certainty = Certainty.WRITTEN
    folders = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.9 for the quoted two-column header, in the file or in any file of the folder."""
        if not head and path.is_dir():
            return 0.9 if _members(path) else 0.0
        return 0.9 if _HEADER.match(head) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power per rail; temperatures and what has no power become lanes.

        Raises:
            InputError: a lone current without a stated supply, or a file whose name does not say what it holds.
            FormatError: no row parses.
        """
        log = FindingLog()
        paths = _members(path) if path.is_dir() else [path]
        if not paths:
            raise InputError(f"{path.name} holds no Otii export", hint="Give the folder.", slug="recording-incomplete")
        series = [_read(file, options, log) for file in paths]
        clock = Clock(name="otii", kind=ClockKind.MONOTONIC, resolution_ns=1000.0)
        traces: list[EnergyTrace] = []
        lanes: list[Lane] = []
        boundary = boundary_of(options.boundary, Boundary.RAIL)
        for rail in dict.fromkeys((one.device, one.rail) for one in series):
            members = {one.kind: one for one in series if (one.device, one.rail) == rail}
            name = " ".join(part for part in (rail[0], rail[1]) if part) or "power"
            trace = _power(members, (name, boundary, clock), options, log)
            traces += [trace] if trace is not None else []
            if trace is None or UnitKind.TEMPERATURE in members:
                lanes += [_lane(one, clock) for one in members.values() if one.kind is not UnitKind.CURRENT]
        if not traces and not lanes:
            raise FormatError(f"{path.name} holds no samples", hint="Export again.", slug="recording-empty")
        return Recording(
            format=self.name,
            sources=sources_of(paths, path if path.is_dir() else path.parent),
            traces=tuple(traces),
            lanes=tuple(lanes),
            metadata={"files": str(len(paths))},
            findings=log.findings(),
        )


def _members(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix.lower() == ".csv":
            with open_bytes(path) as handle:
                if _HEADER.match(handle.read(min(64, HEAD_B))):
                    found.append(path)
    return found[:_FILES_MAX]


def _read(path: Path, options: ReadOptions, log: FindingLog) -> _Series:
    table = open_table(path)
    if len(table.header) < 2:
        raise FormatError(f"{path.name}: the header has one column", hint="Export again.", slug="column-missing")
    time_ns: array[int] = array("q")
    value: array[float] = array("d")
    line: array[int] = array("q")
    bad = 0
    for row in table.rows():
        try:
            stamp_ns, sample = decimal_ns(row.fields[0]), parse_number(row.fields[1], table.decimal)
        except ValueError as error:
            bad += 1
            log.add("line_unreadable", f"{path.name}: the row is left out ({error})", f"line {row.line}")
            continue
        time_ns.append(stamp_ns)
        value.append(sample)
        line.append(row.line)
    if not time_ns or bad > len(time_ns):
        raise FormatError(
            f"{path.name}: {bad} rows do not parse and {len(time_ns)} do", hint="Export again.", slug="recording-empty"
        )
    device, rail, kind = _label(path, options)
    return _Series(path, device, rail, kind, np.array(time_ns, np.int64), np.array(value), line)


def _label(path: Path, options: ReadOptions) -> tuple[str, str, UnitKind | None]:
    """Returns device, rail and quantity: as stated (``--unit value=A``), else from the name that the tool gives."""
    found = _NAME.fullmatch(path.name)
    channel, device = (found["channel"], found["device"]) if found else (path.stem, "")
    words = channel.split()
    if (stated := options.units.get("value")) is not None:
        try:
            return device, channel, parse_unit(stated).kind
        except ValueError as error:
            raise UsageError(str(error), hint="For example --unit value=A.", slug="unit-unknown") from error
    word = words[-1].lower() if words else ""
    if not found or (word not in _WORDS and word != "energy"):
        raise InputError(
            f"{path.name} has no unit in it, and its name does not say what it holds",
            hint="Keep the name that Otii gave ('Main current - Ace.csv') or say --unit value=A.",
            slug="unit-needed",
        )
    return device, " ".join(words[:-1]), _WORDS[word][0] if word in _WORDS else None


def _held(source: _Series, at_ns: NDArray[np.int64], log: FindingLog) -> NDArray[np.float64]:
    """Returns the source's value at or before each instant (its first one before it begins)."""
    if np.any(np.diff(source.time_ns) < 0):
        log.add("backward_stamp", "the voltage file is not in order of time", source.path.name)
    return hold_value(source.time_ns, source.value, at_ns)


def _power(
    members: dict[UnitKind | None, _Series],
    place: tuple[str, Boundary, Clock],
    options: ReadOptions,
    log: FindingLog,
) -> EnergyTrace | None:
    (name, boundary, clock) = place
    lead = members.get(UnitKind.POWER) or members.get(UnitKind.CURRENT)
    if lead is None:
        return None
    value = lead.value
    if lead.kind is UnitKind.CURRENT:
        volts = members.get(UnitKind.VOLTAGE)
        supply_v: NDArray[np.float64] | float
        supply_v = voltage_of(options.voltage_v, lead.path.name) if volts is None else _held(volts, lead.time_ns, log)
        with np.errstate(over="ignore", invalid="ignore"):
            value = value * supply_v
    steps = np.diff(lead.time_ns)
    window_s = float(np.median(steps)) * 1e-9 if steps.size else 0.0
    return timed_trace(
        TimedColumns(time_ns=lead.time_ns, value=value, line=lead.line, stamp="start"),
        channel=sampled_channel(name, boundary, window_s),
        clock=clock,
        log=log,
    )


def _lane(one: _Series, clock: Clock) -> Lane:
    unit = next((unit for kind, unit in _WORDS.values() if kind is one.kind), "J")
    order = np.argsort(one.time_ns, kind="stable")
    name = " ".join(part for part in (one.device, one.rail, str(one.kind or "energy")) if part)
    return Lane(name=name, unit=unit, clock=clock, time_ns=one.time_ns[order], value=one.value[order])
