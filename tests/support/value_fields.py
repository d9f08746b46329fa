"""One value of a seed changed, and how much of what was read changed with it."""

from __future__ import annotations

import io
import random
import re
import sqlite3
import struct
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz_structures import jls_chunks, repair_jls, repair_jls_v1
from joulemap.records.recording import Recording
from joulemap.trace import Timeline
from wire_fields import join_fields, split_fields, walk_fields

__all__ = [
    "ValueField",
    "changed_values",
    "digits",
    "in_cell",
    "in_column",
    "in_jls",
    "in_jls_v1",
    "in_member",
    "in_rails",
    "raw",
]

ValueField = Callable[[bytes, random.Random], bytes]
"""Returns a file with one of its values changed."""


def digits(pattern: str) -> ValueField:
    """Returns the change of one leading digit in what the pattern's group finds somewhere in the text."""

    def change(body: bytes, rng: random.Random) -> bytes:
        text = body.decode()
        found = rng.choice(list(re.finditer(pattern, text, re.MULTILINE)))
        places = [k for k in range(found.start(1), found.end(1)) if text[k].isdigit()]
        at = rng.choice(places[: max(3, len(places) // 2)])
        new = [digit for digit in "0123456789"[at == places[0] :] if digit != text[at]]  # no number begins with 0 anew
        return (text[:at] + rng.choice(new) + text[at + 1 :]).encode()

    return change


def raw(offset: int, stride: int, count: int) -> ValueField:
    """Returns the change of one bit in the second byte of one of ``count`` fields from an offset on."""

    def change(body: bytes, rng: random.Random) -> bytes:
        out = bytearray(body)
        out[offset + stride * rng.randrange(count) + 1] ^= 1 << rng.randrange(3)
        return bytes(out)

    return change


def in_member(name: str, field: ValueField) -> ValueField:
    """Returns the change of a value in a member of an archive."""

    def change(body: bytes, rng: random.Random) -> bytes:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            members = {member: archive.read(member) for member in archive.namelist()}
        members[name] = field(members[name], rng)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        return out.getvalue()

    return change


def in_cell(table: str, column: str) -> ValueField:
    """Returns the change of a cell of integers in a database, by less than 40."""

    def change(body: bytes, rng: random.Random) -> bytes:
        with closing(sqlite3.connect(":memory:")) as base:
            base.deserialize(body)
            (rows,) = base.execute(f'SELECT count(*) FROM "{table}"').fetchone()
            step, row = rng.randrange(1, 40), rng.randrange(1, rows + 1)
            base.execute(f'UPDATE "{table}" SET "{column}" = "{column}" + ? WHERE rowid = ?', (step, row))
            base.commit()
            return base.serialize()

    return change


def in_column(name: str) -> ValueField:
    """Returns the change of one number in a column of a Parquet or Arrow file."""

    def change(body: bytes, rng: random.Random) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyarrow import ipc

        arrow = body.startswith(b"ARROW1")
        source = pa.BufferReader(body)
        table = ipc.open_file(source).read_all() if arrow else pq.read_table(source)
        values = table[name].to_pylist()
        values[rng.randrange(len(values))] += rng.randrange(1, 9) / 8
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
        out = io.BytesIO()
        if arrow:
            with ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(table, out)
        return out.getvalue()

    return change


def in_jls(signal: int) -> ValueField:
    """Returns the change of a float32 sample of a signal of a JLS file of version 2; the checksums hold."""

    def change(body: bytes, rng: random.Random) -> bytes:
        out = bytearray(body)
        # tag 0x22 holds samples: a head of 16 bytes, then the samples (see FORMATS_MORE, "JLS v2")
        blocks = [
            (at, size)
            for at, size in jls_chunks(out)
            if out[at + 16] == 0x22 and struct.unpack_from("<H", out, at + 18)[0] & 0xFFF == signal
        ]
        at, size = rng.choice(blocks)
        (count,) = struct.unpack_from("<I", out, at + 40)
        numbers = np.flatnonzero(np.isfinite(np.frombuffer(out, "<f4", count, at + 48)))
        out[at + 48 + 4 * int(rng.choice(numbers)) + 1] ^= 1 << rng.randrange(8)
        repair_jls(out, at, size)
        return bytes(out)

    return change


def in_jls_v1() -> ValueField:
    """Returns the change of a raw current of a JLS file of version 1; the checksums hold."""

    def change(body: bytes, rng: random.Random) -> bytes:
        out = bytearray(body)
        (at, length), *_ = [(at, size) for at, tag, size in repair_jls_v1(out) if tag == b"ABN"]
        out[at + 8 + 4 * rng.randrange(length // 4)] ^= 1 << rng.randrange(2, 8)
        repair_jls_v1(out)
        return bytes(out)

    return change


def in_rails() -> ValueField:
    """Returns the change of one energy of a power rail of a Perfetto trace, by less than a step."""

    def change(body: bytes, rng: random.Random) -> bytes:
        fields: list[Any] = split_fields(body) or []
        energies = []
        for packet in fields:
            for number, _, rails in packet[2] if isinstance(packet[2], list) else []:
                if number == 40 and isinstance(rails, list):
                    energies += [h[at] for h, at in walk_fields(rails) if h[at][0] == 3 and isinstance(h[at][2], int)]
        rng.choice(energies)[2] += rng.randrange(1, 300_000)
        return join_fields(fields)

    return change


def changed_values(before: Recording, after: Recording) -> tuple[int, int]:
    """Returns (most values that differ in one trace, lane, timeline, marker track or the totals, all that differ).

    A trace or lane of another shape, or with other gaps, counts as (-1, -1).
    """
    counts = [0]
    if len(before.traces) != len(after.traces) or len(before.lanes) != len(after.lanes):
        return -1, -1
    for a, b in zip(before.traces, after.traces, strict=True):
        if a.n != b.n or not np.array_equal(a.gaps, b.gaps):
            return -1, -1
        counts.append(int((a.power_w != b.power_w).sum()))
    for c, d in zip(before.lanes, after.lanes, strict=True):
        if c.value.shape != d.value.shape:
            return -1, -1
        counts.append(_unequal(c.value, d.value))
    for e, f in zip(before.timelines, after.timelines, strict=False):
        # operators laid end to end all move with the duration of one: then the durations are what is compared
        moved, lengths = _apart(_rows(e), _rows(f)), _apart(_durations(e), _durations(f))
        counts.append(min(moved, lengths) if lengths else moved)
    for g, h in zip(before.markers, after.markers, strict=False):
        counts.append(_apart(Counter(g.markers), Counter(h.markers)))
    counts.append(
        _apart(Counter((t.key, t.value) for t in before.totals), Counter((t.key, t.value) for t in after.totals))
    )
    return max(counts), sum(counts)


def _unequal(one: NDArray[np.float64], other: NDArray[np.float64]) -> int:
    return int((~np.isclose(one, other, rtol=0, atol=0, equal_nan=True)).sum())


def _rows(timeline: Timeline) -> Counter[tuple[Any, ...]]:
    return Counter((one.name, one.track, one.start_ns, one.end_ns) for one in timeline)


def _durations(timeline: Timeline) -> Counter[tuple[Any, ...]]:
    return Counter((one.name, one.track, one.end_ns - one.start_ns) for one in timeline)


def _apart(one: Counter[Any], other: Counter[Any]) -> int:
    return max((one - other).total(), (other - one).total())
