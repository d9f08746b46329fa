"""From an Arrow table to traces: shared by Parquet and Arrow files, which differ only in how the table is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, InputError
from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.archive import arrow_failures, damaged_table
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.tables.mapping import TimeForm, build_traces, say_heading, table_clock, table_map
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["build_recording"]

_UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def build_recording(name: str, path: Path, opened: tuple[Any, list[str]], options: ReadOptions) -> Recording:
    """Returns the rails of the map over an Arrow table that was validated in full.

    Args:
        name: of the reader.
        path: of the file.
        opened: a function from column names to a ``pyarrow.Table`` of them, and the header.
        options: of the user.

    Raises:
        InputError: no map, or one that does not fit.
        FormatError: a column is of a kind that holds no numbers, or the table is damaged.
    """
    load, header = opened
    mapped = table_map(header, options, path.name)
    wanted = sorted({header[at] for at in mapped.columns.values()})
    log = FindingLog()
    say_heading(mapped, log)
    try:
        table = load(wanted)
        columns = {role: table.column(header[at]) for role, at in mapped.columns.items()}
        with np.errstate(over="ignore", invalid="ignore"):  # what becomes infinite is a gap
            values = {
                role: _numbers(column, header[mapped.columns[role]]) * mapped.factors[role]
                for role, column in columns.items()
                if role != "time"
            }
        time_ns, clock = (None, table_clock(None, zoned=None))
        if mapped.time is not None:
            time_ns, clock = _times(columns["time"], mapped.time, options)
    except arrow_failures() as error:
        if isinstance(error, InputError | FormatError):
            raise
        raise damaged_table(path, error) from error
    traces = build_traces(values, (time_ns, clock, None), options, log)
    return Recording(
        format=name,
        sources=(source_file(path),),
        traces=traces,
        metadata={"columns": ", ".join(header[:32]), "rows": str(table.num_rows)},
        findings=log.findings(),
    )


def _numbers(column: Any, name: str) -> NDArray[np.float64]:
    import pyarrow as pa  # noqa: PLC0415

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise FormatError(
            f"column {name!r} holds {kind}, no numbers", hint="Map another column.", slug="column-missing"
        )
    number: NDArray[np.float64] = column.cast(pa.float64()).combine_chunks().to_numpy(zero_copy_only=False)
    return np.array(number, np.float64)


def _times(column: Any, form: TimeForm, options: ReadOptions) -> tuple[NDArray[np.int64], Clock]:
    """Returns ns and the clock: a timestamp column says its own unit and zone, a number is in the stated unit."""
    import pyarrow as pa  # noqa: PLC0415

    kind = column.type
    if column.null_count:
        raise FormatError("the time column has empty cells", hint="Write the table without them.", slug="table-damaged")
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        count = np.array(column.cast(pa.int64()).combine_chunks().to_numpy(zero_copy_only=False), np.int64)
        unit_ns = _UNIT_NS[kind.unit]
        clock = Clock(name="table", kind=ClockKind.MONOTONIC)
        if pa.types.is_timestamp(kind):
            clock = table_clock(TimeForm(unit_ns=0), zoned=kind.tz is not None or options.utc_offset_s is not None)
        _check_range(count, unit_ns)
        shifted = kind.tz is None if pa.types.is_timestamp(kind) else False
        shift_ns = round((options.utc_offset_s or 0.0) * 1e9) if shifted else 0
        return count * unit_ns - shift_ns, clock
    if not form.unit_ns:
        raise InputError(f"the time column holds {kind} without a unit", hint="Say --unit time=s.", slug="unit-needed")
    if pa.types.is_integer(kind):
        count = np.array(column.cast(pa.int64()).combine_chunks().to_numpy(zero_copy_only=False), np.int64)
        _check_range(count, form.unit_ns)
        return count * form.unit_ns, table_clock(form, zoned=None)
    with np.errstate(over="ignore", invalid="ignore"):
        seconds = _numbers(column, "time") * form.unit_ns
    if not np.isfinite(seconds).all() or (seconds.size and np.abs(seconds).max() >= 1 << 62):
        raise FormatError("the time column leaves the range of time", hint="Check its unit.", slug="time-out-of-range")
    return np.round(seconds).astype(np.int64), table_clock(form, zoned=None)


def _check_range(count: NDArray[np.int64], unit_ns: int) -> None:
    if count.size and max(abs(int(count.min())), abs(int(count.max()))) * unit_ns >= 1 << 62:
        raise FormatError("the time column leaves the range of time", hint="Check its unit.", slug="time-out-of-range")
