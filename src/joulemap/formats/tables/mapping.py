"""The map of a table that nobody described: which column is the time, which is power, in which units.

Roles are ``time``, ``power``, ``current``, ``voltage`` and ``energy`` (a cumulative counter); a rail's name follows a
colon (``power:gpu``). A unit stands in the column's own brackets or is stated. A heading that leaves no doubt
(``time [s],power [W]``) is its own map, and a finding shows what was taken from it. What another heading might mean is
shown in the error that asks for a map; it is never applied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.estimate import Boundary, Provenance
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
from joulemap.formats.ground.values import UnitKind, difference_counter, header_unit, parse_unit
from joulemap.records.finding import Severity
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel

__all__ = ["ROLES", "ColumnMap", "TimeForm", "build_traces", "clear_map", "say_heading", "suggest_map", "table_map"]

ROLES = {
    "time": UnitKind.TIME,
    "power": UnitKind.POWER,
    "current": UnitKind.CURRENT,
    "voltage": UnitKind.VOLTAGE,
    "energy": UnitKind.ENERGY,
}
_WORDS = (
    ("time", re.compile(r"\b(time|timestamp|elapsed|t)\b")),
    ("power", re.compile(r"\b(power|watts?|pwr)\b")),
    ("current", re.compile(r"\b(current|amps?|amperes?)\b")),
    ("voltage", re.compile(r"\b(voltage|volts?)\b")),
    ("energy", re.compile(r"\b(energy|joules?)\b")),
)
_PLAIN = {
    "time": frozenset({"time", "timestamp", "elapsed", "elapsed time", "t"}),
    "power": frozenset({"power", "p"}),
    "current": frozenset({"current", "i"}),
    "voltage": frozenset({"voltage", "v", "u"}),
}
_DEFAULTS = {"time": "s", "power": "W", "current": "A", "voltage": "V", "energy": "J"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeForm:
    """How the time column is to be read.

    Args:
        unit_ns: ns in one unit of a numeric column; 0 for calendar stamps.
        epoch: True when a numeric column counts from 1970 UTC.
    """

    unit_ns: int
    epoch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """The stated map, checked against the table.

    Args:
        columns: role -> position of its column.
        factors: role -> SI units in one unit of it (without ``time``).
        time: None when there is no time column (a rate was stated).
        heading: the flags that the heading itself stands for, when it was taken as the map; empty when one was stated.
    """

    columns: Mapping[str, int]
    factors: Mapping[str, float]
    time: TimeForm | None
    heading: str = ""


def clear_map(header: Sequence[str]) -> dict[str, str]:
    """Returns role -> column where the heading leaves no doubt; empty where it does.

    No doubt: the plain word of a role, with a unit of that role in brackets, on one column only: a time, and a power
    or else a current with or without its voltage. A second column in watts or amperes is a doubt.
    """
    found: dict[str, list[str]] = {}
    kinds: list[UnitKind] = []
    for label in header:
        name, unit = header_unit(label)
        kinds += [unit.kind] if unit is not None else []
        for role, words in _PLAIN.items():
            if unit is not None and unit.kind is ROLES[role] and name.lower().replace("_", " ") in words:
                found.setdefault(role, []).append(label)
    if any(kinds.count(ROLES[role]) > 1 for role in found):
        return {}
    named = {role: labels[0] for role, labels in found.items()}
    if "time" not in named:
        return {}
    if "power" in named:
        return {"time": named["time"], "power": named["power"]}
    return named if "current" in named and UnitKind.POWER not in kinds else {}


def say_heading(mapped: ColumnMap, log: FindingLog) -> None:
    """Adds the finding that shows a map which was taken from the heading."""
    if mapped.heading:
        log.add(
            "columns_from_heading",
            f"columns and units are taken from the heading: {mapped.heading}. Say others with --column and --unit",
            "line 1",
            Severity.INFO,
        )


def suggest_map(header: Sequence[str]) -> str:
    """Returns the flags that the header's words suggest, for a person to check; empty when it suggests none."""
    flags: list[str] = []
    for role, words in _WORDS:
        for label in header:
            name, unit = header_unit(label)
            plain = name.lower().replace("_", " ")
            if words.search(plain) or (unit is not None and unit.kind is ROLES[role]):
                flags.append(f"--column {role}={label!r}")
                if unit is None:
                    flags.append(f"--unit {role}={_DEFAULTS[role]}")
                break
    return " ".join(flags)


def table_map(header: Sequence[str], options: ReadOptions, name: str) -> ColumnMap:
    """Returns the checked map.

    Raises:
        InputError: no map was stated (the hint shows what the header suggests), or it does not fit the table.
    """
    wanted = {role: column for role, column in options.columns.items() if role.partition(":")[0] in ROLES}
    heading = ""
    if not wanted and (clear := clear_map(header)):
        wanted = clear
        heading = " ".join(f"--column {role}={label!r}" for role, label in clear.items())
    if not any(role.partition(":")[0] in {"power", "current", "energy"} for role in wanted):
        suggested = suggest_map(header)
        raise InputError(
            f"{name} is a table that no reader knows; its columns are {', '.join(header)[:300]}",
            hint=f"Say what they are. The header suggests, unchecked: {suggested}"
            if suggested
            else "Say which is which, for example --column time=NAME --column power=NAME.",
            slug="columns-unmapped",
        )
    columns = {}
    for role, label in wanted.items():
        if label not in header:
            raise InputError(
                f"{name} has no column {label!r} ({role})",
                hint=f"Columns: {', '.join(header)[:300]}.",
                slug="column-missing",
            )
        columns[role] = list(header).index(label)
    factors = {role: _factor(role, wanted[role], options) for role in wanted if role != "time"}
    if "time" not in wanted:
        if options.rate_hz is None or not 0 < options.rate_hz <= 1e12:
            raise InputError(
                f"{name}: no time column is stated", hint="Say --column time=NAME, or --rate in Hz.", slug="rate-needed"
            )
        return ColumnMap(columns=columns, factors=factors, time=None)
    return ColumnMap(columns=columns, factors=factors, time=_time_form(wanted["time"], options), heading=heading)


def _stated_unit(role: str, options: ReadOptions) -> str | None:
    return options.units.get(role, options.units.get(role.partition(":")[0]))


def _factor(role: str, label: str, options: ReadOptions) -> float:
    kind = ROLES[role.partition(":")[0]]
    stated = _stated_unit(role, options)
    try:
        unit = parse_unit(stated) if stated is not None else header_unit(label)[1]
    except ValueError as error:
        raise UsageError(str(error), hint=f"For example --unit {role}=mW.", slug="unit-unknown") from error
    if unit is None:
        raise InputError(
            f"column {label!r} ({role}) has no unit", hint=f"Say it, for example --unit {role}=mW.", slug="unit-needed"
        )
    if unit.kind is not kind:
        wrong = InputError if stated is None else UsageError
        raise wrong(
            f"column {label!r} is in a unit of {unit.kind}, not of {kind}",
            hint=f"Say --unit {role}=... or map another column.",
            slug="unit-unknown",
        )
    return unit.factor


def _time_form(label: str, options: ReadOptions) -> TimeForm:
    """Returns the form of the time column; ``epoch s`` counts from 1970 UTC, no unit at all means calendar stamps."""
    stated = _stated_unit("time", options)
    if stated is None:
        unit = header_unit(label)[1]
        if unit is None or unit.kind is not UnitKind.TIME:
            return TimeForm(unit_ns=0)
        return TimeForm(unit_ns=round(unit.factor * 1e9))
    word = stated.strip()
    epoch = word.startswith(("epoch", "unix"))
    try:
        unit = parse_unit(word.removeprefix("epoch").removeprefix("unix").strip() or "s")
    except ValueError as error:
        raise UsageError(
            str(error), hint="For example --unit time=ms or time='epoch s'.", slug="unit-unknown"
        ) from error
    unit_ns = round(unit.factor * 1e9)
    if unit.kind is not UnitKind.TIME or unit_ns < 1:
        raise UsageError(f"{stated!r} is no unit of time", hint="For example --unit time=ms.", slug="unit-unknown")
    return TimeForm(unit_ns=unit_ns, epoch=epoch)


def build_traces(
    values: Mapping[str, NDArray[np.float64]],
    times: tuple[NDArray[np.int64] | None, Clock, Sequence[int] | None],
    options: ReadOptions,
    log: FindingLog,
    *,
    quanta: Mapping[str, float] | None = None,
) -> tuple[EnergyTrace, ...]:
    """Returns one trace per rail of the map.

    Args:
        values: role -> (n,) in SI units; NaN for missing.
        times: (n,) ns (None for even samples at the stated rate), their clock, line numbers.
        options: of the user.
        log: takes findings of the times and samples.
        quanta: role -> resolution that its numbers are written with, in SI units; 0 or absent where nothing says it.

    Raises:
        InputError: a rail has a current only and no supply was stated.
        FormatError: the times make no interval.
    """
    rails = dict.fromkeys(role.partition(":")[2] for role in values)
    boundary = boundary_of(options.boundary, Boundary.RAIL)
    traces: list[EnergyTrace] = []
    for rail in rails:
        tail = f":{rail}" if rail else ""
        name = rail or "power"
        quiet = log if not traces else FindingLog()
        if (energy_j := values.get(f"energy{tail}")) is not None and f"power{tail}" not in values:
            traces.append(_counter(name, energy_j, times, (options, quiet)))
            continue
        power_w, quantum_w = _power(values, rail, options, quanta or {})
        if power_w is None:
            continue
        time_ns, clock, line = times
        if time_ns is None:
            period_s = 1 / (options.rate_hz or 1.0)
            channel = sampled_channel(name, boundary, period_s, quantum_w=quantum_w)
            traces.append(
                uniform_trace(power_w, channel=channel, clock=clock, start_ns=0, period_s=period_s, log=quiet)
            )
            continue
        steps = np.diff(time_ns)
        window_s = max(float(np.median(steps)), 0.0) * 1e-9 if steps.size else 0.0
        columns = TimedColumns(time_ns=time_ns, value=power_w, line=line)
        channel = sampled_channel(name, boundary, window_s, quantum_w=quantum_w)
        traces.append(timed_trace(columns, channel=channel, clock=clock, log=quiet))
    if not traces:
        raise FormatError("the map gives no rail", hint="Map power, current or energy.", slug="columns-unmapped")
    return tuple(traces)


def _power(
    values: Mapping[str, NDArray[np.float64]], rail: str, options: ReadOptions, quanta: Mapping[str, float]
) -> tuple[NDArray[np.float64] | None, float]:
    """Returns the power of a rail, W, and what its last written digit stands for, W; None where it has none.

    A power that is made of current and voltage has what the digits of both make of it at their usual values.
    """
    tail = f":{rail}" if rail else ""
    power_w = values.get(f"power{tail}")
    current_a = values.get(f"current{tail}")
    if power_w is not None or current_a is None:
        return power_w, quanta.get(f"power{tail}", 0.0)
    role = f"voltage{tail}" if f"voltage{tail}" in values else "voltage"
    voltage_v: NDArray[np.float64] | float | None = values.get(role)
    if voltage_v is None:
        voltage_v = voltage_of(options.voltage_v, rail or "power")
    with np.errstate(over="ignore", invalid="ignore"):
        power_w = current_a * voltage_v
    by_current = quanta.get(f"current{tail}", 0.0) * _usual(voltage_v)
    by_voltage = quanta.get(role, 0.0) * _usual(current_a)
    return power_w, math.hypot(by_current, by_voltage)


def _usual(value: NDArray[np.float64] | float) -> float:
    """Returns the median of the magnitude; 0 where there is no number."""
    known = np.abs(value)[np.isfinite(value)] if isinstance(value, np.ndarray) else np.array([abs(value)])
    return float(np.median(known)) if known.size else 0.0


def _counter(
    name: str,
    energy_j: NDArray[np.float64],
    times: tuple[NDArray[np.int64] | None, Clock, Sequence[int] | None],
    context: tuple[ReadOptions, FindingLog],
) -> EnergyTrace:
    """Returns power from a cumulative energy; a fall is lost, since a table does not say where its counter wraps."""
    (time_ns, clock, line), (options, log) = times, context
    if time_ns is None:
        time_ns = np.round(np.arange(energy_j.size) * (1e9 / (options.rate_hz or 1.0))).astype(np.int64)
    if energy_j.size < 2:
        raise FormatError(
            f"{name}: one reading of a counter is no energy", hint="Record longer.", slug="recording-empty"
        )
    steps = difference_counter(energy_j)
    fell = np.diff(energy_j) < 0
    if fell.any():
        row = int(np.argmax(fell)) + 1
        where = f"line {line[row]}" if line is not None else f"row {row}"
        log.add(
            "counter_fell",
            f"{name}: the energy falls {int(fell.sum())} times and its range is not known: those steps are gaps",
            where,
            Severity.ERROR,
        )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        power_w = np.where(steps.lost, np.nan, steps.delta / (np.diff(time_ns) * 1e-9))
    channel = Channel(
        name=name,
        boundary=boundary_of(options.boundary, Boundary.RAIL),
        provenance=Provenance.MEASURED_COUNTER,
        kernel=SensorKernel(kind=KernelKind.COUNTER, window_s=0.0),
    )
    columns = TimedColumns(
        time_ns=time_ns[1:], value=power_w, line=line[1:] if line is not None else None, gap_factor=None
    )
    return timed_trace(columns, channel=channel, clock=clock, log=log, first_ns=int(time_ns[0]))


def table_clock(form: TimeForm | None, *, zoned: bool | None) -> Clock:
    """Returns the clock of a table: calendar stamps without a zone are local, numbers count from wherever they do.

    Args:
        form: of the time column; None for even samples.
        zoned: of calendar stamps: whether they carry a zone; None for numbers.
    """
    if form is None:
        return Clock(name="table", kind=ClockKind.SAMPLE_INDEX)
    if form.unit_ns:
        return Clock(name="table", kind=ClockKind.UTC if form.epoch else ClockKind.MONOTONIC)
    return Clock(name="table", kind=ClockKind.UTC if zoned else ClockKind.LOCAL)
