"""OpenTelemetry spans: OTLP as JSON (ids in hex or base64) or binary, and the lines of the Python SDK's console."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.json_stream import JsonStream
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.slices import SliceColumns
from joulemap.formats.ground.text import read_head, read_lines
from joulemap.formats.ground.values import parse_stamp
from joulemap.formats.timelines.otlp_wire import is_wire, read_resources
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["OtlpReader"]

_HEX = re.compile(r"^[0-9a-f]+$")
_LIMIT_NS = 1 << 62
_KINDS = ("", "internal", "server", "client", "producer", "consumer")


class OtlpReader:
    """Reads spans; children may come before their parents. One track per trace: spans of one nest when they can.

    Stamps are epoch nanoseconds as text; the SDK's own lines have ISO times of microseconds.

    References:
        OpenTelemetry protocol, JSON Protobuf Encoding (hex ids); files of the Python SDK 1.45.2 and of protobuf's
        JSON printer (base64 ids), and the binary message.
    """

    name: ClassVar[str] = "otlp"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for resourceSpans, 0.97 for the binary message, 0.95 for a line of the SDK's console."""
        del path
        if is_wire(head):
            return 0.97
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if not start.startswith(b"{"):
            return 0.0
        if b'"resourceSpans"' in start[:4096]:
            return 1.0
        return (
            0.95 if b'"trace_id"' in start[:4096] and b'"span_id"' in start[:4096] and b'"start_time"' in head else 0.0
        )

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the spans as slices on UTC, their events as marks.

        Raises:
            FormatError: no JSON, or no span with a start and an end.
        """
        del options
        log = FindingLog()
        clock = Clock(name="host", kind=ClockKind.UTC)
        slices = SliceColumns(clock, log)
        head = read_head(path)
        if is_wire(head):
            spans = _resource_spans(read_resources(path, log), log)
        elif b'"resourceSpans"' in head[:4096]:
            spans = _protocol_spans(path, log)
        else:
            spans = _console_spans(path, log)
        for track, name, kind, span, marks in spans:
            slices.add(track, name, span, kind)
            for word, time_ns in marks:
                slices.mark(f"{name} {word}", time_ns)
        markers = slices.markers()
        timelines = slices.timelines()
        if not timelines:
            raise FormatError(f"{path.name} holds no span", hint="Export spans, not metrics.", slug="recording-empty")
        return recording_of(self.name, path, SampleBook(clock, log), markers=markers, timelines=timelines)


_Span = tuple[str, str, str, tuple[int, int], list[tuple[str, int]]]


def _protocol_spans(path: Path, log: FindingLog) -> Iterator[_Span]:
    stream = JsonStream(path, arrays=frozenset({"resourceSpans"}))
    resources = (item for member, item in stream if member == "resourceSpans" and isinstance(item, dict))
    yield from _resource_spans(resources, log)
    if stream.truncated:
        log.add(
            "recording_unfinished", "the document was never closed; every whole resource was read", "", Severity.INFO
        )


def _resource_spans(resources: Iterable[dict[str, Any]], log: FindingLog) -> Iterator[_Span]:
    number = 0
    for resource in resources:
        service = _service(resource)
        scopes = resource.get("scopeSpans", resource.get("instrumentationLibrarySpans"))
        for scope in _objects(scopes):
            for span in _objects(scope.get("spans")):
                number += 1
                try:
                    yield _protocol_span(span, service)
                except (KeyError, ValueError, TypeError):
                    log.add("stamp_unreadable", "a span without start and end; left out", f"span {number}")


def _protocol_span(span: dict[str, Any], service: str) -> _Span:
    start_ns, end_ns = _epoch(span["startTimeUnixNano"]), _epoch(span["endTimeUnixNano"])
    marks = [(str(event.get("name", "")), _epoch(event["timeUnixNano"])) for event in _objects(span.get("events"))]
    kind = span.get("kind", "")
    word = _KINDS[kind] if isinstance(kind, int) and 0 <= kind < len(_KINDS) else str(kind)
    word = word.lower().removeprefix("span_kind_")
    return (
        f"{service} {_hex_id(span.get('traceId'))}".strip(),
        str(span.get("name", "")),
        word,
        (start_ns, end_ns),
        marks,
    )


def _epoch(value: Any) -> int:
    number = int(value)
    if not 0 <= number < _LIMIT_NS or isinstance(value, bool):
        raise ValueError("no epoch time")
    return number


def _hex_id(value: Any) -> str:
    """Returns an id in lower-case hex: the specification's form, or protobuf's base64."""
    text = str(value or "").removeprefix("0x").lower()
    if len(text) == 32 and _HEX.match(text):
        return text
    try:
        return base64.b64decode(str(value), validate=True).hex()
    except (binascii.Error, ValueError):
        return text


def _service(resource: dict[str, Any]) -> str:
    inner = resource.get("resource")
    for attribute in _objects(inner.get("attributes")) if isinstance(inner, dict) else []:
        value = attribute.get("value")
        if attribute.get("key") == "service.name" and isinstance(value, dict):
            return str(value.get("stringValue", ""))
    return ""


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _console_spans(path: Path, log: FindingLog) -> Iterator[_Span]:
    for line, text in read_lines(path):
        if not text.strip():
            continue
        try:
            span = json.loads(text)
            context = span["context"]
            start_ns, end_ns = _iso(span["start_time"]), _iso(span["end_time"])
            marks = [(str(event.get("name", "")), _iso(event["timestamp"])) for event in _objects(span.get("events"))]
            kind = str(span.get("kind", "")).rpartition(".")[2].lower()
            yield _hex_id(context["trace_id"]), str(span.get("name", "")), kind, (start_ns, end_ns), marks
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            log.add("line_unreadable", f"not a span: {text[:40]!r}", f"line {line}")


def _iso(text: Any) -> int:
    stamp = parse_stamp(str(text))
    return stamp.ns if stamp.offset_s is None else stamp.utc_ns
