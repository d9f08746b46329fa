"""The compiled scan of a Perfetto trace against the reader of messages: whatever the bytes, both say the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from joulemap.errors import FormatError
from joulemap.formats.android.perfetto import PerfettoReader
from joulemap.formats.android.perfetto_columns import PacketColumns
from joulemap.formats.android.perfetto_events import EventBook
from joulemap.formats.android.perfetto_packets import ClockTable, iter_packets
from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.sampling import SampleBook
from joulemap.records.recording import Recording
from joulemap.report.perfetto.wire import double_field, message_field, text_field, varint, varint_field
from joulemap.trace import Clock, ClockKind
from joulemap.trace.integrate import Backend

_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4

names = st.sampled_from(["", "a", "conv", "a longer name of a layer", "größe", "x" * 70])
iids = st.integers(0, 4)
tracks = st.sampled_from([0, 1, 2, 7, (1 << 64) - 1, 1 << 63])
sequences = st.sampled_from([0, 1, 2, (1 << 32) - 1])
stamps = st.one_of(st.integers(0, 5000), st.sampled_from([0, (1 << 62) - 1, 1 << 62, (1 << 64) - 1]))
doubles = st.floats(allow_nan=False, width=64)
noise = st.sampled_from([b"", b"", varint_field(300, 5), message_field(4, b"\x08\x01"), varint(99 << 3 | 5) + b"abcd"])


@st.composite
def events(draw: st.DrawFn) -> bytes:  # noqa: C901  every form of an event
    kind = draw(st.sampled_from([0, _BEGIN, _BEGIN, _BEGIN, _END, _END, _END, _INSTANT, _COUNTER, _COUNTER, 9]))
    parts = [varint_field(9, kind), draw(noise)]
    if draw(st.booleans()):
        parts.append(varint_field(11, draw(tracks)))
    if kind in (_BEGIN, _INSTANT):
        form = draw(st.sampled_from(["iid", "iid", "name", "both", "none"]))
        if form in ("iid", "both"):
            parts.append(varint_field(10, draw(iids)))
        if form in ("name", "both"):
            parts.append(text_field(23, draw(names)))
        for form in draw(st.lists(st.sampled_from(["iid", "word", "packed"]), max_size=2)):
            if form == "iid":
                parts.append(varint_field(3, draw(iids)))
            elif form == "word":
                parts.append(text_field(22, draw(names)))
            else:
                parts.append(message_field(3, varint(1) + varint(2)))
    if kind == _COUNTER:
        if draw(st.booleans()):
            parts.append(double_field(44, draw(doubles)))
        if draw(st.booleans()):
            parts.append(varint_field(30, draw(st.integers(-(1 << 63), (1 << 63) - 1))))
    if draw(st.booleans()):
        draw(st.randoms(use_true_random=False)).shuffle(parts)
    return message_field(11, b"".join(parts))


@st.composite
def definitions(draw: st.DrawFn) -> bytes:
    what = draw(st.sampled_from(["names", "track", "clock", "defaults", "clear"]))
    if what == "names":
        words = [(draw(st.sampled_from([1, 2])), draw(iids), draw(names)) for _ in range(draw(st.integers(1, 3)))]
        body = b"".join(message_field(field, varint_field(1, iid) + text_field(2, name)) for field, iid, name in words)
        return message_field(12, body)
    if what == "track":
        counter = varint_field(5, draw(st.sampled_from([0, 0, 1]))) + varint_field(
            4, draw(st.sampled_from([1, 3, 1000]))
        )
        counter += text_field(6, "W") if draw(st.booleans()) else varint_field(3, 1)
        body = varint_field(1, draw(tracks)) + text_field(2, draw(names)) + message_field(8, counter)
        return message_field(60, body + (varint_field(5, draw(tracks)) if draw(st.booleans()) else b""))
    if what == "clock":
        pairs = [(6, draw(st.integers(0, 9000))), (draw(st.sampled_from([1, 3, 64])), draw(stamps))]
        extra = varint_field(3, 1) if draw(st.booleans()) else b""
        extra += varint_field(4, draw(st.sampled_from([1, 1000]))) if draw(st.booleans()) else b""
        body = b"".join(
            message_field(1, varint_field(1, clock) + varint_field(2, at) + (extra if clock != 6 else b""))
            for clock, at in pairs
        )
        return message_field(6, body)
    if what == "defaults":
        body = varint_field(58, draw(st.sampled_from([1, 3, 6, 64]))) if draw(st.booleans()) else b""
        return message_field(59, body + message_field(11, varint_field(11, draw(tracks))))
    return varint_field(41, 1) if draw(st.booleans()) else varint_field(13, 1)


@st.composite
def packets(draw: st.DrawFn) -> bytes:
    parts = [draw(noise), varint_field(10, draw(sequences))] if draw(st.booleans()) else [draw(noise)]
    if draw(st.integers(0, 9)):
        parts.append(varint_field(8, draw(stamps)))
    if not draw(st.integers(0, 7)):
        parts.append(varint_field(58, draw(st.sampled_from([1, 3, 6, 64]))))
    if draw(st.booleans()):
        parts.append(varint_field(13, 2))
    parts += [draw(events())] if draw(st.integers(0, 3)) else [draw(definitions())]
    if not draw(st.integers(0, 5)):
        parts.append(draw(st.one_of(events(), definitions())))
    return message_field(1, b"".join(parts))


@st.composite
def traces(draw: st.DrawFn) -> bytes:
    data = b"".join(draw(st.lists(packets(), min_size=1, max_size=40)))
    data += packet(1, begin(9, "last")) + packet(2, end(9))
    if draw(st.booleans()):
        return data
    raw = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw[: draw(st.integers(len(raw) // 2, len(raw)))])


def packet(time_ns: int, body: bytes, sequence: int = 1) -> bytes:
    return message_field(1, varint_field(8, time_ns) + varint_field(10, sequence) + body)


def begin(track: int, name: str) -> bytes:
    return message_field(11, varint_field(9, _BEGIN) + varint_field(11, track) + text_field(23, name))


def end(track: int) -> bytes:
    return message_field(11, varint_field(9, _END) + varint_field(11, track))


def told(data: bytes, backend: Backend) -> object:
    """Everything that a reading says, in plain Python."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.pftrace"
        path.write_bytes(data)
        try:
            found = PerfettoReader(backend).read(path, ReadOptions())
        except FormatError as error:
            return error.slug, error.message
    return plain(found)


def plain(found: Recording) -> object:
    timelines = [
        *((t.start_ns.tolist(), t.end_ns.tolist(), t.names, t.tracks, t.kinds) for t in found.timelines),
        *((t.name_index.tolist(), t.track_index.tolist(), t.kind_index.tolist()) for t in found.timelines),
    ]
    lanes = [(lane.name, lane.unit, lane.time_ns.tolist(), lane.value.tolist()) for lane in found.lanes]
    marks = [[(mark.time_ns, mark.name) for mark in track.markers] for track in found.markers]
    return timelines, lanes, marks, found.findings, dict(found.metadata)


@settings(deadline=None, max_examples=300, report_multiple_bugs=False)
@given(data=traces())
@example(data=packet(5, begin(3, "a")) + packet(4, end(3)) + packet(6, begin(3, "b")) + packet(7, end(3)))
def test_both_ways_say_the_same(data: bytes) -> None:
    assert told(data, "numba") == told(data, "numpy")


@pytest.mark.soak
@settings(deadline=None, max_examples=5_000)
@given(data=traces())
def test_both_ways_say_the_same_of_very_many_traces(data: bytes) -> None:
    assert told(data, "numba") == told(data, "numpy")


def test_the_scan_takes_all_but_the_first_packets_of_a_plain_trace(tmp_path: Path) -> None:
    name = message_field(12, message_field(2, varint_field(1, 1) + text_field(2, "conv")))
    lane = message_field(60, varint_field(1, 5) + text_field(2, "power") + message_field(8, text_field(6, "W")))
    opened = message_field(11, varint_field(9, _BEGIN) + varint_field(11, 4) + varint_field(10, 1))
    told_w = message_field(11, varint_field(9, _COUNTER) + varint_field(11, 5) + double_field(44, 2.5))
    data = packet(0, name) + packet(0, lane)
    data += b"".join(packet(3 * k, opened) + packet(3 * k + 1, told_w) + packet(3 * k + 2, end(4)) for k in range(5000))
    path = tmp_path / "plain.pftrace"
    path.write_bytes(data)
    log, clock = FindingLog(), Clock(name="boot", kind=ClockKind.MONOTONIC)
    clocks, columns = ClockTable(log), PacketColumns(clock, log)
    columns.clocks, columns.events = clocks, EventBook(clock, log, SampleBook(clock, log), columns)
    left = 0
    for message in iter_packets(path, log, scan=columns.scan):
        left += 1
        clocks.take(message)
        columns.events.take(message, clocks.boot_ns(message))
        columns.learn(message)
    (timeline,) = columns.timelines()
    assert (len(timeline), timeline.names, timeline.end_ns[-1] - timeline.start_ns[-1]) == (5000, ("conv",), 2)
    assert left < 20


def test_tables_grow_and_blocks_end_anywhere() -> None:
    rng = np.random.default_rng(2)
    parts = []
    for k in range(3000):  # more tracks, names, categories, lanes and open slices than any table holds at first
        word = "n" * int(rng.integers(1, 90)) + str(k)
        parts.append(
            packet(k, message_field(12, message_field(2, varint_field(1, k + 1) + text_field(2, word))), k % 600)
        )
        kind = message_field(60, varint_field(1, 10_000 + k) + text_field(2, f"lane {k}"))
        parts.append(packet(k, kind, k % 600))
    for k in range(3000):
        named = varint_field(10, k + 1) + text_field(22, f"category {k}")
        opened = varint_field(9, _BEGIN) + varint_field(11, k % 1500) + named
        parts.append(packet(3000 + k, message_field(11, opened), k % 600))
        told_w = varint_field(9, _COUNTER) + varint_field(11, 10_000 + k) + double_field(44, k / 7)
        parts.append(packet(3000 + k, message_field(11, told_w), k % 600))
    for k in range(2500):
        parts.append(packet(9000 + k, end(k % 1500), k % 600))
        told_w = varint_field(9, _COUNTER) + varint_field(11, 10_000 + k) + varint_field(30, -k)
        parts.append(packet(9000 + k, message_field(11, told_w), k % 600))
    parts += [
        packet(20_000 + k, message_field(11, varint_field(9, _BEGIN) + text_field(23, "x" * k))) for k in range(1500)
    ]
    parts += [packet(30_000 + k, end(0)) for k in range(1400)]
    data = b"".join(parts)
    assert len(data) > 1 << 20  # more than one block
    one, two = told(data, "numba"), told(data, "numpy")
    assert one == two
