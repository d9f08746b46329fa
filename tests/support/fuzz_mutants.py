"""Mutants of recordings: one change each, made with knowledge of the text, the document or the fields of the seed.

What holds a format together (archives, databases, checksums, lengths) is taken apart and put together again by
``fuzz_structures``, so that a mutant reaches the parsing of records instead of dying at the door.
"""

from __future__ import annotations

import json
import random
import re
import struct
from typing import Any

__all__ = ["EDGES", "FLOATS", "HOSTILE", "blunt", "change_document", "change_fields", "change_text", "is_text"]

HOSTILE = (
    "", "-", "nan", "NaN", "inf", "-inf", "1e999", "-1e308", "1_000", "0x10", "N/A", "[Not Supported]", "null", "{}",
    "99999999999999999999999999", "-9223372036854775808", "9223372036854775807", "0", "-1", "1e-320", "1,5", "١٢",
    '"', "'", "\\", "0" * 400, "9" * 400, "1.2.3", "TRUE", "<script>", "%s", "\x00", "é", "½",
)  # fmt: skip
"""Texts that no field expects."""

EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63)
FLOATS = (float("nan"), float("inf"), -float("inf"), 1e38, -1e38, 1e-45, 0.0, -0.0)

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_BINARY = re.compile(rb"[\x00-\x08]")
_BETWEEN = re.compile(r"[,;\t|:= ]+")


def is_text(body: bytes) -> bool:
    """Returns whether bytes look like text."""
    return _BINARY.search(body, 0, 512) is None


def blunt(body: bytes, rng: random.Random) -> bytes:
    """Returns damage without regard to any structure: a cut, noise, a piece too much or too little."""
    kind = rng.randrange(4)
    if kind == 0:
        return body[: rng.randrange(len(body) + 1)]
    if kind == 1:
        return rng.randbytes(rng.randrange(200))
    at = rng.randrange(len(body) + 1)
    if kind == 2:
        return body[:at] + rng.randbytes(rng.randrange(1, 64)) + body[at:]
    return body[:at] + body[min(at + rng.randrange(1, 64), len(body)) :]


def change_text(body: bytes, rng: random.Random) -> bytes:
    """Returns a text with one number, field or line changed, or with other line ends."""
    lines = body.decode("utf-8", "surrogateescape").split("\n")
    at = rng.randrange(len(lines))
    kind = rng.randrange(12)
    if kind <= 4 and (numbers := list(_NUMBER.finditer(lines[at]))):
        found = rng.choice(numbers)
        new = rng.choice(HOSTILE) if kind <= 2 else str(rng.choice((1, -1)) * rng.randrange(10 ** rng.randrange(1, 20)))
        lines[at] = lines[at][: found.start()] + new + lines[at][found.end() :]
    elif kind == 5:
        between = list(_BETWEEN.finditer(lines[at]))
        if between:
            first = rng.choice(between)
            later = [one for one in between if one.start() > first.start()]
            lines[at] = lines[at][: first.start()] + (lines[at][later[0].start() :] if later else "")
    elif kind == 6:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif kind == 7:
        del lines[at]
    elif kind == 8:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 9:
        lines.insert(at, rng.choice(("", "   ", "# x", "\x00", ",,,,,", "\ufeff", "a" * 5000)))
    elif kind == 10:
        return ("\r\n" if rng.random() < 0.5 else "\r").join(lines).encode("utf-8", "surrogateescape")
    else:
        spot = rng.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:spot] + rng.choice(HOSTILE) + lines[at][spot:]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def change_document(document: Any, rng: random.Random) -> bytes:
    """Returns a JSON document, which is changed in place, with one member or element changed: still a document."""
    places: list[tuple[Any, Any]] = []
    pending = [document]
    while pending:
        node = pending.pop()
        items = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
        places += [(node, key) for key, _ in items]
        pending += [value for _, value in items if isinstance(value, (dict, list))]
    if places:
        node, key = rng.choice(places)
        kind = rng.randrange(5)
        if kind == 0:
            del node[key]
        elif kind == 1:
            node[key] = rng.choice(HOSTILE)
        elif kind == 2:
            node[key] = rng.choice((None, True, [], {}, 1e308, -1, 1 << 70, 10**400, float("nan")))
        elif kind == 3:
            node[key] = rng.randrange(10 ** rng.randrange(1, 20))
        else:
            other, where = rng.choice(places)
            node[key] = json.loads(json.dumps(other[where]))
    return json.dumps(document).encode()


def change_fields(body: bytes, rng: random.Random) -> bytes:
    """Returns binary data with one field changed, doubled or left out."""
    out = bytearray(body)
    if not out:
        return body
    at = rng.randrange(len(out))
    kind = rng.randrange(6)
    if kind == 0:
        out[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        width = rng.choice((1, 2, 4, 8))
        edge = (rng.choice(EDGES) & ((1 << 8 * width) - 1)).to_bytes(width, rng.choice(("little", "big")))
        out[at : at + width] = edge
    elif kind == 2:
        at -= at % 4
        out[at : at + 4] = struct.pack("<f", rng.choice(FLOATS))
    elif kind == 3:
        at -= at % 8
        out[at : at + 8] = struct.pack("<d", rng.choice(FLOATS))
    elif kind == 4:
        block = bytes(out[at : at + rng.randrange(1, 64)])
        out[at:at] = block
    else:
        del out[at : at + rng.randrange(1, 16)]
    return bytes(out)
