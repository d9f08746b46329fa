"""Readings of a live power sensor to a trace: polled repeats merged, late and missing readings gaps, stops seen.

What a sensor shows is dated as that of a recorded file (:mod:`joulemap.formats.ground.series.polling`), with what it
declares of its renewal, and no further back than a recording goes on after its end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.domains import Domain, Meaning, Series
from joulemap.formats.ground.series import TraceMaker
from joulemap.formats.live.counters import CounterReadings
from joulemap.trace import Clock, EnergyTrace, KernelKind
from joulemap.trace.pauses import less_pauses_ns

__all__ = ["POWER_SETTLE_LIMIT_S", "UNDECLARED_UPDATE_S", "power_trace"]

_STILL_S: Final = 5.0
_STILL_TIMES: Final = 20.0
_CHANGES: Final = 20
_LATE_READINGS: Final = 3.0
POWER_SETTLE_LIMIT_S: Final = 1.0
"""The longest that a value is moved: a recording goes on after its end for no longer than that takes."""
UNDECLARED_UPDATE_S: Final = 0.2
"""The slowest renewal that is found out from the values of a sensor that declares none."""


def power_trace(readings: CounterReadings, clock: Clock, log: FindingLog) -> EnergyTrace | None:
    """Returns the trace of a power sensor; None when there are fewer than two readings.

    Args:
        readings: raw readings of power.
        clock: of the stamps.
        log: takes ``meter_frozen``, ``time_gap``, ``samples_lost``, ``impossible_power``, ``repeats_merged``.
    """
    domain = readings.domain
    assert domain.boundary is not None  # a power has one
    readings = _outside_pauses(readings)
    if readings.stamp_ns.size < 2:
        log.add("channel_empty", f"{readings.channel}: {readings.stamp_ns.size} readings span no time")
        return None
    usual_s = float(np.median(np.diff(readings.stamp_ns))) * 1e-9
    lasting_s = max(domain.window_s or 0.0, domain.update_period_s or 0.0)
    series = Series(
        readings.channel,
        Domain(
            boundary=domain.boundary,
            provenance=domain.provenance,
            meaning=Meaning.POWER,
            scale=domain.scale,
            window_s=domain.window_s,
            kind=KernelKind.INTERVAL_MEAN,
            largest_w=domain.largest_w,
            polled=True,
            renewal_s=min(domain.update_period_s, POWER_SETTLE_LIMIT_S) if domain.update_period_s else None,
            slowest_renewal_s=UNDECLARED_UPDATE_S,
            gap_factor=max(_LATE_READINGS, 2.0 * lasting_s / usual_s if usual_s > 0 else 0.0),
        ),
    )
    raw = _without_still(readings, log)
    shift_ns = round(domain.latency_s * 1e9)
    series.pauses = tuple((int(begin_ns), int(end_ns)) for begin_ns, end_ns in readings.pauses)
    for row, (stamp_ns, value) in enumerate(zip(readings.stamp_ns.tolist(), raw.tolist(), strict=True)):
        series.add(stamp_ns - shift_ns, value, row)
    return TraceMaker(clock, log).trace(series)


def _outside_pauses(readings: CounterReadings) -> CounterReadings:
    """Returns the readings that were taken outside of pauses."""
    begun = np.searchsorted(readings.pauses[:, 0], readings.stamp_ns)
    kept = begun <= np.searchsorted(readings.pauses[:, 1], readings.stamp_ns, "right")
    return replace(readings, stamp_ns=readings.stamp_ns[kept], raw=readings.raw[kept])


def _without_still(readings: CounterReadings, log: FindingLog) -> NDArray[np.float64]:
    """Returns the readings with NaN where the sensor stopped: far longer without a change than ever before or after."""
    raw = readings.raw.copy()
    change = np.flatnonzero(raw[1:] != raw[:-1]) + 1
    bounds = np.concatenate(([0], change, [raw.size]))
    stamp_ns = less_pauses_ns(readings.stamp_ns, readings.pauses)
    ends_ns = np.append(stamp_ns, stamp_ns[-1])
    span_s = (ends_ns[bounds[1:]] - stamp_ns[bounds[:-1]]) * 1e-9
    if span_s.size < _CHANGES:
        return raw
    longest = int(np.argmax(span_s))
    others = float(np.max(np.delete(span_s, longest)))
    if not np.isfinite(raw[bounds[longest]]) or span_s[longest] < max(_STILL_S, _STILL_TIMES * others):
        return raw
    raw[bounds[longest] + 1 : bounds[longest + 1]] = np.nan
    log.add(
        "meter_frozen",
        f"{readings.channel}: the reading stayed at {raw[bounds[longest]] * readings.domain.scale:.6g} W for "
        f"{span_s[longest]:.4g} s, where it never did for more than {others:.4g} s; that time is a gap",
        f"{int(readings.stamp_ns[bounds[longest]])} ns",
    )
    return raw
