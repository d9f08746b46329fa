"""Triton Inference Server's trace file: stamps of requests, several objects joined by id, on a steady clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.json_stream import JsonStream
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.slices import SliceColumns
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["TritonTraceReader"]

_STEPS = (
    ("request", "run", ("REQUEST_START",), ("REQUEST_END",)),
    ("queue", "queue", ("QUEUE_START",), ("COMPUTE_START",)),
    ("compute", "inference", ("COMPUTE_START",), ("COMPUTE_END",)),
    ("compute input", "operator", ("COMPUTE_START",), ("COMPUTE_INPUT_END",)),
    ("compute infer", "operator", ("COMPUTE_INPUT_END",), ("COMPUTE_OUTPUT_START",)),
    ("compute output", "operator", ("COMPUTE_OUTPUT_START",), ("COMPUTE_END",)),
    ("http receive", "transfer", ("HTTP_RECV_START", "GRPC_WAITREAD_START"), ("HTTP_RECV_END", "GRPC_WAITREAD_END")),
    ("http send", "transfer", ("HTTP_SEND_START", "GRPC_SEND_START"), ("HTTP_SEND_END", "GRPC_SEND_END")),
)


@dataclass(slots=True)
class _Request:
    model: str = ""
    parent: str = ""
    stamps: dict[str, int] = field(default_factory=dict)


class TritonTraceReader:
    """Reads the trace; its stamps are not in order and are no epoch time. By default every 1000th request is traced.

    References:
        triton-inference-server/server 024377ab, docs/user_guide/trace.md and qa/common/trace_summary.py; files of
        2019 hold one object per request and lower-case names (``queue start``).
    """

    name: ClassVar[str] = "triton-trace"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for an array of objects with timestamps of name and ns."""
        del path
        opening = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        known = b'"timestamps"' in head and b'"ns"' in head and (b'"id"' in head or b'"model_name"' in head)
        return 0.95 if opening and known else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns request, queue and compute as slices, one track per request.

        Raises:
            FormatError: no JSON, or no request with a start and an end.
        """
        del options
        log = FindingLog()
        clock = Clock(name="steady", kind=ClockKind.MONOTONIC)
        requests: dict[str, _Request] = {}
        stream = JsonStream(path)
        for number, (_, record) in enumerate(stream, start=1):
            if isinstance(record, dict):
                self._take(record, number, (requests, log))
        if stream.truncated:
            log.add("recording_unfinished", "the array was never closed; every whole object was read",
                    f"character {stream.offset}", Severity.INFO)  # fmt: skip
        slices = SliceColumns(clock, log)
        for key, request in requests.items():
            self._slices(key, request, slices)
        timelines = slices.timelines()
        if not timelines:
            raise FormatError(
                f"{path.name} holds no request with start and end",
                hint="Trace with level TIMESTAMPS.",
                slug="recording-empty",
            )
        return recording_of(self.name, path, SampleBook(clock, log), timelines=timelines)

    @staticmethod
    def _take(record: dict[str, Any], number: int, sink: tuple[dict[str, _Request], FindingLog]) -> None:
        requests, log = sink
        key = str(record.get("id", f"object {number}"))
        request = requests.setdefault(key, _Request())
        if "model_name" in record:
            request.model = str(record["model_name"])
            request.parent = str(record.get("parent_id", ""))
        stamps = record.get("timestamps")
        for stamp in stamps if isinstance(stamps, list) else []:
            if not isinstance(stamp, dict) or not isinstance(stamp.get("ns"), int) or not 0 <= stamp["ns"] < 1 << 62:
                log.add("stamp_unreadable", "a stamp without name or ns; left out", f"object {number}")
                continue
            name = str(stamp.get("name", "")).upper().replace(" ", "_")
            request.stamps.setdefault(name, stamp["ns"])

    @staticmethod
    def _slices(key: str, request: _Request, slices: SliceColumns) -> None:
        used = set()
        for name, kind, starts, ends in _STEPS:
            start = next((word for word in starts if word in request.stamps), None)
            end = next((word for word in ends if word in request.stamps), None)
            if start is None or end is None:
                continue
            used |= {start, end}
            label = f"{request.model} {name}".strip()
            track = f"request {key}" if not request.parent else f"request {key} of {request.parent}"
            slices.add(track, label, (request.stamps[start], request.stamps[end]), kind)
        for name, time_ns in request.stamps.items():
            if name not in used:
                slices.mark(f"{key} {name}", time_ns)
