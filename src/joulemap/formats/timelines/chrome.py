"""Chrome trace JSON of any size: an array of events, or an object with traceEvents."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.json_stream import JsonStream
from joulemap.formats.ground.sampling import recording_of
from joulemap.formats.timelines.event_scan import open_scan
from joulemap.formats.timelines.trace_events import TraceEvents
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind, Timeline

__all__ = ["ChromeTraceReader"]

_EVENTS = frozenset({"traceEvents"})


class ChromeTraceReader:
    """Reads Chrome's trace format event by event, so that memory does not grow with the text.

    The clock is the writer's own and has no name in the file, unless it states ``baseTimeNanoseconds`` (as Triton's
    Proton does): then it is UTC. A file that was never closed gives its whole events.

    References:
        Trace Event Format (Chromium project document); FORMATS 3 and 4 (report 57); recordings of catapult; TVM's
        debug executor writes means laid end to end in this form.
    """

    name: ClassVar[str] = "chrome-trace"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.7 for JSON whose objects have a phase, or an object that opens traceEvents."""
        del path
        opening = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if opening.startswith(b"[") and b'"ph"' in head:
            return 0.7
        return 0.7 if opening.startswith(b"{") and b'"traceEvents"' in head else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns slices, marks and counters.

        Raises:
            FormatError: no JSON, or no event in it.
        """
        del options
        log = FindingLog()
        events = TraceEvents(Clock(name="trace", kind=ClockKind.MONOTONIC), log)
        scan = open_scan(path, events)
        stream = JsonStream(path, arrays=_EVENTS, scan=scan.take if scan else None)
        metadata: dict[str, str] = {}
        for member, value in stream:
            if member in ("", "traceEvents"):
                events.take(value)
            elif isinstance(value, (str, int)):
                metadata[member] = str(value)
        if stream.truncated:
            log.add("recording_unfinished", "the document was never closed; every whole event was read",
                    f"character {stream.offset}", Severity.INFO)  # fmt: skip
        if not events.seen:
            raise FormatError(f"{path.name} holds no event", hint="Check the writer.", slug="recording-empty")
        base = metadata.get("baseTimeNanoseconds", "")
        if base and not events.rebase(base):
            log.add("base_unused", f"baseTimeNanoseconds {base[:24]} does not fit the stamps; not added")
        timelines = events.timelines()
        if timelines and _laid_out(timelines[0]):
            log.add(
                "profile_of_means",
                "the slices of the only track lie end to end from 0: a profile of means rather than a recorded run",
                severity=Severity.INFO,
            )
        return recording_of(
            self.name,
            path,
            events.book,
            metadata=metadata | events.metadata(),
            markers=events.markers(),
            timelines=timelines,
        )


def _laid_out(timeline: Timeline) -> bool:
    """Returns True when slices follow each other from 0 without any gap on one track, as a profile is laid out."""
    if len(timeline.tracks) != 1 or int(timeline.start_ns[0]) != 0:
        return False
    real = timeline.end_ns > timeline.start_ns  # parameters have no length
    start_ns, end_ns = timeline.start_ns[real], timeline.end_ns[real]
    zero = timeline.start_ns.size - start_ns.size
    return start_ns.size + zero > 1 and bool((start_ns[1:] == end_ns[:-1]).all())
