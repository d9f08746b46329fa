"""Byte layout of a capture: what the sampling process appends, and what is left of it when that process is killed.

A capture is ``MAGIC`` and then blocks. Each block carries its own length and CRC-32, so a file that was cut anywhere
is whole up to its last block, and a damaged place costs the blocks that it touches and no more. A sampling process
that replaces a killed one appends a header block of its own and goes on.

    magic     8 bytes
    block     sync "JMB1", kind u16, stream u16, rows u32, size u32, crc u32 (of kind to size, and of the payload)
    header    JSON: who samples what (see :mod:`joulemap.records.live.capture_header`)
    samples   rows of one stream, by column: stamp i64 ns, tick u32, took u32 ns, then raw f64 (rows, domains)
    clocks    monotonic, UTC and boot clock read together, i64 ns each; -1 for a clock that the system lacks; width ns
    note      JSON: something that happened: slug, message, at_ns, stream (-1 where it concerns no one meter)
    end       JSON: the process ended by itself, with its own account
    pause     begin and end of a pause that was ordered, i64 ns each; an end of -1 while it lasts

All numbers are little-endian. A tick of :data:`EXTRA_TICK` is a reading outside the schedule. This module touches no
file.

References:
    ISO 3309 (CRC-32), as zlib computes it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EXTRA_TICK",
    "HEAD_B",
    "MAGIC",
    "OWNER_LOST",
    "Block",
    "BlockKind",
    "ClockReading",
    "SampleRows",
    "decode_blocks",
    "decode_clocks",
    "decode_pause",
    "decode_samples",
    "encode_block",
    "encode_clocks",
    "encode_pause",
    "encode_samples",
]

MAGIC: Final = b"JMLIVE1\n"
EXTRA_TICK: Final = 0xFFFFFFFF
"""Tick of a reading that was asked for between two deadlines."""

OWNER_LOST: Final = "owner lost"
"""Reason in an end block of a process that ended because its owner was gone."""

_SYNC: Final = b"JMB1"
_HEAD: Final = struct.Struct("<4sHHIII")
_CLOCKS: Final = struct.Struct("<qqqq")
_PAUSE: Final = struct.Struct("<qq")
HEAD_B: Final = _HEAD.size
"""Bytes of a block before its payload."""
_LARGEST_B: Final = 1 << 28
_ROW_B: Final = 16


class BlockKind(IntEnum):
    """What a block holds."""

    HEADER = 1
    SAMPLES = 2
    CLOCKS = 3
    NOTE = 4
    END = 5
    PAUSE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One whole block of a capture.

    Args:
        kind: what it holds; a number beyond :class:`BlockKind` is of a newer writer.
        stream: index of the stream in its header; 0 where there is none.
        rows: of a samples block.
        payload: its bytes.
        offset: of its first byte in the file.
        skipped_b: bytes before it that are no block.
    """

    kind: int
    stream: int
    rows: int
    payload: bytes
    offset: int
    skipped_b: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleRows:
    """Rows of one stream.

    Args:
        stamp_ns: (n,) ns of the monotonic clock, taken right after each reading.
        tick: (n,) number of the deadline that the reading served; ``EXTRA_TICK`` outside the schedule.
        took_ns: (n,) how long the reading took, ns, at most 4.29 s.
        raw: (n, domains) raw readings; NaN for one that failed.
    """

    stamp_ns: NDArray[np.int64]
    tick: NDArray[np.uint32]
    took_ns: NDArray[np.uint32]
    raw: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """Clocks of the machine, read together.

    Args:
        monotonic_ns: ns; stands still while the machine sleeps (Linux).
        utc_ns: ns since 1970-01-01.
        boot_ns: ns since boot, sleep included; -1 where the system has no such clock.
        width_ns: time that reading them took, ns.
    """

    monotonic_ns: int
    utc_ns: int
    boot_ns: int
    width_ns: int


def encode_block(kind: BlockKind, payload: bytes, *, stream: int = 0, rows: int = 0) -> bytes:
    """Returns the bytes of a block."""
    body = struct.pack("<HHII", kind, stream, rows, len(payload))
    return _SYNC + body + struct.pack("<I", zlib.crc32(payload, zlib.crc32(body))) + payload


def encode_samples(rows: SampleRows, stream: int) -> bytes:
    """Returns the samples block of rows of a stream."""
    columns = (
        rows.stamp_ns.astype("<i8", copy=False),
        rows.tick.astype("<u4", copy=False),
        rows.took_ns.astype("<u4", copy=False),
        np.ascontiguousarray(rows.raw, "<f8"),
    )
    payload = b"".join(column.tobytes() for column in columns)
    return encode_block(BlockKind.SAMPLES, payload, stream=stream, rows=rows.stamp_ns.size)


def decode_samples(block: Block) -> SampleRows:
    """Returns the rows of a samples block.

    Raises:
        ValueError: its size is no whole number of domains for its rows.
    """
    n, size = block.rows, len(block.payload)
    width = size - _ROW_B * n
    if n == 0 or width <= 0 or width % (8 * n):
        raise ValueError(f"{size} bytes are no {n} rows of samples")
    return SampleRows(
        stamp_ns=np.frombuffer(block.payload, "<i8", n).astype(np.int64),
        tick=np.frombuffer(block.payload, "<u4", n, 8 * n).astype(np.uint32),
        took_ns=np.frombuffer(block.payload, "<u4", n, 12 * n).astype(np.uint32),
        raw=np.frombuffer(block.payload, "<f8", width // 8, 16 * n).astype(np.float64).reshape(n, -1),
    )


def encode_clocks(reading: ClockReading) -> bytes:
    """Returns the clocks block of a reading."""
    payload = _CLOCKS.pack(reading.monotonic_ns, reading.utc_ns, reading.boot_ns, reading.width_ns)
    return encode_block(BlockKind.CLOCKS, payload)


def decode_clocks(block: Block) -> ClockReading:
    """Returns the reading of a clocks block.

    Raises:
        ValueError: it has another size.
    """
    try:
        monotonic_ns, utc_ns, boot_ns, width_ns = _CLOCKS.unpack(block.payload)
    except struct.error as error:
        raise ValueError(f"{len(block.payload)} bytes are no reading of clocks") from error
    return ClockReading(monotonic_ns=monotonic_ns, utc_ns=utc_ns, boot_ns=boot_ns, width_ns=width_ns)


def encode_pause(begin_ns: int, end_ns: int | None) -> bytes:
    """Returns the pause block of a pause; its end is None while it lasts."""
    return encode_block(BlockKind.PAUSE, _PAUSE.pack(begin_ns, -1 if end_ns is None else end_ns))


def decode_pause(block: Block) -> tuple[int, int | None]:
    """Returns begin and end of a pause block, ns; None for the end of one that lasts.

    Raises:
        ValueError: it has another size, or ends before it begins.
    """
    try:
        begin_ns, end_ns = _PAUSE.unpack(block.payload)
    except struct.error as error:
        raise ValueError(f"{len(block.payload)} bytes are no pause") from error
    if end_ns != -1 and end_ns < begin_ns:
        raise ValueError("a pause ends before it begins")
    return begin_ns, None if end_ns == -1 else end_ns


def decode_blocks(data: bytes | memoryview, offset: int = len(MAGIC)) -> Iterator[Block]:
    """Yields every whole block after the magic; what is no block is skipped to the next one whose CRC agrees.

    Args:
        data: the capture, as bytes or mapped.
        offset: where the first block may begin.
    """
    view = memoryview(data)
    at, skipped = offset, 0
    while at + _HEAD.size <= len(view):
        found = _block_at(view, at)
        if found is not None:
            yield Block(
                kind=found.kind,
                stream=found.stream,
                rows=found.rows,
                payload=found.payload,
                offset=at,
                skipped_b=skipped,
            )
            at += _HEAD.size + len(found.payload)
            skipped = 0
            continue
        following = _find_sync(view, at + 1)
        skipped += following - at
        at = following


def _block_at(view: memoryview, at: int) -> Block | None:
    sync, kind, stream, rows, size, crc = _HEAD.unpack_from(view, at)
    first = at + _HEAD.size
    if sync != _SYNC or size > _LARGEST_B or first + size > len(view):
        return None
    body = view[at + 4 : at + _HEAD.size - 4]
    payload = bytes(view[first : first + size])
    if zlib.crc32(payload, zlib.crc32(body)) != crc:
        return None
    return Block(kind=kind, stream=stream, rows=rows, payload=payload, offset=at)


def _find_sync(view: memoryview, at: int) -> int:
    """Returns where the next sync mark stands, or the end."""
    step = 1 << 20
    while at < len(view):
        found = bytes(view[at : at + step + 3]).find(_SYNC)
        if found >= 0:
            return at + found
        at += step
    return len(view)
