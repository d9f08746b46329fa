"""Saleae Logic 2 CSV exports: analog samples, or digital rows at changes only.

References:
    saleae/gitbook-docs at 0253e805 (FORMATS_MORE, "Saleae Logic 2"): ``Time [s],Channel 0,...``; the first time may be
    negative, digital rows are written at changes only.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.levels import level_records
from joulemap.formats.ground.logs import rows_unreadable
from joulemap.formats.ground.text import DelimitedTable, head_lines, open_table, split_fields
from joulemap.formats.ground.values import UnitKind, decimal_ns, header_unit, parse_number, parse_stamp
from joulemap.formats.waveforms.mapping import Axis, Waveform, map_waveforms
from joulemap.records.recording import MarkerTrack, Recording
from joulemap.trace import Clock, ClockKind, Timeline

__all__ = ["SaleaeCsvReader"]

_TIME: Final = "time [s]"


class SaleaeCsvReader:
    """Reads a digital export as slices and edges, an analog one as lanes or, mapped, as power."""

    name = "saleae-csv"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a header that begins with ``Time [s]``; the tool writes its channels without units."""
        del path
        lines = head_lines(head, 1)
        labels = split_fields(lines[0]) if lines else []
        bare = all(header_unit(label)[1] is None for label in labels[1:])
        return 0.95 if len(labels) > 1 and labels[0].lower() == _TIME and bare else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns what the columns hold.

        Raises:
            FormatError: no such header, or no row that parses.
            InputError: a map that does not fit.
        """
        log = FindingLog()
        table = open_table(path, delimiter=",")
        if table.header[0].lower() != _TIME or len(table.header) < 2:
            raise FormatError(f"{path.name}: no column Time [s]", hint="Export again.", slug="column-missing")
        time_ns, line, values, clock = _read(table, log)
        digital = all(bool(np.isin(column, (0.0, 1.0)).all()) for column in values.values())
        if digital and not options.columns:
            timelines, markers = _lines(time_ns, values, clock, log)
            return Recording(
                format=self.name,
                sources=(source_file(path),),
                timelines=timelines,
                markers=markers,
                metadata={"type": "digital"},
                findings=log.findings(),
            )
        channels = {name: Waveform(name=name, kind=UnitKind.VOLTAGE, value=column) for name, column in values.items()}
        traces, lanes = map_waveforms(channels, Axis(clock=clock, time_ns=time_ns, line=line), options, log)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=traces,
            lanes=lanes,
            metadata={"type": "analog"},
            findings=log.findings(),
        )


def _read(
    table: DelimitedTable, log: FindingLog
) -> tuple[NDArray[np.int64], array[int], dict[str, NDArray[np.float64]], Clock]:
    names = list(dict.fromkeys(table.header[1:]))
    columns = [array("d") for _ in table.header[1:]]
    time_ns, line = array("q"), array("q")
    kinds: set[ClockKind] = set()
    bad = 0
    for row in table.rows():
        try:
            stamp_ns, kind = _stamp(row.fields[0])
            values = [parse_number(field) for field in row.fields[1:]]
        except ValueError as error:
            bad += 1
            log.add("line_unreadable", f"the row is left out ({error})", f"line {row.line}")
            continue
        kinds.add(kind)
        time_ns.append(stamp_ns)
        line.append(row.line)
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    if not time_ns or bad > len(time_ns) or len(kinds) != 1:
        labels = ", ".join(table.header[1:])[:200]
        wanted = f"one kind of time (here are {len(kinds)}), then a number for each of {labels}"
        raise rows_unreadable(table.path.name, (len(time_ns), bad), log, wanted=wanted)
    named = {name: np.array(columns[table.header[1:].index(name)]) for name in names}
    return np.array(time_ns, np.int64), line, named, Clock(name="saleae", kind=kinds.pop())


def _stamp(text: str) -> tuple[int, ClockKind]:
    """Returns the time of a row: seconds, or the ISO 8601 form that the export offers."""
    if "T" in text:
        stamp = parse_stamp(text)
        return (stamp.ns, ClockKind.LOCAL) if stamp.offset_s is None else (stamp.utc_ns, ClockKind.UTC)
    return decimal_ns(text), ClockKind.MONOTONIC


def _lines(
    time_ns: NDArray[np.int64], values: dict[str, NDArray[np.float64]], clock: Clock, log: FindingLog
) -> tuple[tuple[Timeline, ...], tuple[MarkerTrack, ...]]:
    keep = np.ones(time_ns.size, np.bool_)
    keep[1:] = time_ns[1:] >= np.maximum.accumulate(time_ns)[:-1]
    if not keep.all():
        log.add("backward_stamp", f"{int((~keep).sum())} rows are not in order of time and are left out")
    times_ns = time_ns[keep]
    timelines, markers = [], []
    for name, column in values.items():
        level = column[keep].astype(np.int64)
        turns = np.flatnonzero(np.diff(level, prepend=level[0] - 1))
        changes = (times_ns[turns], level[turns])
        timeline, edges = level_records(name, changes, clock=clock, end_ns=int(times_ns[-1]), log=log)
        timelines += [timeline] if timeline is not None else []
        markers += [edges] if edges is not None else []
    return tuple(timelines), tuple(markers)
