"""Dump files of PowerSensor3: one row per sample, times in microseconds since the row before.

References:
    nlesc-recruit/PowerSensor3 at c5017f98, host/src/PowerSensor.cc (FORMATS_MORE, "PowerSensor3 dump").
"""

from __future__ import annotations

import math
import re
from array import array
from pathlib import Path
from typing import Final

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
)
from joulemap.formats.ground.levels import MARKER_LIMIT
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import decimal_ns, parse_number
from joulemap.records.recording import MarkerTrack, Recording
from joulemap.trace import Clock, ClockKind, EnergyTrace, Marker

__all__ = ["PowerSensor3Reader"]

_HEADER: Final = ("marker", "time", "dt_micro", "device_timestamp")
_PAIR: Final = re.compile(r"power(\d+|_total)")
_EPOCH_NS: Final = 10**18
_LATEST_NS: Final = 1 << 62


class _Rows:
    """The dump as columns, grown row by row."""

    def __init__(self, columns: dict[str, int], width: int) -> None:
        self._columns = columns
        self._width = width
        self.power_w: dict[str, array[float]] = {name: array("d") for name in columns}
        self.time_ns = array("q")
        self.line = array("q")
        self.marks: list[tuple[int, str]] = []
        self.start_ns = 0
        self._host_ns = 0

    @property
    def host_s(self) -> float:
        """Length by the host's coarse time column, s."""
        return (self._host_ns - self.start_ns) * 1e-9

    def take(self, number: int, fields: list[str], log: FindingLog) -> None:
        """Adds a row; ValueError when it is none."""
        if len(fields) < self._width:
            raise ValueError(f"{len(fields)} of {self._width} fields")
        host_ns, step_ns = decimal_ns(fields[1]), decimal_ns(fields[2], 1000)
        values = {name: parse_number(fields[at]) for name, at in self._columns.items()}
        if not self.time_ns:
            self.start_ns = host_ns - max(step_ns, 1)
        if step_ns < 0:
            log.add("backward_stamp", f"the step of {step_ns} ns goes back", f"line {number}")
        last_ns = (self.time_ns[-1] if self.time_ns else self.start_ns) + max(step_ns, 0)
        if last_ns >= _LATEST_NS:
            raise ValueError("the steps leave the range of time")
        self._host_ns = host_ns
        self.time_ns.append(last_ns)
        self.line.append(number)
        for name, value in values.items():
            self.power_w[name].append(value if math.isfinite(value) else math.nan)
        if fields[0] != "S" and len(self.marks) < MARKER_LIMIT:
            self.marks.append((last_ns, fields[0][:16]))


class PowerSensor3Reader:
    """Reads every pair and their total on the host's microsecond steps; the ``time`` column is too coarse."""

    name = "powersensor3"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the header of a dump."""
        del path
        lines = head_lines(head, 1)
        return 1.0 if lines and tuple(lines[0].split()[:4]) == _HEADER else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per pair and the total, which contains the pairs; user marks become markers.

        Raises:
            FormatError: no such header, or no row that parses.
        """
        log = FindingLog()
        rows = _read(path, log)
        epoch = rows.start_ns >= _EPOCH_NS
        clock = Clock(name="powersensor3", kind=ClockKind.UTC if epoch else ClockKind.MONOTONIC, resolution_ns=1000.0)
        seconds = (rows.time_ns[-1] - rows.start_ns) * 1e-9
        if abs(seconds - rows.host_s) > 0.01 * max(seconds, rows.host_s) + 0.02:
            log.add("time_disagrees", f"the steps add up to {seconds:.6g} s, the time column to {rows.host_s:.6g} s")
        traces: list[EnergyTrace] = []
        window_s = seconds / len(rows.time_ns)
        pairs = [name for name in rows.power_w if name != "total"]
        for name in [*pairs, *(["total"] if "total" in rows.power_w and len(pairs) != 1 else [])]:
            quiet = log if not traces else FindingLog()
            traces.append(
                timed_trace(
                    TimedColumns(time_ns=rows.time_ns, value=rows.power_w[name], line=rows.line, gap_factor=2.5),
                    channel=sampled_channel(name, boundary_of(options.boundary, Boundary.RAIL), window_s),
                    clock=clock,
                    log=quiet,
                    first_ns=rows.start_ns,
                )
            )
        names = [trace.channel.name for trace in traces]
        markers = tuple(Marker(time_ns=time_ns, name=name) for time_ns, name in rows.marks)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=tuple(traces),
            markers=(MarkerTrack(name="marks", clock=clock, markers=markers),) if markers else (),
            overlaps=tuple((name, "total") for name in names if name != "total") if "total" in names else (),
            metadata={"rows": str(len(rows.time_ns))},
            findings=log.findings(),
        )


def _read(path: Path, log: FindingLog) -> _Rows:
    lines = ((number, text.split()) for number, text in read_lines(path) if text.strip())
    _, header = next(lines, (0, []))
    powers = {match[1]: at for at, label in enumerate(header) if (match := _PAIR.fullmatch(label))}
    if tuple(header[:4]) != _HEADER or not powers:
        raise FormatError(
            f"{path.name}: no header of a dump, or no power column",
            hint="Dump with PowerSensor3.",
            slug="column-missing",
        )
    rows = _Rows({("total" if key == "_total" else f"pair{key}"): at for key, at in powers.items()}, len(header))
    bad = 0
    for number, fields in lines:
        try:
            rows.take(number, fields, log)
        except ValueError as error:
            bad += 1
            log.add("line_unreadable", f"the row is left out ({error})", f"line {number}")
    if not rows.time_ns or bad > len(rows.time_ns):
        raise FormatError(
            f"{path.name}: {bad} rows do not parse and {len(rows.time_ns)} do",
            hint="Dump again.",
            slug="recording-empty",
        )
    if len(rows.marks) == MARKER_LIMIT:
        log.add("markers_thinned", f"only the first {MARKER_LIMIT} marks are kept")
    return rows
