"""Protocol buffers by a small schema: wire form and text form into the same trees, unknown fields skipped.

A message becomes a dictionary from field name to the list of its values in file order. Only the fields that a schema
names are decoded. It knows nothing of any message's meaning.

References:
    Protocol Buffers documentation, "Encoding" (wire types 0, 1, 2, 5; varints; packed fields) and "Text Format
    Language Specification" (messages in braces, ``#`` comments, C escapes, adjacent strings joined).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from joulemap.errors import FormatError

__all__ = ["Message", "Schema", "decode_message", "iter_fields", "parse_text_messages", "read_varint"]

Message = dict[str, list[Any]]
Schema = Mapping[str, Mapping[int, tuple[str, str]]]
"""Message name -> field number -> (field name, kind); a kind is ``uint``, ``int``, ``bool``, ``float``, ``double``,
``string``, ``bytes`` or the name of another message."""

_VARINT_KINDS = frozenset({"uint", "int", "bool"})
_MAX_DEPTH = 32


def _broken(what: str, at: int, place: str) -> FormatError:
    return FormatError(f"{place}: {what} at byte {at}", hint="copy or pull the file again", slug="protobuf-broken")


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
            if wire == 2:  # packed
                at = 0
                while at < len(raw):
                    item, at = read_varint(raw, at, place=place)
                    values.append(_scalar(kind, item))
            elif wire == 0:
                values.append(_scalar(kind, raw))
            else:
                values.append(int.from_bytes(raw, "little"))
        elif kind in ("float", "double"):
            wanted = 5 if kind == "float" else 1
            if wire != wanted:
                raise _broken(f"field {name} has wire type {wire}", 0, place)
            values.append(struct.unpack("<f" if kind == "float" else "<d", raw)[0])
        elif wire != 2:
            raise _broken(f"field {name} has wire type {wire}", 0, place)
        elif kind == "string":
            values.append(raw.decode("utf-8", "replace"))
        elif kind == "bytes":
            values.append(raw)
        else:
            values.append(decode_message(schema, kind, raw, place=place, depth=depth + 1))
    return tree


def _scalar(kind: str, raw: int) -> int | bool:
    if kind == "int":
        return raw - (1 << 64) if raw >> 63 else raw
    return bool(raw) if kind == "bool" else raw


_TOKEN = re.compile(
    r"""\s+ | \#[^\n]* | (?P<word>[A-Za-z_][A-Za-z0-9_.]*) | (?P<number>[-+]?[0-9.][0-9A-Za-z_.+-]*)
    | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*') | (?P<mark>[{}<>:;,\[\]-])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _ESCAPES.get(code, code)


class _Words:
    """Tokens of a text-format document with one of look-ahead."""

    def __init__(self, text: str, place: str) -> None:
        self.place = place
        self.text = text
        self.at = 0
        self.kind = self.value = ""
        self.advance()

    def advance(self) -> tuple[str, str]:
        """Returns the current (kind, value) and steps to the next; the end has kind ``end``."""
        current = (self.kind, self.value)
        while True:
            if self.at >= len(self.text):
                self.kind, self.value = "end", ""
                return current
            match = _TOKEN.match(self.text, self.at)
            if match is None:
                raise self.broken(f"unexpected {self.text[self.at]!r}")
            self.at = match.end()
            if match.lastgroup is not None:
                self.kind, self.value = match.lastgroup, match.group()
                return current

    def broken(self, what: str) -> FormatError:
        """Returns the error for the current place."""
        line = self.text.count("\n", 0, self.at) + 1
        return FormatError(
            f"{self.place}: {what} in line {line}",
            hint="write the trace with --txt or --out again",
            slug="protobuf-broken",
        )


def parse_text_messages(schema: Schema, root: str, text: str, *, place: str = "text proto") -> Message:
    """Returns the named fields of a message in text form.

    Raises:
        FormatError: the text is no message.
    """
    words = _Words(text, place)
    return _text_fields(schema, root, words, 0)


def _text_fields(schema: Schema, message: str | None, words: _Words, depth: int) -> Message:
    """Returns the fields up to the closing mark; ``message`` is None inside a field that the schema does not name."""
    if depth > _MAX_DEPTH:
        raise words.broken("messages nested too deep")
    names = {name: kind for name, kind in schema[message].values()} if message else {}
    tree: Message = {}
    while True:
        kind, name = words.advance()
        if kind == "end" or (kind == "mark" and name in "}>"):
            if (kind == "end") != (depth == 0):
                raise words.broken("a brace without its partner")
            return tree
        if kind == "mark" and name in ";,":
            continue
        if kind == "mark" and name == "[":  # an extension name
            while words.advance() != ("mark", "]"):
                if words.kind == "end":
                    raise words.broken("a bracket without its partner")
            name = ""
        elif kind != "word":
            raise words.broken(f"a field name was expected, not {name!r}")
        colon = (words.kind, words.value) == ("mark", ":")
        if colon:
            words.advance()
        wanted = names.get(name)
        if (words.kind, words.value) == ("mark", "["):
            words.advance()
            while (words.kind, words.value) != ("mark", "]"):
                if words.kind == "end":
                    raise words.broken("a bracket without its partner")
                if (words.kind, words.value) == ("mark", ","):
                    words.advance()
                    continue
                _text_value(schema, wanted, words, tree, name, depth)
            words.advance()
        else:
            _text_value(schema, wanted, words, tree, name, depth)


def _text_value(schema: Schema, wanted: str | None, words: _Words, tree: Message, name: str, depth: int) -> None:
    kind, value = words.advance()
    result: Any
    if kind == "mark" and value in "{<":
        nested = wanted if wanted in schema else None
        result = _text_fields(schema, nested, words, depth + 1)
        if nested is None:
            return
    elif kind == "string":
        parts = [_ESCAPE.sub(_unescape, value[1:-1])]
        while words.kind == "string":
            parts.append(_ESCAPE.sub(_unescape, words.advance()[1][1:-1]))
        result = "".join(parts)
        if wanted == "bytes":
            result = result.encode("latin-1", "replace")
    elif kind in ("number", "word"):
        result = _text_scalar(wanted, value, words)
    elif (kind, value) == ("mark", "-") and words.kind in ("number", "word"):
        result = _text_scalar(wanted, "-" + words.advance()[1], words)
    else:
        raise words.broken(f"a value was expected for {name or 'an extension'}")
    if wanted is not None:
        if wanted in schema and not isinstance(result, dict):
            raise words.broken(f"field {name} is a message")
        if wanted in ("uint", "int", "float", "double") and isinstance(result, (str, dict)) and kind != "word":
            raise words.broken(f"field {name} is a number")
        tree.setdefault(name, []).append(result)


def _text_scalar(wanted: str | None, value: str, words: _Words) -> Any:
    if wanted is None:
        return value
    if wanted == "bool":
        return value.lower() in ("true", "t", "1")
    try:
        if wanted in ("float", "double"):
            return float(value.rstrip("fF") if value.lower() not in ("inf", "-inf") else value)
        if wanted in ("uint", "int"):
            return int(value, 0)
    except ValueError:
        if value[0].isalpha():
            return value  # an enumerator's name
        raise words.broken(f"{value!r} is no number") from None
    return value
