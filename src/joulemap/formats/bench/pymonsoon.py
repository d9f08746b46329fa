"""CSV files that PyMonsoon writes: a time column that says ms and holds seconds, shared by all samples of a packet.

References:
    msoon/PyMonsoon at 013be580, Monsoon/sampleEngine.py, and a file written by PyPI monsoon 0.1.88
    (``generated/monsoon``; FORMATS_MORE, "PyMonsoon CSV").
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.errors import FormatError, InputError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import (
    FindingLog,
    boundary_of,
    sampled_channel,
    source_file,
    uniform_trace,
    voltage_of,
)
from joulemap.formats.ground.text import head_lines, normal_label, open_table, split_fields
from joulemap.formats.ground.values import parse_number
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind, EnergyTrace

__all__ = ["PyMonsoonReader"]

_RATE_HZ: Final = 5000.0
_WRAPPED: Final = re.compile(r"np\.(?:float|int)\d+\((.*)\)")
_RAILS: Final = {"main": ("main(ma)", "main voltage(v)"), "usb": ("usb(ma)", "usb voltage(v)")}


class PyMonsoonReader:
    """Reads main and USB rails; time is rebuilt from the sample rate, since a packet's samples share one stamp."""

    name = "pymonsoon-csv"
    certainty = Certainty.WRITTEN
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the header ``Time(ms),Main(mA),...``."""
        del path
        lines = head_lines(head, 1)
        labels = [normal_label(label) for label in split_fields(lines[0])] if lines else []
        return 1.0 if labels[:1] == ["time(ms)"] and {"main(ma)", "usb(ma)", "aux(ma)"} & set(labels) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per rail on the instrument's sample clock (5 kHz unless a rate is stated).

        Raises:
            FormatError: no rail column, or no row that parses.
            InputError: a rail has no voltage column and no supply was stated, or a rate that is none.
        """
        log = FindingLog()
        table = open_table(path, delimiter=",")
        rails = {rail: (table.index(current), table.index(volts)) for rail, (current, volts) in _RAILS.items()}
        at_time = table.index("time(ms)")
        if at_time is None or all(current is None for current, _ in rails.values()):
            raise FormatError(
                f"{path.name}: no time column or no rail column", hint="Enable the main channel.", slug="column-missing"
            )
        if table.index("aux(ma)") is not None:
            log.add("channel_without_voltage", "the aux channel has no voltage and is left out", severity=Severity.INFO)
        needed = {at for pair in rails.values() for at in pair if at is not None} | {at_time}
        cells: dict[int, array[float]] = {at: array("d") for at in needed}
        bad = 0
        for row in table.rows():
            try:
                parsed = {at: _number(row.fields[at]) for at in needed}
            except ValueError as error:
                bad += 1
                log.add("line_unreadable", f"the row becomes a gap ({error})", f"line {row.line}")
                parsed = dict.fromkeys(needed, float("nan"))
            for at, value in parsed.items():
                cells[at].append(value)
        count = len(cells[at_time])
        if count <= 2 * bad:
            raise FormatError(
                f"{path.name}: {bad} of {count} rows do not parse", hint="Record again.", slug="recording-empty"
            )
        rate_hz = _rate(options)
        _check_rate(np.array(cells[at_time]), rate_hz, log)
        traces = _traces(rails, cells, (rate_hz, path.name, options), log)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=traces,
            metadata={"rate_hz": f"{rate_hz:g}", "columns": ", ".join(table.header[:12])},
            findings=log.findings(),
        )


def _number(text: str) -> float:
    found = _WRAPPED.fullmatch(text)  # how numpy 2 prints its scalars
    return parse_number(found[1] if found else text)


def _rate(options: ReadOptions) -> float:
    rate_hz = _RATE_HZ if options.rate_hz is None else options.rate_hz
    if not 0 < rate_hz < 1e9:
        raise InputError(f"a rate of {rate_hz} Hz is none", hint="Say --rate in Hz.", slug="rate-needed")
    return rate_hz


def _check_rate(time_s: np.ndarray[tuple[int], np.dtype[np.float64]], rate_hz: float, log: FindingLog) -> None:
    """Says when the host's stamps (seconds, whatever the header says) do not agree with the sample rate."""
    good = time_s[np.isfinite(time_s)]
    if good.size < 2 or good[-1] <= good[0]:
        return
    packet = max(int((good == good[-1]).sum()), 1)
    seen_hz = (good.size - packet) / float(good[-1] - good[0])
    if seen_hz > 0 and abs(seen_hz / rate_hz - 1) > 0.05:
        log.add(
            "rate_disagrees",
            f"the host's stamps say {seen_hz:.5g} samples per second, the rate used is {rate_hz:g}: samples were "
            "lost or thinned; state --rate if the recording was thinned on purpose",
        )


def _traces(
    rails: dict[str, tuple[int | None, int | None]],
    cells: dict[int, array[float]],
    context: tuple[float, str, ReadOptions],
    log: FindingLog,
) -> tuple[EnergyTrace, ...]:
    rate_hz, name, options = context
    clock = Clock(name="monsoon", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / rate_hz)
    traces = []
    for rail, (current, volts) in rails.items():
        if current is None:
            continue
        supply = np.array(cells[volts]) if volts is not None else voltage_of(options.voltage_v, name)
        with np.errstate(over="ignore", invalid="ignore"):
            power_w = np.array(cells[current]) * 1e-3 * supply
        traces.append(
            uniform_trace(
                power_w,
                channel=sampled_channel(rail, boundary_of(options.boundary, Boundary.RAIL), 1 / rate_hz),
                clock=clock,
                start_ns=0,
                period_s=1 / rate_hz,
                log=log,
            )
        )
    return tuple(traces)
