"""Text of unknown origin as numbered lines and fields: byte-order marks, CRLF, encodings, bounded line length, CSV.

Everything streams: no function here holds more than one line. It must not know what a column means.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from joulemap.errors import FormatError, InputError

__all__ = [
    "HEAD_B",
    "LINE_LIMIT_B",
    "DelimitedTable",
    "Row",
    "head_lines",
    "last_digit",
    "normal_label",
    "open_bytes",
    "open_table",
    "read_head",
    "read_json",
    "read_lines",
    "split_fields",
]

HEAD_B: Final = 65536
"""Bytes of a file that ``sniff`` sees."""

LINE_LIMIT_B: Final = 1 << 20
"""Longest line that is read, bytes: no known text format comes near it, and a binary file is stopped by it."""

_GZIP: Final = b"\x1f\x8b\x08"
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_SHOWN: Final = 64
"""Rows that tell how many digits a column is written with."""
_DIGITS: Final = 30
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")


def open_bytes(path: Path) -> IO[bytes]:
    """Opens a file for reading, through gzip when its first bytes say so.

    Raises:
        InputError: it cannot be opened.
    """
    try:
        handle = path.open("rb")
        packed = handle.read(3) == _GZIP
        handle.seek(0)
    except OSError as error:
        raise InputError(
            f"{path.name} cannot be read: {error.strerror or error}",
            hint="Check the path and its permissions.",
            slug="recording-unreadable",
        ) from error
    if not packed:
        return handle
    handle.close()
    return cast("IO[bytes]", gzip.open(path, "rb"))


def read_head(path: Path) -> bytes:
    """Returns the first 64 KiB of a file (decompressed, without a UTF-8 byte order mark), empty for a folder.

    Raises:
        InputError: it cannot be opened.
    """
    if path.is_dir():
        return b""
    with open_bytes(path) as handle:
        try:
            return handle.read(HEAD_B).removeprefix(_BOMS[0][0])
        except (OSError, EOFError, zlib.error):
            return b""


def _bom(head: bytes) -> tuple[int, str]:
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return len(mark), encoding
    return 0, "utf-8"


def _decode(raw: bytes, encoding: str) -> str:
    """Returns the text of one line; bytes that are not UTF-8 are taken as Windows-1252."""
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError:
        return raw.decode("cp1252" if encoding == "utf-8" else encoding, errors="replace")


def head_lines(head: bytes, count: int = 20) -> list[str]:
    """Returns up to ``count`` non-blank lines of a head, without line ends; empty when it looks binary."""
    skip, encoding = _bom(head)
    body = head[skip:]
    if encoding == "utf-8" and body[:1024].count(0) > len(body[:1024]) // 10:
        return []
    lines = _decode(body[: len(body) & ~1] if encoding != "utf-8" else body, encoding).splitlines()
    return [line for line in lines if line.strip("\0 \t")][:count]


def _too_long(name: str, number: int, limit_b: int) -> FormatError:
    return FormatError(
        f"{name}, line {number} is longer than {limit_b} bytes",
        hint="This is not a text recording, or its line ends were lost.",
        slug="line-too-long",
    )


def _wide_lines(handle: IO[bytes], name: str, limit_b: int) -> Iterator[tuple[int, str]]:
    with io.TextIOWrapper(handle, encoding="utf-16", errors="replace", newline="\n") as text:
        for number in itertools.count(1):
            line = text.readline(limit_b + 1)
            if not line:
                return
            if len(line) > limit_b:
                raise _too_long(name, number, limit_b)
            yield number, line.rstrip("\r\n")


def _narrow_lines(handle: IO[bytes], name: str, limit_b: int) -> Iterator[tuple[int, str]]:
    number = 0
    while raw := handle.readline(limit_b + 1):
        number += 1
        if number == 1:
            raw = raw[_bom(raw)[0] :]
        if len(raw) > limit_b:
            raise _too_long(name, number, limit_b)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = _decode(raw, "utf-8")
        yield number, text.rstrip("\r\n")


def read_lines(path: Path, *, limit_b: int = LINE_LIMIT_B) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, text without its end), blank lines included.

    LF, CRLF and a stray CR at the end are line ends; a byte-order mark is dropped; UTF-16 is read when its mark says
    so; NUL bytes are kept, since some instruments write them.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a line longer than ``limit_b``, or a damaged gzip stream.
    """
    with open_bytes(path) as handle:
        try:
            mark = handle.read(2)
            handle.seek(0)
            yield from (_narrow_lines if mark not in _WIDE else _wide_lines)(handle, path.name, limit_b)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FormatError(
                f"{path.name} is a damaged gzip file: {error}",
                hint="Fetch the file again, or decompress what can be saved.",
                slug="archive-damaged",
            ) from error


def split_fields(text: str, delimiter: str = ",") -> list[str]:
    """Returns the fields of one line, stripped; quotes as in RFC 4180 when there are any.

    References:
        RFC 4180, section 2 (quoted fields, doubled quotes).
    """
    if '"' in text:
        try:
            return [field.strip() for field in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))]
        except (csv.Error, StopIteration):
            pass
    return [field.strip() for field in text.split(delimiter)]


def read_json(path: Path, limit_b: int = 1 << 24) -> Any:
    """Returns the document of a small JSON file (a byte-order mark and gzip are taken).

    Raises:
        InputError: it cannot be opened.
        FormatError: no JSON, nested too deep, or more than ``limit_b`` bytes.
    """
    with open_bytes(path) as handle:
        try:
            raw = handle.read(limit_b + 1)
            document = json.loads(raw) if len(raw) <= limit_b else None
        except (ValueError, RecursionError, EOFError, OSError, zlib.error) as error:
            raise FormatError(
                f"{path.name} is no JSON: {error}", hint="Check that its writer finished.", slug="json-damaged"
            ) from error
    if len(raw) > limit_b:
        raise FormatError(
            f"{path.name} holds more than {limit_b} bytes", hint="This is another kind of file.", slug="json-damaged"
        )
    return document


def normal_label(label: str) -> str:
    """Returns a column name in the form that readers compare: lower case, one blank between words, micro as u."""
    return " ".join(label.replace("µ", "u").replace("μ", "u").strip().strip('"').lower().split())


class Row(NamedTuple):
    """One data row: its line number and its fields, as many as the header has (missing ones are empty)."""

    line: int
    fields: list[str]
    ragged: bool


@dataclass(slots=True)
class DelimitedTable:
    """A table with one header line, streamed.

    Args:
        header: column names as written, stripped.
        header_line: line number of the header.
        delimiter: one character.
        decimal: ``.`` or ``,``.
    """

    path: Path
    header: list[str]
    header_line: int
    delimiter: str
    decimal: str
    _seen: list[list[str]] = field(default_factory=list)

    def resolution(self, at: int) -> float:
        """Returns one unit of the last digit that the first rows show in a column; 0 where they show no number.

        Known when rows were read. A writer that drops trailing zeros shows its last digit in one row or another.
        """
        cells = (row[at] for row in self._seen)
        return min((unit for cell in cells if (unit := last_digit(cell, self.decimal)) is not None), default=0.0)

    def index(self, *labels: str) -> int | None:
        """Returns the position of the first column whose normal label is one of ``labels``; None when there is none."""
        normal = [normal_label(name) for name in self.header]
        for label in labels:
            if label in normal:
                return normal.index(label)
        return None

    def rows(self) -> Iterator[Row]:
        """Yields the rows after the header, blank lines skipped, short rows filled and long ones cut (``ragged``)."""
        width = len(self.header)
        for number, text in read_lines(self.path):
            if number <= self.header_line or not text.strip():
                continue
            fields = split_fields(text, self.delimiter)
            if len(fields) == width + 1 and fields[-1] == "":
                fields.pop()  # a trailing delimiter
            ragged = len(fields) != width
            if ragged:
                fields = (fields + [""] * width)[:width]
            if len(self._seen) < _SHOWN:
                self._seen.append(fields)
            yield Row(number, fields, ragged)


def last_digit(text: str, decimal: str = ".") -> float | None:
    """Returns one unit of the last digit of a written number: 0.01 of ``5.20``, 1e-5 of ``1.25e-3``; None of no number.

    Args:
        text: the field.
        decimal: ``,`` when the table has a decimal comma.
    """
    body, _, power = text.strip().lstrip("+-").lower().partition("e")
    whole, _, fraction = body.partition(decimal)
    digits = whole.replace(".", "") if decimal == "," else whole
    if not (digits + fraction).isdecimal() or (power and not power.lstrip("+-").isdecimal()):
        return None
    exponent = int(power or 0) - len(fraction)
    return float(10.0**exponent) if abs(exponent) <= _DIGITS else None


def guess_delimiter(lines: Sequence[str]) -> str:
    """Returns the delimiter that splits the lines into most fields: tab, semicolon or comma, in that order of trust."""
    for delimiter in ("\t", ";"):
        if lines and all(delimiter in line for line in lines[:2]):
            return delimiter
    return ","


def open_table(path: Path, *, header_line: int = 1, delimiter: str | None = None) -> DelimitedTable:
    """Opens a delimited table whose header is the first non-blank line at or after ``header_line``.

    A semicolon or tab table whose numbers hold a comma has a decimal comma (as European spreadsheets write).

    Raises:
        FormatError: no header line.
    """
    sample: list[tuple[int, str]] = []
    for number, text in read_lines(path):
        if number >= header_line and text.strip():
            sample.append((number, text))
            if len(sample) == 4:
                break
    if not sample:
        raise FormatError(
            f"{path.name} holds no table: no line at or after line {header_line}",
            hint="Check that the export finished.",
            slug="recording-empty",
        )
    chosen = delimiter or guess_delimiter([text for _, text in sample])
    body = [field for _, text in sample[1:] for field in split_fields(text, chosen)]
    comma = chosen != "," and any(_decimal_comma(field) for field in body)
    header = split_fields(sample[0][1], chosen)
    if len(header) > 1 and header[-1] == "":
        header.pop()
    return DelimitedTable(path, header, sample[0][0], chosen, "," if comma else ".")


def _decimal_comma(field: str) -> bool:
    whole, comma, rest = field.strip().lstrip("+-").partition(",")
    return comma == "," and whole.isdigit() and "," not in rest and "." not in field
