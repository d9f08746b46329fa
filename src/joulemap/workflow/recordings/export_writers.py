"""How a map is written for other tools: Perfetto, Chrome, CSV, Parquet. Each writer takes what is placed already."""

from __future__ import annotations

import csv
import json
import math
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Provenance
from joulemap.records.finding import Finding
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.report.perfetto.trace import ClockLine, CounterTrack, PerfettoScene, SliceFacts, SliceTrack, encode_trace
from joulemap.trace import Marker
from joulemap.trace.sweep import list_events
from joulemap.workflow.recordings.placed_slices import Counters, PlacedPart, PlacedSlices, list_nesting

__all__ = ["ExportSource", "write_chrome", "write_csv", "write_parquet", "write_perfetto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource:
    """What the slices and counters of an export are of.

    Args:
        name: of the power.
        boundary: what it feeds.
        provenance: how it was had: measured, simulated, estimated.
        clock: relation of the slices' clock to the power's; None when there are no slices.
        findings: of the bundle and of its map.
        marks: edges on the power's clock.
    """

    name: str
    boundary: str
    provenance: str
    clock: ClockMap | None
    findings: tuple[Finding, ...]
    marks: tuple[Marker, ...] = ()

    @property
    def clock_word(self) -> str:
        """The clock of the power, on which the slices are, as the reader of tables of markers takes it."""
        return "" if self.clock is None else f"{self.clock.target.name}/{self.clock.target.kind}"


def write_perfetto(file: IO[bytes], source: ExportSource, placed: PlacedSlices | None, counters: Counters) -> None:
    """Writes a Perfetto trace: counters in W and J, slices with energy, clocks with their residual."""
    time_ns, power_w, energy_j = counters
    base_ns = min(0, int(time_ns[0]) if time_ns.size else 0)
    tracks: Iterable[SliceTrack] = ()
    if placed is not None:
        base_ns = min(base_ns, int(placed.slices.start_ns.min(initial=0)))
        tracks = (_slice_track(named, placed, base_ns) for named in list_nesting(placed))
    seen = np.isfinite(power_w)
    name = source.name
    marks = [(max(mark.time_ns - base_ns, 0), f"{mark.name} {mark.direction}", "edge") for mark in source.marks]
    scene = PerfettoScene(
        process=f"{name} ({source.boundary}, {source.provenance})",
        names=placed.timeline.names if placed else (),
        resolutions=placed.words if placed else (),
        counters=(
            CounterTrack(name=f"{name} power", unit="W", time_ns=time_ns[seen] - base_ns, value=power_w[seen]),
            CounterTrack(name=f"{name} energy", unit="J", time_ns=time_ns - base_ns, value=energy_j),
        ),
        tracks=tracks,
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


def _slice_track(named: tuple[str, NDArray[np.int64]], placed: PlacedSlices, base_ns: int) -> SliceTrack:
    name, rows = named

    def events() -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        every = rows.size == placed.slices.start_ns.size
        start_ns = placed.slices.start_ns if every else placed.slices.start_ns[rows]
        end_ns = placed.slices.end_ns if every else placed.slices.end_ns[rows]
        for time_ns, code in list_events(start_ns, end_ns):
            yield time_ns - base_ns, code

    def told(some: NDArray[np.int64]) -> SliceFacts:
        part = placed.take(rows[some])
        duration_s = (part.end_ns - part.start_ns) * 1e-9
        power = np.divide(part.energy_j, duration_s, out=np.full(duration_s.size, np.nan), where=duration_s > 0)
        return SliceFacts(
            instant=np.asarray(part.start_ns == part.end_ns, np.bool_),
            name_index=placed.timeline.name_index[part.row].astype(np.int64),
            resolution=part.resolution.astype(np.int64),
            arguments=np.stack([part.energy_j, part.self_j, power, part.expanded_j], axis=1),
        )

    return SliceTrack(name=name, events=events, told=told)


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
    process = f"{source.name} ({source.boundary}, {source.provenance})"
    head = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": process}}
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
    for part in placed.parts():
        columns = zip(
            part.start_ns.tolist(), part.end_ns.tolist(), timeline.name_index[part.row].tolist(),
            timeline.track_index[part.row].tolist(), timeline.kind_index[part.row].tolist(), part.energy_j.tolist(),
            part.self_j.tolist(), part.expanded_j.tolist(), part.resolution.tolist(), strict=True,
        )  # fmt: skip
        for start_ns, end_ns, name, track, kind, energy_j, self_j, expanded_j, way in columns:
            yield {
                "start_ns": start_ns,
                "end_ns": end_ns,
                "name": timeline.names[name],
                "track": timeline.tracks[track],
                "track_number": track + 1,
                "kind": timeline.kinds[kind],
                "energy_j": _number(energy_j),
                "self_j": _number(self_j),
                "energy_expanded_j": _number(expanded_j),
                "resolution": placed.words[way],
            }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


_ROW_GROUP = 1 << 20
_UNAVAILABLE = str(Provenance.UNAVAILABLE)
_COLUMNS = ("start_ns", "end_ns", "name", "track", "kind", "energy_j", "self_j", "energy_expanded_j", "resolution",
            "provenance", "clock")  # fmt: skip


def write_csv(file: IO[bytes], source: ExportSource, placed: PlacedSlices | None, counters: Counters) -> None:
    """Writes the slices, or the samples where there is no timeline, as CSV; what is refused is empty."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        if placed is None:
            writer.writerow(("time_ns", "power_w", "energy_j", "provenance"))
            for at, watts, joules in zip(*(c.tolist() for c in counters), strict=True):
                writer.writerow((at, "" if watts != watts else repr(watts), repr(joules), source.provenance))  # noqa: PLR0124  as above
        else:
            writer.writerow(_COLUMNS)
            for row in _slice_rows(placed):
                row["provenance"] = _UNAVAILABLE if row["energy_j"] is None else source.provenance
                row["clock"] = source.clock_word
                writer.writerow(["" if row[key] is None else row[key] for key in _COLUMNS])
        text.seek(0)
        while block := text.read(1 << 20):
            file.write(block.encode())


def write_parquet(file: IO[bytes], source: ExportSource, placed: PlacedSlices | None, counters: Counters) -> None:
    """Writes the same as CSV as Parquet; what is refused is null."""
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    if placed is None:
        table = pa.table({"time_ns": counters[0], "power_w": counters[1], "energy_j": counters[2]})
        told = pa.DictionaryArray.from_arrays(pa.array(np.zeros(table.num_rows, np.int32)), [source.provenance])
        table = table.append_column("provenance", told)
        pq.write_table(table, file, compression="zstd")
        return
    timeline = placed.timeline
    writer: Any = None
    for part in _joined(placed):
        columns: dict[str, Any] = {"start_ns": part.start_ns, "end_ns": part.end_ns}
        for key, index, words in (
            ("name", timeline.name_index[part.row], timeline.names),
            ("track", timeline.track_index[part.row], timeline.tracks),
            ("kind", timeline.kind_index[part.row], timeline.kinds),
            ("resolution", part.resolution.astype(np.int32), placed.words),
            ("provenance", np.isnan(part.energy_j).astype(np.int32), (source.provenance, _UNAVAILABLE)),
            ("clock", np.zeros(part.energy_j.size, np.int32), (source.clock_word,)),
        ):
            columns[key] = pa.DictionaryArray.from_arrays(pa.array(index), pa.array(words, pa.string()))
        for key, values in (
            ("energy_j", part.energy_j),
            ("self_j", part.self_j),
            ("energy_expanded_j", part.expanded_j),
        ):
            columns[key] = pa.array(values, pa.float64(), from_pandas=True)
        table = pa.table({key: columns[key] for key in _COLUMNS})
        writer = writer or pq.ParquetWriter(file, table.schema, compression="zstd")
        writer.write_table(table)
    writer.close()


def _joined(placed: PlacedSlices) -> Iterator[PlacedPart]:
    """Yields parts of a row group's length; an empty one when there is no slice."""
    for at in range(0, max(placed.slices.start_ns.size, 1), _ROW_GROUP):
        yield placed.take(slice(at, at + _ROW_GROUP))
