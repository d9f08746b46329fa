"""Energy traces as ``traces/<name>.parquet`` with ``traces/<name>.json`` beside it.

The JSON says what the samples are (clock, channel, unit, sensor kernel, boundary, gaps, markers); the Parquet file
holds ``power_w`` and, for a non-uniform trace alone, ``start_ns`` of each interval. A uniform trace has no time
column. Float types stay as they were: reading gives back the very numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.clock_json import describe_clock, parse_clock
from joulemap.formats.json_text import decode_json, encode_json
from joulemap.formats.parquet import open_parquet, write_parquet
from joulemap.trace import Channel, EdgeDirection, EnergyTrace, KernelKind, Marker, SensorKernel

__all__ = ["SCHEMA", "VERSION", "read_trace", "write_trace"]

SCHEMA = "joulemap.trace"
VERSION = 1


def write_trace(samples: Path, description: Path, trace: EnergyTrace, *, markers: Sequence[Marker] = ()) -> None:
    """Writes a trace as two files.

    Args:
        samples: the Parquet file.
        description: the JSON file.
        trace: what to write.
        markers: edges and marks on the trace's clock that belong to it.
    """
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost

    columns: dict[str, Any] = {"power_w": trace.power_w}
    encodings = {"power_w": "BYTE_STREAM_SPLIT"}
    if trace.edges_ns is not None:
        columns["start_ns"] = trace.edges_ns[:-1]
        encodings["start_ns"] = "DELTA_BINARY_PACKED"
    write_parquet(samples, pa.table(columns), encodings=encodings)
    description.write_bytes(encode_json(_describe(trace, markers)))


def read_trace(samples: Path, description: Path) -> tuple[EnergyTrace, tuple[Marker, ...]]:
    """Returns a trace and its markers.

    Raises:
        FormatError: a file is damaged, or the two contradict each other (``trace-damaged``, ``parquet-damaged``).
    """
    try:
        document: Any = decode_json(description.read_bytes())
        n = int(document["n"])
        power_w, start_ns = open_parquet(samples, lambda file: _read_samples(file, n))
        return _build(document, power_w, start_ns), tuple(_parse_marker(entry) for entry in document["markers"])
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise FormatError(
            f"{description}: does not describe a trace: {what}",
            hint="take the bundle again from where it was made",
            slug="trace-damaged",
        ) from error


def _describe(trace: EnergyTrace, markers: Sequence[Marker]) -> dict[str, object]:
    channel = trace.channel
    kernel = channel.kernel
    return {
        "schema": SCHEMA,
        "schema_version": VERSION,
        "clock": describe_clock(trace.clock),
        "channel": {
            "name": channel.name,
            "quantity": "power",
            "unit": "W",
            "boundary": str(channel.boundary),
            "provenance": str(channel.provenance),
            "kernel": {
                "kind": str(kernel.kind),
                "window_s": kernel.window_s,
                "latency_s": kernel.latency_s,
                "quantum_w": kernel.quantum_w,
            },
        },
        "n": trace.n,
        "start_ns": trace.start_ns,
        "period_s": trace.period_s,
        "end_ns": trace.end_ns,
        "gaps": trace.gaps.tolist(),
        "markers": [
            {"time_ns": marker.time_ns, "name": marker.name, "direction": str(marker.direction)} for marker in markers
        ],
    }


def _read_samples(file: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    if file.metadata.num_rows != n:
        raise ValueError(f"holds {file.metadata.num_rows} samples, its description says {n}")
    names = file.schema_arrow.names
    dtype = file.schema_arrow.field("power_w").type.to_pandas_dtype()
    power_w = np.empty(n, dtype)
    start_ns = np.empty(n, np.int64) if "start_ns" in names else None
    row = 0
    for group in range(file.metadata.num_row_groups):
        table = file.read_row_group(group)
        power_w[row : row + table.num_rows] = table.column("power_w").to_numpy()
        if start_ns is not None:
            start_ns[row : row + table.num_rows] = table.column("start_ns").to_numpy()
        row += table.num_rows
    if not np.isfinite(power_w).all():
        raise ValueError("holds a power that is not finite")
    return power_w, start_ns


def _build(document: Any, power_w: NDArray[Any], start_ns: NDArray[np.int64] | None) -> EnergyTrace:
    channel = document["channel"]
    kernel = channel["kernel"]
    if channel["unit"] != "W":
        raise ValueError(f"unit {channel['unit']!r} is not W")
    edges_ns = None
    if start_ns is not None:
        edges_ns = np.append(start_ns, np.int64(document["end_ns"]))
    period_s = document["period_s"]
    return EnergyTrace(
        clock=parse_clock(document["clock"]),
        channel=Channel(
            name=str(channel["name"]),
            boundary=Boundary(channel["boundary"]),
            provenance=Provenance(channel["provenance"]),
            kernel=SensorKernel(
                kind=KernelKind(kernel["kind"]),
                window_s=float(kernel["window_s"]),
                latency_s=float(kernel["latency_s"]),
                quantum_w=float(kernel["quantum_w"]),
            ),
        ),
        power_w=power_w,
        start_ns=int(document["start_ns"]),
        period_s=None if period_s is None else float(period_s),
        edges_ns=edges_ns,
        gaps=np.array(document["gaps"], np.int64).reshape(-1, 2),
    )


def _parse_marker(entry: Any) -> Marker:
    return Marker(time_ns=int(entry["time_ns"]), name=str(entry["name"]), direction=EdgeDirection(entry["direction"]))
