"""Large JSON documents read one element at a time, so that memory stays flat however long the file is.

A trace of a gigabyte is an array of small objects. This module walks the top of such a document (an array, or an
object whose named members are arrays) and hands out each element decoded, keeping numbers with a fraction as the
text that was written: a float cannot hold an epoch in nanoseconds. Files that were never closed, or that end in a
comma, give what they hold and say so. It knows nothing of any format's keys.

References:
    RFC 8259 (JSON); NaN and Infinity, which it forbids and tools write, are taken as missing (None).
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from joulemap.errors import FormatError, InputError
from joulemap.formats.ground.text import open_bytes

__all__ = ["JsonStream", "read_json"]

_CHUNK_B = 1 << 20
_MAX_ELEMENT = 1 << 25  # characters of one element; a bounded reader must stop somewhere
_TAIL = 1 << 14  # characters before the end of the buffer at which more is read first, so that a scan can go on
_SEPARATORS = re.compile(r"[\s,\x00]*")
_LOOK_AHEAD = 3  # a number may go on behind the buffer: ``1.``, ``1e-``
_SPACE = re.compile(r"\s*")


def _no_number(_name: str) -> None:
    """Returns None for NaN and the infinities: a missing value."""


_DECODER = json.JSONDecoder(parse_float=str, parse_constant=_no_number)
_decode_at = cast("Callable[[str, int], tuple[Any, int]]", _DECODER.raw_decode)


class JsonStream:
    """Walks one JSON document; ``truncated`` and ``offset`` say afterwards how it ended.

    Args:
        path: file, plain or gzip.
        arrays: names of top-level members whose elements are handed out one by one; a top-level array is always.
        scan: is asked before an element is decoded, with the text at hand when that is ASCII and a place in it: it may
            take whole elements itself and returns the place after the last of them.
    """

    def __init__(
        self, path: Path, *, arrays: frozenset[str] = frozenset(), scan: Callable[[bytes, int], int] | None = None
    ) -> None:
        self.path = path
        self.arrays = arrays
        self._scan = scan
        self._raw: bytes | None = None  # the buffer as bytes, where a scan can go through it
        self.truncated = False
        self._dropped = 0  # characters before the buffer
        self._buffer = ""
        self._at = self._at_next = 0
        self._ended = False
        self._handle: IO[bytes] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")

    @property
    def offset(self) -> int:
        """Characters from the start of the text to the next one to read."""
        return self._dropped + self._at

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yields (member, value) in file order; the member of an element of a top-level array is the empty string.

        Raises:
            FormatError: the text is no JSON, or one element is longer than a bounded reader takes.
            InputError: the file cannot be opened.
        """
        with open_bytes(self.path) as handle:
            self._handle = handle
            opening = self._peek()
            if not opening:
                raise FormatError(
                    f"{self.path.name} is empty",
                    hint="the writer had not closed its session: end profiling before copying the file",
                    slug="recording-empty",
                )
            if opening == "[":
                yield from self._elements("")
            elif opening == "{":
                yield from self._members()
            else:
                raise self._broken("neither an array nor an object")
            if not self.truncated and self._peek(_SEPARATORS):
                raise self._broken("text after the end of the document")

    def _members(self) -> Iterator[tuple[str, Any]]:
        self._at += 1
        while True:
            character = self._peek(_SEPARATORS)
            if character == "}":
                self._at += 1
                return
            if not character:
                self.truncated = True
                return
            key = self._value()
            if self.truncated:
                return
            if not isinstance(key, str) or self._peek() != ":":
                if not self._peek():
                    self.truncated = True
                    return
                raise self._broken("a member without a name")
            self._at += 1
            if self._peek() == "[" and key in self.arrays:
                yield from self._elements(key)
            else:
                value = self._value()
                if not self.truncated:
                    yield key, value
            if self.truncated:
                return

    def _elements(self, member: str) -> Iterator[tuple[str, Any]]:
        self._at += 1
        skip, decode = _SEPARATORS.match, _decode_at
        while True:
            # The loop of a gigabyte: as long as elements lie whole in the buffer, one match and one decode each.
            buffer, at = self._buffer, self._at
            try:
                while True:
                    if self._raw is not None and self._scan is not None:
                        self._at = at = self._scan(self._raw, at)
                        if len(buffer) - at < _TAIL and not self._ended:  # an element may go on behind it
                            self._fill(_CHUNK_B)
                            buffer, at = self._buffer, self._at
                            continue
                    match = skip(buffer, at)
                    at = match.end() if match else at
                    value, end = decode(buffer, at)
                    if end >= len(buffer) - _LOOK_AHEAD:
                        break
                    self._at = at = end
                    yield member, value
            except (ValueError, RecursionError):
                pass  # the closing bracket, the end of the buffer, or damage: told apart below
            self._at = at
            character = self._peek(_SEPARATORS)
            if not character:
                self.truncated = True
                return
            if character == "]":
                self._at += 1
                return
            value = self._value()
            if self.truncated:
                return
            yield member, value

    def _value(self) -> Any:
        """Returns the value at the cursor; sets ``truncated`` (and returns None) when the file ends inside it."""
        step = _CHUNK_B
        while True:
            self._peek()
            try:
                value, self._at_next = _decode_at(self._buffer, self._at)
            except json.JSONDecodeError as error:
                unfinished = error.msg.startswith("Unterminated string") or error.pos >= len(self._buffer) - 12
                if not unfinished:
                    self._at = error.pos
                    raise self._broken(error.msg) from None
                if len(self._buffer) - self._at > _MAX_ELEMENT:
                    raise self._broken(f"one element is longer than {_MAX_ELEMENT} characters") from None
                if not self._fill(step):
                    self.truncated = True
                    return None
                step *= 2
                continue
            except (RecursionError, ValueError) as error:  # nesting beyond reason; an integer of thousands of digits
                raise self._broken(str(error)) from None
            if (
                self._at_next >= len(self._buffer) - _LOOK_AHEAD
                and not self._ended
                and not isinstance(value, (dict, list, str))
            ):
                self._fill(step)  # a number may go on in the next chunk
                continue
            self._at = self._at_next
            return value

    def _peek(self, skip: re.Pattern[str] = _SPACE) -> str:
        """Returns the next character after what ``skip`` takes, empty at the end; the cursor stands on it."""
        while True:
            match = skip.match(self._buffer, self._at)
            if match is not None:
                self._at = match.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._fill(_CHUNK_B):
                return ""

    def _fill(self, size_b: int) -> bool:
        """Drops what was read and appends more; returns False at the end of the file."""
        if self._ended:
            return False
        assert self._handle is not None  # set while iterating
        try:
            raw = self._handle.read(size_b)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raw = b""  # a packed file cut short: what came so far is what there is
            self._ended = True
        except OSError as error:
            raise InputError(
                f"{self.path.name}: read failed: {error.strerror or error}",
                hint="check the medium",
                slug="recording-unreadable",
            ) from error
        text = self._decoder.decode(raw, final=not raw)
        self._ended = not raw
        self._dropped += self._at
        self._buffer = self._buffer[self._at :] + text
        self._at = 0
        self._raw = self._buffer.encode() if self._scan is not None and self._buffer.isascii() else None
        return bool(text) or not self._ended

    def _broken(self, what: str) -> FormatError:
        return FormatError(
            f"{self.path.name}: not readable as JSON at character {self.offset}: {what}",
            hint="export the file again, or cut it before that place",
            slug="json-damaged",
        )


def read_json(path: Path, *, limit_b: int = 1 << 26) -> Any:
    """Returns a small JSON document whole, numbers with a fraction as text.

    Args:
        path: file.
        limit_b: largest size taken, bytes.

    Raises:
        FormatError: no JSON, empty, or larger than the limit.
        InputError: the file cannot be opened.
    """
    with open_bytes(path) as handle:
        try:
            raw = handle.read(limit_b + 1)
        except (EOFError, zlib.error, OSError) as error:
            raise FormatError(
                f"{path.name}: cannot be unpacked: {error}", hint="copy the file again", slug="archive-damaged"
            ) from error
    if len(raw) > limit_b:
        raise FormatError(
            f"{path.name} is larger than {limit_b} bytes, more than this format ever holds",
            hint="give the recording itself, not a collection of them",
            slug="recording-too-large",
        )
    text = raw.decode("utf-8-sig", "replace").strip("\x00 \r\n\t")
    if not text:
        raise FormatError(f"{path.name} is empty", hint="copy the file again", slug="recording-empty")
    try:
        value, end = _decode_at(text, 0)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{path.name}: not readable as JSON in line {error.lineno}: {error.msg}",
            hint="export the file again",
            slug="json-damaged",
        ) from None
    except (RecursionError, ValueError) as error:
        raise FormatError(
            f"{path.name}: not readable as JSON: {error}", hint="export the file again", slug="json-damaged"
        ) from None
    if text[end:].strip():
        raise FormatError(
            f"{path.name}: text after the JSON document at character {end}",
            hint="one document per file",
            slug="json-damaged",
        )
    return value
