"""Prometheus text: scrapes of node_exporter, DCGM, Kepler, Scaphandre and Triton, with or without time stamps."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.exposition.metrics import MetricSample, find_metric, inside
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.logs import index_clock
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["PrometheusReader"]

_SAMPLE = re.compile(
    r"^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?\s+([-+]?(?:\d[\d.eE+-]*|\.\d[\deE+-]*|Inf|NaN))(?:\s+(-?\d+(?:\.\d+)?))?(?:\s+#.*)?$"
)
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_LARGEST_W = {Boundary.NODE: 20_000.0, Boundary.PACKAGE: 2_000.0, Boundary.RAIL: 2_000.0, Boundary.BOARD: 5_000.0}
_MILLI_LIMIT = 1e11  # an epoch above it is in milliseconds (Prometheus), below in seconds (OpenMetrics)


@dataclass(slots=True)
class _Time:
    clock: Clock
    period_ns: int
    timed: bool


class PrometheusReader:
    """Reads the text of a scrape, or of many with time stamps.

    One scrape without a time gives stated powers and counters. Counters are differenced; their range is not in the
    text, so a fall is a gap. Rows of MIG instances repeat the whole card: one value per card and time is kept. Zones
    of one processor overlap and are never added.

    References:
        Prometheus documentation, "Exposition formats"; OpenMetrics 1.0 (seconds); FORMATS 4 (reports 8, 9, 15 to 20);
        the metrics' own pages named in ``metrics``.
    """

    name: ClassVar[str] = "prometheus"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.9 for comment lines of the format, 0.8 for samples of a metric that is known."""
        del path
        lines = head_lines(head, 12)
        samples = [match for text in lines if (match := _SAMPLE.match(text))]
        if lines and lines[0].startswith(("# HELP ", "# TYPE ")):
            return 0.9
        known = any(find_metric(match.group(1), {}) is not None for match in samples)
        return 0.8 if known and len(samples) * 2 > len(lines) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power metrics as traces or stated figures, voltages, temperatures and loads as lanes.

        Raises:
            FormatError: no metric of power or energy.
            InputError: scrapes follow each other without time stamps and no rate was stated.
        """
        log = FindingLog()
        time = self._probe(path, options)
        book = SampleBook(time.clock, log)
        polls: dict[str, int] = {}
        pairs: set[tuple[str, str]] = set()
        latest: dict[str, tuple[int, float]] = {}
        for line, text in read_lines(path):
            if text.startswith("#") or not text.strip():
                continue
            match = _SAMPLE.match(text)
            if match is None:
                log.add("line_unreadable", f"not a sample: {text[:40]!r}", f"line {line}")
                continue
            sample = self._sample(match, line)
            if sample is None:
                continue
            name = sample.channel
            polls[name] = polls.get(name, -1) + 1
            try:
                time_ns = self._at(match.group(4), polls[name], time)
            except ValueError:
                log.add("stamp_unreadable", f"{match.group(4)!r} is no time stamp; left out", f"line {line}")
                continue
            if sample.metric.lane:
                book.lane(name, sample.metric.lane, time_ns, sample.value * sample.metric.scale)
                continue
            if self._repeats(sample, (time_ns, latest), log):
                continue
            self._add(sample, time_ns, book)
            pairs |= inside(sample)
        names = book.names
        overlaps = {(inner, outer) for inner, pattern in pairs for outer in names if re.fullmatch(pattern, outer)}
        overlaps |= {(name, f"{name} counter") for name in names if f"{name} counter" in names}
        return recording_of(self.name, path, book, overlaps=sorted(pair for pair in overlaps if pair[0] != pair[1]))

    @staticmethod
    def _sample(match: re.Match[str], line: int) -> MetricSample | None:
        labels = {
            key: value.replace('\\"', '"').replace("\\\\", "\\") for key, value in _LABEL.findall(match.group(2) or "")
        }
        metric = find_metric(match.group(1), labels)
        if metric is None:
            return None
        try:
            value = float(match.group(3))
        except ValueError:
            value = math.nan
        return MetricSample(metric=metric, labels=labels, value=value, line=line)

    @staticmethod
    def _repeats(sample: MetricSample, seen: tuple[int, dict[str, tuple[int, float]]], log: FindingLog) -> bool:
        """Returns True for a row that repeats its card: a MIG instance, or a MIG row of a field it does not have."""
        if not sample.labels.get("GPU_I_ID"):
            return False
        time_ns, latest = seen
        before = latest.get(sample.channel)
        latest[sample.channel] = (time_ns, sample.value)
        if sample.value == 0.0:
            log.add(
                "mig_zero", f"{sample.channel}: 0 on a MIG instance means unsupported; missing", f"line {sample.line}"
            )
            return True
        if before is not None:
            log.add(
                "mig_whole_device",
                f"{sample.channel}: rows of MIG instances repeat the whole card; one is kept",
                f"line {sample.line}",
                Severity.INFO,
            )
            return before[0] == time_ns or before[1] == sample.value
        return False

    @staticmethod
    def _add(sample: MetricSample, time_ns: int, book: SampleBook) -> None:
        metric = sample.metric
        counter = metric.counter
        measured = Provenance.MEASURED_COUNTER if counter else Provenance.MEASURED_SAMPLED
        domain = Domain(
            boundary=metric.boundary,
            provenance=Provenance.ESTIMATED if metric.estimated else measured,
            meaning=Meaning.COUNTER if counter else Meaning.POWER,
            scale=metric.scale,
            largest_w=_LARGEST_W[metric.boundary],
            polled=not counter,
        )
        book.series(sample.channel, domain).add(time_ns, sample.value, sample.line)

    @staticmethod
    def _at(written: str | None, poll: int, time: _Time) -> int:
        if not time.timed or written is None:
            return poll * time.period_ns
        unit_ns = 1_000_000 if abs(float(written)) > _MILLI_LIMIT else 1_000_000_000
        return decimal_ns(written, unit_ns)

    @staticmethod
    def _probe(path: Path, options: ReadOptions) -> _Time:
        """Returns the clock: of the stamps if samples have them, else of the scrapes."""
        seen: set[str] = set()
        repeats = False
        for _, text in read_lines(path):
            match = None if text.startswith("#") else _SAMPLE.match(text)
            if match is None:
                continue
            if match.group(4) is not None:
                return _Time(Clock(name="scrape", kind=ClockKind.UTC, resolution_ns=1e6), 0, timed=True)
            key = f"{match.group(1)}{{{match.group(2)}}}"
            if key in seen and find_metric(match.group(1), {}) is not None:
                repeats = True
                break
            if len(seen) < 200_000:
                seen.add(key)
        if repeats:
            clock, period_ns = index_clock(options, f"{path.name} (several scrapes)", name="scrape")
            return _Time(clock, period_ns, timed=False)
        return _Time(Clock(name="scrape", kind=ClockKind.SAMPLE_INDEX), 1, timed=False)
