"""Traces and timelines of known power for tests of the map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Boundary, Provenance
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel, Slice, Timeline
from joulemap.trace.sweep import GroupedSlices

__all__ = ["METER", "WORK", "build_trace", "group_rows", "sampled_powers"]

METER = Clock(name="meter", kind=ClockKind.MONOTONIC)
WORK = Clock(name="work", kind=ClockKind.MONOTONIC)


def build_trace(
    power_w: Sequence[float] | NDArray[np.float64],
    *,
    period_s: float | None = 1e-3,
    start_ns: int = 0,
    edges_ns: Sequence[int] | None = None,
    gaps: Sequence[tuple[int, int]] = (),
    clock: Clock = METER,
    boundary: Boundary = Boundary.RAIL,
) -> EnergyTrace:
    """Returns a trace of interval means."""
    channel = Channel(
        name="power",
        boundary=boundary,
        provenance=Provenance.MEASURED_SAMPLED,
        kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=period_s or 0.0),
    )
    return EnergyTrace(
        clock=clock,
        channel=channel,
        power_w=np.asarray(power_w, np.float64),
        start_ns=start_ns if edges_ns is None else edges_ns[0],
        period_s=period_s if edges_ns is None else None,
        edges_ns=None if edges_ns is None else np.asarray(edges_ns, np.int64),
        gaps=np.array(gaps, np.int64).reshape(-1, 2),
    )


def group_rows(rows: Sequence[tuple[int, int, int, int]], *, groups: int, by_path: bool = False) -> GroupedSlices:
    """Returns slices of (start, end, group, track) in the order that a sweep wants."""
    ordered = sorted(rows, key=lambda row: (row[0], -row[1]))
    columns = np.array(ordered, np.int64).reshape(-1, 4)
    return GroupedSlices(
        start_ns=columns[:, 0].copy(),
        end_ns=columns[:, 1].copy(),
        group=columns[:, 2].astype(np.int32),
        groups=groups,
        track=columns[:, 3].astype(np.int32),
        tracks=int(columns[:, 3].max(initial=0)) + 1,
        by_path=by_path,
    )


def sampled_powers(
    schedule: Sequence[tuple[str, float, float]],
    *,
    runs: int,
    rate_hz: float,
    rng: np.random.Generator,
    idle_w: float = 1.0,
    gap_s: tuple[float, float] = (0.0, 4e-3),
    lead_s: float = 0.05,
    noise_w: float = 0.0,
) -> tuple[EnergyTrace, Timeline, dict[str, float]]:
    """Returns samples of a schedule of (name, duration, power) run many times, its timeline, and true energies, J."""
    slices, edges_s, powers, at = [], [0.0], [], lead_s
    edges_s.append(at)
    powers.append(idle_w)
    truth = {name: 0.0 for name, _, _ in schedule}
    for _ in range(runs):
        for name, duration_s, watts in schedule:
            begin_ns, end_ns = round(at * 1e9), round((at + duration_s) * 1e9)
            slices.append(Slice(name=name, start_ns=begin_ns, end_ns=end_ns, track="core", kind="operator"))
            truth[name] += watts * (end_ns - begin_ns) * 1e-9
            at += duration_s
            edges_s.append(at)
            powers.append(watts)
        at += float(rng.uniform(*gap_s))
        edges_s.append(at)
        powers.append(idle_w)
    at += lead_s
    edges_s.append(at)
    powers.append(idle_w)
    count = int(at * rate_hz)
    stamps = np.arange(count + 1) / rate_hz
    energy = np.concatenate([[0.0], np.cumsum(np.array(powers) * np.diff(edges_s))])
    mean_w = np.diff(np.interp(stamps, edges_s, energy)) * rate_hz + rng.normal(0.0, noise_w, count)
    trace = build_trace(mean_w, period_s=1.0 / rate_hz)
    return trace, Timeline.from_slices(WORK, slices), truth
