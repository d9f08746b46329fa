"""Samples of many named channels, gathered row by row, and the recording made of them.

Logs of computers hold dozens of columns, each a power, a counter or an energy per interval, and one clock. A reader
drops each value into its series or lane. It must not know any format.

References:
    METHODS 1.2 (cross-check of a power and its energy counter).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.domains import SPAN_LIMIT_NS, Domain, Meaning, Series
from joulemap.formats.ground.series import TraceMaker
from joulemap.records.recording import Lane, MarkerTrack, Recording, StatedTotal
from joulemap.trace import Clock, EnergyTrace, Timeline

__all__ = ["Domain", "Meaning", "SampleBook", "Series", "chain_interval", "cross_check", "recording_of"]

_STAMP_DOUBT_NS: Final = 1_500_000_000


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

    def extend_lane(self, name: str, unit: str, time_ns: NDArray[np.int64], value: NDArray[np.float64]) -> None:
        """Appends many values of a lane, (n,) each; every stamp within range."""
        known = self._lanes.get(name)
        if known is None:
            known = self._lanes[name] = (unit, array("q"), array("d"))
        known[1].frombytes(time_ns.tobytes())
        known[2].frombytes(value.tobytes())

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
            self.totals.append(domain.stated(key, value, span))

    def traces(self) -> tuple[EnergyTrace, ...]:
        """Returns the traces of all series that span time; a series with one reading becomes a stated figure."""
        maker = TraceMaker(self.clock, self.log)
        with np.errstate(over="ignore", invalid="ignore"):  # a damaged number overflows to a missing value
            made = [maker.trace(series) for series in self._series.values()]
        self.totals += maker.totals
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
            f"{path.name} holds no reading that is not missing{book.log.first_unreadable}",
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
