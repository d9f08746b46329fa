"""What the sampling process writes: blocks that survive the trip, and disks that are full or hang."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.segments import read_capture
from joulemap.meters.live.sampling.writer import BackgroundWriter, CaptureWriter
from joulemap.records.live.capture_header import CaptureHeader
from joulemap.records.live.capture_layout import (
    MAGIC,
    BlockKind,
    decode_blocks,
    decode_samples,
    encode_block,
    encode_samples,
)
from live_captures import COUNTER, POWER, header_block, header_of, rows_of


def test_a_full_disk_keeps_blocks_and_says_so() -> None:
    writer = CaptureWriter(Path("/dev/full"), kept_b=1000)
    for _ in range(5):
        writer.append(encode_samples(rows_of(np.arange(16.0)), 0))
    assert writer.problem
    assert writer.dropped == 4
    writer.close()


def test_what_waited_for_room_is_written_when_there_is_some(tmp_path: Path) -> None:
    path = tmp_path / "c"
    writer = CaptureWriter(path)
    real = writer._descriptor
    full = os.open("/dev/full", os.O_WRONLY)
    writer._descriptor = full
    writer.append(header_block(header_of(COUNTER)), encode_samples(rows_of(np.arange(16.0) * 1e6), 0))
    writer._descriptor = real
    os.close(full)
    writer.append(encode_samples(rows_of(np.arange(16.0) * 1e6, begin_ns=10**10), 0))
    writer.close()
    capture = read_capture(path, FindingLog())
    assert capture.rows[0].stamp_ns.size == 32
    assert [note.slug for note in capture.notes] == ["capture_unwritable"]


def test_a_disk_that_hangs_delays_no_reading(tmp_path: Path) -> None:
    """A pipe that nobody reads stands for a disk that does not answer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = BackgroundWriter(CaptureWriter(pipe), kept_b=300_000)
    block = encode_samples(rows_of(np.arange(4000.0)), 0)
    for _ in range(8):
        writer.append(block)  # the third is more than the pipe takes
    assert not writer.drain(0.05)
    assert writer.dropped > 0
    taken = bytearray()
    while not writer.drain(0.001):
        with contextlib.suppress(BlockingIOError):
            taken += os.read(reading, 1 << 16)
    writer.close()
    while more := os.read(reading, 1 << 16):
        taken += more
    os.close(reading)
    kinds = [found.kind for found in decode_blocks(bytes(taken))]
    assert 1 <= len(kinds) <= 8 - writer.dropped


def test_a_block_that_is_damaged_is_skipped_and_the_next_is_found() -> None:
    blocks = [encode_block(BlockKind.NOTE, b"x" * n) for n in (5, 50, 500)]
    data = bytearray(MAGIC + b"".join(blocks))
    data[len(MAGIC) + len(blocks[0]) + 30] ^= 1
    found = list(decode_blocks(bytes(data)))
    assert [len(block.payload) for block in found] == [5, 500]
    assert [block.skipped_b for block in found] == [0, len(blocks[1])]


def test_samples_survive_the_trip() -> None:
    rows = rows_of(np.arange(20.0).reshape(10, 2))
    (block,) = decode_blocks(MAGIC + encode_samples(rows, 3))
    back = decode_samples(block)
    assert block.stream == 3
    np.testing.assert_array_equal(back.raw, rows.raw)
    np.testing.assert_array_equal(back.stamp_ns, rows.stamp_ns)


def test_a_header_survives_the_trip_and_a_newer_one_is_refused() -> None:
    header = header_of(COUNTER, POWER)
    document = json.loads(json.dumps(header.to_json()))
    assert CaptureHeader.from_json(document) == header
    with pytest.raises(ValueError, match="version"):
        CaptureHeader.from_json(document | {"schema_version": 99})
    del document["streams"]
    with pytest.raises(ValueError, match="lacks"):
        CaptureHeader.from_json(document)
