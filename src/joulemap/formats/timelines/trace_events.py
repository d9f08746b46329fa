"""The events of Chrome's trace format, whoever wrote them: every phase to slices, marks, counters or a count.

Stamps are microseconds, as integers, decimals or text; they become integer ns without passing a float. It knows the
phases, not the writer's categories.

References:
    Trace Event Format (Chromium project document): Event Descriptions; ``displayTimeUnit`` only says how to show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.sampling import SampleBook
from joulemap.formats.ground.slices import SliceColumns
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, ClockKind, Timeline

__all__ = ["EPOCH_NS", "TraceEvents", "microseconds"]

_FLOWS = frozenset("stf")
_OBJECTS = frozenset("NOD")
_INSTANTS = frozenset({"i", "I", "R", "n", "P"})
_ASYNC_BEGIN = frozenset({"b", "S"})
_ASYNC_END = frozenset({"e", "F"})
_LIMIT_NS = 1 << 62
EPOCH_NS = (1_400_000_000_000_000_000, 4_000_000_000_000_000_000)
"""Instants that epoch stamps of a trace can have: 2014 to 2096."""


def microseconds(value: Any) -> int:
    """Returns a stamp in microseconds as integer ns, exact to the ns that is written.

    Raises:
        ValueError: no number, or beyond +-146 years.
    """
    if type(value) is int:
        if -_LIMIT_NS < value * 1000 < _LIMIT_NS:
            return value * 1000
        raise ValueError("a time beyond 146 years")
    if type(value) is str:
        if value[-4:-3] == "." and len(value) < 20 and (digits := value[:-4] + value[-3:]).isdigit():
            return int(digits)  # three decimals, as most writers have it
        whole, dot, fraction = value.partition(".")
        if dot and len(fraction) <= 3 and whole.isdigit() and fraction.isdigit() and len(whole) < 16:
            return int(whole) * 1000 + int(fraction) * (100, 10, 1)[len(fraction) - 1]
        return decimal_ns(value, 1000)
    raise ValueError("no number")


class TraceEvents:
    """Takes events one at a time.

    Args:
        clock: of the stamps.
        log: takes what is doubtful.
        skip_zero: leave out events at 0, which some writers put among real stamps.
        rename: from an event to the name and kind of its slice; None keeps name and category.
    """

    def __init__(
        self,
        clock: Clock,
        log: FindingLog,
        *,
        skip_zero: bool = False,
        rename: Callable[[dict[str, Any]], tuple[str, str]] | None = None,
    ) -> None:
        self.log = log
        self.book = SampleBook(clock, log)
        self.slices = SliceColumns(clock, log)
        self.skip_zero = skip_zero
        self.rename = rename
        self.other: Counter[str] = Counter()
        self.seen = 0
        self._processes: dict[str, str] = {}
        self._threads: dict[tuple[str, str], str] = {}
        self._seen_tracks: dict[tuple[Any, Any], tuple[str, str]] = {}

    def take(self, event: Any) -> None:
        """Takes one event; one that is no event, or has no readable stamp, is said and left out."""
        self.seen += 1
        try:
            phase = event["ph"]
            if phase == "M":
                self._meta(event)
                return
            start_ns = microseconds(event["ts"])
            if phase == "X" and (start_ns or not self.skip_zero):
                self._complete(event, start_ns)
            elif start_ns == 0 and self.skip_zero:
                self.log.add("stamp_zero", "an event at 0 among real stamps; left out", f"event {self.seen}")
            else:
                self._other(event, phase, start_ns)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            self.log.add("event_unreadable", "an event without phase, stamp or name; left out", f"event {self.seen}")

    def _complete(self, event: dict[str, Any], start_ns: int) -> None:
        get = event.get
        written = get("dur")
        if written is None:
            self.log.add("slice_unclosed", "a complete event without duration; left out", f"event {self.seen}")
            return
        if self.rename is None:
            name, kind = get("name", ""), get("cat") or ""
        else:
            name, kind = self.rename(event)
        track = (get("pid", ""), get("tid", ""))
        known = self._seen_tracks.get(track)
        if known is None:
            known = self._seen_tracks[track] = (str(track[0]), str(track[1]))
        self.slices.add(known, str(name), (start_ns, start_ns + microseconds(written)), str(kind))

    def _named(self, event: dict[str, Any]) -> tuple[str, str]:
        if self.rename is not None:
            return self.rename(event)
        return str(event.get("name", "")), str(event.get("cat", "") or "")

    def _other(self, event: dict[str, Any], phase: str, time_ns: int) -> None:
        track = (str(event.get("pid", "")), str(event.get("tid", "")))
        if phase == "B":
            name, kind = self._named(event)
            self.slices.begin(track, name, time_ns, kind)
        elif phase == "E":
            self.slices.end(track, time_ns, self._named(event)[0] if event.get("name") else None)
        elif phase == "C":
            self._counter(event, time_ns)
        elif phase in _INSTANTS:
            self.slices.mark(str(event.get("name", "")), time_ns)
        elif phase in _ASYNC_BEGIN or phase in _ASYNC_END:
            strand = ("async", str(event.get("cat", "")), _identity(event))
            if phase in _ASYNC_BEGIN:
                name, kind = self._named(event)
                self.slices.begin(strand, name, time_ns, kind)
            else:
                self.slices.end(strand, time_ns, self._named(event)[0] if event.get("name") else None)
        else:
            word = "flow" if phase in _FLOWS else "object" if phase in _OBJECTS else f"phase {phase}"
            self.other[word[:16]] += 1

    def _meta(self, event: dict[str, Any], _time_ns: int = 0) -> None:
        pid, what = str(event.get("pid", "")), event.get("name")
        name = event["args"].get("name") if isinstance(event.get("args"), dict) else None
        if isinstance(name, str) and what == "process_name":
            self._processes[pid] = name
        elif isinstance(name, str) and what == "thread_name":
            self._threads[pid, str(event.get("tid", ""))] = name

    def _counter(self, event: dict[str, Any], time_ns: int) -> None:
        name = str(event.get("name", ""))
        if "id" in event:
            name = f"{name}[{event['id']}]"
        for key, value in event["args"].items():
            try:
                number = math.nan if value is None else float(value)
            except (TypeError, ValueError, OverflowError):
                self.log.add("value_unreadable", f"counter {name} {key} is no number", f"event {self.seen}")
                continue
            self.book.lane(f"{event.get('pid', '')} {name} {key}".strip(), "1", time_ns, number)

    def _track(self, key: tuple[str, ...]) -> str:
        if key[0] == "async" and len(key) == 3:
            return f"async {key[1]} {key[2]}".strip()
        pid, tid = key
        process = self._processes.get(pid, f"process {pid}" if pid else "")
        thread = self._threads.get((pid, tid), f"thread {tid}" if tid else "")
        return " / ".join(word for word in (process, thread) if word)

    def shift(self, offset_ns: int) -> None:
        """Moves everything in time."""
        self.slices.shift(offset_ns)
        self.book.shift_lanes(offset_ns)

    def rebase(self, base: str) -> bool:
        """Moves everything by a stated epoch base in ns, onto UTC; returns False when the sum is no time of ours."""
        bounds = self.slices.bounds()
        if bounds is None or not base.isascii() or not base.isdigit() or len(base) > 19:
            return False
        offset_ns = int(base)
        if not EPOCH_NS[0] <= bounds[0] + offset_ns <= bounds[1] + offset_ns <= EPOCH_NS[1]:
            return False
        self.shift(offset_ns)
        self.slices.clock = self.book.clock = Clock(name="host", kind=ClockKind.UTC)
        return True

    def timelines(self, kinder: Callable[[str], str] | None = None) -> tuple[Timeline, ...]:
        """Returns the slices, their tracks named by the processes and threads that the events named."""
        return self.slices.timelines(self._track, kinder)

    def markers(self) -> tuple[MarkerTrack, ...]:
        """Returns the instants."""
        return self.slices.markers()

    def metadata(self) -> dict[str, str]:
        """Returns how many events of which sort were counted and not kept."""
        return {f"{word.replace(' ', '_')}_events": str(count) for word, count in self.other.items()}


def _identity(event: dict[str, Any]) -> str:
    """Returns what tells asynchronous strands apart: the global id, or the local one with its process."""
    nested = event.get("id2")
    if isinstance(nested, dict):
        return str(nested.get("global", f"{event.get('pid')}:{nested.get('local')}"))
    return f"{event.get('scope', '')}{event.get('id', '')}"
