"""What holds a recording together, taken apart for a change and put together again: checksums, lengths, archives."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from typing import Any
from zlib import crc32

from fuzz_mutants import EDGES, FLOATS, HOSTILE, blunt, change_document, change_fields, change_text, is_text
from joulemap.formats.joulescope.jls_file import crc32c
from wire_fields import join_fields, split_fields, walk_fields

__all__ = ["jls_chunks", "mutate", "repair_jls", "repair_jls_v1"]

_JLS_V1 = bytes.fromhex("d3746167666d74200d0a200a20201a1c")
_ELEMENT = re.compile(rb">([^<>]+)<")


def mutate(body: bytes, rng: random.Random) -> bytes:
    """Returns one mutant of a file; one in twenty is damaged without regard to the structure."""
    return blunt(body, rng) if rng.random() < 0.05 else _structured(body, rng)


def _structured(body: bytes, rng: random.Random) -> bytes:
    for begins, change in _BY_MAGIC:
        if body.startswith(begins):
            return change(body, rng)
    if not is_text(body):
        if (fields := split_fields(body)) is not None:
            return join_fields(_change_wire(fields, rng)) if rng.random() < 0.8 else change_fields(body, rng)
        return _several(change_fields, body, rng)
    if body.lstrip()[:1] in (b"{", b"[") and rng.random() < 0.6:
        try:
            return change_document(json.loads(body), rng)
        except ValueError:
            pass
    if body.lstrip()[:1] == b"<" and rng.random() < 0.7:
        return _elements(body, rng)
    return _several(change_text, body, rng)


def _several(change: Callable[[bytes, random.Random], bytes], body: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        body = change(body, rng)
    return body


def _elements(body: bytes, rng: random.Random) -> bytes:
    """Returns XML with the text of one element changed, or with one element doubled or left out whole."""
    found = rng.choice(list(_ELEMENT.finditer(body)))
    if found[1].strip() and rng.random() < 0.8:
        new = rng.choice(HOSTILE) if rng.random() < 0.5 else str(rng.randrange(10 ** rng.randrange(1, 12)))
        return body[: found.start(1)] + new.replace("<", "&lt;").encode() + body[found.end(1) :]
    leaves = list(re.finditer(rb"\n[ \t]*<(\w+)[^<>]*>[^<>]*</\1>", body))
    if not leaves:
        return change_text(body, rng)
    leaf = rng.choice(leaves)
    return body[: leaf.start()] + (leaf[0] * 2 if rng.random() < 0.5 else b"") + body[leaf.end() :]


def _archive(body: bytes, rng: random.Random) -> bytes:
    """Returns the archive with one member changed and packed again, so that its checksums hold."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    kind = rng.random()
    if kind < 0.05:
        del members[name]
    elif kind < 0.1:
        members[name + rng.choice(("2", "x", "/"))] = members.pop(name)
    else:
        members[name] = _structured(members[name], rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return out.getvalue()


def _gzip(body: bytes, rng: random.Random) -> bytes:
    """Returns the compressed text with its content changed."""
    return gzip.compress(_structured(gzip.decompress(body), rng), 1, mtime=0)


def _database(body: bytes, rng: random.Random) -> bytes:
    """Returns the database with one cell, row, column or table changed; now and then with bytes of a page changed."""
    if rng.random() < 0.25:
        return change_fields(body, rng)
    with closing(sqlite3.connect(":memory:")) as base:
        base.deserialize(body)
        table = rng.choice([row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type='table'")])
        columns = [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')]
        rows = [row[0] for row in base.execute(f'SELECT rowid FROM "{table}"')]
        column, row = rng.choice(columns), rng.choice(rows)
        kind = rng.randrange(12)
        value: Any = rng.choice((None, rng.choice(HOSTILE), rng.choice(FLOATS), rng.choice(EDGES[:-1]), -1, b"\0\1"))
        try:
            if kind <= 7:
                base.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, row))
            elif kind == 8:
                base.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
            elif kind == 9:
                base.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" WHERE rowid = ?', (row,))
            elif kind == 10:
                base.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}2"')
            else:
                base.execute(f'DROP TABLE "{table}"')
        except sqlite3.Error:  # a key or a NOT NULL column refuses the change: the seed is the mutant
            pass
        base.commit()
        return base.serialize()


def _columns(body: bytes, rng: random.Random) -> bytes:
    """Returns the table with one column changed and written again, so that its encoding holds."""
    if rng.random() < 0.3:
        return change_fields(body, rng)
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import ipc

    arrow = body.startswith(b"ARROW1")
    source = pa.BufferReader(body)
    table = ipc.open_file(source).read_all() if arrow else pq.read_table(source)
    at = rng.randrange(table.num_columns)
    name = table.column_names[at]
    values = table.column(at).to_pylist()
    kind = rng.randrange(8)
    if kind <= 3 and name != "s":
        values[rng.randrange(len(values))] = rng.choice((*FLOATS, None, 1e18, -5.0, 1e300))
    elif kind == 4 and name != "s":
        values = [0.0] * len(values)
    elif kind == 5:
        table = table.slice(0, rng.randrange(len(values)))
        values = values[: table.num_rows]
    elif kind == 6:
        values = [str(value) for value in values]
    else:
        name += rng.choice(("", " ", "2"))
    return _written(table.set_column(at, name, pa.array(values)), rng, arrow=arrow)


def _written(table: Any, rng: random.Random, *, arrow: bool) -> bytes:
    import pyarrow.parquet as pq
    from pyarrow import ipc

    out = io.BytesIO()
    if arrow:
        with ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(table, out, compression=rng.choice(("none", "snappy")))
    return out.getvalue()


def jls_chunks(body: bytes | bytearray) -> list[tuple[int, int]]:
    """Returns (offset of the header, length of the payload) of the chunks of a JLS file of version 2."""
    chunks = []
    at = 32
    while at + 32 <= len(body):
        (payload,) = struct.unpack_from("<I", body, at + 20)
        chunks.append((at, payload))
        at += 32 + (0 if payload == 0 else (payload + 4 + 7) // 8 * 8)
    return chunks


def repair_jls(out: bytearray, at: int, payload: int) -> None:
    """Sets both checksums of a chunk of a JLS file of version 2."""
    struct.pack_into("<I", out, at + 28, crc32c(bytes(out[at : at + 28])))
    if payload:
        end = at + 32 + (payload + 4 + 7) // 8 * 8 - 4  # the padding stands before the checksum
        struct.pack_into("<I", out, end, crc32c(bytes(out[at + 32 : at + 32 + payload])))


def _jls(body: bytes, rng: random.Random) -> bytes:
    """Returns the JLS file with one chunk changed and its checksums repaired."""
    out = bytearray(body)
    at, payload = rng.choice(jls_chunks(out))
    if payload and rng.random() < 0.8:
        out[at + 32 + rng.randrange(payload)] = rng.randrange(256)
        repair_jls(out, at, payload)
    else:
        out[at + rng.randrange(28)] ^= 1 << rng.randrange(8)
        repair_jls(out, at, 0)
    return bytes(out)


def repair_jls_v1(out: bytearray) -> list[tuple[int, bytes, int]]:
    """Sets the checksum of each tag of a JLS file of version 1; returns (offset, tag, length) of the tags."""
    tags = []
    at = 32
    while at + 8 <= len(out):
        (length,) = struct.unpack_from("<I", out, at + 4)
        end = at + 8 + length + -(8 + length + 4) % 8
        if end + 4 > len(out):
            break
        struct.pack_into("<I", out, end, crc32(bytes(out[at:end])))
        tags.append((at, bytes(out[at : at + 3]), length))
        at = end + 4
    return tags


def _jls_v1(body: bytes, rng: random.Random) -> bytes:
    out = bytearray(body)
    at, _, length = rng.choice(repair_jls_v1(out))
    if length and rng.random() < 0.85:
        value = _structured(bytes(out[at + 8 : at + 8 + length]), rng)[:length]
        out[at + 8 : at + 8 + length] = value.ljust(length, b" ")
    else:
        out[at + rng.randrange(8)] ^= 1 << rng.randrange(8)
    repair_jls_v1(out)
    return bytes(out)


def _change_wire(fields: list[Any], rng: random.Random) -> list[Any]:
    """Changes one field of a protocol buffer in place; the lengths around it are written anew."""
    holder, at = rng.choice(walk_fields(fields))
    field = holder[at]
    kind = rng.randrange(8)
    if kind == 0:
        del holder[at]
    elif kind == 1:
        holder.insert(at, list(field))
    elif kind == 2:
        field[0] = rng.choice((1, 2, 3, 7, 15, 536870911))
    elif isinstance(field[2], int):
        field[2] = rng.choice(EDGES) if rng.random() < 0.5 else rng.randrange(1 << rng.randrange(1, 64))
    elif isinstance(field[2], bytes):
        field[2] = blunt(field[2], rng) if rng.random() < 0.5 else rng.choice(HOSTILE).encode()
    else:
        field[2] = rng.choice((b"", b"\x08\x01", field[2][: len(field[2]) // 2]))
    return fields


_BY_MAGIC: tuple[tuple[bytes, Callable[[bytes, random.Random], bytes]], ...] = (
    (b"PK\x03\x04", _archive),
    (b"\x1f\x8b", _gzip),
    (b"SQLite format 3\0", _database),
    (b"ARROW1", _columns),
    (b"PAR1", _columns),
    (b"jlsfmt", _jls),
    (_JLS_V1, _jls_v1),
)
