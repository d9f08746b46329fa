"""OTLP's binary form: the message that an exporter posts, decoded span by span.

References:
    opentelemetry-proto, collector/trace/v1/trace_service.proto, trace/v1/trace.proto, resource/v1/resource.proto,
    common/v1/common.proto (field numbers); a file of the Python SDK 1.45.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from joulemap.errors import FormatError
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.protobuf import Schema, decode_message, iter_fields, read_varint
from joulemap.formats.ground.text import open_bytes

__all__ = ["is_wire", "read_resources"]

_SIZE_MAX_B: Final = 1 << 28
_ATTRIBUTE_OPENING: Final = 3  # a request, its resource, an attribute and the attribute's key are each field 1
_FIELD_1: Final = 0x0A

_SCHEMA: Final[Schema] = {
    "ResourceSpans": {1: ("resource", "Resource"), 2: ("scopeSpans", "ScopeSpans")},
    "Resource": {1: ("attributes", "KeyValue")},
    "KeyValue": {1: ("key", "string"), 2: ("value", "AnyValue")},
    "AnyValue": {1: ("stringValue", "string")},
    "ScopeSpans": {2: ("spans", "Span")},
    "Span": {
        1: ("traceId", "bytes"),
        2: ("spanId", "bytes"),
        5: ("name", "string"),
        6: ("kind", "uint"),
        7: ("startTimeUnixNano", "uint"),
        8: ("endTimeUnixNano", "uint"),
        11: ("events", "Event"),
    },
    "Event": {1: ("timeUnixNano", "uint"), 2: ("name", "string")},
}
_LISTS: Final = frozenset({"scopeSpans", "spans", "events", "attributes"})


def is_wire(head: bytes) -> bool:
    """Returns whether a head opens as a request whose resource has an attribute with a printable name."""
    at = 0
    try:
        for _ in range(_ATTRIBUTE_OPENING):
            if head[at : at + 1] != bytes([_FIELD_1]):
                return False
            _, at = read_varint(head, at + 1)
        if head[at : at + 1] != bytes([_FIELD_1]):
            return False
        length, at = read_varint(head, at + 1)
    except FormatError:
        return False
    key = head[at : at + length]
    return 0 < length == len(key) < 256 and key.isascii() and key.decode("ascii").isprintable()


def read_resources(path: Path, log: FindingLog) -> Iterator[dict[str, Any]]:
    """Yields each resource with its spans, in the shape that OTLP's JSON form has.

    Raises:
        FormatError: no such message, or one beyond 256 MiB.
    """
    with open_bytes(path) as handle:
        body = handle.read(_SIZE_MAX_B + 1)
    if len(body) > _SIZE_MAX_B:
        raise FormatError(
            f"{path.name} is one message of more than {_SIZE_MAX_B >> 20} MiB",
            hint="Export in smaller requests, or as JSON.",
            slug="recording-too-large",
        )
    fields = iter_fields(body, place=path.name)
    number = 0
    while True:
        try:
            field, wire, raw = next(fields)
        except StopIteration:
            return
        except FormatError as error:
            if not number:
                raise
            log.add("tail_cut", f"{error.message}; what stands before it is read", f"resource {number + 1}")
            return
        if field != 1 or wire != 2:
            continue
        number += 1
        try:
            yield _plain(decode_message(_SCHEMA, "ResourceSpans", raw, place=path.name))
        except FormatError as error:
            log.add("packet_damaged", f"{error.message}; the resource is left out", f"resource {number}")


def _plain(message: Any) -> dict[str, Any]:
    """Returns a decoded message with the last value of each plain field and all of each list."""
    tree: dict[str, Any] = {}
    for name, values in message.items():
        items = [_plain(value) if isinstance(value, dict) else value for value in values]
        items = [value.hex() if isinstance(value, bytes) else value for value in items]
        if items:  # a packed field may hold none
            tree[name] = items if name in _LISTS else items[-1]
    return tree
