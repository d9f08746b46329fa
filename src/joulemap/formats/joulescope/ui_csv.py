"""CSV exports of the Joulescope UI: the waveform on the screen, and the statistics record.

References:
    jetperch/pyjoulescope_ui at 4c8c885, waveform_widget.py and statistics_record.py (FORMATS_MORE, "Joulescope UI
    CSV").
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, InputError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import (
    FindingLog,
    TimedColumns,
    boundary_of,
    sampled_channel,
    source_file,
    timed_trace,
    uniform_trace,
    voltage_of,
)
from joulemap.formats.ground.logs import rows_unreadable
from joulemap.formats.ground.text import head_lines, read_lines, split_fields
from joulemap.formats.ground.values import decimal_ns, parse_number, parse_stamp
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording, StatedTotal
from joulemap.trace import Clock, ClockKind, EnergyTrace

__all__ = ["JoulescopeCsvReader"]

_SIGNAL: Final = re.compile(r"(?P<device>[^.]*)\.(?P<name>[a-z_0-9\[\]]+)")
_STATISTICS: Final = ("current", "voltage", "power", "charge", "energy")
_STEP_ALLOWED: Final = 0.02
_PRINTED: Final = 1e-5


@dataclass(frozen=True, slots=True)
class _Table:
    """The file as columns; ``time_ns`` is empty where the export has no time."""

    header: list[str]
    time_ns: array[int]
    clock: Clock
    line: array[int]
    columns: dict[str, NDArray[np.float64]]


class JoulescopeCsvReader:
    """Reads the waveform export (already averaged for the screen) and the statistics export."""

    name = "joulescope-csv"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for ``# time,<serial>.current`` or ``#time,current,voltage,power,...``."""
        del path
        lines = head_lines(head, 1)
        labels = _labels(lines[0]) if lines and lines[0].startswith("#") else []
        waveform = labels[:1] == ["time"] and any(_SIGNAL.fullmatch(label) for label in labels[1:])
        statistics = tuple(label for label in labels if label != "time") == _STATISTICS
        return 1.0 if waveform or statistics else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power per instrument; charge and energy of the statistics become stated totals.

        Raises:
            FormatError: no header, no row, or no power.
            InputError: current without voltage and no stated supply, or no time column and no stated rate.
        """
        log = FindingLog()
        table = _read(path, log)
        boundary = boundary_of(options.boundary, Boundary.RAIL)
        if tuple(label for label in table.header if label != "time") == _STATISTICS:
            traces = [_statistics(table, (boundary, options), log)]
            totals = _totals(table)
        else:
            log.add(
                "decimated_export",
                "a waveform export holds the averages shown on the screen, other signals interpolated onto the first: "
                "energy over short slices is blurred; record JLS for attribution",
                f"line {table.line[0] - 1}",
                Severity.INFO,
            )
            traces = _waveforms(table, (boundary, options), log)
            totals = []
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=tuple(traces),
            totals=tuple(totals),
            metadata={"columns": ", ".join(table.header[:16])},
            findings=log.findings(),
        )


def _labels(text: str) -> list[str]:
    return [label.strip() for label in split_fields(text.lstrip("# "))]


def _stamp(text: str) -> tuple[int, bool]:
    """Returns ns and whether it is UTC: relative seconds, or the compact form with a Z."""
    if "T" in text:
        return parse_stamp(text).utc_ns, True
    return decimal_ns(text), False


def _read(path: Path, log: FindingLog) -> _Table:
    header: list[str] = []
    time_ns, line = array("q"), array("q")
    cells: list[array[float]] = []
    utc = bad = 0
    for number, text in read_lines(path):
        if not text.strip():
            continue
        if not header:
            if not text.startswith("#"):
                raise FormatError(f"{path.name}: no header line with #", hint="Export again.", slug="column-missing")
            header = _labels(text)
            cells = [array("d") for _ in header]
            continue
        fields = split_fields(text)
        try:
            stamp_ns, is_utc = _stamp(fields[0]) if header[0] == "time" else (0, False)
            values = [parse_number(field) for field in (fields[1:] if header[0] == "time" else fields)]
        except ValueError as error:
            bad += 1
            log.add("line_unreadable", f"the row is left out ({error})", f"line {number}")
            continue
        utc += is_utc
        time_ns.append(stamp_ns)
        line.append(number)
        for at, column in enumerate(cells):
            column.append(values[at] if at < len(values) else np.nan)
    if not line or bad > len(line) or utc not in {0, len(line)}:
        raise rows_unreadable(
            path.name,
            (len(line), bad),
            log,
            wanted=f"a number under {', '.join(header)[:200]}, and all times alike ({utc} of {len(line)} are UTC)",
        )
    named = header[1:] if header[0] == "time" else header
    columns = {name: np.array(cells[at]) for at, name in enumerate(named)}
    columns = {name: values for name, values in columns.items() if np.isfinite(values).any()}
    clock = Clock(name="joulescope", kind=ClockKind.UTC if utc else ClockKind.MONOTONIC)
    return _Table(header, time_ns if header[0] == "time" else array("q"), clock, line, columns)


def _trace(
    table: _Table, part: tuple[str, NDArray[np.float64], str], context: tuple[Boundary, ReadOptions], log: FindingLog
) -> EnergyTrace:
    (name, power_w, stamp), (boundary, options) = part, context
    if table.time_ns:
        steps = np.diff(np.array(table.time_ns, np.int64))
        window_s = float(np.median(steps)) * 1e-9 if steps.size else 0.0
        return timed_trace(
            TimedColumns(time_ns=table.time_ns, value=power_w, line=table.line, stamp=stamp),
            channel=sampled_channel(name, boundary, window_s),
            clock=table.clock,
            log=log,
        )
    if options.rate_hz is None or not 0 < options.rate_hz < 1e9:
        raise InputError(
            "the export has no time column",
            hint="Say --rate in rows per second, or export the time.",
            slug="rate-needed",
        )
    return uniform_trace(
        power_w,
        channel=sampled_channel(name, boundary, 1 / options.rate_hz),
        clock=table.clock,
        start_ns=0,
        period_s=1 / options.rate_hz,
        log=log,
    )


def _statistics(table: _Table, context: tuple[Boundary, ReadOptions], log: FindingLog) -> EnergyTrace:
    # the energy of a row is that of the row before plus its mean power times the step: a row ends its interval
    if "power" not in table.columns:
        raise FormatError("the statistics have no power", hint="Export again.", slug="column-missing")
    _check_energy(table, log)
    return _trace(table, ("power", table.columns["power"], "end"), context, log)


def _check_energy(table: _Table, log: FindingLog) -> None:
    """Says where the file's own energy does not step by its mean power times the step: it overflowed or was reset."""
    energy_j = table.columns.get("energy")
    if energy_j is None or not table.time_ns:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        steps_s = np.diff(np.array(table.time_ns, np.int64)).astype(np.float64) * 1e-9
        due_j = table.columns["power"][1:] * steps_s
        step_j = np.diff(energy_j)
        # %g prints six digits of a growing total, so a small step of a large total is coarse
        allowed_j = _STEP_ALLOWED * np.abs(due_j) + _PRINTED * np.abs(energy_j[1:])
        wrong = np.flatnonzero(np.abs(step_j - due_j) > allowed_j)
    if wrong.size:
        row = int(wrong[0])
        log.add(
            "energy_disagrees",
            f"the energy column steps by {step_j[row]:.6g} J where its power and time make {due_j[row]:.6g} J "
            f"({wrong.size} of {step_j.size} steps): its accumulator overflowed or was reset; the power counts",
            f"line {table.line[row + 1]}",
        )


def _totals(table: _Table) -> list[StatedTotal]:
    totals = []
    for name, key in (("energy", "energy_j"), ("charge", "charge_c")):
        column = table.columns.get(name)
        if column is not None and np.isfinite(column[-1]):
            totals.append(
                StatedTotal(
                    key=key,
                    value=float(column[-1]),
                    provenance=Provenance.MEASURED_COUNTER,
                    span=f"line {table.line[-1]}",
                )
            )
    return totals


def _waveforms(table: _Table, context: tuple[Boundary, ReadOptions], log: FindingLog) -> list[EnergyTrace]:
    devices: dict[str, dict[str, NDArray[np.float64]]] = {}
    for label, values in table.columns.items():
        if found := _SIGNAL.fullmatch(label):
            devices.setdefault(found["device"], {})[found["name"]] = values
    absent = [label for label in table.header[1:] if label not in table.columns]
    if absent:
        log.add("column_empty", f"no values under {', '.join(absent)[:120]}: the header names traces without data")
    traces: list[EnergyTrace] = []
    for device, signals in devices.items():
        with np.errstate(over="ignore", invalid="ignore"):
            if "power" in signals:
                power_w = signals["power"]
            elif "current" in signals and "voltage" in signals:
                power_w = signals["current"] * signals["voltage"]
            elif "current" in signals:
                power_w = signals["current"] * voltage_of(context[1].voltage_v, device)
            else:
                continue
        traces.append(
            _trace(table, (device or "power", power_w, "start"), context, log if not traces else FindingLog())
        )
    if not traces:
        raise FormatError("the export holds no power", hint="Show current and voltage.", slug="column-missing")
    return traces
