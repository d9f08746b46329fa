"""tegrastats of every Jetson: rails as instant/mean since start, with or without mW, with or without a date."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import index_clock, key_of, local_clock, read_stamp
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import KernelKind

__all__ = ["TegrastatsReader"]

_LINE = re.compile(r"\bRAM \d+/\d+MB")
_STAMP = re.compile(r"^\s*(\d{2}-\d{2}-\d{4} \d{2}:\d{2}:\d{2})\s")
_RAIL = re.compile(r"(?<=\s)([A-Za-z][A-Za-z0-9_]*) (\d{1,9})(?:mW)?/(\d{1,9})(?:mW)?(?=\s|$)")
_CORES = re.compile(r"\bCPU \[([^\]]*)\]")
_CORE = re.compile(r"^(\d{1,3})%")
_ENGINE = re.compile(
    r"\b(GR3D|GR3D2|EMC|VIC|NVENC|NVDEC|NVJPG)(?:_FREQ)? (?:(\d{1,3})%)?(?:@(?:\[([\d,]+)\]|(\d+)))?(?=\s|$)"
)
_TEMPERATURE = re.compile(r"(?<=\s)([A-Za-z][A-Za-z0-9_]*)@(-?\d+(?:\.\d+)?)C(?:/\S+)?(?=\s|$)")
_OFF_DEGC = -256.0
_TOTALS = ("VDD_IN", "POM_5V_IN")
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Sample:
    line: int
    time_ns: int | None
    text: str


class TegrastatsReader:
    """Reads tegrastats logs.

    VDD_IN and POM_5V_IN feed the module and contain the other rails; AGX Orin has no such rail (VIN_SYS_5V0 is only
    its 5 V part). The stamps have a resolution of one second: samples that share one are spread over it.

    References:
        FORMATS 3 (tegrastats) and 4 (reports 33 to 35); NVIDIA Jetson Linux Developer Guide, "tegrastats utility".
    """

    name: ClassVar[str] = "tegrastats"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 when one of the first lines has tegrastats' RAM and CPU fields."""
        del path
        return 0.95 if any(_LINE.search(text) and "CPU [" in text for text in head_lines(head, 5)) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per rail, its running mean as a stated figure, loads and temperatures as lanes.

        Raises:
            FormatError: no line of tegrastats.
            InputError: the lines have no date and no rate was stated.
        """
        log = FindingLog()
        probe = next(iter(_samples(path, log)), None)
        if probe is None:
            raise FormatError(
                f"{path.name} holds no line of tegrastats", hint="Let it run longer.", slug="recording-empty"
            )
        log = FindingLog()
        dated = probe.time_ns is not None
        clock, step_ns = (
            local_clock(options, log, resolution_ns=1e9)
            if dated
            else index_clock(options, f"{path.name} (tegrastats without dates)")
        )
        book = SampleBook(clock, log)
        rails: list[str] = []
        means: dict[str, tuple[float, int]] = {}
        for number, (sample, time_ns) in enumerate(_spread(_samples(path, log), log) if dated else _undated(path, log)):
            at_ns = time_ns + step_ns if dated else number * step_ns
            self._take(sample, at_ns, (book, options, rails, means))
        if "VIN_SYS_5V0" in rails and not set(rails) & set(_TOTALS):
            log.add(
                "no_total_rail",
                "this board has no rail that feeds the whole module; VIN_SYS_5V0 is only its 5 V part",
                severity=Severity.INFO,
            )
        for rail, (mean_w, line) in means.items():
            book.state(f"{key_of(rail)}_running_mean_power_w", mean_w, _domain(rail, options), f"line {line}")
        overlaps = [(rail, total) for total in _TOTALS if total in rails for rail in rails if rail != total]
        return recording_of(self.name, path, book, overlaps=overlaps)

    @staticmethod
    def _take(
        sample: _Sample, time_ns: int, sink: tuple[SampleBook, ReadOptions, list[str], dict[str, tuple[float, int]]]
    ) -> None:
        book, options, rails, means = sink
        seen: dict[str, int] = {}
        for rail, instant, mean in _RAIL.findall(sample.text):
            seen[rail] = seen.get(rail, 0) + 1
            name = rail if seen[rail] == 1 else f"{rail}#{seen[rail]}"
            if name not in rails:
                rails.append(name)
            book.series(name, _domain(name, options)).add(time_ns, int(instant) / 1000, sample.line)
            means[name] = (int(mean) / 1000, sample.line)
        _lanes(sample.text, time_ns, book)


def _domain(rail: str, options: ReadOptions) -> Domain:
    own = Boundary.BOARD if rail in _TOTALS else Boundary.RAIL
    boundary = boundary_of(options.boundary, own) if rail in _TOTALS else own
    return Domain(boundary=boundary, kind=KernelKind.POINT, window_s=0.0, gap_factor=2.5, resolution_w=1e-3)


def _lanes(text: str, time_ns: int, book: SampleBook) -> None:
    cores = _CORES.search(text)
    if cores is not None:
        for number, core in enumerate(cores.group(1).split(",")):
            load = _CORE.match(core)
            book.lane(f"cpu{number} utilisation", "1", time_ns, int(load.group(1)) * 0.01 if load else math.nan)
    for engine, load, clocks, clock in _ENGINE.findall(text):
        if load:
            book.lane(f"{engine.lower()} utilisation", "1", time_ns, int(load) * 0.01)
        mhz = (clocks or clock).split(",")[0]
        if mhz:
            book.lane(f"{engine.lower()} clock", "Hz", time_ns, int(mhz[:9]) * 1e6)
    for sensor, degc in _TEMPERATURE.findall(text):
        value = float(degc)
        book.lane(f"{sensor.lower()} temperature", "degC", time_ns, math.nan if value <= _OFF_DEGC else value)


def _samples(path: Path, log: FindingLog) -> Iterator[_Sample]:
    for line, text in read_lines(path):
        if not _LINE.search(text):
            if text.strip():
                log.add("line_unreadable", f"not a line of tegrastats: {text[:40]!r}", f"line {line}", Severity.INFO)
            continue
        match = _STAMP.match(text)
        stamp = read_stamp(log, match.group(1), line) if match else None
        yield _Sample(line, stamp.ns if stamp else None, text)


def _undated(path: Path, log: FindingLog) -> Iterator[tuple[_Sample, int]]:
    for sample in _samples(path, log):
        yield sample, 0


def _spread(samples: Iterator[_Sample], log: FindingLog) -> Iterator[tuple[_Sample, int]]:
    """Yields samples with their time; those of one second are laid evenly inside it, in order."""
    group: list[_Sample] = []
    said = False
    for sample in samples:
        if sample.time_ns is None:
            log.add("stamp_unreadable", "a line without a date among lines with one; left out", f"line {sample.line}")
            continue
        if group and sample.time_ns != group[0].time_ns:
            yield from _even(group)
            group = []
        group.append(sample)
        if len(group) == 2 and not said:
            said = True
            log.add(
                "stamps_spread",
                "several samples share one second; they are spread evenly over it (up to one second of doubt)",
                f"line {sample.line}",
            )
    yield from _even(group)


def _even(group: list[_Sample]) -> Iterator[tuple[_Sample, int]]:
    for number, sample in enumerate(group):
        assert sample.time_ns is not None  # asked by the caller
        yield sample, sample.time_ns + number * _SECOND_NS // len(group)
