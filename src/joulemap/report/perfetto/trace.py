"""A Perfetto trace of an energy map: one process per boundary, counters in W and J, slices with energy, clocks.

References:
    Perfetto, "Synthetic Track Events", and protos/perfetto/trace: track_event.proto, track_descriptor.proto,
    clock_snapshot.proto, interned_data.proto. Field numbers are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.report.perfetto.wire import (
    Stamped,
    double_field,
    interleave,
    message_field,
    text_field,
    varint_field,
)

__all__ = ["ClockLine", "CounterTrack", "PerfettoScene", "SliceTrack", "encode_trace"]

_PACKET = 1  # Trace.packet
_CLOCK_SNAPSHOT, _STAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 6, 8, 10, 11, 12, 13, 60
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_WIDE = 9  # bytes of a stamp: 63 bits
_BOOTTIME, _FIRST_OWN = 6, 128  # BuiltinClock; ids from 128 on are the writer's
_ARGUMENTS = ("energy_j", "self_j", "mean_power_w", "energy_expanded_j")
_CHUNK = 1 << 14  # packets at a time: their bytes stay in the cache

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterTrack:
    """A counter.

    Args:
        name: for example ``power``.
        unit: ``W`` or ``J``.
        time_ns: (n,) ns, >= 0.
        value: (n,).
    """

    name: str
    unit: str
    time_ns: Ints
    value: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceTrack:
    """Slices of one track that nest, as events in order of time.

    Args:
        name: of the track.
        time_ns: (m,) ns, >= 0.
        code: (m,) twice the slice, plus 1 for its end.
        instant: (n,) True for a slice without length.
        name_index: (n,) into the scene's names.
        resolution: (n,) into the scene's resolutions.
        arguments: (n, 4) J held, J of its own, W, J expanded uncertainty; NaN where there is none.
    """

    name: str
    time_ns: Ints
    code: Ints
    instant: NDArray[np.bool_]
    name_index: Ints
    resolution: Ints
    arguments: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockLine:
    """A clock beside the trace's: the same instant on both, and how well that is known.

    Args:
        name: of the clock.
        trace_ns: instant on the trace's clock, ns, >= 0.
        own_ns: the same on this clock, ns, >= 0.
        facts: name -> text or number, shown as arguments.
    """

    name: str
    trace_ns: int
    own_ns: int
    facts: tuple[tuple[str, str | float], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerfettoScene:
    """Everything that is shown.

    Args:
        process: name of the process track: what was measured, at which boundary.
        names: of slices.
        resolutions: words for how energies were had.
        counters: of the power.
        tracks: of slices.
        clocks: beside the trace's.
        marks: instant (ns), name, message: findings and edges.
    """

    process: str
    names: tuple[str, ...]
    resolutions: tuple[str, ...]
    counters: tuple[CounterTrack, ...]
    tracks: tuple[SliceTrack, ...]
    clocks: tuple[ClockLine, ...]
    marks: tuple[tuple[int, str, str], ...]


def encode_trace(scene: PerfettoScene) -> Iterator[bytes | memoryview]:
    """Yields the bytes of the trace, piece by piece."""
    yield _packet(varint_field(_FLAGS, 1) + message_field(_INTERNED, _interned(scene)))
    yield _descriptor(1, message_field(3, varint_field(1, 1) + text_field(6, scene.process)))
    uuid = 2
    for clock_id, clock in enumerate(scene.clocks, start=_FIRST_OWN):
        yield from _clock(clock, clock_id)
    if scene.clocks:
        yield _descriptor(uuid, text_field(2, "clocks") + varint_field(5, 1))
        for clock in scene.clocks:
            yield _mark(uuid, clock.trace_ns, f"clock {clock.name}", clock.facts)
        uuid += 1
    for counter in scene.counters:
        described = text_field(2, counter.name) + varint_field(5, 1) + message_field(8, text_field(6, counter.unit))
        yield _descriptor(uuid, described)
        yield from _counter(uuid, counter)
        uuid += 1
    for track in scene.tracks:
        yield _descriptor(uuid, text_field(2, track.name) + varint_field(5, 1))
        yield from _slices(uuid, track)
        uuid += 1
    if scene.marks:
        yield _descriptor(uuid, text_field(2, "marks and findings") + varint_field(5, 1))
        for time_ns, name, message in scene.marks:
            yield _mark(uuid, time_ns, name, (("message", message),))


def _packet(body: bytes) -> bytes:
    return message_field(_PACKET, body + varint_field(_SEQUENCE, 1))


def _descriptor(uuid: int, described: bytes) -> bytes:
    return _packet(message_field(_DESCRIPTOR, varint_field(1, uuid) + described))


def _interned(scene: PerfettoScene) -> bytes:
    tables: tuple[tuple[int, Sequence[str]], ...] = (
        (2, scene.names),
        (3, (*_ARGUMENTS, "resolution")),
        (29, scene.resolutions),
    )
    return b"".join(
        message_field(number, varint_field(1, iid) + text_field(2, text))
        for number, texts in tables
        for iid, text in enumerate(texts, start=1)
    )


def _clock(clock: ClockLine, clock_id: int) -> Iterator[bytes]:
    pairs = ((_BOOTTIME, clock.trace_ns), (clock_id, clock.own_ns))
    body = b"".join(message_field(1, varint_field(1, at) + varint_field(2, stamp)) for at, stamp in pairs)
    yield _packet(message_field(_CLOCK_SNAPSHOT, body) + varint_field(_STAMP, clock.trace_ns))


def _mark(uuid: int, time_ns: int, name: str, facts: Sequence[tuple[str, str | float]]) -> bytes:
    arguments = b"".join(
        message_field(4, text_field(10, key) + (text_field(6, v) if isinstance(v, str) else double_field(5, v)))
        for key, v in facts
    )
    event = varint_field(9, _INSTANT) + varint_field(11, uuid) + text_field(23, name) + arguments
    return _packet(varint_field(_STAMP, time_ns) + message_field(_EVENT, event))


def _stamped(event: Stamped) -> Stamped:
    packet = Stamped().number(_STAMP, _WIDE).constant(varint_field(_SEQUENCE, 1) + varint_field(_FLAGS, 2))
    return Stamped().nested(_PACKET, packet.nested(_EVENT, event))


def _counter(uuid: int, counter: CounterTrack) -> Iterator[memoryview]:
    event = Stamped().constant(varint_field(9, _COUNTER) + varint_field(11, uuid)).double(44)
    shape = _stamped(event)
    for at in range(0, counter.time_ns.size, _CHUNK):
        part = slice(at, at + _CHUNK)
        yield shape.fill((counter.time_ns[part], np.asarray(counter.value[part], np.float64))).ravel().data


def _slices(uuid: int, track: SliceTrack) -> Iterator[memoryview]:
    head = {kind: Stamped().constant(varint_field(9, kind) + varint_field(11, uuid)) for kind in (_BEGIN, _INSTANT)}
    told = Stamped().constant(varint_field(9, _BEGIN) + varint_field(11, uuid)).number(10, 5)
    for iid in range(1, len(_ARGUMENTS) + 1):
        told.nested(4, Stamped().constant(varint_field(1, iid)).double(5))
    for shape in (*head.values(), told):
        if shape is not told:
            shape.number(10, 5)
        shape.nested(4, Stamped().constant(varint_field(1, len(_ARGUMENTS) + 1)).number(17, 5))
    ended = _stamped(Stamped().constant(varint_field(9, _END) + varint_field(11, uuid)))
    begun, known, instant = _stamped(head[_BEGIN]), _stamped(told), _stamped(head[_INSTANT])
    for at in range(0, track.time_ns.size, _CHUNK):
        time_ns, code = track.time_ns[at : at + _CHUNK], track.code[at : at + _CHUNK]
        row, ending = code >> 1, (code & 1) == 1
        stamped: list[tuple[NDArray[np.bool_], Stamped, bool]] = [
            (ending, ended, False),
            (~ending & track.instant[row], instant, False),
        ]
        complete = np.isfinite(track.arguments[row]).all(axis=1)
        rest = ~ending & ~track.instant[row]
        stamped += [(rest & complete, known, True), (rest & ~complete, begun, False)]
        parts: list[tuple[Ints, NDArray[np.uint8]]] = []
        for mask, shape, full in stamped:
            where = np.flatnonzero(mask)
            if not where.size:
                continue
            columns: list[NDArray[np.int64] | NDArray[np.float64]] = [time_ns[where]]
            if shape is not ended:
                columns.append(np.asarray(track.name_index[row[where]] + 1, np.int64))
                if full:
                    columns += [np.ascontiguousarray(track.arguments[row[where], k]) for k in range(len(_ARGUMENTS))]
                columns.append(np.asarray(track.resolution[row[where]] + 1, np.int64))
            parts.append((where, shape.fill(columns)))
        yield interleave(parts, code.size)
