"""A lane (utilisation, clock, temperature) as one Parquet file: ``time_ns`` and ``value``; NaN is a missing sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from joulemap.errors import FormatError
from joulemap.formats.clock_json import describe_clock, parse_clock
from joulemap.formats.parquet import open_parquet, read_metadata, write_parquet
from joulemap.records.recording import Lane

__all__ = ["SCHEMA", "VERSION", "read_lane", "write_lane"]

SCHEMA = "joulemap.lane"
VERSION = 1
_KEY = "joulemap.lane"


def write_lane(path: Path, lane: Lane) -> None:
    """Writes the lane."""
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost

    head = {"name": lane.name, "unit": lane.unit, "clock": describe_clock(lane.clock)}
    packed = {"time_ns": "DELTA_BINARY_PACKED", "value": "BYTE_STREAM_SPLIT"}
    write_parquet(
        path, pa.table({"time_ns": lane.time_ns, "value": lane.value}), metadata={_KEY: head}, encodings=packed
    )


def read_lane(path: Path) -> Lane:
    """Returns the lane.

    Raises:
        FormatError: the file is damaged or is no lane (``parquet-damaged``, ``lane-damaged``).
    """
    head, time_ns, value = open_parquet(path, _read)
    try:
        return Lane(
            name=str(head["name"]),
            unit=str(head["unit"]),
            clock=parse_clock(head["clock"]),
            time_ns=time_ns.to_numpy(),
            value=value.to_numpy(),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path}: is no lane: {error}", hint="take the bundle again from where it was made", slug="lane-damaged"
        ) from error


def _read(file: Any) -> tuple[Any, Any, Any]:
    table = file.read().combine_chunks()
    return read_metadata(file, _KEY), table.column("time_ns"), table.column("value")
