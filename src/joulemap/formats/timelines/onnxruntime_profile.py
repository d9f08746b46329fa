"""ONNX Runtime's profile: an array of Chrome events from the session's start, closed only by end_profiling."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.json_stream import JsonStream
from joulemap.formats.ground.sampling import recording_of
from joulemap.formats.timelines.trace_events import TraceEvents
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["OnnxRuntimeProfileReader"]

_NAMED_START = re.compile(r"_(\d{4}-\d{2}-\d{2})_(\d{2})-(\d{2})-(\d{2})(?:_(\d{3}))?\.json$")
_KERNEL = "_kernel_time"
_FENCES = ("_fence_before", "_fence_after")


class OnnxRuntimeProfileReader:
    """Reads the profile; model_run contains SequentialExecutor::Execute, which contains the nodes: never add them.

    Stamps are microseconds since the session's profiling start, not epoch; the local start in the file's name is kept
    as a fact of the source, not as a clock. Durations of 0 to 3 us are quantised.

    References:
        A file of onnxruntime 1.32.0; FORMATS 4 (report 58: comma before the bracket, unfinished files).
    """

    name: ClassVar[str] = "onnxruntime-profile"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for an array whose events have the categories Session and Node."""
        del path
        plain = re.sub(rb"\s+", b"", head[:8192])
        known = b'"cat":"Session"' in plain or (b'"cat":"Node"' in plain and b'"op_name"' in plain)
        return 0.95 if plain.startswith(b"[") and known else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the session's and nodes' slices.

        Raises:
            FormatError: empty (the session was not released), no JSON, or no event.
        """
        del options
        log = FindingLog()
        clock = Clock(name="session", kind=ClockKind.MONOTONIC, resolution_ns=1000.0)
        events = TraceEvents(clock, log, rename=_named)
        stream = JsonStream(path)
        for _, event in stream:
            events.take(event)
        if stream.truncated:
            log.add("recording_unfinished", "profiling was not ended; every whole event was read",
                    f"character {stream.offset}", Severity.INFO)  # fmt: skip
        if not events.seen:
            raise FormatError(
                f"{path.name} holds no event", hint="Call end_profiling before copying it.", slug="recording-empty"
            )
        metadata = events.metadata()
        start = _NAMED_START.search(path.name)
        if start is not None:
            day, hour, minute, second, milli = start.groups()
            metadata["local_start_in_name"] = f"{day}T{hour}:{minute}:{second}.{milli or '000'}"
        timelines = events.timelines()
        short = sum(int(((t.end_ns - t.start_ns) <= 3000).sum()) for t in timelines)
        if short:
            log.add("duration_quantised", f"{short} slices of at most 3 us, in steps of 1 us", severity=Severity.INFO)
        return recording_of(
            self.name, path, events.book, metadata=metadata, markers=events.markers(), timelines=timelines
        )


def _named(event: dict[str, Any]) -> tuple[str, str]:
    name = str(event.get("name", ""))
    if event.get("cat") != "Node":
        return name, str(event.get("cat", "")).lower()
    arguments = event.get("args")
    op = str(arguments.get("op_name", "")) if isinstance(arguments, dict) else ""
    if name.endswith(_FENCES):
        return name, "fence"
    return f"{op} {name.removesuffix(_KERNEL)}".strip(), "operator"
