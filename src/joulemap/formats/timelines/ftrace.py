"""ftrace text and perf script of power events: processor idle states and clocks, and what users wrote between."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.slices import SliceColumns
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["FtraceReader"]

_EVENT = re.compile(
    r"^\s*(?P<task>.*?)\s*\[(?P<cpu>\d+)\]\s+(?:(?P<flags>[A-Za-z0-9.#]{3,6})\s+)?(?P<time>\d{1,12}\.\d{1,9}):\s+"
    r"(?:(?P<system>\w+):)?(?P<event>\w+):\s?(?P<fields>.*)$",
    re.ASCII,
)
_STATE = re.compile(r"\bstate=(\d{1,10})\s+cpu_id=(\d{1,6})\b")
_LEAVE = 0xFFFFFFFF
_ATRACE = re.compile(r"^([BEC])(?:\|(\d+)(?:\|(.*))?)?$")
_POWER = frozenset({"cpu_idle", "cpu_frequency", "tracing_mark_write", "print"})


@dataclass(slots=True)
class _State:
    idle: set[str] = field(default_factory=set)
    seen: int = 0
    other: dict[str, int] = field(default_factory=dict)


class FtraceReader:
    """Reads power events. Idle is left with state 4294967295; the clock's name (local, boot, mono) is not in the text.

    ``cpu_frequency`` comes only on change, and not at all on virtual machines. Task names may hold blanks and dashes.

    References:
        Files of a Linux 6.18 tracefs and of perf script; Linux Documentation/trace/ftrace.rst and events-power.rst.
    """

    name: ClassVar[str] = "ftrace"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for tracefs' header or lines of its form with a power event."""
        del path
        lines = head_lines(head, 40)
        matches = [match for text in lines if (match := _EVENT.match(text))]
        if lines and lines[0].startswith("# tracer:") and matches:
            return 0.95
        return 0.9 if any(match["event"] in _POWER for match in matches) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns idle periods and user's ranges as slices, states and clocks as lanes, other writes as marks.

        Raises:
            FormatError: no event.
        """
        del options
        log = FindingLog()
        clock = Clock(name="trace clock", kind=ClockKind.MONOTONIC)
        book, slices, state = SampleBook(clock, log), SliceColumns(clock, log), _State()
        for line, text in read_lines(path):
            if text.startswith("#") or not text.strip():
                continue
            match = _EVENT.match(text)
            if match is None:
                log.add("line_unreadable", f"not an event: {text[:40]!r}", f"line {line}")
                continue
            state.seen += 1
            time_ns = decimal_ns(match["time"])
            if match["event"] in ("cpu_idle", "cpu_frequency"):
                self._power(match, time_ns, line, (book, slices, state))
            elif match["event"] in ("tracing_mark_write", "print"):
                self._write(match, time_ns, (book, slices))
            else:
                state.other[match["event"]] = state.other.get(match["event"], 0) + 1
        if not state.seen:
            raise FormatError(f"{path.name} holds no event", hint="Enable events/power.", slug="recording-empty")
        log.add(
            "trace_clock_unknown",
            "the text does not say which clock its stamps are on (trace_clock); write a mark to tie it to another",
            severity=Severity.INFO,
        )
        metadata = {f"{event}_events": str(count) for event, count in sorted(state.other.items())[:50]}
        markers = slices.markers()
        timelines = slices.timelines()
        return recording_of(self.name, path, book, metadata=metadata, markers=markers, timelines=timelines)

    @staticmethod
    def _power(match: re.Match[str], time_ns: int, line: int, sink: tuple[SampleBook, SliceColumns, _State]) -> None:
        book, slices, state = sink
        fields = _STATE.search(match["fields"])
        if fields is None:
            book.log.add("line_unreadable", f"a power event without state: {match['fields'][:40]!r}", f"line {line}")
            return
        value, cpu = int(fields.group(1)), fields.group(2)
        if match["event"] == "cpu_frequency":
            book.lane(f"cpu{cpu} clock", "Hz", time_ns, value * 1e3)
            return
        book.lane(f"cpu{cpu} idle state", "1", time_ns, -1.0 if value == _LEAVE else float(value))
        track = f"cpu{cpu} idle"
        if track in state.idle:
            slices.end(track, time_ns)
            state.idle.discard(track)
        if value != _LEAVE:
            slices.begin(track, f"idle {value}", time_ns, "idle")
            state.idle.add(track)

    @staticmethod
    def _write(match: re.Match[str], time_ns: int, sink: tuple[SampleBook, SliceColumns]) -> None:
        book, slices = sink
        text = match["fields"].strip()
        atrace = _ATRACE.match(text)
        task = match["task"] or "task"
        if atrace is None:
            slices.mark(text, time_ns)
        elif atrace.group(1) == "B":
            slices.begin(task, atrace.group(3) or "", time_ns, "atrace")
        elif atrace.group(1) == "E":
            slices.end(task, time_ns)
        else:
            name, _, value = (atrace.group(3) or "").rpartition("|")
            try:
                book.lane(name, "1", time_ns, float(value))
            except ValueError:
                slices.mark(text, time_ns)
