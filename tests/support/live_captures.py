"""Captures as a sampling process would write them, from readings that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import ReadOptions
from joulemap.formats.live.capture import CaptureReader
from joulemap.records.live.capture_header import CaptureHeader, CaptureStream
from joulemap.records.live.capture_layout import (
    MAGIC,
    BlockKind,
    ClockReading,
    SampleRows,
    encode_block,
    encode_clocks,
    encode_samples,
)
from joulemap.records.live.domain import DomainReading, LiveDomain
from joulemap.records.recording import Recording
from joulemap.trace import EnergyTrace, integrate_between

COUNTER = LiveDomain(
    name="package-0",
    reading=DomainReading.ENERGY_COUNTER,
    unit="J",
    scale=1e-6,
    provenance=Provenance.MEASURED_COUNTER,
    boundary=Boundary.PACKAGE,
    modulus=2.0**32,
    largest_w=500.0,
    update_period_s=0.001,
)
POWER = LiveDomain(
    name="board",
    reading=DomainReading.POWER,
    unit="W",
    scale=1.0,
    provenance=Provenance.MEASURED_SAMPLED,
    boundary=Boundary.BOARD,
    largest_w=1000.0,
)
SIGNAL = LiveDomain(
    name="temp", reading=DomainReading.SIGNAL, unit="degC", scale=0.001, provenance=Provenance.MEASURED_SAMPLED
)
STEP_UJ = 2_000_000.0  # 20 W at 10 Hz


def header_of(*domains: LiveDomain, meter: str = "m", period_s: float = 0.1) -> CaptureHeader:
    """One meter of some domains."""
    stream = CaptureStream(meter=meter, driver="simulated", period_s=period_s, domains=domains)
    return CaptureHeader(session="s", rate_hz=1.0 / period_s, streams=(stream,))


def header_block(header: CaptureHeader) -> bytes:
    return encode_block(BlockKind.HEADER, json.dumps(header.to_json()).encode())


def rows_of(raw: ArrayLike, *, begin_ns: int = 10**9, step_ns: int = 10**8) -> SampleRows:
    """Rows at even steps."""
    columns = np.asarray(raw, np.float64)
    columns = columns.reshape(len(columns), -1)
    n = len(columns)
    return SampleRows(
        stamp_ns=begin_ns + step_ns * np.arange(n, dtype=np.int64),
        tick=np.arange(1, n + 1, dtype=np.uint32),
        took_ns=np.full(n, 1000, np.uint32),
        raw=columns,
    )


def clocks_at(instants_ns: Iterable[int], *, utc_less_ns: int = 10**18) -> list[ClockReading]:
    return [
        ClockReading(monotonic_ns=at, utc_ns=at + utc_less_ns, boot_ns=at + 5 * 10**9, width_ns=100)
        for at in instants_ns
    ]


def capture_bytes(
    raw: ArrayLike,
    *domains: LiveDomain,
    end: bool = True,
    clocks: Sequence[ClockReading] = (),
    blocks: Sequence[bytes] = (),
    rows: SampleRows | None = None,
) -> bytes:
    """A whole capture of one meter, rows in blocks of 16."""
    whole = rows_of(raw) if rows is None else rows
    parts = [MAGIC, header_block(header_of(*(domains or (COUNTER,))))]
    parts += [encode_clocks(reading) for reading in clocks]
    for at in range(0, whole.stamp_ns.size, 16):
        part = slice(at, at + 16)
        some = replace(
            whole,
            stamp_ns=whole.stamp_ns[part],
            tick=whole.tick[part],
            took_ns=whole.took_ns[part],
            raw=whole.raw[part],
        )
        parts.append(encode_samples(some, 0))
    parts += list(blocks)
    if end:
        parts.append(encode_block(BlockKind.END, b"{}"))
    return b"".join(parts)


def read_bytes(data: bytes, tmp_path: Path) -> Recording:
    """What the reader makes of a capture."""
    path = tmp_path / "capture.jmc"
    path.write_bytes(data)
    return CaptureReader().read(path, ReadOptions())


def slugs(recording: Recording) -> list[str]:
    return [finding.slug for finding in recording.findings]


def ramp(n: int, start: float = 0.0, step: float = STEP_UJ) -> np.ndarray:
    """A counter that rises evenly."""
    return start + step * np.arange(n)


def only(recording: Recording) -> EnergyTrace:
    """The one trace of a recording."""
    (trace,) = recording.traces
    return trace


def energy_j(trace: EnergyTrace, begin_s: float, end_s: float) -> float:
    """Energy between two instants, J."""
    bounds = np.array([round(begin_s * 1e9), round(end_s * 1e9)], np.int64)
    return float(integrate_between(trace, bounds).energy_j[0])
