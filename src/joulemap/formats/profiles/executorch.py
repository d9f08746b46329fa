"""ExecuTorch Inspector's table: every run of every event with its raw start and time."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.slices import SliceColumns
from joulemap.formats.ground.text import head_lines, read_lines, split_fields
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["ExecutorchInspectorReader"]

_NEEDED = ("event_block_name", "event_name", "raw", "start_time")
_COLD = 10.0


class ExecutorchInspectorReader:
    """Reads the Inspector's CSV: raw times in ms, start times in ns of a raw counter.

    OPERATOR_CALL contains native_call_*, Method::execute contains all of them: they nest and are never added. The
    first, cold run is often two orders of magnitude slower.

    References:
        A table of executorch's Inspector; FORMATS_MORE, "ExecuTorch".
    """

    name: ClassVar[str] = "executorch-inspector"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the table's header."""
        del path
        lines = head_lines(head, 1)
        return 1.0 if lines and set(_NEEDED) <= set(split_fields(lines[0])) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns every run of every event as a slice.

        Raises:
            FormatError: a column is missing, or no event has a start and a time.
        """
        del options
        log = FindingLog()
        clock = Clock(name="event tracer", kind=ClockKind.COUNTER)
        slices = SliceColumns(clock, log)
        header: list[str] = []
        for line, fields in _records(path):
            if not header:
                header = fields
                for column in _NEEDED:
                    if column not in header:
                        raise FormatError(
                            f"{path.name} has no column {column}", hint="Export again.", slug="column-missing"
                        )
                continue
            if len(fields) != len(header):
                log.add("row_ragged", f"{len(fields)} fields where the header has {len(header)}", f"line {line}")
            cells = dict(zip(header, fields, strict=False))
            self._event(cells, line, (slices, log))
        timelines = slices.timelines()
        if not timelines:
            raise FormatError(f"{path.name} holds no event with a start", hint="Export again.", slug="recording-empty")
        return recording_of(self.name, path, SampleBook(clock, log), timelines=timelines)

    @staticmethod
    def _event(cells: dict[str, str], line: int, sink: tuple[SliceColumns, FindingLog]) -> None:
        slices, log = sink
        name, block = cells.get("event_name", ""), cells.get("event_block_name", "")
        starts, times = _items(cells.get("start_time", "")), _items(cells.get("raw", ""))
        if len(starts) != len(times):
            log.add("row_unreadable", f"{name}: {len(starts)} starts for {len(times)} times; left out", f"line {line}")
            return
        kind = "run" if name.startswith("Method::") else "operator" if name == "OPERATOR_CALL" else "kernel"
        lengths_ns = []
        for start, time in zip(starts, times, strict=True):
            try:
                start_ns, length_ns = decimal_ns(start, 1), decimal_ns(time, 1_000_000)
            except ValueError:
                log.add("value_unreadable", f"{name}: {start!r} and {time!r} are no times", f"line {line}")
                continue
            lengths_ns.append(length_ns)
            slices.add(block, name, (start_ns, start_ns + length_ns), kind)
        warm = sorted(lengths_ns[1:])
        usual_ns = max(warm[len(warm) // 2], 1) if len(warm) > 1 else 0
        if usual_ns and lengths_ns[0] > _COLD * usual_ns:
            message = f"{name}: its first run is {lengths_ns[0] / usual_ns:.0f} times the others"
            log.add("cold_run", message, f"line {line}", Severity.INFO)


def _items(cell: str) -> list[str]:
    return [word.strip() for word in cell.strip().strip("[]").split(",") if word.strip()]


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yields (line, fields); quoted cells may run over lines."""
    numbered = read_lines(path)
    place = [0]

    def texts() -> Iterator[str]:
        for number, text in numbered:
            place[0] = number
            yield text + "\n"

    reader = csv.reader(texts())
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise FormatError(
                f"{path.name}, line {place[0]}: {error}", hint="Export the table again.", slug="table-damaged"
            ) from None
        if any(field.strip() for field in fields):
            yield place[0], fields
