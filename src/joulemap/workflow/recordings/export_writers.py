"""How a map is written for other tools: Perfetto, Chrome, CSV, Parquet. Each writer takes what is placed already."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from joulemap.records.finding import Finding
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.report.perfetto.trace import ClockLine, CounterTrack, PerfettoScene, SliceTrack, encode_trace
from joulemap.trace import Marker
from joulemap.trace.sweep_steps import advance_events
from joulemap.workflow.recordings.placed_slices import Counters, PlacedSlices, list_nesting

__all__ = [
    "ExportSource",
    "write_chrome",
    "write_csv",
    "write_parquet",
    "write_perfetto",
    "write_table_csv",
    "write_table_parquet",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource:
    """What the slices and counters of an export are of.

    Args:
        name: of the power.
        boundary: what it feeds.
        clock: relation of the slices' clock to the power's; None when there are no slices.
        findings: of the bundle and of its map.
        marks: edges on the power's clock.
    """

    name: str
    boundary: str
    clock: ClockMap | None
    findings: tuple[Finding, ...]
    marks: tuple[Marker, ...] = ()


def write_perfetto(file: IO[bytes], source: ExportSource, placed: PlacedSlices | None, counters: Counters) -> None:
    """Writes a Perfetto trace: counters in W and J, slices with energy, clocks with their residual."""
    time_ns, power_w, energy_j = counters
    base_ns = min(0, int(time_ns[0]) if time_ns.size else 0)
    tracks: list[SliceTrack] = []
    if placed is not None:
        base_ns = min(base_ns, int(placed.slices.start_ns.min(initial=0)))
        duration_s = (placed.slices.end_ns - placed.slices.start_ns) * 1e-9
        power = np.divide(placed.energy_j, duration_s, out=np.full(duration_s.size, np.nan), where=duration_s > 0)
        arguments = np.stack([placed.energy_j, placed.self_j, power, placed.expanded_j], axis=1)
        tracks = [_slice_track(named, placed, arguments, base_ns) for named in list_nesting(placed)]
    seen = np.isfinite(power_w)
    name = source.name
    marks = [(max(mark.time_ns - base_ns, 0), f"{mark.name} {mark.direction}", "edge") for mark in source.marks]
    scene = PerfettoScene(
        process=f"{name} ({source.boundary})",
        names=placed.timeline.names if placed else (),
        resolutions=placed.words if placed else (),
        counters=(
            CounterTrack(name=f"{name} power", unit="W", time_ns=time_ns[seen] - base_ns, value=power_w[seen]),
            CounterTrack(name=f"{name} energy", unit="J", time_ns=time_ns - base_ns, value=energy_j),
        ),
        tracks=tuple(tracks),
        clocks=_clock_lines(source.clock, base_ns),
        marks=(
            *marks,
            *(
                (max(int(time_ns[0]) - base_ns, 0) if time_ns.size else 0, f.slug, f"{f.severity}: {f.message}")
                for f in source.findings
            ),
        ),
    )
    for piece in encode_trace(scene):
        file.write(piece)


def _slice_track(
    named: tuple[str, NDArray[np.int64]], placed: PlacedSlices, arguments: NDArray[np.float64], base_ns: int
) -> SliceTrack:
    name, rows = named
    start_ns, end_ns = placed.slices.start_ns[rows], placed.slices.end_ns[rows]
    time_ns, code = _ordered_events(start_ns, end_ns)
    return SliceTrack(
        name=name,
        time_ns=time_ns - base_ns,
        code=code,
        instant=np.asarray(start_ns == end_ns, np.bool_),
        name_index=placed.timeline.name_index[placed.order[rows]].astype(np.int64),
        resolution=placed.resolution[rows],
        arguments=arguments[rows],
    )


def _ordered_events(
    start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    group = np.zeros(start_ns.size, np.int32)
    cursor, heap = np.zeros(3, np.int64), np.zeros(max(start_ns.size, 1), np.int64)
    time_ns, code = np.empty(2 * start_ns.size, np.int64), np.empty(2 * start_ns.size, np.int64)
    count = advance_events(start_ns, end_ns, group, cursor, heap, time_ns, code)
    return time_ns[:count], code[:count]


def _clock_lines(clock: ClockMap | None, base_ns: int) -> tuple[ClockLine, ...]:
    if clock is None:
        return ()
    trace_ns = int(clock.apply(np.array([clock.reference_ns], np.int64))[0])
    if clock.exact or trace_ns - base_ns < 0 or clock.reference_ns < 0:
        reference_ns = max(clock.reference_ns, -clock.offset_ns + base_ns, 0)
        trace_ns = int(clock.apply(np.array([reference_ns], np.int64))[0])
    else:
        reference_ns = clock.reference_ns
    facts: tuple[tuple[str, str | float], ...] = (
        ("method", str(clock.method)),
        ("offset_s", clock.offset_ns * 1e-9),
        ("drift_ppm", clock.drift * 1e6),
        ("std_s", clock.std_s),
        ("residual_s", clock.residual_s),
        ("trace_clock", clock.target.name),
        ("moved_s", -base_ns * 1e-9),
    )
    return (ClockLine(name=clock.source.name, trace_ns=max(trace_ns - base_ns, 0), own_ns=reference_ns, facts=facts),)


def write_chrome(file: IO[bytes], source: ExportSource, placed: PlacedSlices | None, counters: Counters) -> None:
    """Writes Chrome's trace format: a counter in W, slices with energy."""
    time_ns, power_w, _ = counters
    head = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": source.name}}
    file.write(b'{"displayTimeUnit":"ns","traceEvents":[\n' + json.dumps(head).encode())
    if placed is not None:
        for track, name in enumerate(placed.timeline.tracks):
            file.write(b",\n" + json.dumps(
                {"ph": "M", "pid": 1, "tid": track + 1, "name": "thread_name", "args": {"name": name}}
            ).encode())  # fmt: skip
        for row in _slice_rows(placed):
            arguments = {key: row[key] for key in ("energy_j", "self_j", "energy_expanded_j") if row[key] is not None}
            event = {
                "ph": "X",
                "pid": 1,
                "tid": row["track_number"],
                "name": row["name"],
                "cat": row["kind"],
                "ts": _micro(row["start_ns"]),
                "dur": _micro(row["end_ns"] - row["start_ns"]),
                "args": arguments | {"resolution": row["resolution"]},
            }
            file.write(b",\n" + json.dumps(event).encode())
    for at, watts in zip(time_ns.tolist(), power_w.tolist(), strict=True):
        if watts == watts:  # noqa: PLR0124  NaN: nothing was seen
            event = {"ph": "C", "pid": 1, "name": "power", "ts": _micro(at), "args": {"W": watts}}
            file.write(b",\n" + json.dumps(event).encode())
    file.write(b"\n]}\n")


def _micro(time_ns: int) -> float | int:
    return time_ns // 1000 if time_ns % 1000 == 0 else time_ns / 1000


def _slice_rows(placed: PlacedSlices) -> Iterator[dict[str, Any]]:
    timeline = placed.timeline
    for at in range(placed.order.size):
        row = int(placed.order[at])
        yield {
            "start_ns": int(placed.slices.start_ns[at]),
            "end_ns": int(placed.slices.end_ns[at]),
            "name": timeline.names[timeline.name_index[row]],
            "track": timeline.tracks[timeline.track_index[row]],
            "track_number": int(timeline.track_index[row]) + 1,
            "kind": timeline.kinds[timeline.kind_index[row]],
            "energy_j": _number(placed.energy_j[at]),
            "self_j": _number(placed.self_j[at]),
            "energy_expanded_j": _number(placed.expanded_j[at]),
            "resolution": placed.words[placed.resolution[at]],
        }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


_COLUMNS = ("start_ns", "end_ns", "name", "track", "kind", "energy_j", "self_j", "energy_expanded_j", "resolution")


def write_csv(file: IO[bytes], placed: PlacedSlices | None, counters: Counters) -> None:
    """Writes the slices, or the samples where there is no timeline, as CSV; what is refused is empty."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        if placed is None:
            writer.writerow(("time_ns", "power_w", "energy_j"))
            for at, watts, joules in zip(*(c.tolist() for c in counters), strict=True):
                writer.writerow((at, "" if watts != watts else repr(watts), repr(joules)))  # noqa: PLR0124  as above
        else:
            writer.writerow(_COLUMNS)
            for row in _slice_rows(placed):
                writer.writerow(["" if row[key] is None else row[key] for key in _COLUMNS])
        text.seek(0)
        while block := text.read(1 << 20):
            file.write(block.encode())


def write_parquet(file: IO[bytes], placed: PlacedSlices | None, counters: Counters) -> None:
    """Writes the same as CSV as Parquet; what is refused is null."""
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    if placed is None:
        table = pa.table({"time_ns": counters[0], "power_w": counters[1], "energy_j": counters[2]})
    else:
        words = {
            "name": (placed.timeline.name_index[placed.order], placed.timeline.names),
            "track": (placed.timeline.track_index[placed.order], placed.timeline.tracks),
            "kind": (placed.timeline.kind_index[placed.order], placed.timeline.kinds),
            "resolution": (placed.resolution.astype(np.int32), placed.words),
        }
        columns: dict[str, Any] = {"start_ns": placed.slices.start_ns, "end_ns": placed.slices.end_ns}
        for key, (index, table_of) in words.items():
            columns[key] = pa.DictionaryArray.from_arrays(pa.array(index), pa.array(table_of, pa.string()))
        for key, values in (
            ("energy_j", placed.energy_j),
            ("self_j", placed.self_j),
            ("energy_expanded_j", placed.expanded_j),
        ):
            columns[key] = pa.array(values, pa.float64(), from_pandas=True)
        table = pa.table({key: columns[key] for key in _COLUMNS})
    pq.write_table(table, file, compression="zstd")


_TABLE = ("key", "count", "duration_s", "self_s", "energy_j", "energy_expanded_j", "self_j", "self_expanded_j", "share",
          "mean_power_w", "resolution", "reason", "runs_needed")  # fmt: skip


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    energy, own = row["energy_j"], row["self_j"]
    return {
        **{key: row[key] for key in _TABLE if key in row},
        "energy_j": energy["value"],
        "energy_expanded_j": energy.get("expanded"),
        "self_j": own["value"],
        "self_expanded_j": own.get("expanded"),
        "mean_power_w": row["mean_power_w"]["value"],
    }


def write_table_csv(file: IO[bytes], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes the rows of a map as CSV; what is refused is empty, with its reason."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(_TABLE)
        for row in map(_flat, rows):
            writer.writerow(["" if row[key] is None else row[key] for key in _TABLE])
        text.seek(0)
        file.write(text.read().encode())


def write_table_parquet(file: IO[bytes], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes the same as Parquet; what is refused is null, with its reason."""
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    words = ("key", "resolution", "reason")
    kinds = [(key, pa.string() if key in words else pa.int64() if key == "count" else pa.float64()) for key in _TABLE]
    table = pa.Table.from_pylist([_flat(row) for row in rows], schema=pa.schema(kinds))
    pq.write_table(table, file, compression="zstd")
