"""The forms in which perf stat prints a counter: for people, with a separator, as JSON lines; one row type for all.

It knows the forms, not what an event means.

References:
    FORMATS 3 and FORMATS_MORE (perf stat); Linux tools/perf/Documentation/perf-stat.txt, CSV FORMAT and JSON FORMAT.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.text import read_lines
from joulemap.formats.ground.values import decimal_ns

__all__ = ["PerfRow", "form_of", "read_rows"]

_EVENT = r"[A-Za-z0-9_./:=,@%-]*[A-Za-z_/][A-Za-z0-9_./:=,@%-]*"
_HUMAN = re.compile(
    r"^\s*(?:(?P<time>\d+[.,]\d+)\s+)?(?:(?P<where>S\d+(?:-D\d+)?(?:-C\d+)?|CPU\d+|N\d+)\s+(?:\d+\s+)?)?"
    r"(?P<value><not counted>|<not supported>|\d[\d.,'\u00a0\u202f]*)\s+"
    r"(?:(?P<unit>Joules|msec|W|C)\s+)?(?P<event>" + _EVENT + r")(?P<rest>.*)$",
    re.ASCII,
)
_SPREAD = re.compile(r"\(\s*\+-\s*(\d+(?:[.,]\d+)?)%")
_ELAPSED = re.compile(r"^\s*(\d+[.,]\d+)(?:\s+\+-\s+\S+)?\s+seconds time elapsed")
_WHERE = re.compile(r"^(CPU\d+|S\d+(-D\d+)?(-C\d+)?|N\d+)$")
_UNITS = frozenset({"Joules", "msec", "W", "C", ""})
_MISSING = ("<not counted>", "<not supported>")


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfRow:
    """One counter value.

    Args:
        line: of the file.
        time_ns: end of the interval since the start of perf; None without ``-I``.
        value: in its unit; NaN when it was not counted.
        unit: as written.
        event: name.
        where: CPU or socket of ``-A`` and ``--per-socket``; empty for the whole.
        spread: relative standard deviation of the mean over ``-r`` runs; None without.
        elapsed: True for perf's own line of elapsed seconds, whose value is in s.
    """

    line: int
    time_ns: int | None
    value: float
    unit: str
    event: str
    where: str = ""
    spread: float | None = None
    elapsed: bool = False


def form_of(lines: list[str]) -> str:
    """Returns ``json``, ``table`` or ``human``; empty when no line is perf stat's."""
    for text in lines:
        if text.startswith("#") or not text.strip():
            continue
        if text.lstrip().startswith("{"):
            return "json" if '"counter-value"' in text and '"event"' in text else ""
        for separator in (";", ",", "\t"):
            if _table_row(text, separator, FindingLog(), 0) is not None:
                return "table"
        human = _HUMAN.match(text)
        if human and (human["unit"] or human["value"] in _MISSING or human["event"].endswith("/")):
            return "human"
        if "Performance counter stats for" in text:
            return "human"
    return ""


def read_rows(path: Path, form: str, log: FindingLog) -> Iterator[PerfRow]:
    """Yields the rows of a file in one of the three forms; lines that are none are said."""
    separator = ""
    parse: Callable[[str, int], PerfRow | None]
    for line, text in read_lines(path):
        if not text.strip() or text.lstrip().startswith("#") or "Performance counter stats for" in text:
            continue
        if form == "json":
            parse = _json_row
        elif form == "human":
            parse = _human_row
        else:
            separator = separator or next(
                (s for s in (";", ",", "\t") if _table_row(text, s, FindingLog(), 0) is not None), ","
            )

            def parse(text: str, line: int, separator: str = separator) -> PerfRow | None:
                return _table_row(text, separator, log, line)

        row = parse(text, line)
        if row is not None:
            yield row
        elif "seconds" not in text and "summary" not in text:
            log.add("line_unreadable", f"not a counter of perf stat: {text[:40]!r}", f"line {line}")


def _human_number(text: str, unit: str) -> float:
    """Returns a number as perf prints it in any locale: energies and times have two decimals, counts none."""
    if text in _MISSING:
        return math.nan
    bare = re.sub("['\u00a0\u202f]", "", text)
    whole, mark, fraction = bare, "", ""
    if unit and len(bare) > 3 and bare[-3] in ".,":
        whole, mark, fraction = bare[:-3], ".", bare[-2:]
    digits = whole.replace(",", "").replace(".", "")
    return float(digits + mark + fraction) if digits.isdigit() else math.nan


def _human_row(text: str, line: int) -> PerfRow | None:
    elapsed = _ELAPSED.match(text)
    if elapsed is not None:
        value = float(elapsed.group(1).replace(",", "."))
        return PerfRow(line=line, time_ns=None, value=value, unit="s", event="elapsed", elapsed=True)
    match = _HUMAN.match(text)
    if match is None or match["event"] == "seconds":
        return None
    try:
        time_ns = decimal_ns(match["time"].replace(",", ".")) if match["time"] else None
    except ValueError:
        return None
    spread = _SPREAD.search(match["rest"])
    unit = match["unit"] or ""
    return PerfRow(
        line=line,
        time_ns=time_ns,
        value=_human_number(match["value"], unit),
        unit=unit,
        event=match["event"],
        where=match["where"] or "",
        spread=float(spread.group(1).replace(",", ".")) * 0.01 if spread else None,
    )


def _table_row(text: str, separator: str, log: FindingLog, line: int) -> PerfRow | None:
    fields = [field.strip() for field in text.split(separator)]
    time_ns: int | None = None
    where = ""
    if fields[0] == "summary":
        return None
    if len(fields) > 3 and re.fullmatch(r"[0-9]+[.,][0-9]{9}", fields[0]):
        try:
            time_ns = decimal_ns(fields.pop(0).replace(",", "."))
        except ValueError:  # further away than the clock reaches
            return None
    if _WHERE.match(fields[0]):
        where = fields.pop(0)
        if len(fields) > 3 and fields[0].isdigit() and fields[2] in _UNITS and not fields[1].isalpha():
            fields.pop(0)  # number of threads of a socket
    if len(fields) > 4 and fields[0].isdigit() and fields[1].isdigit() and fields[2] in _UNITS and separator == ",":
        log.add("decimal_comma_collides", "a decimal comma between commas; taken as one number", f"line {line}")
        fields[:2] = [f"{fields[0]}.{fields[1]}"]
    if len(fields) < 3 or fields[1] not in _UNITS or not re.fullmatch(_EVENT, fields[2]):
        return None
    raw = fields[0]
    if raw not in _MISSING and not re.fullmatch(r"\d+([.,]\d+)?", raw):
        return None
    spread = re.fullmatch(r"(\d+(?:[.,]\d+)?)%", fields[3]) if len(fields) > 3 else None
    return PerfRow(
        line=line,
        time_ns=time_ns,
        value=math.nan if raw in _MISSING else float(raw.replace(",", ".")),
        unit=fields[1],
        event=fields[2],
        where=where,
        spread=float(spread.group(1).replace(",", ".")) * 0.01 if spread else None,
    )


def _json_row(text: str, line: int) -> PerfRow | None:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or "event" not in record:
        return None
    raw = str(record.get("counter-value", ""))
    interval = record.get("interval")
    try:
        value = math.nan if raw in _MISSING else float(raw.replace(",", "."))
        time_ns = (
            None if interval is None else decimal_ns(repr(interval) if isinstance(interval, float) else str(interval))
        )
    except ValueError:
        return None
    spread = record.get("variance")
    return PerfRow(
        line=line,
        time_ns=time_ns,
        value=value,
        unit=str(record.get("unit", "")),
        event=str(record["event"]),
        where=str(record.get("cpu") or record.get("socket") or ""),
        spread=spread * 0.01 if isinstance(spread, (int, float)) else None,
    )
