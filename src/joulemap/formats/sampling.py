"""Samples of many named channels, gathered row by row, and the traces, lanes and stated figures made of them.

Logs of computers hold dozens of columns, each a power, a counter or an energy per interval, and one clock. A reader
drops each value into its series; this module differences counters, merges what a poller read twice, and turns a
series with one reading into a stated figure, since one reading spans no time. It must not know any format.

References:
    METHODS 1.1 and 1.2: interval means hold over the preceding interval; counters are differenced with their modulus
    and live at their update instants; a polled duplicate is no new sample.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.building import FindingLog, TimedColumns, gap_ranges, source_file, timed_trace
from joulemap.formats.logs import key_of
from joulemap.formats.values import CounterSteps, difference_counter
from joulemap.records.finding import Severity
from joulemap.records.recording import Lane, MarkerTrack, Recording, StatedTotal
from joulemap.trace import Channel, Clock, EnergyTrace, KernelKind, SensorKernel, Timeline

__all__ = ["Domain", "Meaning", "SampleBook", "Series", "chain_interval", "cross_check", "merge_polled", "recording_of"]

SPAN_LIMIT_NS: Final = 1 << 62
_STAMP_DOUBT_NS: Final = 1_500_000_000
_OUTLIER: Final = 20.0  # times the median: no processor leaps that far between two polls
_OUTLIER_W: Final = 500.0


class Meaning(StrEnum):
    """What one value of a series is."""

    POWER = "power"  # W, mean of the interval that ends at its stamp
    COUNTER = "counter"  # cumulative energy
    STEP = "step"  # energy of the interval that ends at its stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What a series measures.

    Args:
        boundary: what the power feeds.
        provenance: how the values came about.
        meaning: what one value is.
        scale: SI units in one written unit.
        window_s: averaging window of the sensor, s; None when it is the interval itself.
        kind: of the sensor kernel; a counter series is always ``counter``.
        modulus: written units per wrap of a counter; None when the source does not say.
        largest_w: physical limit, W; a step beyond it is lost.
        polled: the source repeats a value when it polls faster than the sensor updates.
        gap_factor: a step longer than this many median steps is a gap; None when values cover all time.
    """

    boundary: Boundary
    provenance: Provenance = Provenance.MEASURED_SAMPLED
    meaning: Meaning = Meaning.POWER
    scale: float = 1.0
    window_s: float | None = None
    kind: KernelKind = KernelKind.INTERVAL_MEAN
    modulus: float | None = None
    largest_w: float | None = None
    polled: bool = False
    gap_factor: float | None = 1.75


@dataclass(slots=True)
class Series:
    """Values of one channel in file order."""

    name: str
    domain: Domain
    first_ns: int | None = None
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    time_ns: array[int] = field(default_factory=lambda: array("q"))
    value: array[float] = field(default_factory=lambda: array("d"))
    line: array[int] = field(default_factory=lambda: array("q"))

    def add(self, time_ns: int, value: float, line: int) -> None:
        """Appends one value in its written unit; NaN for a missing one.

        Raises:
            FormatError: the stamp is beyond +-146 years.
        """
        if abs(time_ns) >= SPAN_LIMIT_NS:
            raise FormatError(
                f"{self.name}: the time stamp in line {line} leaves the range of 146 years",
                hint="The time column is damaged, or in another unit.",
                slug="time-out-of-range",
            )
        self.time_ns.append(time_ns)
        self.value.append(value)
        self.line.append(line)

    def add_interval(self, start_ns: int, end_ns: int, value: float, line: int) -> None:
        """Appends one value that states its own interval; a series holds either such values or plain stamps.

        Raises:
            FormatError: a stamp is beyond +-146 years.
        """
        self.add(end_ns, value, line)
        self.start_ns.append(max(start_ns, -SPAN_LIMIT_NS))


class SampleBook:
    """Series and lanes of one recording on one clock.

    Args:
        clock: of every stamp.
        log: takes the findings.
    """

    def __init__(self, clock: Clock, log: FindingLog) -> None:
        self.clock = clock
        self.log = log
        self.totals: list[StatedTotal] = []
        self._series: dict[str, Series] = {}
        self._lanes: dict[str, tuple[str, array[int], array[float]]] = {}

    def series(self, name: str, domain: Domain) -> Series:
        """Returns the series of a name, made on first use."""
        known = self._series.get(name)
        if known is None:
            known = self._series[name] = Series(name, domain)
        return known

    def lane(self, name: str, unit: str, time_ns: int, value: float) -> None:
        """Appends one value of something that is no power; NaN for a missing one."""
        known = self._lanes.get(name)
        if known is None:
            known = self._lanes[name] = (unit, array("q"), array("d"))
        if abs(time_ns) < SPAN_LIMIT_NS:
            known[1].append(time_ns)
            known[2].append(value)

    def drop(self, name: str) -> None:
        """Leaves a series out: a reader found that another holds the same."""
        self._series.pop(name, None)

    def shift_lanes(self, offset_ns: int) -> None:
        """Moves every lane in time: a trace may say its base at its end."""
        for _, time_ns, _ in self._lanes.values():
            for at, value in enumerate(time_ns):
                time_ns[at] = value + offset_ns

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the series that hold at least one real value."""
        return tuple(s.name for s in self._series.values() if not np.isnan(np.asarray(s.value)).all())

    def state(self, key: str, value: float, domain: Domain, span: str = "") -> None:
        """Keeps a figure that the source states itself; a missing one is left out."""
        if math.isfinite(value):
            self.totals.append(
                StatedTotal(key=key, value=value, provenance=domain.provenance, boundary=domain.boundary, span=span)
            )

    def traces(self) -> tuple[EnergyTrace, ...]:
        """Returns the traces of all series that span time; a series with one reading becomes a stated figure."""
        with np.errstate(over="ignore", invalid="ignore"):  # a damaged number overflows to a missing value
            made = [self._trace(series) for series in self._series.values()]
        return tuple(trace for trace in made if trace is not None)

    def lanes(self) -> tuple[Lane, ...]:
        """Returns the lanes, each in order of time."""
        lanes = []
        for name, (unit, time_ns, value) in self._lanes.items():
            stamps = np.asarray(time_ns, np.int64)
            values = np.asarray(value, np.float64)
            order = np.argsort(stamps, kind="stable")
            if values.size and not np.isnan(values).all():
                lanes.append(Lane(name=name, unit=unit, clock=self.clock, time_ns=stamps[order], value=values[order]))
        return tuple(lanes)

    def _trace(self, series: Series) -> EnergyTrace | None:
        value = np.asarray(series.value, np.float64)
        real = np.flatnonzero(np.isfinite(value))
        if real.size == 0:
            if value.size:
                self.log.add("channel_empty", f"{series.name}: all {value.size} values are missing")
            return None
        time_ns = np.asarray(series.time_ns, np.int64)
        if series.start_ns:
            return self._interval_trace(series, time_ns, value * series.domain.scale)
        if series.domain.meaning is Meaning.POWER:
            return self._power_trace(series, time_ns, value * series.domain.scale)
        if np.unique(time_ns[real]).size < 2 and series.first_ns is None:
            self._single(series, int(real[0]), "energy_j")
            return None
        if series.domain.meaning is Meaning.COUNTER:
            return self._counter_trace(series, time_ns[real], value[real])
        return self._step_trace(series, time_ns, value * series.domain.scale)

    def _power_trace(
        self, series: Series, time_ns: NDArray[np.int64], power_w: NDArray[np.float64]
    ) -> EnergyTrace | None:
        known_start = series.first_ns is not None and series.first_ns < time_ns[0]
        if np.unique(time_ns).size < 2 and not known_start:
            self._single(series, int(np.flatnonzero(np.isfinite(power_w))[0]), "power_w")
            return None
        power_w = self._bounded(series, power_w)
        trace = timed_trace(
            TimedColumns(time_ns=time_ns, value=power_w, line=series.line, gap_factor=series.domain.gap_factor),
            channel=self._channel(series, time_ns),
            clock=self.clock,
            log=self.log,
            first_ns=series.first_ns,
        )
        return merge_polled(trace, self.log) if series.domain.polled else trace

    def _interval_trace(
        self, series: Series, end_ns: NDArray[np.int64], value: NDArray[np.float64]
    ) -> EnergyTrace | None:
        start_ns = np.asarray(series.start_ns, np.int64)
        order = np.argsort(end_ns, kind="stable")
        edges: list[int] = []
        power_w: list[float] = []
        for row in order.tolist():
            start, end = int(start_ns[row]), int(end_ns[row])
            known_ns = edges[-1] if edges else start
            if end <= known_ns or start >= end or known_ns - start > (end - start) // 100 + 1_000_000:
                self.log.add(
                    "interval_overlap",
                    f"{series.name}: the interval overlaps one that was read before it, or is empty; it is left out",
                    f"line {series.line[row]}",
                )
                continue
            if not edges:
                edges.append(start)
            elif start > known_ns:
                edges.append(start)
                power_w.append(math.nan)
            span_s = (end - start) * 1e-9
            edges.append(end)
            power_w.append(value[row] if series.domain.meaning is Meaning.POWER else value[row] / span_s)
        if not edges:
            return None
        power = self._bounded_plain(series, np.asarray(power_w))
        lost = ~np.isfinite(power)
        if lost.all():
            return None
        between = int(np.isnan(np.asarray(power_w)).sum() - np.isnan(value).sum())
        if between > 0:
            self.log.add(
                "time_gap",
                f"{series.name}: {between} stretches between its intervals hold no energy",
                "",
                Severity.INFO,
            )
        stamps = np.asarray(edges, np.int64)
        return EnergyTrace(
            clock=self.clock,
            channel=self._channel(series, stamps),
            power_w=np.where(lost, 0.0, power),
            start_ns=edges[0],
            edges_ns=stamps,
            gaps=gap_ranges(lost),
        )

    def _bounded(self, series: Series, power_w: NDArray[np.float64]) -> NDArray[np.float64]:
        limit = series.domain.largest_w
        if limit is None:
            return power_w
        with np.errstate(invalid="ignore"):
            wild = np.abs(power_w) > limit
        for row in np.flatnonzero(wild).tolist():
            self._impossible(series, float(power_w[row]), row)
        return np.where(wild, np.nan, power_w)

    def _impossible(self, series: Series, power_w: float, row: int) -> None:
        self.log.add(
            "impossible_power",
            f"{series.name}: {power_w:.6g} W is beyond what it can draw ({series.domain.largest_w:g} W); left out",
            f"line {series.line[row]}",
        )

    def _counter_trace(
        self, series: Series, time_ns: NDArray[np.int64], value: NDArray[np.float64]
    ) -> EnergyTrace | None:
        keep = np.ones(value.size, np.bool_)
        keep[1:] = value[1:] != value[:-1]  # a counter is known at the first reading of each new value
        forward = np.ones(value.size, np.bool_)
        forward[1:] = time_ns[1:] > np.maximum.accumulate(time_ns)[:-1]
        if not forward.all():
            self.log.add(
                "duplicate_stamp",
                f"{series.name}: {int((~forward).sum())} readings do not move time forward; they are left out",
                f"line {series.line[int(np.argmin(forward))]}",
            )
        repeats = int((~keep & forward).sum())
        if keep.sum() == 1:
            self.log.add(
                "counter_frozen",
                f"{series.name}: the counter shows {value[0]:.12g} in all {value.size} readings; no energy is derived",
            )
            return None
        if repeats:
            self.log.add(
                "repeats_merged",
                f"{series.name}: {repeats} of {value.size} readings repeat the one before; each update is spread over "
                "the time since the update before it",
                severity=Severity.INFO,
            )
        time_ns, value = time_ns[keep & forward], value[keep & forward]
        if time_ns.size < 2:
            return None
        span_s = np.diff(time_ns) * 1e-9
        domain = series.domain
        largest = None if domain.largest_w is None else domain.largest_w / domain.scale * span_s
        steps = difference_counter(value, modulus=domain.modulus, largest=largest)
        self._say_steps(series, steps, time_ns)
        power_w = np.where(steps.lost, np.nan, steps.delta * domain.scale / span_s)
        self._say_outliers(series, power_w)
        return self._stepped(series, time_ns, power_w)

    def _say_outliers(self, series: Series, power_w: NDArray[np.float64]) -> None:
        real = power_w[np.isfinite(power_w)]
        if real.size < 3:
            return
        usual = float(np.median(real))
        high = np.flatnonzero(power_w > max(_OUTLIER * usual, _OUTLIER_W))
        for row in high.tolist():
            self.log.add(
                "outlier_power",
                f"{series.name}: {power_w[row]:.6g} W in one step where {usual:.6g} W is usual; a glitch of the counter?",
                f"line {series.line[row]}",
            )

    def _say_steps(self, series: Series, steps: CounterSteps, time_ns: NDArray[np.int64]) -> None:
        for row in np.flatnonzero(steps.wrapped).tolist():
            self.log.add(
                "counter_wrapped",
                f"{series.name}: the counter passed its end; {series.domain.modulus:.12g} was added",
                f"{int(time_ns[row + 1])} ns",
                Severity.INFO,
            )
        for row in np.flatnonzero(steps.lost).tolist():
            self.log.add(
                "counter_lost",
                f"{series.name}: the counter fell without a known range, or jumped beyond any possible power; the "
                "step is a gap, not a number",
                f"{int(time_ns[row + 1])} ns",
            )

    def _step_trace(
        self, series: Series, time_ns: NDArray[np.int64], energy_j: NDArray[np.float64]
    ) -> EnergyTrace | None:
        forward = np.ones(time_ns.size, np.bool_)
        forward[1:] = time_ns[1:] > np.maximum.accumulate(time_ns)[:-1]
        if not forward.all():
            self.log.add(
                "duplicate_stamp",
                f"{series.name}: {int((~forward).sum())} rows do not move time forward; they are left out",
                f"line {series.line[int(np.argmin(forward))]}",
            )
        time_ns, energy_j = time_ns[forward], energy_j[forward]
        if series.first_ns is not None and series.first_ns < time_ns[0]:
            time_ns = np.concatenate(([series.first_ns], time_ns))
        else:
            if np.isfinite(energy_j[0]):
                self.log.add(
                    "first_interval_unknown",
                    f"{series.name}: its first value ({energy_j[0]:.9g} J) began before the first stamp, nobody knows "
                    "when; left out",
                    f"line {series.line[0]}",
                    Severity.INFO,
                )
            energy_j = energy_j[1:]
        if energy_j.size == 0:
            return None
        power_w = self._bounded_plain(series, energy_j / (np.diff(time_ns) * 1e-9))
        return self._stepped(series, time_ns, power_w)

    def _bounded_plain(self, series: Series, power_w: NDArray[np.float64]) -> NDArray[np.float64]:
        negative = (power_w < 0) & (series.domain.meaning is not Meaning.POWER)
        if negative.any():
            self.log.add(
                "impossible_power",
                f"{series.name}: {int(negative.sum())} intervals with energy below 0; they are gaps",
                f"interval {int(np.argmax(negative))}",
            )
        limit = series.domain.largest_w
        if limit is not None:
            with np.errstate(invalid="ignore"):
                wild = power_w > limit
            if wild.any():
                self._impossible(series, float(power_w[int(np.argmax(wild))]), int(np.argmax(wild)))
            negative |= wild
        return np.where(negative, np.nan, power_w)

    def _stepped(self, series: Series, time_ns: NDArray[np.int64], power_w: NDArray[np.float64]) -> EnergyTrace | None:
        if not np.isfinite(power_w).any():
            return None
        return timed_trace(
            TimedColumns(time_ns=time_ns[1:], value=power_w, gap_factor=None),
            channel=self._channel(series, time_ns),
            clock=self.clock,
            log=self.log,
            first_ns=int(time_ns[0]),
        )

    def _channel(self, series: Series, time_ns: NDArray[np.int64]) -> Channel:
        domain = series.domain
        counter = domain.meaning is not Meaning.POWER
        steps = np.diff(time_ns)
        steps = steps[steps > 0]
        window_s = domain.window_s
        if window_s is None:
            window_s = float(np.median(steps)) * 1e-9 if steps.size else 0.0
        kind = KernelKind.COUNTER if counter else domain.kind
        kernel = SensorKernel(kind=kind, window_s=0.0 if counter else window_s)
        return Channel(name=series.name, boundary=domain.boundary, provenance=domain.provenance, kernel=kernel)

    def _single(self, series: Series, row: int, unit: str) -> None:
        span = f"line {series.line[row]}" if series.line[row] else ""
        self.log.add(
            "single_reading",
            f"{series.name}: one reading spans no time; it is kept as a stated figure and gives no energy",
            span,
            Severity.INFO,
        )
        self.state(
            f"{key_of(series.name)}_{unit}",
            series.value[row] * series.domain.scale,
            series.domain,
            span,
        )


def chain_interval(before_ns: int | None, end_ns: int, length_ns: int) -> tuple[int, int, bool]:
    """Returns (start, end, re-anchored) of an interval of known length whose end is stamped in whole seconds.

    Intervals that follow each other are laid end to end as long as the stamp does not contradict it by more than
    1.5 s; then the stamp counts, since time was lost.

    Args:
        before_ns: end of the interval before; None for the first.
        end_ns: the stamp.
        length_ns: stated length.
    """
    if before_ns is not None and abs(before_ns + length_ns - end_ns) <= _STAMP_DOUBT_NS:
        return before_ns, before_ns + length_ns, False
    return end_ns - length_ns, end_ns, before_ns is not None


def merge_polled(trace: EnergyTrace, log: FindingLog) -> EnergyTrace:
    """Returns the trace with each run of equal neighbours as one interval: what a poller read twice is one sample."""
    if trace.edges_ns is None or trace.n < 2:
        return trace
    lost = np.zeros(trace.n, np.bool_)
    for first, last in trace.gaps:
        lost[first:last] = True
    power_w = trace.power_w
    keep = np.ones(trace.n, np.bool_)
    keep[:-1] = (power_w[1:] != power_w[:-1]) | lost[1:] | lost[:-1]
    repeats = int((~keep).sum())
    if not repeats:
        return trace
    log.add(
        "repeats_merged",
        f"{trace.channel.name}: {repeats} of {trace.n} readings repeat the one before; each run is one sample",
        severity=Severity.INFO,
    )
    edges_ns = np.concatenate((trace.edges_ns[:1], trace.edges_ns[1:][keep]))
    return EnergyTrace(
        clock=trace.clock,
        channel=trace.channel,
        power_w=power_w[keep],
        start_ns=trace.start_ns,
        edges_ns=edges_ns,
        gaps=gap_ranges(lost[keep]),
    )


def recording_of(
    reader: str,
    path: Path,
    book: SampleBook,
    *,
    overlaps: Iterable[tuple[str, str]] = (),
    metadata: Mapping[str, str] | None = None,
    markers: tuple[MarkerTrack, ...] = (),
    timelines: tuple[Timeline, ...] = (),
) -> Recording:
    """Returns the recording of a book; overlaps of channels that gave no trace are left out.

    Raises:
        FormatError: there is nothing in it.
    """
    traces, lanes = book.traces(), book.lanes()
    cross_check(traces, book.log)
    if not (traces or lanes or book.totals or markers or timelines):
        raise FormatError(
            f"{path.name} holds no reading that is not missing",
            hint="Check that the meter was supported and the log was saved.",
            slug="recording-empty",
        )
    names = {trace.channel.name for trace in traces}
    return Recording(
        format=reader,
        sources=(source_file(path),),
        traces=traces,
        timelines=timelines,
        lanes=lanes,
        markers=markers,
        totals=tuple(book.totals),
        overlaps=tuple(dict.fromkeys(pair for pair in overlaps if pair[0] in names and pair[1] in names)),
        metadata=dict(metadata or {}),
        findings=book.log.findings(),
    )


def cross_check(traces: Iterable[EnergyTrace], log: FindingLog, counter_suffix: str = " counter") -> None:
    """Says where a power channel and the energy counter of the same device disagree by more than 10 %.

    References:
        METHODS 1.2 (NVML energy against power: 187 J and 327 J at idle); both are kept, neither is merged.
    """
    by_name = {trace.channel.name: trace for trace in traces}
    for name, power in by_name.items():
        counter = by_name.get(name + counter_suffix)
        if counter is None or power.edges_ns is None or counter.edges_ns is None:
            continue
        means = [_mean_w(trace) for trace in (power, counter)]
        if abs(means[0] - means[1]) > 0.1 * max(abs(means[0]), abs(means[1])):
            log.add(
                "counter_disagrees",
                f"{name}: the mean of its power readings is {means[0]:.6g} W, its energy counter says {means[1]:.6g} W",
            )


def _mean_w(trace: EnergyTrace) -> float:
    """Returns the mean power over the intervals that were not lost, W."""
    assert trace.edges_ns is not None  # asked by the caller
    span_s = np.diff(trace.edges_ns) * 1e-9
    for first, last in trace.gaps:
        span_s[first:last] = 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return float((trace.power_w * span_s).sum() / span_s.sum())
