"""Readings of a live energy counter to a trace: wraps added, glitches dropped, and what cannot be known left a gap.

A counter is known where it changes. It is bridged exactly over readings that failed, as long as it cannot have passed
its end twice; it is a gap where it fell or jumped beyond any possible power, where it stood still although power was
drawn before. Of a pause, which was ordered or in which the machine slept, nothing is claimed and nothing is said here:
a step that reaches into one is a gap.

References:
    METHODS 1.2 (modulus, two wraps, frozen counters); Linux Documentation/power/powercap/powercap.rst.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.ground.building import FindingLog, TimedColumns, timed_trace
from joulemap.formats.ground.values import difference_counter
from joulemap.records.finding import Severity
from joulemap.records.live.domain import LiveDomain
from joulemap.trace import Channel, Clock, EnergyTrace, KernelKind, SensorKernel
from joulemap.trace.pauses import list_paused, no_pauses
from joulemap.units import format_si

__all__ = ["CounterReadings", "counter_trace", "still_stretches"]

_STILL_S: Final = 1.0
_STILL_UPDATES: Final = 10
_STILL_COUNTS: Final = 100.0
_CAUGHT_UP: Final = 0.5
_WILD: Final = 20.0
_SEEN: Final = 2.0

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterReadings:
    """Readings of one counter.

    Args:
        channel: unique name of the domain.
        domain: what it declared.
        stamp_ns: (n,) ns, strictly increasing.
        raw: (n,) counts; NaN for a reading that failed.
        period_s: between two readings, s.
        reopened_ns: instants at which the meter was opened again after it was lost.
        pauses: (p, 2) ns, of which nothing is claimed, in order and disjoint: ordered, or the machine slept.
    """

    channel: str
    domain: LiveDomain
    stamp_ns: Ints
    raw: Floats
    period_s: float
    reopened_ns: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    pauses: Ints = field(default_factory=no_pauses)


def counter_trace(readings: CounterReadings, clock: Clock, log: FindingLog) -> EnergyTrace | None:
    """Returns the trace of a counter; None when it never moved or was hardly read.

    Args:
        readings: of one domain.
        clock: of the stamps.
        log: takes ``counter_wrapped``, ``counter_lost``, ``counter_glitch``, ``counter_frozen``, ``meter_frozen``,
            ``readings_failed`` and ``channel_empty``.
    """
    name = readings.channel
    real = np.isfinite(readings.raw)
    if int(real.sum()) < 2:
        log.add(
            "channel_empty", f"{name}: {int(real.sum())} of {real.size} readings succeeded; there is no energy in that"
        )
        return None
    failed = int((~real).sum())
    if failed:
        log.add(
            "readings_failed",
            f"{name}: {failed} of {real.size} readings failed; the counter itself says what went by meanwhile",
            f"{int(readings.stamp_ns[int(np.argmin(real))])} ns",
        )
    stamp_ns, count = _without_glitches(readings, real, log)
    moved = np.ones(count.size, np.bool_)
    moved[1:] = count[1:] != count[:-1]
    if int(moved.sum()) < 2:
        log.add(
            "counter_frozen",
            f"{name}: the counter shows {count[0]:.12g} in all {count.size} readings; no energy is derived",
        )
        return None
    at = np.flatnonzero(moved)
    edges_ns, value = stamp_ns[at], count[at]
    power_w = _step_power(readings, edges_ns, value, log)
    power_w[_still(readings, (edges_ns, value, power_w), at, log)] = np.nan
    edges_ns, power_w = _with_tail(readings, edges_ns, power_w, log)
    if not np.isfinite(power_w).any():
        return None
    shift_ns = round(readings.domain.latency_s * 1e9)
    paused = np.flatnonzero(list_paused(edges_ns, readings.pauses))
    pauses = np.stack([edges_ns[paused], edges_ns[paused + 1]], axis=1) - shift_ns
    return timed_trace(
        TimedColumns(time_ns=edges_ns[1:] - shift_ns, value=power_w, gap_factor=None, pauses=pauses),
        channel=_channel(readings),
        clock=clock,
        log=log,
        first_ns=int(edges_ns[0]) - shift_ns,
    )


def _largest(readings: CounterReadings, span_ns: Ints) -> Floats | None:
    """Returns the most counts that steps of those lengths hold; an update may bring what came since the one before."""
    domain = readings.domain
    if domain.largest_w is None:
        return None
    slack_s = max(domain.update_period_s or 0.0, readings.period_s, 2e-3)
    return np.asarray(domain.largest_w / domain.scale * (span_ns * 1e-9 + slack_s), np.float64)


def _possible(readings: CounterReadings, before: Floats, after: Floats, span_ns: Ints) -> Flags:
    """Returns which steps a counter can have made."""
    delta = after - before
    if readings.domain.modulus is not None:
        delta = np.where(delta < 0, delta + readings.domain.modulus, delta)
    possible = delta >= 0
    largest = _largest(readings, span_ns)
    return possible if largest is None else possible & (delta <= largest)


def _without_glitches(readings: CounterReadings, real: Flags, log: FindingLog) -> tuple[Ints, Floats]:
    """Returns the readings less those that fit neither neighbour while the neighbours fit each other."""
    stamp_ns, count = readings.stamp_ns[real], readings.raw[real]
    if count.size < 3:
        return stamp_ns, count
    step = _possible(readings, count[:-1], count[1:], np.diff(stamp_ns))
    around = _possible(readings, count[:-2], count[2:], stamp_ns[2:] - stamp_ns[:-2])
    odd = np.zeros(count.size, np.bool_)
    odd[1:-1] = around & ~(step[:-1] & step[1:])
    odd[1:] &= ~odd[:-1]  # of two in a row the first goes: the other is then judged by its new neighbour
    for row in np.flatnonzero(odd).tolist():
        log.add(
            "counter_glitch",
            f"{readings.channel}: a reading of {count[row]:.12g} fits neither neighbour; left out",
            f"{int(stamp_ns[row])} ns",
        )
    return stamp_ns[~odd], count[~odd]


def _step_power(readings: CounterReadings, edges_ns: Ints, value: Floats, log: FindingLog) -> Floats:
    """Returns the mean power of each step, W; NaN where no honest value exists."""
    domain = readings.domain
    span_ns = np.diff(edges_ns)
    steps = difference_counter(value, modulus=domain.modulus, largest=_largest(readings, span_ns))
    power_w = np.where(steps.lost, np.nan, steps.delta * domain.scale / (span_ns * 1e-9))
    lost = steps.lost.copy()
    if domain.modulus is not None and domain.largest_w is not None:
        twice = span_ns * 1e-9 > domain.modulus * domain.scale / domain.largest_w
        lost |= twice
    elif steps.wrapped.any() and (~steps.wrapped).any():  # no limit is declared: a wrap must look like its neighbours
        usual_w = float(np.nanmedian(np.where(steps.wrapped, np.nan, power_w)))
        lost |= steps.wrapped & (power_w > _WILD * max(usual_w, 1e-9))
    paused = list_paused(edges_ns, readings.pauses)
    power_w[paused] = np.nan  # whatever the counter did meanwhile, even once around
    lost |= _begun_anew(readings, edges_ns, steps.wrapped, np.where(lost, np.nan, power_w))
    lost &= ~paused
    for row in np.flatnonzero(steps.wrapped & ~lost & ~paused).tolist():
        log.add(
            "counter_wrapped",
            f"{readings.channel}: the counter passed its end; {_range(domain)} was added",
            f"{int(edges_ns[row + 1])} ns",
            Severity.INFO,
        )
    for row in np.flatnonzero(lost).tolist():
        log.add(
            "counter_lost",
            f"{readings.channel}: the counter fell or jumped beyond any possible power, may have passed its end twice,"
            f" or began anew while it could not be read; {span_ns[row] * 1e-9:.4g} s are a gap",
            f"{int(edges_ns[row + 1])} ns",
        )
    power_w[lost] = np.nan
    return power_w


def _holds(edges_ns: Ints, instants_ns: Ints) -> Flags:
    """Returns which steps hold one of the instants."""
    before = np.searchsorted(instants_ns, edges_ns)
    return np.asarray(before[1:] > before[:-1], np.bool_)


def _begun_anew(readings: CounterReadings, edges_ns: Ints, wrapped: Flags, power_w: Floats) -> Flags:
    """Returns which steps over a loss may hide that the counter began anew: its driver, or device, was started again.

    Where readings failed a fall is a wrap only when it makes no more power than was seen otherwise; where the meter was
    opened again the counter must have gone on at about the usual power.
    """
    failed = _holds(edges_ns, readings.stamp_ns[~np.isfinite(readings.raw)])
    reopened = _holds(edges_ns, np.sort(readings.reopened_ns))
    doubtful = (failed & wrapped) | reopened
    seen_w = power_w[~doubtful & np.isfinite(power_w)]
    if not doubtful.any():
        return doubtful
    if not seen_w.size:
        return doubtful
    with np.errstate(invalid="ignore"):
        much = wrapped & (power_w > _SEEN * float(seen_w.max()))
        little = reopened & (power_w < _CAUGHT_UP * float(np.median(seen_w)))
    return doubtful & (much | little)


def still_stretches(readings: CounterReadings, edges_ns: Ints, value: Floats) -> tuple[Flags, float]:
    """Returns which steps lasted so long that the counter stood still, and how long a stand must last to count, s.

    A counter of few counts per update may stand still for want of energy; then no step counts as still.
    """
    span_s = np.diff(edges_ns) * 1e-9
    delta = np.abs(np.diff(value))
    usual_s = float(np.median(span_s)) if span_s.size else 0.0
    least_s = max(_STILL_S, _STILL_UPDATES * max(usual_s, readings.domain.update_period_s or 0.0, readings.period_s))
    if span_s.size < 3 or float(np.median(delta)) < _STILL_COUNTS:
        return np.zeros(span_s.size, np.bool_), float("inf")
    return span_s > least_s, least_s


def _still(readings: CounterReadings, steps: tuple[Ints, Floats, Floats], at: Ints, log: FindingLog) -> Flags:
    """Returns the steps in which the counter stood still and did not make up for it."""
    edges_ns, value, power_w = steps
    still, _ = still_stretches(readings, edges_ns, value)
    still &= np.diff(at) >= _STILL_UPDATES  # it was read all the while, with the same result
    still &= ~list_paused(edges_ns, readings.pauses)
    if not still.any():
        return still
    moving = power_w[~still & np.isfinite(power_w)]
    if not moving.size:
        return np.zeros(still.size, np.bool_)
    usual_w = float(np.median(moving))
    with np.errstate(invalid="ignore"):
        behind = still & ~(power_w >= _CAUGHT_UP * usual_w)
    for row in np.flatnonzero(behind).tolist():
        log.add(
            "meter_frozen",
            f"{readings.channel}: the counter stood still for {(edges_ns[row + 1] - edges_ns[row]) * 1e-9:.4g} s"
            " and did not make up for it; that time is a gap",
            f"{int(edges_ns[row])} ns",
        )
    return behind


def _with_tail(readings: CounterReadings, edges_ns: Ints, power_w: Floats, log: FindingLog) -> tuple[Ints, Floats]:
    """Returns the steps with a lost one at the end when the counter stopped, or was lost, before the recording did."""
    last_ns = int(readings.stamp_ns[-1])
    rest_s = (last_ns - int(edges_ns[-1])) * 1e-9
    span_s = np.diff(edges_ns) * 1e-9
    usual_s = float(np.median(span_s))
    least_s = max(_STILL_S, _STILL_UPDATES * max(usual_s, readings.domain.update_period_s or 0.0, readings.period_s))
    if rest_s <= least_s:
        return edges_ns, power_w
    if list_paused(np.array([edges_ns[-1], last_ns]), readings.pauses).any():
        return np.append(edges_ns, last_ns), np.append(power_w, np.nan)
    heard = bool(np.isfinite(readings.raw[readings.stamp_ns > edges_ns[-1]]).any())
    what = "shows the same count" if heard else "could not be read"
    log.add(
        "meter_frozen" if heard else "meter_lost",
        f"{readings.channel}: the counter {what} for the last {rest_s:.4g} s; that time is a gap",
        f"{int(edges_ns[-1])} ns",
    )
    return np.append(edges_ns, last_ns), np.append(power_w, np.nan)


def _channel(readings: CounterReadings) -> Channel:
    domain = readings.domain
    assert domain.boundary is not None  # a counter of energy has one
    return Channel(
        name=readings.channel,
        boundary=domain.boundary,
        provenance=domain.provenance,
        kernel=SensorKernel(kind=KernelKind.COUNTER, window_s=0.0),
    )


def _range(domain: LiveDomain) -> str:
    """Returns what a counter holds from end to end, as people read it."""
    return format_si((domain.modulus or 0.0) * domain.scale, domain.unit)
