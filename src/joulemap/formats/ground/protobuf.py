"""Protocol buffers in wire form by a small schema: messages into trees, unknown fields skipped.

A message becomes a dictionary from field name to the list of its values in file order. Only the fields that a schema
names are decoded. It knows nothing of any message's meaning.

References:
    Protocol Buffers documentation, "Encoding" (wire types 0, 1, 2, 5; varints; packed fields).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from joulemap.errors import FormatError

__all__ = ["Message", "Schema", "decode_message", "iter_fields", "read_varint"]

Message = dict[str, list[Any]]
Schema = Mapping[str, Mapping[int, tuple[str, str]]]
"""Message name -> field number -> (field name, kind); a kind is ``uint``, ``int``, ``bool``, ``enum``, ``float``,
``double``, ``string``, ``bytes`` or the name of another message."""

_VARINT_KINDS = frozenset({"uint", "int", "bool", "enum"})
_MAX_DEPTH = 32


def _broken(what: str, at: int, place: str) -> FormatError:
    return FormatError(f"{place}: {what} at byte {at}", hint="copy or pull the file again", slug="protobuf-damaged")


def read_varint(data: bytes, at: int, *, place: str = "protobuf") -> tuple[int, int]:
    """Returns (value, offset after it) of the varint at ``at``.

    Raises:
        FormatError: the data end inside it, or it is longer than ten bytes.
    """
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _broken("a number that does not end", at, place)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def iter_fields(data: bytes, *, place: str = "protobuf") -> Iterator[tuple[int, int, Any]]:
    """Yields (field number, wire type, raw value) of one message: int for varints and fixed, bytes for the rest.

    Raises:
        FormatError: the bytes are no message.
    """
    at = 0
    size = len(data)
    while at < size:
        key, at = read_varint(data, at, place=place)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise _broken("field number 0", at, place)
        value: Any
        if wire == 0:
            value, at = read_varint(data, at, place=place)
        elif wire == 2:
            length, at = read_varint(data, at, place=place)
            if length > size - at:
                raise _broken(f"a field of {length} bytes that goes beyond its message", at, place)
            value = data[at : at + length]
            at += length
        elif wire in (1, 5):
            width = 8 if wire == 1 else 4
            if width > size - at:
                raise _broken("a fixed field that goes beyond its message", at, place)
            value = data[at : at + width]
            at += width
        else:
            raise _broken(f"wire type {wire}", at, place)
        yield number, wire, value


def decode_message(schema: Schema, message: str, data: bytes, *, place: str = "protobuf", depth: int = 0) -> Message:
    """Returns the named fields of a message in wire form.

    Raises:
        FormatError: the bytes are no message of that schema, or nest deeper than reason.
    """
    if depth > _MAX_DEPTH:
        raise _broken("messages nested too deep", 0, place)
    fields = schema[message]
    tree: Message = {}
    for number, wire, raw in iter_fields(data, place=place):
        known = fields.get(number)
        if known is None:
            continue
        name, kind = known
        values = tree.setdefault(name, [])
        if kind in _VARINT_KINDS:
            values.extend(_integers(kind, wire, raw, place))
        elif kind in ("float", "double"):
            values.append(_floating(kind, wire, raw, f"{place}, field {name}"))
        elif wire != 2:
            raise _broken(f"field {name} has wire type {wire}", 0, place)
        elif kind == "string":
            values.append(raw.decode("utf-8", "replace"))
        elif kind == "bytes":
            values.append(raw)
        else:
            values.append(decode_message(schema, kind, raw, place=place, depth=depth + 1))
    return tree


def _integers(kind: str, wire: int, raw: Any, place: str) -> list[int | bool]:
    """Returns the values of a field of whole numbers: one, or several packed into one."""
    if wire == 0:
        return [_scalar(kind, raw)]
    if wire != 2:
        return [int.from_bytes(raw, "little")]
    values: list[int | bool] = []
    at = 0
    while at < len(raw):
        item, at = read_varint(raw, at, place=place)
        values.append(_scalar(kind, item))
    return values


def _floating(kind: str, wire: int, raw: Any, place: str) -> float:
    if wire != (5 if kind == "float" else 1):
        raise _broken(f"wire type {wire} for a {kind}", 0, place)
    value: float = struct.unpack("<f" if kind == "float" else "<d", raw)[0]
    return value


def _scalar(kind: str, raw: int) -> int | bool:
    if kind == "int":
        return raw - (1 << 64) if raw >> 63 else raw
    return bool(raw) if kind == "bool" else raw
