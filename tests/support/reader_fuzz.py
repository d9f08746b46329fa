"""Mutants of recordings that know the structure, and what a reader may do with them.

A mutant is read as the user would read it. Allowed: a recording, or an error that says what to do. Not allowed: any
other exception, a changed input, memory beyond 64 MB plus eight times the file, time beyond one second plus one per
megabyte.
"""

from __future__ import annotations

import copy
import io
import json
import random
import re
import struct
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from joulemap.errors import FormatError, InputError, SetupError
from joulemap.formats.base import Reader, ReadOptions
from joulemap.formats.joulescope.jls_file import crc32c
from joulemap.records.recording import Recording

__all__ = ["FuzzReport", "Mutator", "change_one_value", "different_values", "fuzz_reader"]

_HOSTILE = (
    "", "-", "nan", "NaN", "inf", "-inf", "1e999", "-1e308", "1_000", "0x10", "N/A", "[Not Supported]", "null", "{}",
    "99999999999999999999999999", "-9223372036854775808", "9223372036854775807", "0", "-1", "1e-320", "1,5", "١٢",
    '"', "'", "\\", "0" * 400, "9" * 400, "1.2.3", "TRUE", "<script>", "%s", "\x00", "é", "½",
)  # fmt: skip
_EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63)
_FLOATS = (float("nan"), float("inf"), -float("inf"), 1e38, -1e38, 1e-45, 0.0, -0.0)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def _is_text(body: bytes) -> bool:
    return b"\0" not in body[:512] and sum(byte < 9 for byte in body[:512]) == 0


class Mutator:
    """Draws mutants of one seed.

    Args:
        seed: whole recording.
        rng: of the draws.
    """

    def __init__(self, seed: bytes, rng: random.Random) -> None:
        self._seed = seed
        self._rng = rng
        self._zip = seed.startswith(b"PK\x03\x04")
        self._jls = seed.startswith(b"jlsfmt")
        self._arrow = seed.startswith(b"ARROW1")
        self._table = self._arrow or seed.startswith(b"PAR1")
        self._text = not self._zip and _is_text(seed)
        self._document = self._parse(seed)

    @staticmethod
    def _parse(seed: bytes) -> object | None:
        if not seed.lstrip().startswith((b"{", b"[")):
            return None
        try:
            document: object = json.loads(seed)
        except ValueError:
            return None
        return document

    def draw(self) -> bytes:
        """Returns one mutant; one in twenty is damaged without regard to the structure."""
        rng = self._rng
        if rng.random() < 0.05:
            return self._blunt(self._seed)
        if self._document is not None and rng.random() < 0.5:
            return self._leaves()
        if self._zip:
            return self._members()
        if self._jls:
            return self._chunks()
        if self._table and rng.random() < 0.7:
            return self._columns()
        body = self._seed
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            body = self._tokens(body) if self._text else self._fields(body)
        return body

    def _blunt(self, body: bytes) -> bytes:
        rng = self._rng
        kind = rng.randrange(4)
        if kind == 0:
            return body[: rng.randrange(len(body) + 1)]
        if kind == 1:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
        at = rng.randrange(len(body) + 1)
        if kind == 2:
            return body[:at] + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 64))) + body[at:]
        return body[:at] + body[min(at + rng.randrange(1, 64), len(body)) :]

    def _tokens(self, body: bytes) -> bytes:
        rng = self._rng
        text = body.decode("utf-8", "surrogateescape")
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(12)
        if kind <= 4 and (numbers := list(_NUMBER.finditer(lines[at]))):
            found = rng.choice(numbers)
            new = (
                rng.choice(_HOSTILE)
                if kind <= 2
                else str(rng.choice((1, -1)) * rng.randrange(10 ** rng.randrange(1, 20)))
            )
            lines[at] = lines[at][: found.start()] + new + lines[at][found.end() :]
        elif kind == 5:
            fields = lines[at].split(",")
            del fields[rng.randrange(len(fields))]
            lines[at] = ",".join(fields)
        elif kind == 6:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 7:
            del lines[at]
        elif kind == 8:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 9:
            lines.insert(at, rng.choice(("", "   ", "# x", "\x00", ",,,,,", "﻿", "a" * 5000)))
        elif kind == 10:
            return ("\r\n" if rng.random() < 0.5 else "\r").join(lines).encode("utf-8", "surrogateescape")
        else:
            spot = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:spot] + rng.choice(_HOSTILE) + lines[at][spot:]
        return "\n".join(lines).encode("utf-8", "surrogateescape")

    def _leaves(self) -> bytes:
        """Returns the JSON document with one member or element changed, so that it stays a document."""
        rng = self._rng
        document = copy.deepcopy(self._document)
        places: list[tuple[Any, Any]] = []
        pending = [document]
        while pending:
            node = pending.pop()
            items = (
                list(node.items())
                if isinstance(node, dict)
                else list(enumerate(node))
                if isinstance(node, list)
                else []
            )
            places += [(node, key) for key, _ in items]
            pending += [value for _, value in items if isinstance(value, (dict, list))]
        if places:
            node, key = rng.choice(places)
            kind = rng.randrange(5)
            if kind == 0:
                del node[key]
            elif kind == 1:
                node[key] = rng.choice(_HOSTILE)
            elif kind == 2:
                node[key] = rng.choice((None, True, [], {}, 1e308, -1, 1 << 70, 10**400, float("nan")))
            elif kind == 3:
                node[key] = rng.randrange(10 ** rng.randrange(1, 20))
            else:
                other, where = rng.choice(places)
                node[key] = copy.deepcopy(other[where]) if where in other or isinstance(other, list) else None
        return json.dumps(document).encode()

    def _fields(self, body: bytes) -> bytes:
        rng = self._rng
        out = bytearray(body)
        if not out:
            return bytes(out)
        at = rng.randrange(len(out))
        kind = rng.randrange(6)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            width = rng.choice((1, 2, 4, 8))
            edge = (rng.choice(_EDGES) & ((1 << 8 * width) - 1)).to_bytes(width, rng.choice(("little", "big")))
            out[at : at + width] = edge
        elif kind == 2:
            at -= at % 4
            out[at : at + 4] = struct.pack("<f", rng.choice(_FLOATS))
        elif kind == 3:
            at -= at % 8
            out[at : at + 8] = struct.pack("<d", rng.choice(_FLOATS))
        elif kind == 4:
            block = bytes(out[at : at + rng.randrange(1, 64)])
            out[at:at] = block
        else:
            del out[at : at + rng.randrange(1, 16)]
        return bytes(out)

    def _members(self) -> bytes:
        """Returns the archive with one member changed and packed again, so that its checksums hold."""
        rng = self._rng
        with zipfile.ZipFile(io.BytesIO(self._seed)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = rng.choice(list(members))
        kind = rng.random()
        if kind < 0.05:
            del members[name]
        elif kind < 0.1:
            members[name + rng.choice(("2", "x", "/"))] = members.pop(name)
        else:
            body = members[name]
            members[name] = self._tokens(body) if _is_text(body) else self._fields(body)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
            for member, body in members.items():
                archive.writestr(member, body)
        return out.getvalue()

    def _columns(self) -> bytes:
        """Returns the table with one column changed and written again, so that its encoding holds."""
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyarrow import ipc

        rng = self._rng
        source = pa.BufferReader(self._seed)
        table = ipc.open_file(source).read_all() if self._arrow else pq.read_table(source)
        at = rng.randrange(table.num_columns)
        name = table.column_names[at]
        values = table.column(at).to_pylist()
        kind = rng.randrange(8)
        if kind <= 3 and name != "s":
            values[rng.randrange(len(values))] = rng.choice((*_FLOATS, None, 1e18, -5.0, 1e300))
        elif kind == 4 and name != "s":
            values = [0.0] * len(values)
        elif kind == 5:
            table = table.slice(0, rng.randrange(len(values)))
            values = values[: table.num_rows]
        elif kind == 6:
            values = [str(value) for value in values]
        else:
            name += rng.choice(("", " ", "2"))
        table = table.set_column(at, name, pa.array(values))
        out = io.BytesIO()
        if self._arrow:
            with ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(table, out, compression=rng.choice(("none", "snappy")))
        return out.getvalue()

    def _chunks(self) -> bytes:
        """Returns the JLS file with one chunk changed and its checksums repaired."""
        rng = self._rng
        out = bytearray(self._seed)
        chunks = []
        at = 32
        while at + 32 <= len(out):
            (payload,) = struct.unpack_from("<I", out, at + 20)
            chunks.append((at, payload))
            at += 32 + (0 if payload == 0 else (payload + 4 + 7) // 8 * 8)
        at, payload = rng.choice(chunks)
        if payload and rng.random() < 0.8:
            spot = at + 32 + rng.randrange(payload)
            out[spot] = rng.randrange(256)
            struct.pack_into("<I", out, at + 32 + payload, crc32c(bytes(out[at + 32 : at + 32 + payload])))
        else:
            spot = at + rng.randrange(28)
            out[spot] ^= 1 << rng.randrange(8)
            struct.pack_into("<I", out, at + 28, crc32c(bytes(out[at : at + 28])))
        return bytes(out)


@dataclass(slots=True)
class FuzzReport:
    """What became of the mutants of one reader.

    Args:
        outcomes: how often each outcome came: ``read`` or the slug of an error.
        failures: mutants that broke a promise, with what happened.
        slowest_s: longest read, s of processor time beyond the allowance; negative when all were within.
        largest_b: greatest growth of memory beyond the allowance, bytes.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[bytes, str]] = field(default_factory=list)
    slowest_s: float = -1.0
    largest_b: int = -(1 << 62)

    @property
    def total(self) -> int:
        """Number of mutants."""
        return sum(self.outcomes.values())

    @property
    def reached(self) -> float:
        """Share of mutants whose records were parsed: the reader gave a recording."""
        return self.outcomes["read"] / max(self.total, 1)


def _memory_b(key: str) -> int:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    except OSError:
        return False
    return True


def fuzz_reader(
    reader: Reader, seed: bytes, options: ReadOptions, *, mutants: int, folder: Path, draw: int
) -> FuzzReport:
    """Returns what a reader does with so many mutants of a seed.

    Args:
        reader: under test.
        seed: whole recording.
        options: what the user says.
        mutants: how many.
        folder: for the files.
        draw: seed of the generator.
    """
    report = FuzzReport()
    mutator = Mutator(seed, random.Random(draw))
    peaks = _reset_peak()
    for number in range(mutants):
        body = mutator.draw()
        path = folder / f"mutant-{number % 4}.bin"
        path.write_bytes(body)
        before_b = _memory_b("VmRSS") if peaks else 0
        if peaks:
            _reset_peak()
        start_s = time.process_time()
        try:
            reader.sniff(path, body[:65536])
            reader.read(path, options)
            outcome = "read"
        except (FormatError, InputError, SetupError) as error:
            outcome = error.slug
            if not (error.message and error.slug):
                report.failures.append((body, "an error without a slug or a message"))
        except MemoryError as error:
            outcome = "MemoryError"
            report.failures.append((body, repr(error)))
        except Exception as error:  # noqa: BLE001  # every other exception is what this harness looks for
            outcome = type(error).__name__
            report.failures.append((body, f"{outcome}: {error}"))
        spent_s = time.process_time() - start_s - 1.0 - len(body) / 1e6
        report.slowest_s = max(report.slowest_s, spent_s)
        if peaks:
            grown_b = _memory_b("VmHWM") - before_b - (64 << 20) - 8 * len(body)
            report.largest_b = max(report.largest_b, grown_b)
        if path.read_bytes() != body:
            report.failures.append((body, "the input was rewritten"))
        report.outcomes[outcome] += 1
    return report


def change_one_value(seed: bytes, where: str | tuple[int, int, int], rng: random.Random) -> bytes:
    """Returns the seed with one digit (or bit) of one value changed."""
    if isinstance(where, str):
        text = seed.decode()
        found = rng.choice(list(re.finditer(where, text, re.MULTILINE)))
        digits = [k for k in range(found.start(1), found.end(1)) if text[k].isdigit()]
        at = rng.choice(digits[: max(3, len(digits) // 2)])
        return (text[:at] + str((int(text[at]) + rng.randrange(1, 9)) % 10) + text[at + 1 :]).encode()
    offset, stride, count = where
    out = bytearray(seed)
    out[offset + stride * rng.randrange(count) + 1] ^= 1 << rng.randrange(3)
    return bytes(out)


def different_values(before: Recording, after: Recording) -> int:
    """Returns how many samples of traces and lanes differ; -1 when shapes or gaps differ."""
    differing = 0
    for a, b in zip(before.traces, after.traces, strict=False):
        if a.n != b.n or a.gaps.shape != b.gaps.shape or not np.array_equal(a.gaps, b.gaps):
            return -1
        differing += int((a.power_w != b.power_w).sum())
    for c, d in zip(before.lanes, after.lanes, strict=False):
        if c.value.shape != d.value.shape:
            return -1
        differing += int((~np.isclose(c.value, d.value, rtol=0, atol=0, equal_nan=True)).sum())
    return differing
