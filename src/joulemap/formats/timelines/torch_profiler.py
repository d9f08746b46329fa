"""PyTorch's profiler (kineto): Chrome events on epoch time, absolute or after a base that may stand at the end."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.json_stream import JsonStream
from joulemap.formats.ground.sampling import recording_of
from joulemap.formats.timelines.event_scan import open_scan
from joulemap.formats.timelines.trace_events import EPOCH_NS, TraceEvents
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["TorchProfilerReader"]

_EVENTS = frozenset({"traceEvents"})
_KINDS = {"operator": "cpu_op", "runtime": "cuda_runtime", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}


class TorchProfilerReader:
    """Reads kineto's traces, plain or gzip.

    From torch 2.4 stamps count from ``baseTimeNanoseconds``; before, they are epoch microseconds. ``displayTimeUnit``
    changes neither. Events at 0 (seen on Windows) are left out. Categories are lower case, the names of 2021 mapped to
    the later ones (Kernel, kernel).

    References:
        FORMATS 3 (Torch traces) and 4 (reports 56, 57); recordings of 2021 to 2025 and a file of torch 2.14.
    """

    name: ClassVar[str] = "torch-profiler"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for an object that opens with kineto's members."""
        del path
        start = head[:4096]
        kineto = b'"schemaVersion"' in start and (b'"deviceProperties"' in head or b'"traceEvents"' in head)
        return 0.95 if kineto and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns slices, marks and counters, on UTC when the stamps are epoch time.

        Raises:
            FormatError: no JSON, or no event in it.
        """
        del options
        log = FindingLog()
        events = TraceEvents(Clock(name="host", kind=ClockKind.UTC), log, skip_zero=True)
        scan = open_scan(path, events)
        stream = JsonStream(path, arrays=_EVENTS, scan=scan.take if scan else None)
        metadata: dict[str, str] = {}
        for member, value in stream:
            if member == "traceEvents":
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
        bounds = events.slices.bounds()
        if bounds is not None and not EPOCH_NS[0] <= bounds[0] <= bounds[1] <= EPOCH_NS[1]:
            log.add("clock_not_epoch", "the stamps are no epoch time although the writer's form says so")
        return recording_of(
            self.name,
            path,
            events.book,
            metadata=metadata | events.metadata(),
            markers=events.markers(),
            timelines=events.timelines(_kind),
        )


def _kind(category: str) -> str:
    word = category.lower()
    return _KINDS.get(word, word)
