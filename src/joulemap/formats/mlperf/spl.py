"""Lines of PTDaemon's ``spl.txt``: a time, the total, and the channels of a multi-channel meter.

References:
    FORMATS 3, "MLPerf spl.txt (PTDaemon)": genuine logs of v1.1 to v5.1.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from pathlib import Path

from joulemap.errors import FormatError
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.text import read_lines
from joulemap.formats.ground.values import parse_number, parse_stamp

__all__ = ["SplColumns", "is_spl_line", "read_spl"]

_FIELDS = ("Watts", "Volts", "Amps", "PF")
_CHANNELS_MAX = 16


@dataclass(slots=True)
class SplColumns:
    """The columns of a log, in file order.

    Args:
        time_ns: as written, as if it were UTC.
        line: line numbers.
        total: ``Watts``, ``Volts``, ``Amps``, ``PF`` of the whole meter; NaN for missing (also written as -1).
        channels: watts of each channel, by its label.
        marks: distinct session marks in order.
    """

    time_ns: array[int] = field(default_factory=lambda: array("q"))
    line: array[int] = field(default_factory=lambda: array("q"))
    total: dict[str, array[float]] = field(default_factory=lambda: {name: array("d") for name in _FIELDS})
    channels: dict[str, array[float]] = field(default_factory=dict)
    marks: dict[str, None] = field(default_factory=dict)


def is_spl_line(text: str) -> bool:
    """Returns whether a line is one of ``spl.txt``: a stamp, then watts."""
    fields = text.strip("\r\n\0 ").split(",", 3)
    if len(fields) < 4 or fields[0] != "Time" or fields[2] != "Watts":
        return False
    try:
        parse_stamp(fields[1])
    except ValueError:
        return False
    return True


def _totals(fields: list[str]) -> tuple[dict[str, float], str, int]:
    """Returns the values before the first channel, the mark, and where the channels begin."""
    values = dict.fromkeys(_FIELDS, math.nan)
    mark = ""
    at = 2
    while at + 1 < len(fields) and not fields[at].startswith("Ch"):
        key, text = fields[at], fields[at + 1]
        if key in values:
            values[key] = parse_number(text)
        elif key == "Mark":
            mark = text
        at += 2
    if not math.isfinite(values["Watts"]):
        raise ValueError("no watts")
    if values["Volts"] == -1:  # how the daemon writes "not available" for a sum over channels
        values.update(Volts=math.nan, Amps=math.nan, PF=math.nan)
    return values, mark, at


def _channels(fields: list[str], at: int) -> dict[str, float]:
    """Returns the watts of each channel: ``Ch1`` has no value of its own, its keys follow it."""
    channels: dict[str, float] = {}
    while at < len(fields):
        label = fields[at]
        if label.startswith("Ch") and len(channels) < _CHANNELS_MAX:
            power = fields[at + 2] if fields[at + 1 : at + 2] == ["Watts"] and at + 2 < len(fields) else ""
            channels[label] = parse_number(power)
            at += 9
        else:
            at += 1
    return channels


def _take(columns: SplColumns, number: int, fields: list[str]) -> None:
    if len(fields) < 4 or fields[0] != "Time":
        raise ValueError("no time")
    stamp_ns = parse_stamp(fields[1]).ns
    values, mark, at = _totals(fields)
    for label, power_w in _channels(fields, at).items():
        if label not in columns.channels:
            columns.channels[label] = array("d", [math.nan]) * len(columns.time_ns)
        columns.channels[label].append(power_w)
    columns.time_ns.append(stamp_ns)
    columns.line.append(number)
    for key, value in values.items():
        columns.total[key].append(value)
    for column in columns.channels.values():
        if len(column) < len(columns.time_ns):
            column.append(math.nan)
    columns.marks.setdefault(mark, None)


def read_spl(path: Path, log: FindingLog) -> SplColumns:
    """Returns the columns of a log; a line that does not parse is left out with a finding.

    The keys of a line repeat (each channel has its own ``Watts``): only those before the first ``Ch`` are the total.

    Raises:
        FormatError: no line parses, or more lines fail than parse.
    """
    columns = SplColumns()
    bad = 0
    for number, text in read_lines(path):
        body = text.strip()
        if not body:
            continue
        fields = [part.strip() for part in body.split(",")]
        try:
            _take(columns, number, fields)
        except ValueError as error:
            bad += 1
            log.add("line_unreadable", f"{path.name}: the line is left out ({error})", f"line {number}")
    if bad >= max(len(columns.time_ns), 1):
        raise FormatError(
            f"{path.name}: {bad} of {bad + len(columns.time_ns)} lines are no power samples",
            hint="A log of PTDaemon has lines such as 'Time,02-17-2022 13:17:14.749,Watts,16.79,...'.",
            slug="spl-unreadable" if bad else "recording-empty",
        )
    return columns
