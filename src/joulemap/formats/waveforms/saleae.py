"""Saleae Logic 2 binary exports, version 0: one channel per file, analog volts or digital transition times.

References:
    saleae/gitbook-docs at 0253e805, binary-export-format-logic-2.md (FORMATS_MORE, "Saleae Logic 2"). Version 1 and
    ``.sal`` are not read: their layouts are not published.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.levels import level_records
from joulemap.formats.ground.values import UnitKind, widen
from joulemap.formats.waveforms.mapping import Axis, Waveform, map_waveforms
from joulemap.records.recording import MarkerTrack, Recording
from joulemap.trace import Clock, ClockKind, Timeline

__all__ = ["SaleaeReader"]

_MAGIC: Final = b"<SALEAE>"
_ANALOG_B: Final = 48
_DIGITAL_B: Final = 44
_EDGES_MAX: Final = 5_000_000
_SECONDS_MAX: Final = 4e9
_CHANNEL: Final = "channel"


class SaleaeReader:
    """Reads one exported channel; the file does not name it, so a map calls it ``channel``."""

    name = "saleae"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the identifier."""
        del path
        return 1.0 if head.startswith(_MAGIC) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns a digital channel as slices and edges, an analog one as a lane or, mapped, as power.

        Raises:
            FormatError: a version or type that is not read, or a head that cannot be.
        """
        log = FindingLog()
        with path.open("rb") as handle:
            head = handle.read(_ANALOG_B)
        if len(head) < 16 or not head.startswith(_MAGIC):
            raise FormatError(f"{path.name}: no Saleae export", hint="Export as binary.", slug="saleae-head")
        version, kind = struct.unpack_from("<ii", head, 8)
        if version != 0 or kind not in {0, 1}:
            raise FormatError(
                f"{path.name}: version {version}, type {kind} is not read (version 0, types 0 and 1 are)",
                hint="Export as CSV.",
                slug="saleae-version",
            )
        clock = Clock(name="saleae", kind=ClockKind.MONOTONIC)
        if kind == 1:
            channels, axis = _analog(path, head, clock, log)
            traces, lanes = map_waveforms(channels, axis, options, log)
            timelines: tuple[Timeline, ...] = ()
            markers: tuple[MarkerTrack, ...] = ()
        else:
            traces, lanes = (), ()
            timelines, markers = _digital(path, head, clock, log)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=traces,
            lanes=lanes,
            timelines=timelines,
            markers=markers,
            metadata={"type": "analog" if kind == 1 else "digital"},
            findings=log.findings(),
        )


def _check(good: bool, what: str) -> None:
    if not good:
        raise FormatError(f"the head says {what}", hint="The export is damaged.", slug="saleae-head")


def _count(path: Path, stated: int, place: tuple[int, int], log: FindingLog) -> int:
    """Returns how many values of ``width`` bytes follow the head: as stated, or as many as there are."""
    head_b, width = place
    there = max(path.stat().st_size - head_b, 0) // width
    if stated != there:
        log.add("count_disagrees", f"the head says {stated} values, the file holds {there}")
    return min(stated, there)


def _analog(path: Path, head: bytes, clock: Clock, log: FindingLog) -> tuple[dict[str, Waveform], Axis]:
    _check(len(head) >= _ANALOG_B, "less than an analog head needs")
    begin_s, rate, downsample, stated = struct.unpack_from("<dQQQ", head, 16)
    _check(abs(begin_s) < _SECONDS_MAX, f"a begin time of {begin_s} s")
    _check(0 < rate <= 10**12 and 0 < downsample <= 10**9, f"a rate of {rate} Hz over {downsample}")
    count = _count(path, stated, (_ANALOG_B, 4), log)
    _check(count > 0, "no samples")
    value = widen(np.fromfile(path, "<f4", count, offset=_ANALOG_B))
    axis = Axis(clock=clock, start_ns=round(begin_s * 1e9), period_s=downsample / rate)
    _check(count * downsample / rate < _SECONDS_MAX, "a recording longer than a century")
    return {_CHANNEL: Waveform(name=_CHANNEL, kind=UnitKind.VOLTAGE, value=value)}, axis


def _digital(
    path: Path, head: bytes, clock: Clock, log: FindingLog
) -> tuple[tuple[Timeline, ...], tuple[MarkerTrack, ...]]:
    _check(len(head) >= _DIGITAL_B, "less than a digital head needs")
    state, begin_s, end_s, stated = struct.unpack_from("<IddQ", head, 16)
    _check(state in {0, 1}, f"an initial state of {state}")
    _check(abs(begin_s) < _SECONDS_MAX and abs(end_s) < _SECONDS_MAX, f"times {begin_s} to {end_s} s")
    count = min(_count(path, stated, (_DIGITAL_B, 8), log), _EDGES_MAX)
    seconds = np.fromfile(path, "<f8", count, offset=_DIGITAL_B)
    good = np.isfinite(seconds) & (np.abs(seconds) < _SECONDS_MAX)
    good[1:] &= seconds[1:] >= np.maximum.accumulate(np.where(good, seconds, -np.inf))[:-1]
    if not good.all():
        log.add("backward_stamp", f"{int((~good).sum())} transitions are not in order of time and are left out")
    time_ns = np.round(seconds[good] * 1e9).astype(np.int64)
    levels = (np.arange(time_ns.size) + 1 + state) % 2
    changes = (
        np.insert(time_ns, 0, min(round(begin_s * 1e9), *time_ns[:1].tolist(), 1 << 62)),
        np.insert(levels, 0, state),
    )
    timeline, edges = level_records(_CHANNEL, changes, clock=clock, end_ns=round(end_s * 1e9), log=log)
    return (timeline,) if timeline is not None else (), (edges,) if edges is not None else ()
