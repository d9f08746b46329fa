"""Plain tables of slices and instants, CSV, JSON lines or Parquet: start and end or duration with unit, and a name.

The form that a program of one's own writes most easily. Ten million rows are read in blocks of columns.

References:
    This project's docs/formats_host.md, "Plain markers"; RFC 4180 (CSV).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.archive import arrow_failures, damaged_table
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.slices import SliceColumns
from joulemap.formats.ground.text import (
    guess_delimiter,
    head_lines,
    normal_label,
    open_bytes,
    open_table,
    read_head,
    read_lines,
    split_fields,
)
from joulemap.formats.ground.values import UnitKind, decimal_ns, parse_unit
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["MarkersReader"]

_TIME = re.compile(r"^(start|begin|end|stop|duration|dur|time|timestamp)(?:[_ ]?[(\[]?(ns|us|ms|s)[)\]]?)?$")
_ROLE = {"start": "start", "begin": "start", "end": "end", "stop": "end", "duration": "duration", "dur": "duration",
         "time": "instant", "timestamp": "instant"}  # fmt: skip
_NAME = ("name", "event", "label", "op", "layer", "kernel")
_TRACK = ("track", "thread", "stream", "device")
_KIND = ("kind", "category", "type")
_CLOCK = "clock"
_PARQUET = b"PAR1"
_UNIT_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which column is what; times with their unit in ns."""

    start: tuple[str, int]
    end: tuple[str, int] | None
    duration: tuple[str, int] | None
    name: str
    track: str | None
    kind: str | None

    @property
    def instant(self) -> bool:
        """True when rows have one time."""
        return self.end is None and self.duration is None


def _plan(labels: Sequence[str], default_ns: int | None) -> _Plan | None:
    """Returns the plan of a header; None when it is no table of markers, or a time has no unit."""
    times: dict[str, tuple[str, int]] = {}
    words: dict[str, str] = {}
    for label in labels:
        plain = normal_label(label)
        match = _TIME.match(plain)
        if match is not None:
            unit_ns = _UNIT_NS.get(match.group(2) or "", default_ns)
            if unit_ns is None:
                return None
            times.setdefault(_ROLE[match.group(1)], (label, unit_ns))
        words.setdefault(plain, label)
    name = next((words[word] for word in _NAME if word in words), None)
    start = times.get("start") or times.get("instant")
    if name is None or start is None:
        return None
    track = next((words[word] for word in _TRACK if word in words), None)
    kind = next((words[word] for word in _KIND if word in words), None)
    return _Plan(start, times.get("end"), times.get("duration"), name, track, kind)


class MarkersReader:
    """Reads tables with ``start_ns,end_ns,name`` (or a duration, or one time for instants): CSV, JSON lines, Parquet.

    Units stand in the column's name (``start_us``, ``start (us)``) or are stated (``--unit time=us``). The clock is
    the writer's own, or the one that a column ``clock`` names with its kind (``host/utc``, as our exports do); it is
    UTC too when the user states the zone.
    """

    name: ClassVar[str] = "markers"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.8 for a header (or first line) with a name and a time with its unit; 0.5 when units are missing."""
        if head.startswith(_PARQUET):
            stored = _plan(_parquet_labels(path), None)
            return 0.0 if stored is None or stored.instant else 1.0
        labels = _labels(head)
        if not labels:
            return 0.0
        plan = _plan(labels, None)
        if plan is not None:
            return 0.8 if not plan.instant or len(labels) <= 4 else 0.0
        loose = _plan(labels, 1)
        return 0.5 if loose is not None and not loose.instant else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns slices, or marks where rows have one time.

        Raises:
            FormatError: no table of markers, or no row that is one.
            InputError: a time has no unit, neither in its name nor stated.
        """
        log = FindingLog()
        utc = options.utc_offset_s is not None
        head = read_head(path)
        packed = head.startswith(_PARQUET)
        labels = _parquet_labels(path) if packed else _labels(head)
        clock = Clock(name="host", kind=ClockKind.UTC) if utc else _named_clock(path, head)
        plan = _plan(labels, _stated(options))
        if plan is None:
            if _plan(labels, 1) is not None:
                raise InputError(
                    f"{path.name}: the times have no unit", hint="State it with --unit time=us.", slug="unit-needed"
                )
            raise FormatError(
                f"{path.name} has no name and start column", hint="Write start_ns,end_ns,name.", slug="column-missing"
            )
        shift_ns = -round((options.utc_offset_s or 0.0) * 1e9)
        slices = SliceColumns(clock, log)
        if packed:
            _take_parquet(path, plan, slices)
        elif head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            _take_rows(_json_rows(path, log), plan, (slices, shift_ns))
        elif plan.instant or not _take_columns(path, plan, slices):
            slices = SliceColumns(clock, log)
            _take_rows(_csv_rows(path, log), plan, (slices, shift_ns))
            shift_ns = 0
        if shift_ns and not head.lstrip().startswith(b"{"):
            slices.shift(shift_ns)
        markers = slices.markers()
        timelines = slices.timelines()
        if not timelines and not markers:
            raise FormatError(
                f"{path.name} holds no marker{log.first_unreadable}",
                hint="Wanted in each row: times that are numbers, and a name.",
                slug="recording-empty",
            )
        return recording_of(self.name, path, SampleBook(clock, log), markers=markers, timelines=timelines)


def _labels(head: bytes) -> list[str]:
    lines = head_lines(head, 2)
    if not lines:
        return []
    if lines[0].lstrip().startswith("{"):
        try:
            first = json.loads(lines[0])
        except (ValueError, RecursionError):
            return []
        return [str(key) for key in first] if isinstance(first, dict) else []
    return split_fields(lines[0], guess_delimiter(lines))


def _parquet_labels(path: Path) -> list[str]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy, and only for reading

    try:
        with pq.ParquetFile(path) as file:
            return [str(name) for name in file.schema_arrow.names]
    except arrow_failures():
        return []


def _named_clock(path: Path, head: bytes) -> Clock:
    """Returns the clock that the first row names with its kind; the writer's own where it names none."""
    word = ""
    if head.startswith(_PARQUET):
        rows = _parquet_batches(path, [_CLOCK], 1) if _CLOCK in _parquet_labels(path) else iter(())
        word = next((str(batch.column(0)[0].as_py()) for batch in rows if batch.num_rows), "")
    else:
        lines = head_lines(head, 2)
        if lines and lines[0].lstrip().startswith("{"):
            match = re.search(r'"clock"\s*:\s*"([^"\\]*)"', lines[0])
            word = match.group(1) if match else ""
        elif len(lines) > 1 and _CLOCK in _labels(head):
            cells = split_fields(lines[1], guess_delimiter(lines))
            at = _labels(head).index(_CLOCK)
            word = cells[at] if at < len(cells) else ""
    name, _, kind = word.rpartition("/")
    known = name and kind in {str(one) for one in ClockKind}
    return Clock(name=name, kind=ClockKind(kind)) if known else Clock(name="markers", kind=ClockKind.MONOTONIC)


def _parquet_batches(path: Path, columns: list[str], rows: int = 1 << 18) -> Iterator[Any]:
    """Yields the columns in batches, each validated in full before any value is used.

    Raises:
        FormatError: the file is damaged.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy, and only for reading

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                batch.validate(full=True)
                yield batch
    except arrow_failures() as error:
        raise damaged_table(path, error) from error


def _take_parquet(path: Path, plan: _Plan, slices: SliceColumns) -> None:
    other = plan.end or plan.duration
    words = [label for label in (plan.name, plan.track, plan.kind) if label]
    if other is None:
        raise FormatError(f"{path.name} has one time a row", hint="Write start_ns,end_ns,name.", slug="column-missing")
    for batch in _parquet_batches(path, list(dict.fromkeys([plan.start[0], other[0], *words]))):
        try:
            _take_batch(batch, plan, slices)
        except arrow_failures() as error:
            raise damaged_table(path, error) from error


def _stated(options: ReadOptions) -> int | None:
    text = options.units.get("time")
    if text is None:
        return None
    try:
        unit = parse_unit(text)
    except ValueError:
        unit = None
    if unit is None or unit.kind is not UnitKind.TIME:
        raise UsageError(f"{text!r} is no unit of time", hint="For example us.", slug="unit-unknown")
    return max(round(unit.factor * 1e9), 1)


def _take_rows(rows: Iterator[tuple[int, dict[str, Any]]], plan: _Plan, sink: tuple[SliceColumns, int]) -> None:
    slices, shift_ns = sink
    for line, row in rows:
        try:
            start_ns = decimal_ns(str(row[plan.start[0]]), plan.start[1]) + shift_ns
            name = str(row[plan.name])
            if plan.instant:
                slices.mark(name, start_ns)
                continue
            if plan.end is not None:
                end_ns = decimal_ns(str(row[plan.end[0]]), plan.end[1]) + shift_ns
            else:
                assert plan.duration is not None  # else it were an instant
                end_ns = start_ns + decimal_ns(str(row[plan.duration[0]]), plan.duration[1])
        except (ValueError, KeyError) as error:
            slices.log.add(
                "row_unreadable", f"a row without readable times or name; left out ({error})", f"line {line}"
            )
            continue
        track = str(row.get(plan.track) or "") if plan.track else ""
        kind = str(row.get(plan.kind) or "") if plan.kind else ""
        slices.add(track, name, (start_ns, end_ns), kind)


def _csv_rows(path: Path, log: FindingLog) -> Iterator[tuple[int, dict[str, Any]]]:
    table = open_table(path)
    for row in table.rows():
        if row.ragged:
            log.add("row_ragged", "the row has another number of fields than the header", f"line {row.line}")
        fields = [field.replace(",", ".") if table.decimal == "," else field for field in row.fields]
        yield row.line, dict(zip(table.header, fields, strict=True))


def _json_rows(path: Path, log: FindingLog) -> Iterator[tuple[int, dict[str, Any]]]:
    decoder = json.JSONDecoder(parse_float=str)
    for line, text in read_lines(path):
        if not text.strip():
            continue
        try:
            row = decoder.decode(text)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            yield line, row
        else:
            log.add("line_unreadable", f"not a JSON object: {text[:40]!r}", f"line {line}")


def _take_columns(path: Path, plan: _Plan, slices: SliceColumns) -> bool:
    """Reads a clean table in blocks of columns; returns False when it is not clean, for the tolerant way."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and only for reading
    from pyarrow import csv as arrow_csv  # noqa: PLC0415

    with open_bytes(path) as probe:
        first_line = probe.readline(1 << 16)
    delimiter = guess_delimiter(head_lines(first_line, 1))
    other = plan.end or plan.duration
    assert other is not None  # asked by the caller
    types = {label: pa.int64() if unit_ns == 1 else pa.decimal128(38, 9) for label, unit_ns in (plan.start, other)}
    words = [label for label in (plan.name, plan.track, plan.kind) if label]
    types |= {label: pa.string() for label in words}
    try:
        with open_bytes(path) as handle:
            reader = arrow_csv.open_csv(
                handle,
                read_options=arrow_csv.ReadOptions(use_threads=False, block_size=1 << 22),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(dict.fromkeys(types)),
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
            for batch in reader:
                _take_batch(batch, plan, slices)
    except (pa.ArrowException, OSError, EOFError, ValueError, KeyError):
        return False
    return True


def _take_batch(batch: Any, plan: _Plan, slices: SliceColumns) -> None:
    other = plan.end or plan.duration
    assert other is not None  # asked by the caller
    start_ns = _block_ns(batch.column(plan.start[0]), plan.start[1])
    end_ns = _block_ns(batch.column(other[0]), other[1])
    if plan.end is None:
        end_ns = start_ns + end_ns
    tables: list[list[str]] = []
    indices: list[Any] = []
    for label in (plan.track, plan.name, plan.kind):
        if label is None:
            tables.append([""])
            indices.append(np.zeros(start_ns.size, np.int64))
            continue
        coded = batch.column(label).dictionary_encode()
        tables.append([str(word) for word in coded.dictionary.to_pylist()])
        indices.append(coded.indices.to_numpy(zero_copy_only=False))
    slices.extend(tables[0], tables[1], tables[2], (start_ns, end_ns, indices[1], indices[0], indices[2]))


def _block_ns(column: Any, unit_ns: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - heavy, and only for reading
    from pyarrow import compute  # noqa: PLC0415

    if column.null_count:
        raise ValueError("a time is missing")
    if unit_ns == 1:
        return column.to_numpy(zero_copy_only=False)
    scaled = compute.multiply(column.cast(pa.decimal128(28, 9)), pa.scalar(unit_ns, pa.decimal128(10, 0)))
    return compute.round(scaled, 0).cast(pa.int64()).to_numpy(zero_copy_only=False)
