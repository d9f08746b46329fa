"""Protocol buffers in text form by the schema of their wire form: the same trees, unknown fields skipped.

It knows nothing of any message's meaning.

References:
    Protocol Buffers documentation, "Text Format Language Specification" (messages in braces, ``#`` comments, C
    escapes, adjacent strings joined).
"""

from __future__ import annotations

import re
from typing import Any

from joulemap.errors import FormatError
from joulemap.formats.ground.protobuf import Message, Schema

__all__ = ["parse_text_messages"]

_RANGES = {"uint": (0, (1 << 64) - 1), "int": (-(1 << 63), (1 << 63) - 1), "enum": (-(1 << 31), (1 << 31) - 1)}
_MAX_DEPTH = 32
_END = ("end", "")
_OPENERS, _CLOSERS, _SEPARATORS = "{<", "}>", ";,"

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
            slug="protobuf-damaged",
        )


def parse_text_messages(schema: Schema, root: str, text: str, *, place: str = "text proto") -> Message:
    """Returns the named fields of a message in text form.

    Raises:
        FormatError: the text is no message.
    """
    return _Parser(schema, _Words(text, place)).fields(root, 0)


class _Parser:
    """Reads fields until a closing mark; what the schema does not name is read and dropped."""

    def __init__(self, schema: Schema, words: _Words) -> None:
        self.schema = schema
        self.words = words

    def fields(self, message: str | None, depth: int) -> Message:
        """Returns the fields up to the closing mark; ``message`` is None inside a field without a name."""
        words = self.words
        if depth > _MAX_DEPTH:
            raise words.broken("messages nested too deep")
        kinds = dict(self.schema[message].values()) if message else {}
        tree: Message = {}
        while True:
            kind, word = words.advance()
            if (kind, word) == _END or (kind == "mark" and word in _CLOSERS):
                if (kind == "end") != (depth == 0):
                    raise words.broken("a brace without its partner")
                return tree
            if kind == "mark" and word in _SEPARATORS:
                continue
            name = self._name(kind, word)
            if (words.kind, words.value) == ("mark", ":"):
                words.advance()
            values = self._values(kinds.get(name), name, depth)
            if name in kinds:
                tree.setdefault(name, []).extend(values)

    def _name(self, kind: str, word: str) -> str:
        if kind == "word":
            return word
        if (kind, word) != ("mark", "["):
            raise self.words.broken(f"a field name was expected, not {word!r}")
        while (token := self.words.advance()) != ("mark", "]"):  # the name of an extension
            if token == _END:
                raise self.words.broken("a bracket without its partner")
        return ""

    def _values(self, wanted: str | None, name: str, depth: int) -> list[Any]:
        """Returns the value of a field, or those of a list in brackets."""
        words = self.words
        if (words.kind, words.value) != ("mark", "["):
            return [self._value(wanted, name, depth)]
        words.advance()
        values = []
        while (words.kind, words.value) != ("mark", "]"):
            if words.kind == "end":
                raise words.broken("a bracket without its partner")
            if (words.kind, words.value) == ("mark", ","):
                words.advance()
            else:
                values.append(self._value(wanted, name, depth))
        words.advance()
        return values

    def _value(self, wanted: str | None, name: str, depth: int) -> Any:
        words = self.words
        kind, value = words.advance()
        message = wanted is not None and wanted in self.schema
        if kind == "mark" and value in _OPENERS:
            tree = self.fields(wanted if message else None, depth + 1)
            if wanted is not None and not message:
                raise words.broken(f"field {name} is no message")
            return tree
        if message:
            raise words.broken(f"field {name} is a message")
        if kind == "string":
            return self._string(wanted, value, name)
        if (kind, value) == ("mark", "-") and words.kind in ("number", "word"):
            kind, value = "number", "-" + words.advance()[1]
        if kind not in ("number", "word"):
            raise words.broken(f"a value was expected for {name or 'an extension'}")
        return self._scalar(wanted, value)

    def _string(self, wanted: str | None, value: str, name: str) -> str | bytes:
        if wanted in ("float", "double", "bool", *_RANGES):
            raise self.words.broken(f"field {name} is a number")
        parts = [_ESCAPE.sub(_unescape, value[1:-1])]
        while self.words.kind == "string":
            parts.append(_ESCAPE.sub(_unescape, self.words.advance()[1][1:-1]))
        text = "".join(parts)
        return text.encode("latin-1", "replace") if wanted == "bytes" else text

    def _scalar(self, wanted: str | None, value: str) -> Any:
        if wanted == "bool":
            return value.lower() in ("true", "t", "1")
        try:
            if wanted in ("float", "double"):
                return float(value if value.lower().lstrip("-") in ("inf", "nan", "infinity") else value.rstrip("fF"))
            if wanted in _RANGES:
                number = int(value, 0)
                if not _RANGES[wanted][0] <= number <= _RANGES[wanted][1]:
                    raise self.words.broken(f"{value[:40]} does not fit its field")
                return number
        except ValueError:
            if wanted == "enum" and value[0].isalpha():
                return value  # an enumerator's name
            raise self.words.broken(f"{value[:40]!r} is no number") from None
        return value
