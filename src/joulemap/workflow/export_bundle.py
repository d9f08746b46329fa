"""``export``: a bundle for another tool. Energies are those of ``map``; what a map refuses is not exported as a number."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.mapping.keys import MapKey, group_slices
from joulemap.analysis.mapping.placement import place_slices
from joulemap.errors import ReportError, UsageError
from joulemap.estimate import Estimate
from joulemap.records.energy import Resolution
from joulemap.records.energy_map import MapRow
from joulemap.report.perfetto.trace import ClockLine, CounterTrack, PerfettoScene, SliceTrack, encode_trace
from joulemap.trace import EnergyTrace, Timeline, integrate_between
from joulemap.trace.sweep import GroupedSlices, sweep_energy
from joulemap.trace.sweep_steps import advance_events
from joulemap.workflow.map_bundle import BundleMapRequest, MappedRecording, map_recording
from joulemap.workflow.recording_bundle import open_recordings

__all__ = ["ExportFormat", "Exported", "export_bundle"]

_BINS = 200_000
"""Points of a counter at most; above it each point is the mean of a bin, which keeps the energy."""


class ExportFormat(StrEnum):
    """What another tool reads."""

    PERFETTO = "perfetto"
    CHROME = "chrome"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written.

    Args:
        path: where.
        size_b: bytes.
        slices: slices in it.
        points: points of the power counter.
        bin_s: length of what a point stands for, s.
    """

    path: Path
    size_b: int
    slices: int
    points: int
    bin_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Placed:
    """Slices on the trace's clock with their energies.

    Args:
        slices: in order.
        energy_j: (n,) NaN where refused.
        self_j: (n,) NaN where refused.
        expanded_j: (n,) by the relative uncertainty of the slice's row.
        resolution: (n,) index into ``words``.
        words: how energies were had.
        timeline: the names.
        order: (n,) row of the timeline.
    """

    slices: GroupedSlices
    energy_j: NDArray[np.float64]
    self_j: NDArray[np.float64]
    expanded_j: NDArray[np.float64]
    resolution: NDArray[np.int64]
    words: tuple[str, ...]
    timeline: Timeline
    order: NDArray[np.int64]


def export_bundle(
    folder: Path, output: Path, wanted: ExportFormat, request: BundleMapRequest, *, force: bool = False
) -> Exported:
    """Writes the bundle in another tool's format and returns what was written; a failure leaves no file.

    Args:
        folder: the bundle.
        output: the file.
        wanted: its format.
        request: what is mapped, and how; rows are always by name.
        force: replace a file that is there.

    Raises:
        UsageError: the file exists, or a choice must be made.
        InputError, FormatError, NotComparableError: as ``map``.
        ReportError: the file system refused.
    """
    if output.exists() and not force:
        raise UsageError(
            f"{output}: exists", hint="replace it with --force or name another with -o", slug="output-exists"
        )
    mapped, _ = map_recording(open_recordings(folder), request)
    placed = _place(mapped, request)
    time_ns, power_w, energy_j, bin_s = _counter(mapped.traces)
    counters = (time_ns, power_w, energy_j)
    writers: dict[ExportFormat, Callable[[IO[bytes]], None]] = {
        ExportFormat.PERFETTO: lambda file: _write_perfetto(file, mapped, placed, counters),
        ExportFormat.CHROME: lambda file: _write_chrome(file, mapped, placed, counters),
        ExportFormat.CSV: lambda file: _write_csv(file, placed, counters),
        ExportFormat.PARQUET: lambda file: _write_parquet(file, placed, counters),
    }
    size_b = _write(output, writers[wanted])
    slices = 0 if placed is None else int((placed.slices.group >= 0).sum())
    return Exported(path=output, size_b=size_b, slices=slices, points=int(time_ns.size), bin_s=bin_s)


def _write(output: Path, write: Callable[[IO[bytes]], None]) -> int:
    partial: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=output.parent, prefix=f".{output.name}.", delete=False) as file:
            partial = Path(file.name)
            write(file)
            size_b = file.tell()
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o666 & ~umask)
        partial.replace(output)
    except OSError as error:
        raise ReportError(
            f"{output}: cannot be written ({error.strerror or error})",
            hint="name another file with -o",
            slug="output-unwritable",
            phase="report",
        ) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
    return size_b


def _place(mapped: MappedRecording, request: BundleMapRequest) -> _Placed | None:
    timeline, clock = mapped.timeline, mapped.clock
    if timeline is None or clock is None:
        return None
    grouping = group_slices(timeline, MapKey.NAME)
    span = max(t.start_ns for t in mapped.traces), min(t.end_ns for t in mapped.traces)
    placed = place_slices(timeline, grouping, clock, span)
    swept = [sweep_energy(t, placed.slices, split=request.map.split, per_slice=True) for t in mapped.traces]
    energy_j = np.sum([s.slice_energy_j for s in swept], axis=0)
    self_j = np.sum([s.slice_self_j for s in swept], axis=0)
    order = np.arange(len(timeline)) if placed.order is None else placed.order
    name = timeline.name_index[order]
    rows = {row.key: row for row in mapped.map.rows}
    words = ("overlap", "least_squares", "in_place", "refused", "outside")
    relative, way = np.full(len(timeline.names), np.nan), np.full(len(timeline.names), words.index("refused"))
    for index, key in enumerate(timeline.names):
        row = rows.get(key)
        if row is not None and isinstance(row.energy_j, Estimate) and row.energy_j.value:
            relative[index] = row.energy_j.expanded / abs(row.energy_j.value)
            way[index] = words.index(str(row.resolution))
    told = np.asarray((way == words.index("overlap"))[name] & (placed.slices.group >= 0), np.bool_)
    _spread(mapped, placed.slices, name, (energy_j, self_j, told), rows)
    resolution = np.where(placed.slices.group >= 0, way[name], words.index("outside")).astype(np.int64)
    energy_j, self_j = np.where(told, energy_j, np.nan), np.where(told, self_j, np.nan)
    return _Placed(
        slices=placed.slices,
        energy_j=energy_j,
        self_j=self_j,
        expanded_j=np.abs(energy_j) * relative[name],
        resolution=resolution,
        words=words,
        timeline=timeline,
        order=order,
    )


def _counter(
    traces: tuple[EnergyTrace, ...],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], float]:
    """Returns starts of bins (ns), mean power (W; NaN where nothing was seen), energy so far (J), bin length (s)."""
    begin, end = max(t.start_ns for t in traces), min(t.end_ns for t in traces)
    first = traces[0]
    if len(traces) == 1 and first.n <= _BINS:
        edges = first.edges_ns
        edges_ns = (
            np.asarray(edges, np.int64)
            if edges is not None
            else first.start_ns + np.rint(np.arange(first.n + 1) * first.step_ns).astype(np.int64)
        )
    else:
        count = min(_BINS, max(t.n for t in traces))
        edges_ns = begin + np.rint(np.linspace(0.0, float(end - begin), count + 1)).astype(np.int64)
    held = [integrate_between(trace, edges_ns) for trace in traces]
    energy_j = np.sum([h.energy_j for h in held], axis=0)
    covered_s = np.min([h.covered_s for h in held], axis=0)
    power_w = np.divide(energy_j, covered_s, out=np.full(energy_j.size, np.nan), where=covered_s > 0)
    return edges_ns[:-1], power_w, np.cumsum(energy_j), float(edges_ns[-1] - edges_ns[0]) * 1e-9 / max(energy_j.size, 1)


def _spread(
    mapped: MappedRecording,
    slices: GroupedSlices,
    name: NDArray[np.int32],
    columns: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]],
    rows: dict[str, MapRow],
) -> None:
    """Gives slices of rows by least squares their row's power times their duration: samples do not tell them apart."""
    energy_j, self_j, told = columns
    assert mapped.timeline is not None  # the caller has slices
    duration_s = (slices.end_ns - slices.start_ns) * 1e-9
    for index, key in enumerate(mapped.timeline.names):
        row = rows.get(key)
        if row is None or row.resolution is not Resolution.LEAST_SQUARES or not isinstance(row.energy_j, Estimate):
            continue
        own = np.flatnonzero((name == index) & (slices.group >= 0))
        energy_j[own] = self_j[own] = duration_s[own] * (row.energy_j.value / row.duration_s)
        told[own] = True


Counters = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


def _tracks(placed: _Placed) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yields track names with the rows (in order) of slices that nest; what overlaps goes to a track of its own."""
    for track, name in enumerate(placed.timeline.tracks):
        rows = np.flatnonzero(placed.slices.track == track)
        number = 1
        while rows.size:
            kept, rest = _nesting(rows, placed.slices)
            yield (name or "slices") + (f" ({number})" if number > 1 else ""), kept
            rows, number = rest, number + 1


def _nesting(rows: NDArray[np.int64], slices: GroupedSlices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    end_ns = slices.end_ns[rows]
    start_ns = slices.start_ns[rows]
    if bool(np.all(start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1])):
        return rows, rows[:0]
    kept, rest, stack = [], [], []
    for row, begin, end in zip(rows.tolist(), start_ns.tolist(), end_ns.tolist(), strict=True):
        while stack and stack[-1] <= begin:
            stack.pop()
        if stack and stack[-1] < end:
            rest.append(row)
            continue
        kept.append(row)
        if end > begin:
            stack.append(end)
    return np.array(kept, np.int64), np.array(rest, np.int64)


def _write_perfetto(file: IO[bytes], mapped: MappedRecording, placed: _Placed | None, counters: Counters) -> None:
    time_ns, power_w, energy_j = counters
    base_ns = min(0, int(time_ns[0]) if time_ns.size else 0)
    tracks: list[SliceTrack] = []
    if placed is not None:
        base_ns = min(base_ns, int(placed.slices.start_ns.min(initial=0)))
        duration_s = (placed.slices.end_ns - placed.slices.start_ns) * 1e-9
        power = np.divide(placed.energy_j, duration_s, out=np.full(duration_s.size, np.nan), where=duration_s > 0)
        arguments = np.stack([placed.energy_j, placed.self_j, power, placed.expanded_j], axis=1)
        tracks = [_slice_track(name, rows, placed, arguments, base_ns) for name, rows in _tracks(placed)]
    seen = np.isfinite(power_w)
    boundary = mapped.traces[0].channel.boundary
    name = " + ".join(mapped.trace_names)
    scene = PerfettoScene(
        process=f"{name} ({boundary})",
        names=placed.timeline.names if placed else (),
        resolutions=placed.words if placed else (),
        counters=(
            CounterTrack(name=f"{name} power", unit="W", time_ns=time_ns[seen] - base_ns, value=power_w[seen]),
            CounterTrack(name=f"{name} energy", unit="J", time_ns=time_ns - base_ns, value=energy_j),
        ),
        tracks=tuple(tracks),
        clocks=_clock_lines(mapped, base_ns),
        marks=tuple(
            (max(int(time_ns[0]) - base_ns, 0) if time_ns.size else 0, f.slug, f"{f.severity}: {f.message}")
            for f in (*mapped.findings, *mapped.map.findings)
        ),
    )
    for piece in encode_trace(scene):
        file.write(piece)


def _slice_track(
    name: str, rows: NDArray[np.int64], placed: _Placed, arguments: NDArray[np.float64], base_ns: int
) -> SliceTrack:
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


def _clock_lines(mapped: MappedRecording, base_ns: int) -> tuple[ClockLine, ...]:
    clock = mapped.clock
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


def _write_chrome(file: IO[bytes], mapped: MappedRecording, placed: _Placed | None, counters: Counters) -> None:
    time_ns, power_w, _ = counters
    head = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": " + ".join(mapped.trace_names)}}
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


def _slice_rows(placed: _Placed) -> Iterator[dict[str, Any]]:
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


def _write_csv(file: IO[bytes], placed: _Placed | None, counters: Counters) -> None:
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


def _write_parquet(file: IO[bytes], placed: _Placed | None, counters: Counters) -> None:
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
