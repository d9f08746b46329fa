"""From columns that a reader found to the records of a recording: traces with their gaps, findings that stay few.

What every reader needs and none may do in its own way: a lost sample is a gap and never 0, a duplicate or backward
time stamp is dropped and said, a finding that repeats is counted. It must not know any format.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.ground.sample_store import release_pages
from joulemap.records.finding import Finding, Severity
from joulemap.records.recording import SourceFile
from joulemap.trace import Channel, Clock, EnergyTrace, KernelKind, SensorKernel
from joulemap.trace.pauses import cut_at_pauses, no_pauses
from joulemap.trace.streamed import gap_ranges

__all__ = [
    "FindingLog",
    "TimedColumns",
    "boundary_of",
    "gap_ranges",
    "sampled_channel",
    "say_lost",
    "source_file",
    "sources_of",
    "timed_trace",
    "uniform_trace",
    "voltage_of",
]

_LATEST_NS: Final = 1 << 62
_BELIEVABLE_W: Final = 1e15
"""More than mankind uses, W: a sample beyond it is damage, and sums of such samples are no numbers any more."""
_BLOCK: Final = 1 << 20
_UNREADABLE: Final = frozenset({"line_unreadable", "row_unreadable", "stamp_unreadable", "value_unreadable"})


class FindingLog:
    """Collects findings; after ``keep`` of one slug it only counts, so that a damaged file gives a readable list.

    Args:
        keep: findings of one slug that are kept in full.
    """

    def __init__(self, keep: int = 8) -> None:
        self._keep = keep
        self._kept: list[Finding] = []
        self._count: dict[str, int] = {}
        self._last: dict[str, Finding] = {}

    def add(self, slug: str, message: str, span: str = "", severity: Severity = Severity.WARNING) -> None:
        """Adds one finding with its place."""
        count = self._count.get(slug, 0) + 1
        self._count[slug] = count
        if count <= self._keep:
            self._kept.append(Finding(slug=slug, severity=severity, message=message, span=span))
        else:
            self._last[slug] = Finding(slug=slug, severity=severity, message=message, span=span)

    def count(self, slug: str) -> int:
        """Returns how often a slug was added."""
        return self._count.get(slug, 0)

    @property
    def first_unreadable(self) -> str:
        """The first line that could not be read, with why, as the end of a message; empty when each could."""
        first = next((found for found in self._kept if found.slug in _UNREADABLE), None)
        return "" if first is None else f"; {first.span}: {first.message}"

    def findings(self) -> tuple[Finding, ...]:
        """Returns the findings in order; a slug that came more often ends with a count."""
        rest = [
            Finding(
                slug=slug,
                severity=last.severity,
                message=f"{self._count[slug] - self._keep} more of {slug}; the last: {last.message}",
                span=last.span,
            )
            for slug, last in self._last.items()
        ]
        return (*self._kept, *rest)


def source_file(path: Path, root: Path | None = None) -> SourceFile:
    """Returns name (relative to the imported folder), size and SHA-256 of a file.

    Raises:
        InputError: it cannot be read.
    """
    digest = hashlib.sha256()
    size_b = 0
    try:
        with path.open("rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
                size_b += len(block)
    except OSError as error:
        raise InputError(
            f"{path.name} cannot be read: {error.strerror or error}",
            hint="Check the path and its permissions.",
            slug="recording-unreadable",
        ) from error
    name = path.name if root is None else path.relative_to(root).as_posix()
    return SourceFile(name=name, size_b=size_b, sha256=digest.hexdigest())


def sources_of(paths: Iterable[Path], root: Path) -> tuple[SourceFile, ...]:
    """Returns the source files of a folder, each named relative to it."""
    return tuple(source_file(path, root) for path in paths)


def boundary_of(stated: str | None, default: Boundary) -> Boundary:
    """Returns the boundary that the user stated, else the format's own.

    Raises:
        UsageError: no such boundary.
    """
    if stated is None:
        return default
    try:
        return Boundary(stated)
    except ValueError:
        raise UsageError(
            f"no boundary is called {stated!r}",
            hint=f"One of: {', '.join(Boundary)}.",
            slug="boundary-unknown",
        ) from None


def sampled_channel(
    name: str,
    boundary: Boundary,
    window_s: float,
    kind: KernelKind = KernelKind.INTERVAL_MEAN,
    *,
    quantum_w: float = 0.0,
) -> Channel:
    """Returns a channel of measured samples, each the mean over ``window_s`` unless it is a point sample."""
    return Channel(
        name=name,
        boundary=boundary,
        provenance=Provenance.MEASURED_SAMPLED,
        kernel=SensorKernel(
            kind=kind,
            window_s=0.0 if kind is KernelKind.POINT else max(window_s, 0.0),
            quantum_w=quantum_w if math.isfinite(quantum_w) else 0.0,
        ),
    )


def voltage_of(stated: float | None, name: str) -> float:
    """Returns the supply that the user stated for a file that holds current only, V.

    Raises:
        InputError: none was stated, or it is not a positive number.
    """
    if stated is None:
        raise InputError(
            f"{name} holds current but no voltage, so it holds no power",
            hint="Say the supply with --voltage, in volts.",
            slug="voltage-needed",
        )
    if not (np.isfinite(stated) and stated > 0):
        raise InputError(
            f"a supply of {stated} V gives no power",
            hint="Say the supply with --voltage, in volts, above 0.",
            slug="voltage-needed",
        )
    return stated


def uniform_trace(
    power_w: NDArray[np.float32] | NDArray[np.float64],
    *,
    channel: Channel,
    clock: Clock,
    start_ns: int,
    period_s: float,
    log: FindingLog,
    missing: NDArray[np.bool_] | None = None,
) -> EnergyTrace:
    """Returns a uniform trace; samples that are missing or not finite become gaps of value 0, with a finding.

    Args:
        power_w: (n,) W; changed in place where samples are missing.
        channel: what was measured.
        clock: the clock of ``start_ns``.
        start_ns: start of the first interval, ns.
        period_s: length of each interval, s.
        log: takes ``samples_lost``.
        missing: (n,) True for a lost sample, besides those that are not finite.

    Raises:
        FormatError: no sample, an impossible rate, or a time beyond the range of int64 ns.
    """
    name = channel.name
    if power_w.size == 0:
        raise FormatError(
            f"{name}: there is no sample", hint="Check that the recording was saved.", slug="recording-empty"
        )
    if not (np.isfinite(period_s) and period_s > 0) or abs(start_ns) + power_w.size * period_s * 1e9 >= _LATEST_NS:
        raise FormatError(
            f"{name}: a sample period of {period_s} s from {start_ns} ns is no time axis",
            hint="The sample rate in the file is damaged.",
            slug="rate-impossible",
        )
    gaps = _clear_lost(power_w, missing)
    if gaps.size:
        say_lost(log, name, int((gaps[:, 1] - gaps[:, 0]).sum()), (power_w.size, int(gaps[0, 0])))
    return EnergyTrace(clock=clock, channel=channel, power_w=power_w, start_ns=start_ns, period_s=period_s, gaps=gaps)


def _clear_lost(
    power_w: NDArray[np.float32] | NDArray[np.float64], missing: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """Returns the lost ranges and sets their samples to 0, a block at a time: the samples may lie in a file."""
    parts: list[NDArray[np.int64]] = []
    for at in range(0, power_w.size, _BLOCK):
        block = power_w[at : at + _BLOCK]
        lost = ~_is_power(block)
        if missing is not None:
            lost |= missing[at : at + _BLOCK]
        if lost.any():
            block[lost] = 0.0
            parts.append(gap_ranges(lost) + at)
        release_pages(power_w)
    if not parts:
        return np.empty((0, 2), np.int64)
    gaps = np.concatenate(parts)
    joined = gaps[1:, 0] == gaps[:-1, 1]  # a range that crosses a block border is one range
    if not joined.any():
        return gaps
    first = np.concatenate(([True], ~joined))
    last = np.concatenate((~joined, [True]))
    return np.stack([gaps[first, 0], gaps[last, 1]], axis=1)


def _is_power(value: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns which samples can be a power, (n,): finite, and not beyond all belief."""
    can: NDArray[np.bool_] = np.abs(value) <= _BELIEVABLE_W
    return can


def say_lost(log: FindingLog, name: str, lost: int, place: tuple[int, int]) -> None:
    """Adds ``samples_lost``.

    Args:
        log: takes it.
        name: of the trace.
        lost: samples.
        place: samples in all, and the first lost one.
    """
    total, first = place
    log.add(
        "samples_lost",
        f"{name}: {lost} of {total} samples are missing ({lost / total:.2%}); they are gaps, not zeros",
        f"sample {first}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedColumns:
    """Stamped samples as a reader found them.

    Args:
        time_ns: (n,) int64 ns, in file order.
        value: (n,) W; NaN for a missing sample.
        line: (n,) line number (or row) of each sample, for findings; None to use the index.
        stamp: ``end`` when a stamp ends its interval, ``start`` when it starts it, ``centre`` for point samples.
        gap_factor: a step longer than this many usual steps is a gap; None for a source that writes on change.
        period_ns: the usual step where the source knows it; None to take the median.
        pauses: (p, 2) ns, stretches in which nothing was to be measured, sorted and disjoint: gaps without a finding;
            stamps that end their intervals only.
    """

    time_ns: ArrayLike
    value: ArrayLike
    line: Sequence[int] | None = None
    stamp: str = "end"
    gap_factor: float | None = 1.75
    period_ns: int | None = None
    pauses: NDArray[np.int64] = field(default_factory=no_pauses)


def _monotonic(time_ns: NDArray[np.int64], columns: TimedColumns, log: FindingLog) -> NDArray[np.bool_]:
    """Returns which rows move time forward; says duplicate and backward ones."""
    high = np.maximum.accumulate(time_ns)
    keep = np.ones(time_ns.size, np.bool_)
    keep[1:] = time_ns[1:] > high[:-1]
    for row in np.flatnonzero(~keep).tolist():
        where = f"line {columns.line[row]}" if columns.line is not None else f"row {row}"
        step_s = float(time_ns[row] - high[row - 1]) * 1e-9
        if step_s == 0.0:
            log.add("duplicate_stamp", "a time stamp comes twice; the first sample of it is kept", where)
        else:
            log.add("backward_stamp", f"time goes back by {-step_s:.6g} s; the sample is left out", where)
    return keep


def timed_trace(
    columns: TimedColumns, *, channel: Channel, clock: Clock, log: FindingLog, first_ns: int | None = None
) -> EnergyTrace:
    """Returns a trace from stamped samples: each covers the interval that ends (starts) at its stamp.

    Duplicate and backward stamps are dropped with a finding; a step longer than ``gap_factor`` median steps leaves a
    gap before its sample, which then covers one median step; NaN is a gap. The first (last) interval, which nothing
    bounds, is one median step long unless ``first_ns`` says where it starts.

    Args:
        columns: the samples.
        channel: what was measured.
        clock: the clock of the stamps.
        log: takes ``duplicate_stamp``, ``backward_stamp``, ``time_gap``, ``samples_lost``.
        first_ns: start of the first interval where the source knows it (``stamp`` = ``end``).

    Raises:
        FormatError: fewer than two samples in order of time (one when ``first_ns`` is given).
    """
    raw_ns = np.asarray(columns.time_ns, np.int64)
    raw_value = np.asarray(columns.value, np.float64)
    keep = _monotonic(raw_ns, columns, log) if raw_ns.size else np.zeros(0, np.bool_)
    time_ns, value = raw_ns[keep], raw_value[keep]
    bounded = columns.period_ns is not None or (first_ns is not None and time_ns.size > 0 and first_ns < time_ns[0])
    if time_ns.size + bounded < 2 or not time_ns.size:
        raise FormatError(
            f"{channel.name}: {time_ns.size} sample(s) in order of time make no interval",
            hint="Check that the recording was saved, and its time column.",
            slug="recording-empty",
        )
    if int(max(abs(int(time_ns[0])), abs(int(time_ns[-1])))) >= _LATEST_NS:
        raise FormatError(
            f"{channel.name}: the time stamps leave the range of 146 years",
            hint="The time column is damaged, or in another unit.",
            slug="time-out-of-range",
        )
    steps = np.diff(time_ns)
    usual_ns = columns.period_ns or (int(np.median(steps)) if steps.size else int(time_ns[0] - (first_ns or 0)))
    median_ns = max(usual_ns, 1)
    if columns.stamp == "start":
        bounds = np.append(time_ns, time_ns[-1] + median_ns)
    elif columns.stamp == "centre":
        middle = time_ns[:-1] + steps // 2
        bounds = np.concatenate(([time_ns[0] - median_ns // 2 - 1], middle, [time_ns[-1] + (median_ns + 1) // 2]))
        bounds[0] = min(bounds[0], bounds[1] - 1)
    else:
        head = time_ns[0] - median_ns if first_ns is None or first_ns >= time_ns[0] else first_ns
        bounds = np.concatenate(([head], time_ns))
    return _with_gaps(bounds, value, median_ns, (columns, channel, clock, log))


def _with_gaps(
    bounds: NDArray[np.int64],
    value: NDArray[np.float64],
    median_ns: int,
    context: tuple[TimedColumns, Channel, Clock, FindingLog],
) -> EnergyTrace:
    """Returns the trace, with a lost filler sample in every interval that is far longer than the others."""
    columns, channel, clock, log = context
    bounds, value, paused = cut_at_pauses(bounds, value, columns.pauses)
    length = np.diff(bounds)
    missing = ~_is_power(value) & ~paused
    lost = missing | paused
    edges, power_w = bounds, np.where(lost, 0.0, value)
    if columns.gap_factor is not None and value.size > 1 + (columns.period_ns is None):
        wide = np.flatnonzero((length > columns.gap_factor * median_ns) & (length > 1) & ~paused)
        if wide.size:
            cut = bounds[wide + 1] - median_ns if columns.stamp != "start" else bounds[wide] + median_ns
            edges = np.insert(bounds, wide + 1, cut)
            at = wide if columns.stamp != "start" else wide + 1
            power_w = np.insert(power_w, at, 0.0)
            lost = np.insert(lost, at, True)
            for row in wide:
                log.add(
                    "time_gap",
                    f"{channel.name}: no sample for {length[row] * 1e-9:.6g} s, {length[row] / median_ns:.1f} times "
                    "the usual step",
                    f"{int(bounds[row])} ns",
                )
    if missing.any():
        say_lost(log, channel.name, int(missing.sum()), (int((~paused).sum()), int(np.argmax(missing))))
    return EnergyTrace(
        clock=clock,
        channel=channel,
        power_w=power_w,
        start_ns=int(edges[0]),
        edges_ns=edges,
        gaps=gap_ranges(lost),
    )
