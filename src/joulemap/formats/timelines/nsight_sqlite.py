"""Nsight Systems' SQLite export: kernels, copies, API calls, NVTX ranges and GPU metrics; opened read-only."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from joulemap.errors import FormatError, InputError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.slices import SliceColumns
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["NsightSqliteReader"]

_MAGIC = b"SQLite format 3\x00"
_OWN = re.compile(r"^(CUPTI_ACTIVITY_KIND_(?:KERNEL|MEMCPY|MEMSET|RUNTIME)|NVTX_EVENTS|GPU_METRICS)(?:_V\d+)?$")
_PUSH_POP, _START_END, _MARK = 59, 60, 34
_OPERATIONS = 200_000_000  # of the database engine: a damaged index must not run for ever
_LONGEST_B = 1 << 22  # of one value: a damaged length must not take the memory
_LIMIT_NS = 1 << 62


class NsightSqliteReader:
    """Reads an export of nsys. Tables exist only when there are data, and their names may end in _V2 or _V3.

    Kernels run later than the range that launched them, so ranges of the host and kernels stay on their own tracks.
    The wall clock is that of the session's start when the export has it.

    References:
        Nsight Systems documentation, "SQLite schema"; PyPI nsys-ai 0.3.0 and nsys2prv 0.5.8.
    """

    name: ClassVar[str] = "nsight-sqlite"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a SQLite database with tables of nsys."""
        if not head.startswith(_MAGIC):
            return 0.0
        try:
            with closing(_connect(path)) as base:
                return 1.0 if any(_OWN.match(name) for name in _tables(base)) else 0.0
        except (FormatError, InputError, sqlite3.Error, UnicodeDecodeError, MemoryError):
            return 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the slices, marks and metrics of the export.

        Raises:
            FormatError: the database is damaged, or holds nothing of these.
        """
        del options
        log = FindingLog()
        try:
            with closing(_connect(path)) as base:
                tables = {_OWN.sub(r"\1", name): name for name in _tables(base) if _OWN.match(name)}
                offset_ns = _session_start(base)
                kind = ClockKind.MONOTONIC if offset_ns is None else ClockKind.UTC
                clock = Clock(name="nsys session" if offset_ns is None else "host", kind=kind)
                book, slices = SampleBook(clock, log), SliceColumns(clock, log)
                shift_ns = offset_ns or 0
                strings = _Strings(base)
                for table, name in tables.items():
                    _READ[table](base, name, (slices, book, strings, shift_ns))
        except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError) as error:
            raise FormatError(
                f"{path.name} is a damaged database: {error or type(error).__name__}",
                hint="Export it from nsys again.",
                slug="database-damaged",
            ) from error
        markers = slices.markers()
        timelines = slices.timelines()
        return recording_of(self.name, path, book, markers=markers, timelines=timelines)


_Sink = tuple[SliceColumns, SampleBook, "_Strings", int]


def _connect(path: Path) -> sqlite3.Connection:
    """Opens a database that nobody writes: no journal, no lock and no change of the file."""
    try:
        base = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise InputError(
            f"{path.name} cannot be read: {error}", hint="Check it.", slug="recording-unreadable"
        ) from error
    base.text_factory = lambda raw: raw.decode("utf-8", "replace")
    left = [_OPERATIONS // 10_000]

    def tick() -> int:
        left[0] -= 1
        return 1 if left[0] < 0 else 0

    base.set_progress_handler(tick, 10_000)
    base.execute("PRAGMA trusted_schema = OFF")
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_B)
    return base


def _tables(base: sqlite3.Connection) -> list[str]:
    rows = base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [str(name) for (name,) in rows]


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in base.execute(f'PRAGMA table_info("{table}")')}


def _select(base: sqlite3.Connection, table: str, wanted: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Yields rows of the wanted columns; NULL for a column that the table does not have."""
    have = _columns(base, table)
    columns = ", ".join(f'"{name}"' if name in have else "NULL" for name in wanted)
    yield from base.execute(f'SELECT {columns} FROM "{table}"')  # noqa: S608 - names are matched above


def _session_start(base: sqlite3.Connection) -> int | None:
    if "TARGET_INFO_SESSION_START_TIME" not in _tables(base):
        return None
    for (epoch_ns,) in _select(base, "TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)):
        if isinstance(epoch_ns, int) and 0 < epoch_ns < _LIMIT_NS:
            return epoch_ns
    return None


class _Strings:
    """The export's table of names; one look-up per name."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self.base = base if "StringIds" in _tables(base) else None
        self.known: dict[Any, str] = {}

    def name(self, *identities: Any) -> str:
        """Returns the text of the first identity that has one."""
        for identity in identities:
            if identity is None:
                continue
            if identity not in self.known and self.base is not None:
                row = self.base.execute("SELECT value FROM StringIds WHERE id = ?", (identity,)).fetchone()
                self.known[identity] = str(row[0]) if row else ""
            if self.known.get(identity):
                return self.known[identity]
        return ""


def _span(start: Any, end: Any, shift_ns: int) -> tuple[int, int] | None:
    if not (isinstance(start, int) and isinstance(end, int)):
        return None
    return start + shift_ns, end + shift_ns


def _kernels(base: sqlite3.Connection, table: str, sink: _Sink) -> None:
    slices, _, strings, shift_ns = sink
    wanted = ("start", "end", "deviceId", "streamId", "shortName", "demangledName", "mangledName")
    for start, end, device, stream, short, demangled, mangled in _select(base, table, wanted):
        span = _span(start, end, shift_ns)
        if span is None:
            slices.log.add("row_unreadable", "a kernel without start and end; left out")
            continue
        slices.add(f"gpu{device} stream {stream}", strings.name(short, demangled, mangled) or "kernel", span, "kernel")


def _copies(base: sqlite3.Connection, table: str, sink: _Sink) -> None:
    slices, _, _, shift_ns = sink
    what = "memset" if "MEMSET" in table else "memcpy"
    for start, end, device, stream, kind, size_b in _select(
        base, table, ("start", "end", "deviceId", "streamId", "copyKind", "bytes")
    ):
        span = _span(start, end, shift_ns)
        if span is None:
            slices.log.add("row_unreadable", f"a {what} without start and end; left out")
            continue
        del size_b
        name = what if kind is None else f"{what} {kind}"
        slices.add(f"gpu{device} stream {stream}", name, span, "transfer")


def _calls(base: sqlite3.Connection, table: str, sink: _Sink) -> None:
    slices, _, strings, shift_ns = sink
    for start, end, thread, name in _select(base, table, ("start", "end", "globalTid", "nameId")):
        span = _span(start, end, shift_ns)
        if span is None:
            slices.log.add("row_unreadable", "a call without start and end; left out")
            continue
        slices.add(_thread(thread), strings.name(name) or "call", span, "cuda_runtime")


def _ranges(base: sqlite3.Connection, table: str, sink: _Sink) -> None:
    slices, _, strings, shift_ns = sink
    wanted = ("start", "end", "eventType", "text", "textId", "globalTid")
    for start, end, kind, text, text_id, thread in _select(base, table, wanted):
        name = text if isinstance(text, str) else strings.name(text_id)
        if kind == _MARK and isinstance(start, int):
            slices.mark(name, start + shift_ns)
        elif kind in (_PUSH_POP, _START_END):
            span = _span(start, end, shift_ns)
            if span is None:
                slices.log.add("slice_unclosed", f"the range {name!r} has no end; left out")
            else:
                track = f"nvtx {_thread(thread)}" if kind == _PUSH_POP else f"nvtx ranges {name}"
                slices.add(track, name, span, "nvtx")


def _metrics(base: sqlite3.Connection, table: str, sink: _Sink) -> None:
    _, book, _, shift_ns = sink
    names: dict[tuple[Any, Any], str] = {}
    if "TARGET_INFO_GPU_METRICS" in _tables(base):
        for kind, metric, name in _select(base, "TARGET_INFO_GPU_METRICS", ("typeId", "metricId", "metricName")):
            names[kind, metric] = str(name)
    for time_ns, kind, metric, value in _select(base, table, ("timestamp", "typeId", "metricId", "value")):
        if not (isinstance(time_ns, int) and isinstance(kind, int) and isinstance(value, (int, float))):
            book.log.add("row_unreadable", "a metric without time, type or value; left out", "", Severity.INFO)
            continue
        name = names.get((kind, metric), f"metric {metric}")
        share = "%" in name
        book.lane(f"gpu{kind & 0xFF} {name}", "1", time_ns + shift_ns, value * (0.01 if share else 1.0))


def _thread(identity: Any) -> str:
    """Returns the process and thread of nsys' global id: bits 24 to 47 and 0 to 23."""
    if not isinstance(identity, int):
        return "thread"
    return f"process {(identity >> 24) & 0xFFFFFF} thread {identity & 0xFFFFFF}"


_READ = {
    "CUPTI_ACTIVITY_KIND_KERNEL": _kernels,
    "CUPTI_ACTIVITY_KIND_MEMCPY": _copies,
    "CUPTI_ACTIVITY_KIND_MEMSET": _copies,
    "CUPTI_ACTIVITY_KIND_RUNTIME": _calls,
    "NVTX_EVENTS": _ranges,
    "GPU_METRICS": _metrics,
}
