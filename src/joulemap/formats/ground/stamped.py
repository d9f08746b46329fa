"""Samples with a stamp now and then, as the LPM01A sends them in both of its forms: their times, and their power.

Such a stream holds currents, or the energy of each sample period; which of the two it does not say. It must not know
how the samples were written.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.estimate import Boundary
from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.building import (
    FindingLog,
    TimedColumns,
    boundary_of,
    sampled_channel,
    source_file,
    timed_trace,
    voltage_of,
)
from joulemap.formats.ground.values import UnitKind, parse_unit
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["StampedSamples", "stamped_recording", "stamped_times"]

_RATE_MAX_HZ: Final = 100_000.0


def stamped_times(stamps: list[tuple[int, int]], samples: int, rate_hz: float | None) -> tuple[NDArray[np.int64], int]:
    """Returns the time of each sample from the first stamp on, ns, and the sample period, ns.

    Args:
        stamps: (index of the sample that follows, ns) in order; samples before the first have no time.
        samples: how many there are.
        rate_hz: stated by the user; None to take it from the samples between stamps.

    Raises:
        InputError: no rate was stated and the stamps do not tell it.
        FormatError: the stated rate is impossible.
    """
    if rate_hz is not None and not 0 < rate_hz <= _RATE_MAX_HZ:
        raise FormatError(f"a rate of {rate_hz} Hz is impossible", hint="Say --rate in Hz.", slug="rate-impossible")
    marks = stamps or [(0, 0)]
    blocks = [(a, t, b, u) for (a, t), (b, u) in itertools.pairwise(marks) if b > a and u > t]
    if rate_hz is None and not blocks:
        raise InputError(
            "the log holds no two time stamps with samples between them, so it has no sample rate",
            hint="Say the acquisition frequency with --rate, in Hz.",
            slug="rate-needed",
        )
    usual_ns = 1e9 / rate_hz if rate_hz else float(np.median([(u - t) / (b - a) for a, t, b, u in blocks]))
    period_ns = max(round(usual_ns), 1)
    ends = [index for index, _ in marks[1:]] + [samples]
    parts = []
    for (index, start_ns), end in zip(marks, ends, strict=True):
        parts.append(start_ns + np.round(np.arange(max(end - index, 0)) * usual_ns).astype(np.int64))
    return np.concatenate(parts) if parts else np.zeros(0, np.int64), period_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class StampedSamples:
    """What such a stream holds.

    Args:
        value: (n,) A, or J per sample period.
        stamps: (samples before it, ns) of each stamp in order.
        line: (n,) line numbers of the samples; None in a binary stream.
        completed: whether the stream says that the acquisition ended.
    """

    value: NDArray[np.float64]
    stamps: list[tuple[int, int]]
    line: Sequence[int] | None = None
    completed: bool


def sample_unit(options: ReadOptions) -> tuple[UnitKind, float]:
    """Returns what a sample is, current unless ``--unit value=J`` says energy, and its SI units per unit.

    Raises:
        UsageError: a unit of neither.
    """
    stated = options.units.get("value", "A")
    try:
        unit = parse_unit(stated)
    except ValueError:
        unit = None
    if unit is None or unit.kind not in {UnitKind.CURRENT, UnitKind.ENERGY}:
        raise UsageError(
            f"{stated!r} is no unit of a current or an energy",
            hint="Say --unit value=A, or --unit value=J for a log of the energy mode.",
            slug="unit-unknown",
        )
    return unit.kind, unit.factor


def stamped_recording(
    source: tuple[str, Path], samples: StampedSamples, options: ReadOptions, log: FindingLog
) -> Recording:
    """Returns the power of one device under test on the instrument's millisecond clock, W.

    A current is multiplied by the stated supply; an energy is divided by the sample period and needs none.

    Args:
        source: name of the reader, and the file.
        samples: what it holds.
        options: of the user.
        log: takes the findings.

    Raises:
        InputError: no supply was stated for currents, no rate and fewer than two stamps, or a unit of neither.
        FormatError: the times make no interval.
    """
    (name, path), (kind, factor) = source, sample_unit(options)
    supply_v = voltage_of(options.voltage_v, path.name) if kind is UnitKind.CURRENT else None
    if not samples.completed:
        log.add("recording_unfinished", "the stream does not say that the acquisition ended", severity=Severity.INFO)
    time_ns, period_ns = stamped_times(samples.stamps, samples.value.size, options.rate_hz)
    first = samples.stamps[0][0] if samples.stamps else 0
    if first:
        log.add("samples_without_time", f"{first} samples before the first stamp are left out", "offset 0")
    period_s = period_ns * 1e-9
    with np.errstate(over="ignore", invalid="ignore"):
        power_w = samples.value[first:] * (factor * supply_v if supply_v is not None else factor / period_s)
    lines = samples.line[first:] if samples.line is not None else None
    trace = timed_trace(
        TimedColumns(time_ns=time_ns, value=power_w, line=lines, stamp="start", gap_factor=2.5, period_ns=period_ns),
        channel=sampled_channel("dut", boundary_of(options.boundary, Boundary.RAIL), period_s),
        clock=Clock(name="lpm01a", kind=ClockKind.MONOTONIC, resolution_ns=1e6),
        log=log,
    )
    said = {"supply_v": f"{supply_v:g}"} if supply_v is not None else {"samples": "energy per period, as stated"}
    return Recording(
        format=name,
        sources=(source_file(path),),
        traces=(trace,),
        metadata={**said, "period_s": f"{period_s:.6g}"},
        findings=log.findings(),
    )
