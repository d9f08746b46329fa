"""What logs of computers share: local clocks, rows without stamps, quantities with their unit, C's date form.

It must not know any format.
"""

from __future__ import annotations

import math
import re
from typing import Final

from joulemap.errors import FormatError, InputError
from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.values import Stamp, is_missing, parse_number, parse_stamp, parse_unit
from joulemap.records.finding import Severity
from joulemap.trace import Clock, ClockKind

__all__ = [
    "index_clock",
    "key_of",
    "local_clock",
    "parse_asctime",
    "parse_quantity",
    "read_quantity",
    "read_stamp",
    "rows_unreadable",
]


def key_of(name: str) -> str:
    """Returns a channel name as a snake_case key."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


_QUANTITY: Final = re.compile(r"^([-+]?[0-9][0-9.,eE+-]*)\s*(\S.*)?$")


def parse_quantity(text: str, unit: str = "") -> float:
    """Returns a written quantity in SI units: ``22.89 W``, ``5299mW``, ``142``; NaN for the missing forms.

    Args:
        text: number with or without its unit.
        unit: unit of a bare number; empty when it is SI already.

    Raises:
        ValueError: no number, or no unit that this product knows.
    """
    body = text.strip()
    if is_missing(body):
        return math.nan
    match = _QUANTITY.match(body)
    if match is None:
        return parse_number(body) * (parse_unit(unit).factor if unit else 1.0)
    written = match.group(2) or unit
    return parse_number(match.group(1)) * (parse_unit(written).factor if written else 1.0)


def local_clock(
    options: ReadOptions, log: FindingLog, *, name: str = "host", resolution_ns: float = 1.0
) -> tuple[Clock, int]:
    """Returns the clock of local stamps without a zone, and ns to add to them: UTC only when the user stated the zone.

    Args:
        options: its ``utc_offset_s`` says the zone.
        log: takes ``zone_unstated``.
        name: of the clock.
        resolution_ns: smallest written step, ns.
    """
    if options.utc_offset_s is not None:
        return (
            Clock(name=name, kind=ClockKind.UTC, resolution_ns=resolution_ns),
            -round(options.utc_offset_s * 1e9),
        )
    log.add(
        "zone_unstated",
        "the stamps are local time without a zone; they are kept as local and do not line up with UTC by themselves",
        severity=Severity.INFO,
    )
    return Clock(name=name, kind=ClockKind.LOCAL, resolution_ns=resolution_ns), 0


_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_ASCTIME: Final = re.compile(
    r"^(?:[A-Za-z]{3}\s+)?([A-Za-z]{3})\s+(\d{1,2})\s+(\d{2}:\d{2}:\d{2})\s+(\d{4})(?:\s+([-+]\d{4}))?$"
)


def parse_asctime(text: str) -> Stamp:
    """Returns the stamp of C's asctime, with or without a zone: ``Fri Nov 10 12:37:08 2023 +0100``.

    Raises:
        ValueError: another form.
    """
    match = _ASCTIME.match(text.strip())
    if match is None or match.group(1).lower() not in _MONTHS:
        raise ValueError(f"not a time stamp: {text!r}")
    month, day, clock, year, zone = match.groups()
    return parse_stamp(f"{year}-{_MONTHS[month.lower()]:02d}-{int(day):02d}T{clock}{zone or ''}")


def read_quantity(log: FindingLog, text: str, line: int, unit: str = "") -> float:
    """Returns a written quantity in SI units; NaN with the finding ``value_unreadable`` when it is none."""
    try:
        return parse_quantity(text, unit)
    except ValueError:
        log.add("value_unreadable", f"{text[:40]!r} is no number; taken as missing", f"line {line}")
        return math.nan


def index_clock(options: ReadOptions, what: str, *, name: str = "poll") -> tuple[Clock, int]:
    """Returns the clock of rows without stamps, and ns per row, from the rate that the user stated.

    Raises:
        InputError: no rate was stated, or none that makes a time axis.
    """
    rate_hz = options.rate_hz
    if rate_hz is None or not (math.isfinite(rate_hz) and 1e-6 < rate_hz <= 1e9):
        raise InputError(
            f"{what} holds no time column, so its samples span no time",
            hint="Say how often it was polled with --rate, in Hz.",
            slug="rate-needed",
        )
    period_ns = max(round(1e9 / rate_hz), 1)
    return Clock(name=name, kind=ClockKind.SAMPLE_INDEX, resolution_ns=float(period_ns)), period_ns


def read_stamp(log: FindingLog, text: str, line: int) -> Stamp | None:
    """Returns a calendar stamp; None with the finding ``stamp_unreadable`` when it is none, and its row is left out."""
    try:
        return parse_stamp(text)
    except ValueError:
        log.add("stamp_unreadable", f"{text[:40]!r} is no time stamp; the row is left out", f"line {line}")
        return None


def rows_unreadable(name: str, counts: tuple[int, int], log: FindingLog, *, wanted: str) -> FormatError:
    """Returns the error of a table of which no row, or hardly one, could be read: it names the first bad line.

    Args:
        name: of the file.
        counts: rows that parse, and rows that do not.
        log: has the finding of each bad row.
        wanted: what a row must hold.
    """
    return FormatError(
        f"{name}: {counts[0]} rows parse, {counts[1]} do not{log.first_unreadable}",
        hint=f"Wanted: {wanted}.",
        slug="recording-empty",
    )
