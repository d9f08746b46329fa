"""Nordic Power Profiler Kit II: the ``.ppk2`` archive of the Power Profiler app (4.0 and later).

References:
    nordicsemi/pc-nrfconnect-ppk at 5709279e: src/utils/saveFileHandler.ts, loadFileHandler.ts, bitConversion.ts
    (FORMATS_MORE, "Nordic .ppk2"); no file of the vendor's own app was at hand.
"""

from __future__ import annotations

import json
import zipfile
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.archive import is_zip, member_bytes, member_chunks, member_names, open_archive
from joulemap.formats.ground.building import FindingLog, boundary_of, source_file, uniform_trace, voltage_of
from joulemap.formats.ground.levels import level_records
from joulemap.formats.ground.sample_store import release_pages, sample_store
from joulemap.records.finding import Severity
from joulemap.records.recording import MarkerTrack, Recording
from joulemap.trace import Channel, Clock, ClockKind, KernelKind, SensorKernel, Timeline

__all__ = ["Ppk2Reader"]

_SAMPLES: Final = "session.raw"
_META: Final = "metadata.json"
_SAMPLE: Final = np.dtype([("current_ua", "<f4"), ("bits", ">u2")])
_CHUNK_B: Final = _SAMPLE.itemsize * (1 << 17)
_RATE_MAX_HZ: Final = 100_000
_EDGES_MAX: Final = 500_000


@dataclass(slots=True)
class _Line:
    """The changes of one digital input; its pairs are 0 invalid, 1 low, 2 high, 3 both."""

    index: array[int] = field(default_factory=lambda: array("q"))
    level: array[int] = field(default_factory=lambda: array("b"))
    last: int = -1
    both: int = 0
    busy: bool = False


class Ppk2Reader:
    """Reads current and the eight digital inputs; the supply is not in the file and must be stated."""

    name = "ppk2"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a zip archive that holds ``session.raw`` and ``metadata.json``."""
        return 1.0 if is_zip(head) and {_SAMPLES, _META} <= set(member_names(path)) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power (current times the stated supply) and the digital inputs.

        Raises:
            InputError: no supply was stated.
            FormatError: the archive, its metadata or its samples are damaged.
        """
        log = FindingLog()
        voltage_v = voltage_of(options.voltage_v, path.name)
        with open_archive(path) as archive:
            rate_hz, start_ms = _metadata(archive, path.name)
            power_w, lines = _samples(archive, voltage_v, log)
        if start_ms is None:
            clock = Clock(name="ppk2", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / rate_hz)
            log.add(
                "start_unstated", "the file does not say when it was recorded: time is relative", _META, Severity.INFO
            )
        else:
            clock = Clock(name="ppk2", kind=ClockKind.UTC, resolution_ns=1e6)
        start_ns = 0 if start_ms is None else start_ms * 1_000_000
        channel = Channel(
            name="power",
            boundary=boundary_of(options.boundary, Boundary.RAIL),
            provenance=Provenance.MEASURED_SAMPLED,
            kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1 / rate_hz),
        )
        trace = uniform_trace(power_w, channel=channel, clock=clock, start_ns=start_ns, period_s=1 / rate_hz, log=log)
        timelines, markers = _lines(lines, trace.n, (clock, start_ns, rate_hz), log)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=(trace,),
            timelines=timelines,
            markers=markers,
            metadata={"rate_hz": f"{rate_hz:g}", "supply_v": f"{voltage_v:g}"},
            findings=log.findings(),
        )


def _metadata(archive: zipfile.ZipFile, name: str) -> tuple[float, int | None]:
    try:
        document: Any = json.loads(member_bytes(archive, _META, 1 << 20))
        meta = document["metadata"]
        rate_hz, start_ms = meta["samplesPerSecond"], meta.get("startSystemTime")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(
            f"{name}: {_META} is damaged ({type(error).__name__}: {error})",
            hint="Save the session again in the Power Profiler app.",
            slug="ppk2-metadata",
        ) from error
    if isinstance(rate_hz, bool) or not isinstance(rate_hz, int | float) or not 0 < rate_hz <= _RATE_MAX_HZ:
        raise FormatError(
            f"{name}: {rate_hz!r} samples per second is impossible (1 to {_RATE_MAX_HZ})",
            hint="The metadata is damaged.",
            slug="rate-impossible",
        )
    if start_ms is not None and (
        isinstance(start_ms, bool) or not isinstance(start_ms, int | float) or not 0 <= start_ms < 4e12
    ):
        raise FormatError(
            f"{name}: {start_ms!r} is no start time", hint="The metadata is damaged.", slug="ppk2-metadata"
        )
    return float(rate_hz), None if start_ms is None else round(start_ms)


def _samples(archive: zipfile.ZipFile, voltage_v: float, log: FindingLog) -> tuple[NDArray[np.float32], list[_Line]]:
    try:
        size_b = archive.getinfo(_SAMPLES).file_size
    except KeyError:
        raise FormatError(
            f"the archive holds no {_SAMPLES}", hint="Save the session again.", slug="archive-damaged"
        ) from None
    count = min(size_b // _SAMPLE.itemsize, 1 << 34)
    if archive.getinfo(_SAMPLES).compress_size * 1100 + 1024 < size_b:  # deflate never packs tighter
        raise FormatError(
            f"{_SAMPLES} claims {size_b} bytes, more than its data can hold",
            hint="The archive is damaged.",
            slug="archive-damaged",
        )
    power_w = sample_store(count)
    lines = [_Line() for _ in range(8)]
    at = 0
    rest = b""
    for block in member_chunks(archive, _SAMPLES, _CHUNK_B):
        body = rest + block
        take = min(len(body) // _SAMPLE.itemsize, count - at)
        sample = np.frombuffer(body, _SAMPLE, take)
        rest = body[take * _SAMPLE.itemsize :]
        with np.errstate(over="ignore", invalid="ignore"):
            power_w[at : at + take] = sample["current_ua"].astype(np.float64) * (1e-6 * voltage_v)
        _follow(lines, sample["bits"].astype(np.uint16), at)
        at += take
        release_pages(power_w)
    if rest or at < count:
        log.add("tail_cut", f"{_SAMPLES} ends inside a sample: {len(rest)} bytes are left out", f"offset {size_b}")
    return power_w[:at], lines


def _follow(lines: list[_Line], bits: NDArray[np.uint16], at: int) -> None:
    """Takes the changes of all inputs from one block; a sample that saw both levels counts as high."""
    for number, line in enumerate(lines):
        if line.busy:
            continue
        pair = (bits >> (2 * number)) & 3
        where = np.flatnonzero(pair)
        if not where.size:
            continue
        line.both += int((pair == 3).sum())
        level = (pair[where] >= 2).astype(np.int8)
        before = np.concatenate(([line.last], level[:-1]))
        turns = np.flatnonzero(level != before)
        if len(line.index) + turns.size > _EDGES_MAX:
            line.busy = True
            continue
        line.index.extend((where[turns] + at).tolist())
        line.level.extend(level[turns].tolist())
        line.last = int(level[-1])


def _lines(
    lines: list[_Line], count: int, base: tuple[Clock, int, float], log: FindingLog
) -> tuple[tuple[Timeline, ...], tuple[MarkerTrack, ...]]:
    clock, start_ns, rate_hz = base
    timelines, markers = [], []
    for number, line in enumerate(lines):
        name = f"D{number}"
        if line.busy:
            log.add("line_too_busy", f"{name} toggles more than {_EDGES_MAX} times and is left out")
            continue
        if line.both:
            log.add(
                "line_both_levels", f"{name} had both levels within {line.both} samples: they count as high",
                severity=Severity.INFO,
            )  # fmt: skip
        time_ns = start_ns + np.round(np.array(line.index, np.int64) * (1e9 / rate_hz)).astype(np.int64)
        changes = (time_ns, np.array(line.level, np.int64))
        timeline, edges = level_records(
            name, changes, clock=clock, end_ns=start_ns + round(count * 1e9 / rate_hz), log=log
        )
        timelines += [timeline] if timeline is not None else []
        markers += [edges] if edges is not None else []
    return tuple(timelines), tuple(markers)
