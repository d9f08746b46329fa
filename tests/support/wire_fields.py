"""The wire form of protocol buffers as a tree of fields, to be changed and written again."""

from __future__ import annotations

import struct
from typing import Any

__all__ = ["join_fields", "split_fields", "varint", "walk_fields", "wire"]

_DEPTH = 8


def varint(value: int) -> bytes:
    """Returns a protocol buffer's varint."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def wire(number: int, value: int | bytes | str) -> bytes:
    """Returns one field in wire form: an integer as varint, bytes and text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    body = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(body)) + body


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a varint is too long")


def split_fields(body: bytes, depth: int = 0) -> list[Any] | None:
    """Returns the fields as ``[number, wire type, value]``; a nested message is such a list; None when it is none."""
    fields: list[Any] = []
    at = 0
    try:
        while at < len(body):
            key, at = _varint(body, at)
            number, kind = key >> 3, key & 7
            if not number or kind not in (0, 1, 2, 5):
                return None
            value: Any
            if kind == 0:
                value, at = _varint(body, at)
            else:
                length, at = _varint(body, at) if kind == 2 else (8 if kind == 1 else 4, at)
                if at + length > len(body):
                    return None
                value, at = body[at : at + length], at + length
                if kind == 2 and value and depth < _DEPTH and (nested := split_fields(value, depth + 1)) is not None:
                    value = nested
            fields.append([number, kind, value])
    except (IndexError, ValueError):
        return None
    return fields or None


def join_fields(fields: list[Any]) -> bytes:
    """Returns the wire form of such a tree, with every length as its content has it."""
    out = bytearray()
    for number, kind, value in fields:
        if isinstance(value, int):
            if kind in (1, 5):
                out += varint(number << 3 | kind) + struct.pack("<Q" if kind == 1 else "<I", value & 0xFFFFFFFF)
            else:
                out += varint(number << 3) + varint(value)
            continue
        body = join_fields(value) if isinstance(value, list) else value
        fixed = kind if kind in (1, 5) and len(body) == (8 if kind == 1 else 4) else 2
        out += varint(number << 3 | fixed) + (body if fixed != 2 else varint(len(body)) + body)
    return bytes(out)


def walk_fields(fields: list[Any]) -> list[tuple[list[Any], int]]:
    """Returns (list, position) of every field at every depth."""
    found: list[tuple[list[Any], int]] = []
    for at, field in enumerate(fields):
        found.append((fields, at))
        if isinstance(field[2], list):
            found += walk_fields(field[2])
    return found
