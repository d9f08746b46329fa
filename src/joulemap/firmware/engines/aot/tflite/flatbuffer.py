"""Bounds check of a FlatBuffer before anything unpacks it.

The generated accessors trust every offset in the file; a flipped bit makes them read anywhere, loop for minutes or
allocate gigabytes. This module walks the tables that a caller describes and proves that each offset, vector and string
lies inside the file, within a budget of tables and bytes, so that the accessors are safe afterwards. It knows the
FlatBuffers encoding and nothing of models.

References:
    FlatBuffers internals, https://flatbuffers.dev/internals/ (tables, vtables, vectors, strings, unions).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "Absent",
    "FlatBufferError",
    "Reference",
    "Scalar",
    "Sequence",
    "Table",
    "Text",
    "Union",
    "verify_flatbuffer",
]

_TABLE_LIMIT = 200_000
_DEPTH_LIMIT = 16
_SLACK_B = 1 << 16


class FlatBufferError(ValueError):
    """The bytes break the FlatBuffers encoding, or use a field that the caller does not take."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """An inline number of ``size_b`` bytes."""

    size_b: int


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A field that must not be there (named, for the message)."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A vector: of numbers of ``item`` bytes, or of tables."""

    item: int | Table
    limit: int = 1 << 31


@dataclass(frozen=True, slots=True)
class Reference:
    """One table behind an offset."""

    table: Table


@dataclass(frozen=True, slots=True)
class Union:
    """A table whose kind is the number in the slot before; kinds that are not listed are not followed."""

    kinds: Mapping[int, Table]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name for messages, and what each slot holds. Slots that are not listed are never read."""

    name: str
    slots: Mapping[int, Scalar | Text | Absent | Sequence | Reference | Union] = field(default_factory=dict)


def verify_flatbuffer(data: bytes, root: Table) -> None:
    """Proves that every described part of ``data`` lies inside it.

    Args:
        data: the whole file.
        root: description of the root table.

    Raises:
        FlatBufferError: an offset, length or size is out of range, a forbidden field is present, or the walk exceeds
            its budget (200,000 tables, vectors of four times the file).
    """
    walk = _Walk(data)
    walk.table(root, walk.follow(0, "root"), 0)


class _Walk:
    """The state of one check: the bytes and what is left of the budget."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._tables_left = _TABLE_LIMIT
        self._bytes_left = 4 * len(data) + _SLACK_B

    def _unpack(self, layout: str, position: int, what: str) -> int:
        size_b = struct.calcsize(layout)
        if position < 0 or position + size_b > len(self._data):
            raise FlatBufferError(f"{what}: byte {position} lies outside the file of {len(self._data)} bytes")
        value: int = struct.unpack_from(layout, self._data, position)[0]
        return value

    def follow(self, position: int, what: str) -> int:
        """Returns the position that the unsigned offset at ``position`` points to."""
        offset = self._unpack("<I", position, what)
        if offset < 4 or position + offset >= len(self._data):
            raise FlatBufferError(f"{what}: offset {offset} at byte {position} leaves the file")
        return position + offset

    def _slots(self, table: Table, position: int) -> tuple[list[int], int]:
        """Returns the field offsets of the table at ``position`` (0: default) and its inline size."""
        what = table.name
        vtable = position - self._unpack("<i", position, what)
        vtable_b = self._unpack("<H", vtable, f"{what}: vtable")
        table_b = self._unpack("<H", vtable + 2, f"{what}: vtable")
        if vtable_b < 4 or vtable_b % 2 or vtable + vtable_b > len(self._data):
            raise FlatBufferError(f"{what}: vtable of {vtable_b} bytes at byte {vtable}")
        if table_b < 4 or position + table_b > len(self._data):
            raise FlatBufferError(f"{what}: table of {table_b} bytes at byte {position} leaves the file")
        count = min((vtable_b - 4) // 2, max(table.slots, default=-1) + 1)  # a vtable may be long, the walk is not
        return list(struct.unpack_from(f"<{count}H", self._data, vtable + 4)), table_b

    def table(self, table: Table, position: int, depth: int) -> None:
        """Checks the table at ``position`` and everything below it."""
        self._tables_left -= 1
        if self._tables_left < 0 or depth > _DEPTH_LIMIT:
            raise FlatBufferError(f"{table.name}: more tables than a model can have")
        offsets, table_b = self._slots(table, position)
        for slot, kind in table.slots.items():
            offset = offsets[slot] if slot < len(offsets) else 0
            if offset == 0:
                continue
            what = f"{table.name}, field {slot}"
            width_b = kind.size_b if isinstance(kind, Scalar) else 4
            if offset < 4 or offset + width_b > table_b:
                raise FlatBufferError(f"{what}: offset {offset} lies outside its table of {table_b} bytes")
            if isinstance(kind, Union):
                kind_at = position + offsets[slot - 1] if offsets[slot - 1] else None
                self._union(kind, kind_at, position + offset, depth)
            else:
                self._field(kind, position + offset, what, depth)

    def _field(self, kind: Scalar | Text | Absent | Sequence | Reference, at: int, what: str, depth: int) -> None:
        """Checks what the field at ``at`` refers to; the field itself lies inside its table."""
        match kind:
            case Scalar():
                pass
            case Absent():
                raise FlatBufferError(f"{what}: {kind.name} is not taken")
            case Text():
                self._vector(self.follow(at, what), 1, what)
            case Reference():
                self.table(kind.table, self.follow(at, what), depth + 1)
            case Sequence():
                self._sequence(kind, self.follow(at, what), what, depth)

    def _sequence(self, kind: Sequence, start: int, what: str, depth: int) -> None:
        width_b = kind.item if isinstance(kind.item, int) else 4
        count = self._vector(start, width_b, what)
        if count > kind.limit:
            raise FlatBufferError(f"{what}: {count} items, at most {kind.limit} are taken")
        if isinstance(kind.item, Table):
            for index in range(count):
                item = start + 4 + 4 * index
                self.table(kind.item, self.follow(item, f"{kind.item.name} {index}"), depth + 1)

    def _union(self, union: Union, kind_at: int | None, at: int, depth: int) -> None:
        table = union.kinds.get(self._data[kind_at]) if kind_at is not None else None
        if table is not None:
            self.table(table, self.follow(at, table.name), depth + 1)

    def _vector(self, start: int, width_b: int, what: str) -> int:
        """Returns the item count of the vector at ``start`` after checking its extent."""
        count = self._unpack("<I", start, what)
        size_b = count * width_b
        if start + 4 + size_b > len(self._data):
            raise FlatBufferError(f"{what}: vector of {count} items at byte {start} leaves the file")
        self._bytes_left -= size_b
        if self._bytes_left < 0:
            raise FlatBufferError(f"{what}: the vectors overlap more than a model's do")
        return count
