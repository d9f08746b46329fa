"""A saved dialogue with Otii's TCP server: requests for channel data and the samples that came back.

References:
    qoitech/otii-tcp-client-python at 7750e0c5, otii_connection.py and recording.py (FORMATS_MORE, "Otii TCP").
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import (
    FindingLog,
    TimedColumns,
    boundary_of,
    sampled_channel,
    source_file,
    timed_trace,
    voltage_of,
)
from joulemap.formats.ground.levels import hold_value
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.recording import Lane, Recording
from joulemap.trace import Clock, ClockKind, EnergyTrace

__all__ = ["OtiiTcpReader"]

_COMMAND: Final = "recording_get_channel_data"
_RAILS: Final = {"m": "main", "a": "adc"}
_LANES: Final = {"mv": "V", "av": "V", "sp": "V", "sn": "V", "vb": "V", "vj": "V", "tp": "degC", "me": "J", "ae": "J"}
_LINE_MAX_B: Final = 1 << 26
_INTERVAL_MAX_S: Final = 1e6
_Key = tuple[str, str, str]  # recording, device, channel


@dataclass(slots=True)
class _Series:
    """One channel of one recording: its chunks in the order in which they came."""

    step_ns: int = 0
    first_ns: int = 0
    first_index: int = 0
    time_ns: list[NDArray[np.int64]] = field(default_factory=list)
    value: list[NDArray[np.float64]] = field(default_factory=list)

    @property
    def times_ns(self) -> NDArray[np.int64]:
        return np.concatenate(self.time_ns)

    @property
    def values(self) -> NDArray[np.float64]:
        return np.concatenate(self.value)


class OtiiTcpReader:
    """Reads the analog channels that were fetched: power, or current times the voltage held at its own rate.

    A channel is asked for in chunks; a client keeps the first chunk's time stamp, so a chunk lies where its index says.
    """

    name = "otii-tcp"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for lines of JSON messages among which is one of a channel's data."""
        del path
        lines = head_lines(head, 3)
        message = any(line.lstrip().startswith("{") and '"type"' in line for line in lines)
        return 0.95 if message and f'"{_COMMAND}"'.encode() in head and b'"trans_id"' in head else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per recording, device and rail; the other channels are lanes.

        Raises:
            InputError: a current has no voltage and no supply was stated.
            FormatError: no analog samples whose request is in the file.
        """
        log = FindingLog()
        series = _read(path, log)
        clock = Clock(name="otii", kind=ClockKind.MONOTONIC)
        several = len({recording for recording, _, _ in series}) > 1
        traces, lanes = [], []
        for (recording, device, channel), one in series.items():
            prefix = f"{f'recording {recording} ' if several else ''}{device} ".lstrip()
            if channel in _LANES:
                lanes.append(_lane(f"{prefix}{channel}", _LANES[channel], one, clock))
            elif channel[1:] in {"c", "p"} and channel[:1] in _RAILS:
                rail = _rail(series, (recording, device, channel[:1]))
                if channel[1:] == "c" and "p" in rail:
                    continue
                traces.append(_trace((f"{prefix}{_RAILS[channel[:1]]}", clock), (one, rail), options, log))
            else:
                log.add("measurement_skipped", f"channel {channel[:40]!r} is no current, voltage or power")
        if not (traces or lanes):
            raise FormatError(
                f"{path.name} holds no current, voltage or power", hint="Fetch mc and mv.", slug="recording-empty"
            )
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=tuple(traces),
            lanes=tuple(lanes),
            findings=log.findings(),
        )


def _read(path: Path, log: FindingLog) -> dict[_Key, _Series]:
    asked: dict[str, tuple[_Key, int]] = {}
    series: dict[_Key, _Series] = {}
    for number, text in read_lines(path, limit_b=_LINE_MAX_B):
        if not text.strip():
            continue
        try:
            message = json.loads(text)
            data = message.get("data") or {}
            wanted = message.get("cmd") == _COMMAND and isinstance(data, dict)
        except (ValueError, AttributeError, RecursionError):
            log.add("line_unreadable", f"not a message: {text[:40]!r}", f"line {number}")
            continue
        trans_id = str(message.get("trans_id"))
        if wanted and message.get("type") == "request":
            key = (str(data.get("recording_id")), str(data.get("device_id")), str(data.get("channel")))
            index = data.get("index", 0)
            known = isinstance(index, int) and not isinstance(index, bool) and 0 <= index < 1 << 48
            asked[trans_id] = (key, index if known else 0)
        elif wanted and message.get("type") == "response":
            if trans_id not in asked:
                log.add("request_missing", "samples whose request is not in the file are left out", f"line {number}")
                continue
            key, index = asked.pop(trans_id)
            _add(series.setdefault(key, _Series()), index, data, (number, log))
    found = {key: one for key, one in series.items() if one.value}
    if not found:
        raise FormatError(
            f"{path.name} holds no samples of a channel",
            hint=f"Save the answers of {_COMMAND}.",
            slug="recording-empty",
        )
    return found


def _add(one: _Series, index: int, data: dict[str, Any], place: tuple[int, FindingLog]) -> None:
    number, log = place
    values, interval_s = data.get("values"), data.get("interval")
    if data.get("data_type") != "analog" or not isinstance(values, list) or not isinstance(interval_s, int | float):
        log.add("measurement_skipped", "an answer that is not analog is left out", f"line {number}")
        return
    try:
        if isinstance(interval_s, bool) or not 0 < interval_s < _INTERVAL_MAX_S:
            raise ValueError(f"an interval of {interval_s} s")  # noqa: TRY301  # one place for a bad answer
        start_ns, step_ns = decimal_ns(repr(data.get("timestamp"))), decimal_ns(repr(interval_s))
        sample = np.array([math.nan if value is None else value for value in values], np.float64)
        due_ns = one.first_ns + (index - one.first_index) * one.step_ns if one.value else start_ns
        if sample.ndim != 1 or not step_ns or max(abs(start_ns), abs(due_ns)) + step_ns * sample.size >= 1 << 61:
            raise ValueError("no row of samples within the range of time")  # noqa: TRY301
    except (ValueError, TypeError, OverflowError) as error:
        log.add("line_unreadable", f"the answer is left out ({error})", f"line {number}")
        return
    if not one.value:
        one.step_ns, one.first_ns, one.first_index = step_ns, start_ns, index
    if step_ns != one.step_ns:
        log.add("time_disagrees", "a chunk has another interval than the first of its channel", f"line {number}")
    if start_ns not in {one.first_ns, due_ns} and abs(start_ns - due_ns) > one.step_ns:
        log.add("time_disagrees", "a chunk's stamp is not where its index says; the stamp counts", f"line {number}")
        due_ns = start_ns
    one.time_ns.append(due_ns + step_ns * np.arange(sample.size, dtype=np.int64))
    one.value.append(sample)


def _rail(series: dict[_Key, _Series], place: _Key) -> dict[str, _Series]:
    """Returns quantity letter (``c``, ``v``, ``p``, ``e``) -> channel of one rail of one device in one recording."""
    return {key[2][1:]: one for key, one in series.items() if (*key[:2], key[2][:1]) == place}


def _trace(
    place: tuple[str, Clock], channels: tuple[_Series, dict[str, _Series]], options: ReadOptions, log: FindingLog
) -> EnergyTrace:
    (name, clock), (one, rail) = place, channels
    time_ns, power_w = one.times_ns, one.values
    if "p" not in rail:
        volts = rail.get("v")
        with np.errstate(over="ignore", invalid="ignore"):
            power_w = power_w * (
                hold_value(volts.times_ns, volts.values, time_ns)
                if volts is not None and volts.times_ns.size
                else voltage_of(options.voltage_v, name)
            )
    return timed_trace(
        TimedColumns(time_ns=time_ns, value=power_w, stamp="start", period_ns=one.step_ns),
        channel=sampled_channel(name, boundary_of(options.boundary, Boundary.RAIL), one.step_ns * 1e-9),
        clock=clock,
        log=log,
    )


def _lane(name: str, unit: str, one: _Series, clock: Clock) -> Lane:
    order = np.argsort(one.times_ns, kind="stable")
    return Lane(name=name, unit=unit, clock=clock, time_ns=one.times_ns[order], value=one.values[order])
