"""A capture's blocks gathered: one header, the rows of each stream, readings of the clocks, and what was noted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from joulemap.errors import FormatError, InputError
from joulemap.formats.ground.building import FindingLog
from joulemap.records.finding import Severity
from joulemap.records.live.capture_header import CaptureHeader
from joulemap.records.live.capture_layout import (
    HEAD_B,
    MAGIC,
    OWNER_LOST,
    Block,
    BlockKind,
    ClockReading,
    SampleRows,
    decode_blocks,
    decode_clocks,
    decode_pause,
    decode_samples,
)
from joulemap.trace.pauses import unite_pauses

__all__ = ["Capture", "CaptureNote", "read_capture"]

_LATEST_NS: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureNote:
    """Something that the sampling process noted."""

    slug: str
    message: str
    at_ns: int
    stream: int = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capture:
    """What a capture holds.

    Args:
        header: of its first process.
        rows: of each stream, in order of time.
        clocks: readings, in order of time.
        notes: in file order.
        ended: the last process ended by itself.
        starts: processes that wrote it.
        pauses: begin and end of each pause that was ordered, ns, in order of time.
    """

    header: CaptureHeader
    rows: tuple[SampleRows, ...]
    clocks: tuple[ClockReading, ...]
    notes: tuple[CaptureNote, ...]
    ended: bool
    starts: int
    pauses: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class _Gathering:
    header: CaptureHeader | None = None
    rows: list[list[SampleRows]] = field(default_factory=list)
    clocks: list[ClockReading] = field(default_factory=list)
    notes: list[CaptureNote] = field(default_factory=list)
    ended: bool = False
    starts: int = 0
    pauses: dict[int, int | None] = field(default_factory=dict)
    restarted: bool = False


def read_capture(path: Path, log: FindingLog) -> Capture:
    """Returns what a capture holds; damaged places are left out with a finding.

    Args:
        path: of the file.
        log: takes ``capture_damaged``, ``capture_cut`` and ``capture_unfinished``.

    Raises:
        InputError: it cannot be read.
        FormatError: no capture, or one without a header.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path.name} cannot be read: {error.strerror or error}",
            hint="Check the path and its permissions.",
            slug="recording-unreadable",
        ) from error
    if not data.startswith(MAGIC):
        raise FormatError(
            f"{path.name} is no capture of live meters",
            hint="Give the capture that joulemap record left.",
            slug="format-unknown",
        )
    gathering = _gather(data, log)
    if gathering.header is None:
        raise FormatError(
            f"{path.name}: it ends before the sampling began",
            hint="Nothing was measured before it was cut; record again.",
            slug="recording-empty",
        )
    if not gathering.ended:
        log.add(
            "capture_unfinished",
            "the recording was killed; what it had written until then is here",
        )
    return Capture(
        header=gathering.header,
        rows=tuple(
            _join(parts, len(s.domains)) for parts, s in zip(gathering.rows, gathering.header.streams, strict=True)
        ),
        clocks=tuple(sorted(gathering.clocks, key=lambda reading: reading.monotonic_ns)),
        notes=tuple(gathering.notes),
        ended=gathering.ended,
        starts=gathering.starts,
        pauses=_close_pauses(gathering),
    )


def _gather(data: bytes, log: FindingLog) -> _Gathering:
    gathering = _Gathering()
    end = len(MAGIC)
    for block in decode_blocks(data):
        if block.skipped_b:
            _say_damage(log, block.offset - block.skipped_b, block.skipped_b)
        end = block.offset + HEAD_B + len(block.payload)
        try:
            _take(block, gathering)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.add("capture_damaged", f"a block holds no {_name(block.kind)}: {error}", f"offset {block.offset}")
    rest = len(data) - end
    if rest > 0:
        log.add(
            "capture_cut",
            f"the last {rest} bytes are no whole block; they are left out",
            f"offset {end}",
            Severity.INFO,
        )
    return gathering


def _name(kind: int) -> str:
    return BlockKind(kind).name.lower() if kind in BlockKind.__members__.values() else f"kind {kind}"


def _say_damage(log: FindingLog, at: int, size: int) -> None:
    log.add("capture_damaged", f"{size} bytes are no whole block; the samples in them are lost", f"offset {at}")


def _take(block: Block, gathering: _Gathering) -> None:
    if block.kind == BlockKind.HEADER:
        _take_header(block, gathering)
    elif block.kind == BlockKind.SAMPLES and gathering.header is not None:
        _take_samples(block, gathering, gathering.header)
    elif block.kind == BlockKind.CLOCKS:
        reading = decode_clocks(block)
        if max(abs(reading.monotonic_ns), abs(reading.utc_ns), abs(reading.boot_ns)) < _LATEST_NS:
            gathering.clocks.append(reading)
    elif block.kind == BlockKind.NOTE:
        told: dict[str, Any] = json.loads(block.payload)
        gathering.notes.append(
            CaptureNote(
                slug=str(told["slug"]),
                message=str(told["message"]),
                at_ns=int(told["at_ns"]),
                stream=int(told.get("stream", -1)),
            )
        )
    elif block.kind == BlockKind.PAUSE:
        _take_pause(block, gathering)
    elif block.kind == BlockKind.END:
        gathering.ended = json.loads(block.payload).get("reason") != OWNER_LOST


def _take_header(block: Block, gathering: _Gathering) -> None:
    header = CaptureHeader.from_json(json.loads(block.payload))
    gathering.starts += 1
    gathering.ended = False
    gathering.restarted = True
    if gathering.header is None:
        gathering.header = header
        gathering.rows = [[] for _ in header.streams]
    elif header.streams != gathering.header.streams:
        raise ValueError("another set of meters than before")


def _take_samples(block: Block, gathering: _Gathering, header: CaptureHeader) -> None:
    rows = decode_samples(block)
    domains = len(header.streams[block.stream].domains) if block.stream < len(gathering.rows) else -1
    if rows.raw.shape[1] != domains or int(np.abs(rows.stamp_ns).max()) >= _LATEST_NS:
        raise ValueError(f"{rows.raw.shape[1]} columns of stream {block.stream}")
    gathering.rows[block.stream].append(rows)
    _go_on(gathering, int(rows.stamp_ns.min()))


def _take_pause(block: Block, gathering: _Gathering) -> None:
    begin_ns, end_ns = decode_pause(block)
    if abs(begin_ns) >= _LATEST_NS or (end_ns or 0) >= _LATEST_NS:
        raise ValueError("its instants leave the range of 146 years")
    _go_on(gathering, begin_ns)
    gathering.pauses[begin_ns] = end_ns


def _go_on(gathering: _Gathering, at_ns: int) -> None:
    """Ends the pause of a killed process where the one that replaces it begins, with samples or a pause of its own."""
    if gathering.restarted:
        gathering.restarted = False
        _end_open_pause(gathering, at_ns)


def _end_open_pause(gathering: _Gathering, at_ns: int) -> None:
    for begin_ns, end_ns in gathering.pauses.items():
        if end_ns is None:
            gathering.pauses[begin_ns] = max(at_ns, begin_ns)


def _close_pauses(gathering: _Gathering) -> tuple[tuple[int, int], ...]:
    """Returns the pauses in order and disjoint; one that lasts ends with the recording."""
    last_ns = max((int(rows.stamp_ns.max()) for parts in gathering.rows for rows in parts), default=0)
    _end_open_pause(gathering, last_ns)
    spans = np.array(list(gathering.pauses.items()), np.int64).reshape(-1, 2)
    return tuple((begin_ns, end_ns) for begin_ns, end_ns in unite_pauses(spans).tolist())


def _join(parts: list[SampleRows], domains: int) -> SampleRows:
    if not parts:
        return SampleRows(
            stamp_ns=np.empty(0, np.int64),
            tick=np.empty(0, np.uint32),
            took_ns=np.empty(0, np.uint32),
            raw=np.empty((0, domains)),
        )
    return SampleRows(
        stamp_ns=np.concatenate([part.stamp_ns for part in parts]),
        tick=np.concatenate([part.tick for part in parts]),
        took_ns=np.concatenate([part.took_ns for part in parts]),
        raw=np.concatenate([part.raw for part in parts]),
    )
