"""Energy traces as ``traces/<name>.parquet`` with ``traces/<name>.json`` beside it.

The JSON says what the samples are (clock, channel, unit, sensor kernel, boundary, gaps, markers); the Parquet file
holds ``power_w`` and, for a non-uniform trace alone, ``start_ns`` of each interval. A uniform trace has no time
column. Float types stay as they were: reading gives back the very numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.clock_json import describe_clock, parse_clock
from joulemap.formats.json_text import decode_json, encode_json
from joulemap.formats.parquet import ROW_GROUP, open_file, open_parquet, open_writer, write_parquet
from joulemap.trace import Channel, EdgeDirection, EnergyTrace, KernelKind, Marker, SensorKernel
from joulemap.trace.passes import Part, run_pass
from joulemap.trace.streamed import Factor, StreamedTrace, Trace

__all__ = ["SCHEMA", "VERSION", "open_trace", "read_trace", "write_trace"]

SCHEMA = "joulemap.trace"
VERSION = 1


_STREAMED_FROM = 1 << 24
"""Samples from which a uniform trace of means is streamed: fewer are 128 MiB at most."""


def write_trace(samples: Path, description: Path, trace: Trace, *, markers: Sequence[Marker] = ()) -> None:
    """Writes a trace as two files; of a streamed one a row group at a time is in memory.

    Args:
        samples: the Parquet file.
        description: the JSON file.
        trace: what to write.
        markers: edges and marks on the trace's clock that belong to it.
    """
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost

    if isinstance(trace, StreamedTrace):
        gaps = _write_parts(samples, trace)
        description.write_bytes(encode_json(_describe(replace(trace, gaps=gaps), markers)))
        return
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
        raise _damaged(description, error) from error


class _Regroup:
    """Parts of any length to row groups of one length: a consumer of a pass."""

    def __init__(self, write: Callable[[NDArray[np.float64]], None]) -> None:
        self._write = write
        self._room = np.empty(ROW_GROUP)
        self._held = 0

    def take(self, part: Part) -> None:
        """Takes the next part."""
        at = 0
        while at < part.power_w.size:
            take = min(part.power_w.size - at, ROW_GROUP - self._held)
            self._room[self._held : self._held + take] = part.power_w[at : at + take]
            self._held, at = self._held + take, at + take
            if self._held == ROW_GROUP:
                self.flush()

    def flush(self) -> None:
        """Writes what is held."""
        if self._held:
            self._write(self._room[: self._held])
        self._held = 0


def _write_parts(samples: Path, trace: StreamedTrace) -> NDArray[np.int64]:
    """Writes the samples and returns the gaps that were found on the way."""
    import pyarrow as pa  # noqa: PLC0415  as above

    with open_writer(
        samples, pa.schema([("power_w", pa.float64())]), encodings={"power_w": "BYTE_STREAM_SPLIT"}
    ) as put:
        regroup = _Regroup(lambda power_w: put(pa.table({"power_w": power_w})))
        gaps = run_pass(trace, [regroup]).gaps
        regroup.flush()
    return gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Samples of a file, row group by row group; lost ones as NaN."""

    path: Path
    gaps: NDArray[np.int64]

    def stream(self, first: int, count: int) -> Iterator[tuple[int, tuple[Factor, ...]]]:
        """Yields the samples from ``first`` on."""
        with open_file(self.path) as file:
            at, last = 0, first + count
            for group in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                begin, end = max(first, at), min(last, at + rows)
                if begin < end:
                    power_w = (
                        file.read_row_group(group, columns=["power_w"]).column(0).to_numpy()[begin - at : end - at]
                    )
                    yield begin, (self._with_gaps(power_w, begin),)
                at += rows

    def _with_gaps(self, power_w: NDArray[Any], begin: int) -> NDArray[Any]:
        inside = (self.gaps[:, 1] > begin) & (self.gaps[:, 0] < begin + power_w.size)
        if inside.any():
            power_w = power_w.copy()
            for left, right in self.gaps[inside]:
                power_w[max(left - begin, 0) : right - begin] = np.nan
        return power_w


def open_trace(samples: Path, description: Path) -> Trace:
    """Returns a trace; the samples of a long uniform one stay in the file.

    Raises:
        FormatError: as :func:`read_trace`.
    """
    try:
        document: Any = decode_json(description.read_bytes())
        n, period_s = int(document["n"]), document["period_s"]
        if n < _STREAMED_FROM or period_s is None:
            return read_trace(samples, description)[0]
        shape = _build(document | {"n": 0, "gaps": []}, np.empty(0), None)
        if shape.channel.kernel.kind is KernelKind.POINT:
            return read_trace(samples, description)[0]
        open_parquet(samples, lambda file: _check_rows(file, n))
        gaps = np.array(document["gaps"], np.int64).reshape(-1, 2)
        return StreamedTrace(
            clock=shape.clock,
            channel=shape.channel,
            start_ns=shape.start_ns,
            period_s=float(period_s),
            n=n,
            source=_Rows(path=samples, gaps=gaps),
            gaps=gaps,
        )
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise _damaged(description, error) from error


def _damaged(description: Path, error: Exception) -> FormatError:
    what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
    return FormatError(
        f"{description}: does not describe a trace: {what}",
        hint="take the bundle again from where it was made",
        slug="trace-damaged",
    )


def _describe(trace: Trace, markers: Sequence[Marker]) -> dict[str, object]:
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
                "latency_std_s": kernel.latency_std_s,
                "quantum_w": kernel.quantum_w,
            },
        },
        "n": trace.n,
        "start_ns": trace.start_ns,
        "period_s": trace.period_s,
        "end_ns": trace.end_ns,
        "gaps": [] if trace.gaps is None else trace.gaps.tolist(),
        "markers": [
            {"time_ns": marker.time_ns, "name": marker.name, "direction": str(marker.direction)} for marker in markers
        ],
    }


def _check_rows(file: Any, n: int) -> None:
    if file.metadata.num_rows != n:
        raise ValueError(f"holds {file.metadata.num_rows} samples, its description says {n}")


def _read_samples(file: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    _check_rows(file, n)
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
                latency_std_s=float(kernel.get("latency_std_s", 0.0)),
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
