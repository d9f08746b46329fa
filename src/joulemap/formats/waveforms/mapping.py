"""From analog channels in volts to power, by the map that the user states and by nothing else.

A logic analyser or an oscilloscope does not know which of its channels is a rail and which a current probe. Channels
become lanes; ``--column current=NAME`` with ``--unit current='100 mA/V'`` (the probe's ratio) and ``--column
voltage=NAME`` (or ``--voltage``) make them power. What could be meant is said in a finding, never applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.estimate import Boundary
from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.building import (
    FindingLog,
    TimedColumns,
    boundary_of,
    sampled_channel,
    timed_trace,
    uniform_trace,
    voltage_of,
)
from joulemap.formats.ground.values import UnitKind, parse_unit
from joulemap.records.finding import Severity
from joulemap.records.recording import Lane
from joulemap.trace import Clock, EnergyTrace, KernelKind

__all__ = ["Axis", "Waveform", "map_waveforms"]

_SI = {
    UnitKind.VOLTAGE: "V",
    UnitKind.CURRENT: "A",
    UnitKind.POWER: "W",
    UnitKind.TEMPERATURE: "degC",
    UnitKind.SHARE: "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The times of all channels: a start and a period, or a stamp per sample.

    Args:
        clock: of the times.
        start_ns: first sample, ns.
        period_s: for even samples; None when ``time_ns`` is given.
        time_ns: (n,) for stamped samples.
        line: line numbers of the samples.
    """

    clock: Clock
    start_ns: int = 0
    period_s: float | None = None
    time_ns: NDArray[np.int64] | None = None
    line: ArrayLike | None = None

    def times_ns(self, count: int) -> NDArray[np.int64]:
        """Returns the instant of each sample, ns."""
        if self.time_ns is not None:
            return self.time_ns
        assert self.period_s is not None  # one of the two is given
        return self.start_ns + np.round(np.arange(count) * (self.period_s * 1e9)).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waveform:
    """One analog channel.

    Args:
        name: as written.
        kind: of the unit; None when the file does not say.
        value: (n,) in SI units.
    """

    name: str
    kind: UnitKind | None
    value: NDArray[np.float64]


def map_waveforms(
    channels: Mapping[str, Waveform], axis: Axis, options: ReadOptions, log: FindingLog
) -> tuple[tuple[EnergyTrace, ...], tuple[Lane, ...]]:
    """Returns the mapped power (none without a map) and the other channels as lanes.

    Raises:
        InputError: the map names a channel that is not there, or lacks a ratio or a supply.
        FormatError: the times make no interval.
    """
    wanted = {role: name for role, name in options.columns.items() if role in {"power", "current", "voltage"}}
    for role, name in wanted.items():
        if name not in channels:
            raise InputError(
                f"no channel is called {name!r} ({role})",
                hint=f"Channels: {', '.join(channels)[:200]}.",
                slug="column-missing",
            )
    used: set[str] = set()
    traces: tuple[EnergyTrace, ...] = ()
    if "power" in wanted or "current" in wanted:
        power_w = _power(channels, wanted, options)
        used = set(wanted.values())
        traces = (_trace(power_w, axis, boundary_of(options.boundary, Boundary.RAIL), log),)
    else:
        log.add("power_not_mapped", _advice(channels), severity=Severity.INFO)
    count = next((channel.value.size for channel in channels.values()), 0)
    times_ns = axis.times_ns(count)
    order = np.argsort(times_ns, kind="stable") if np.any(np.diff(times_ns) < 0) else slice(None)
    lanes = tuple(
        Lane(
            name=channel.name,
            unit=_SI.get(channel.kind, "1") if channel.kind is not None else "1",
            clock=axis.clock,
            time_ns=times_ns[order],
            value=np.where(np.isfinite(channel.value), channel.value, np.nan)[order],
        )
        for name, channel in channels.items()
        if name not in used
    )
    return traces, lanes


def _advice(channels: Mapping[str, Waveform]) -> str:
    amps = [name for name, channel in channels.items() if channel.kind is UnitKind.CURRENT]
    volts = [name for name, channel in channels.items() if channel.kind is UnitKind.VOLTAGE]
    if len(amps) == 1 and len(volts) == 1:
        guess = f"--column current={amps[0]!r} --column voltage={volts[0]!r}"
    else:
        names = [*volts, *channels]
        guess = f"--column current={names[0]!r} --unit current='1 A/V' --voltage 3.3" if names else "--column ..."
    return f"the channels are lanes, not power: say which is which, for example {guess}"


def _ratio(text: str | None, kind: UnitKind, channel: Waveform) -> float:
    """Returns what to multiply a channel with: 1 when it has the right unit, else the stated ratio per volt."""
    if text is None:
        if channel.kind is kind:
            return 1.0
        raise InputError(
            f"channel {channel.name!r} is in {channel.kind or 'no unit'}, not in {kind}",
            hint=f"Say the probe's ratio, for example --unit {kind}='100 mA/V'.",
            slug="probe-ratio-needed",
        )
    body, slash, per = text.partition("/")
    number = body.strip()
    digits = len(number) - len(number.lstrip("0123456789.eE+-"))
    try:
        factor = (float(number[:digits]) if digits else 1.0) * _factor(number[digits:], kind)
        factor /= _factor(per, UnitKind.VOLTAGE) if slash else 1.0
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no ratio ({error})", hint=f"For example --unit {kind}='100 mA/V'.", slug="unit-unknown"
        ) from error
    if not (np.isfinite(factor) and factor != 0):
        raise UsageError(f"{text!r} is no ratio", hint="It must be finite and not 0.", slug="unit-unknown")
    return factor


def _factor(text: str, kind: UnitKind) -> float:
    unit = parse_unit(text)
    if unit.kind is not kind:
        raise ValueError(f"{text.strip()!r} is no {kind}")
    return unit.factor


def _power(channels: Mapping[str, Waveform], wanted: Mapping[str, str], options: ReadOptions) -> NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):
        if "power" in wanted:
            channel = channels[wanted["power"]]
            return channel.value * _ratio(options.units.get("power"), UnitKind.POWER, channel)
        channel = channels[wanted["current"]]
        current_a = channel.value * _ratio(options.units.get("current"), UnitKind.CURRENT, channel)
        if "voltage" not in wanted:
            return current_a * voltage_of(options.voltage_v, channel.name)
        rail = channels[wanted["voltage"]]
        if rail.value.size != current_a.size:
            raise FormatError(
                f"{rail.name} has {rail.value.size} samples, {channel.name} has {current_a.size}",
                hint="Export both at one rate.",
                slug="rates-differ",
            )
        return current_a * rail.value * _ratio(options.units.get("voltage"), UnitKind.VOLTAGE, rail)


def _trace(power_w: NDArray[np.float64], axis: Axis, boundary: Boundary, log: FindingLog) -> EnergyTrace:
    channel = sampled_channel("power", boundary, 0.0, KernelKind.POINT)
    if axis.period_s is not None:
        return uniform_trace(
            power_w,
            channel=channel,
            clock=axis.clock,
            start_ns=axis.start_ns
            - round(axis.period_s * 0.5e9),  # a point sample stands in the middle of its interval
            period_s=axis.period_s,
            log=log,
        )
    assert axis.time_ns is not None  # one of the two is given
    lines = np.asarray(axis.line).tolist() if axis.line is not None else None
    return timed_trace(
        TimedColumns(time_ns=axis.time_ns, value=power_w, line=lines, stamp="centre"),
        channel=channel,
        clock=axis.clock,
        log=log,
    )
