"""The grammar that profile stream and terminal record share: markers, ``KEY=value`` lines, a checksum at the end.

It turns bytes into checked values and says exactly which line is wrong. It must not know what a value means.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from joulemap.firmware.wire.vocabulary import (
    EXTENSION_PREFIX,
    PROTOCOL_VERSION,
    VERSION_FIELD,
    KeyGroup,
    ValueKind,
    WireKey,
)

__all__ = ["BlockGrammar", "Defect", "WireBlock", "WireDefectError", "find_blocks", "parse_block"]

_LINE = re.compile(r"([A-Z][A-Z0-9_]*)((?:\.[0-9]{1,7})*)=([!-<>-~]*)")
_DIGITS = re.compile(r"[0-9]{1,20}")
_LIMITS = {ValueKind.U32: 2**32, ValueKind.U64: 2**64, ValueKind.FLAG: 2}
_SHOWN = 60


class Defect(StrEnum):
    """Why a block is rejected."""

    MISSING = "missing"
    TRUNCATED = "truncated"
    VERSION = "version"
    CORRUPT = "corrupt"
    INCOMPLETE = "incomplete"
    DUPLICATE_KEY = "duplicate-key"
    UNKNOWN_KEY = "unknown-key"


class WireDefectError(ValueError):
    """A block that breaks the protocol; the two parsers turn it into the error of their boundary.

    Args:
        defect: why.
        message: with the exact line.
    """

    def __init__(self, defect: Defect, message: str) -> None:
        super().__init__(message)
        self.defect = defect


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGrammar:
    """What one kind of block consists of.

    Args:
        start: start marker.
        end: end marker.
        keys: every key that it may hold.
        checksum: name of the key that must be the last.
    """

    start: str
    end: str
    keys: tuple[WireKey, ...]
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WireBlock:
    """The values of one block.

    Args:
        plain: key -> value, keys without indices.
        indexed: key -> indices -> value.
    """

    plain: Mapping[str, int | str]
    indexed: Mapping[str, Mapping[tuple[int, ...], int]]

    def number(self, key: str) -> int:
        """Returns the integer of a required key."""
        value = self.plain[key]
        assert isinstance(value, int)  # the grammar read it by the kind of its key
        return value

    def optional_number(self, key: str) -> int | None:
        """Returns the integer of an optional key; None when it is absent."""
        return self.number(key) if key in self.plain else None

    def word(self, key: str) -> str:
        """Returns the text of a key; empty when it is absent."""
        return str(self.plain.get(key, ""))


def find_blocks(stream: bytes, grammar: BlockGrammar) -> list[bytes]:
    """Returns the bytes from each start marker to its end marker, the last perhaps cut off.

    Raises:
        WireDefectError: there is no start marker.
    """
    starts = [m.start() for m in re.finditer(rb"^" + grammar.start.encode() + rb"(?![A-Z0-9_])", stream, re.MULTILINE)]
    if not starts:
        seen = f"{len(stream)} other bytes" if stream else "nothing"
        raise WireDefectError(Defect.MISSING, f"no {grammar.start} was received, but {seen}")
    end = b"\n" + grammar.end.encode() + b"\n"
    blocks = []
    for start, following in zip(starts, [*starts[1:], len(stream)], strict=True):
        at = stream.find(end, start, following)
        blocks.append(stream[start : following if at < 0 else at + len(end)])
    return blocks


def parse_block(block: bytes, grammar: BlockGrammar) -> WireBlock:
    """Returns the values of a block that begins with the start marker.

    Raises:
        WireDefectError: of another version, truncated, corrupt, incomplete, with a key twice or an unknown key.
    """
    lines = block.split(b"\n")
    _check_version(lines[0], complete=len(lines) > 1, start=grammar.start)
    if lines[-1] or lines[-2] != grammar.end.encode():
        number, last = max((k, line) for k, line in enumerate(lines, start=1) if line)
        raise WireDefectError(
            Defect.TRUNCATED, f"{grammar.end} is missing; the {len(block)} bytes end in line {number}: {_show(last)}"
        )
    rows = [_split(number, line) for number, line in enumerate(lines[1:-2], start=2)]
    _check_checksum(lines, rows, grammar.checksum)
    return _collect(rows, grammar.keys)


def _show(line: bytes) -> str:
    return repr(line[:_SHOWN].decode("latin1"))


def _check_version(line: bytes, *, complete: bool, start: str) -> None:
    match = re.fullmatch(rf"{start} {VERSION_FIELD}=([0-9]{{1,9}})".encode(), line)
    if match is None:
        defect = Defect.CORRUPT if complete else Defect.TRUNCATED
        raise WireDefectError(defect, f"line 1 should be {start} {VERSION_FIELD}=<n>, but is {_show(line)}")
    if complete and int(match.group(1)) != PROTOCOL_VERSION:
        raise WireDefectError(
            Defect.VERSION, f"protocol version {int(match.group(1))}; this joulemap reads {PROTOCOL_VERSION}"
        )


def _split(number: int, line: bytes) -> tuple[int, str, tuple[int, ...], str]:
    match = _LINE.fullmatch(line.decode("latin1"))
    if match is None:
        raise WireDefectError(Defect.CORRUPT, f"line {number} is no KEY=value: {_show(line)}")
    key, indices, value = match.groups()
    return number, key, tuple(int(index) for index in indices.split(".")[1:]), value


def _check_checksum(lines: list[bytes], rows: list[tuple[int, str, tuple[int, ...], str]], checksum: str) -> None:
    if not rows or rows[-1][1] != checksum:
        raise WireDefectError(Defect.CORRUPT, f"line {len(rows) + 1} should be {checksum}, but is {_show(lines[-3])}")
    computed = zlib.crc32(b"".join(line + b"\n" for line in lines[:-3]))
    stated = rows[-1][3]
    if not _DIGITS.fullmatch(stated) or int(stated) != computed:
        raise WireDefectError(
            Defect.CORRUPT,
            f"lines 1 to {len(lines) - 3} have checksum {computed}, but {checksum} says {stated[:_SHOWN]}",
        )


def _value(number: int, key: WireKey, text: str) -> int | str:
    if key.kind is ValueKind.WORD:
        if not text:
            raise WireDefectError(Defect.CORRUPT, f"line {number}: {key.name} is empty")
        return text
    if not _DIGITS.fullmatch(text) or int(text) >= _LIMITS[key.kind]:
        raise WireDefectError(Defect.CORRUPT, f"line {number}: {key.name} is no {key.kind}: {text[:_SHOWN]!r}")
    return int(text)


def _collect(rows: Iterable[tuple[int, str, tuple[int, ...], str]], keys: tuple[WireKey, ...]) -> WireBlock:
    known = {key.name: key for key in keys}
    plain: dict[str, int | str] = {}
    indexed: dict[str, dict[tuple[int, ...], int]] = {key.name: {} for key in keys if key.indices}
    for number, name, indices, text in rows:
        key = known.get(name)
        if key is None:
            if name.startswith(EXTENSION_PREFIX):
                continue
            raise WireDefectError(Defect.UNKNOWN_KEY, f"line {number}: key {name} is not of version {PROTOCOL_VERSION}")
        if len(indices) != len(key.indices):
            raise WireDefectError(
                Defect.CORRUPT, f"line {number}: {name} takes {len(key.indices)} indices, got {len(indices)}"
            )
        value = _value(number, key, text)
        if (indices in indexed[name]) if key.indices else (name in plain):
            raise WireDefectError(Defect.DUPLICATE_KEY, f"line {number}: key {name} {indices or ''} appears twice")
        if key.indices:
            assert isinstance(value, int)  # no indexed key is a word
            indexed[name][indices] = value
        else:
            plain[name] = value
    _check_complete(plain, keys)
    return WireBlock(plain=plain, indexed=indexed)


def _check_complete(plain: Mapping[str, int | str], keys: tuple[WireKey, ...]) -> None:
    missing = [key.name for key in keys if key.required and not key.indices and key.name not in plain]
    group = [key.name for key in keys if key.group is KeyGroup.MEASUREMENT]
    if any(name in plain for name in group):
        missing += [name for name in group if name not in plain]
    if missing:
        raise WireDefectError(Defect.INCOMPLETE, f"required keys are missing: {', '.join(missing)}")
