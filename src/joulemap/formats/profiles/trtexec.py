"""trtexec's exportTimes (one object per query) and exportProfile (mean time per layer)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.json_stream import JsonStream
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.slices import SliceColumns
from joulemap.formats.ground.text import read_head, read_lines
from joulemap.formats.ground.values import decimal_ns
from joulemap.formats.profiles.laid_out import MEAN_CLOCK, lay_out
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["TrtexecReader"]

_SPANS = (
    ("enqueue", "operator", "Enq", "enqueue"),
    ("host to device", "transfer", "H2d", "gpu"),
    ("compute", "inference", "Compute", "gpu"),
    ("device to host", "transfer", "D2h", "gpu"),
)
_LAYER = re.compile(r'"name"\s*:\s*"(.*)"\s*,\s*"timeMs"\s*:\s*([-\d.eE+]+)\s*,\s*"averageMs"\s*:\s*([-\d.eE+]+)')
_COUNT = re.compile(r'"count"\s*:\s*(\d+)')


class TrtexecReader:
    """Reads both exports. Times are ms from the start of the run, warm-up queries included; there is no wall clock.

    Profiling slows the run, and the sum of the layers is not the latency. A layer's name may hold unescaped quotes,
    so the profile is read line by line.

    References:
        NVIDIA/TensorRT 052281f0, samples/common/sampleReporting.cpp.
    """

    name: ClassVar[str] = "trtexec"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for the members of either export."""
        del path
        if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            return 0.0
        times = b'"startComputeMs"' in head and b'"endComputeMs"' in head
        return 0.95 if times or (b'"timeMs"' in head and b'"averageMs"' in head) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the queries as slices, or the layers as one mean inference.

        Raises:
            FormatError: neither a query nor a layer.
        """
        del options
        log = FindingLog()
        if b'"startComputeMs"' in read_head(path):
            return self._times(path, log)
        metadata: dict[str, str] = {}
        timelines = lay_out(_layers(path, log, metadata), log, kind="layer")
        if not timelines:
            raise FormatError(f"{path.name} holds no layer", hint="Use --exportProfile.", slug="recording-empty")
        return recording_of(self.name, path, SampleBook(MEAN_CLOCK, log), metadata=metadata, timelines=timelines)

    def _times(self, path: Path, log: FindingLog) -> Recording:
        clock = Clock(name="run", kind=ClockKind.MONOTONIC)
        slices = SliceColumns(clock, log)
        stream = JsonStream(path)
        for number, (_, query) in enumerate(stream, start=1):
            if isinstance(query, dict):
                _query(query, number, (slices, log))
        if stream.truncated:
            log.add("recording_unfinished", "the array was never closed; every whole query was read", "", Severity.INFO)
        timelines = slices.timelines()
        if not timelines:
            raise FormatError(f"{path.name} holds no query", hint="Use --exportTimes.", slug="recording-empty")
        return recording_of(self.name, path, SampleBook(clock, log), timelines=timelines)


def _query(query: dict[str, Any], number: int, sink: tuple[SliceColumns, FindingLog]) -> None:
    slices, log = sink
    for name, kind, word, track in _SPANS:
        start, end = query.get(f"start{word}Ms"), query.get(f"end{word}Ms")
        if start is None or end is None:
            continue
        try:
            span = (decimal_ns(str(start), 1_000_000), decimal_ns(str(end), 1_000_000))
        except ValueError:
            log.add("value_unreadable", f"{name} of a query has no times", f"query {number}")
            continue
        slices.add(track, name, span, kind)


def _layers(path: Path, log: FindingLog, metadata: dict[str, str]) -> Iterator[tuple[str, str, int | None, int]]:
    for line, text in read_lines(path):
        count = _COUNT.search(text)
        if count is not None and "timeMs" not in text:
            metadata["inferences"] = count.group(1)
        match = _LAYER.search(text)
        if match is None:
            if '"name"' in text:
                log.add("line_unreadable", f"a layer without its times: {text[:40]!r}", f"line {line}")
            continue
        try:
            mean_ns = decimal_ns(match.group(3), 1_000_000)
        except ValueError:
            log.add("value_unreadable", f"no mean time in {text[:40]!r}", f"line {line}")
            continue
        yield "inference", match.group(1), None, mean_ns
