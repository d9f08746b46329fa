"""The only place that names every format: which section of a bundle has which schema, and which module writes it.

A new kind of section is one module and one function here. What sections mean beyond their columns is for the rooms
above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from joulemap.formats import parquet, timeline_parquet, trace_parquet
from joulemap.formats.bundle import Bundle
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.formats.sections import lane_parquet, marker_json, published_parquet, recording_json
from joulemap.formats.sections.recording_json import RecordingEntry
from joulemap.records.published import PublishedRun
from joulemap.records.recording import Lane, MarkerTrack
from joulemap.trace import EnergyTrace, Marker, Timeline
from joulemap.trace.streamed import Trace

__all__ = [
    "LAYERS",
    "LOG",
    "RECORDINGS",
    "RESULT",
    "RUN",
    "TIMELINE",
    "add_lane",
    "add_markers",
    "add_published",
    "add_recordings",
    "add_table",
    "add_timeline",
    "add_trace",
    "list_traces",
    "load_lane",
    "load_markers",
    "load_published",
    "load_recordings",
    "load_table",
    "load_timeline",
    "load_trace",
    "open_trace",
]

RUN = "run.json"
RESULT = "result.json"
LAYERS = "layers.parquet"
TIMELINE = "timeline.parquet"
LOG = "log.txt"
RECORDINGS = "recordings.json"
_PARQUET = "application/vnd.apache.parquet"


def add_trace(
    writer: BundleWriter, name: str, trace: Trace, *, markers: Sequence[Marker] = (), folder: str = "traces"
) -> None:
    """Adds ``traces/<name>.parquet`` and ``.json`` to a bundle in the making.

    Raises:
        ValueError: the name is taken or no file name.
        ReportError: the file system refused.
    """
    schema, version = trace_parquet.SCHEMA, trace_parquet.VERSION
    samples = writer.place(f"{folder}/{name}.parquet", media_type=_PARQUET, schema=schema, version=version)
    description = writer.place(f"{folder}/{name}.json", media_type="application/json", schema=schema, version=version)
    with writer.writing():
        trace_parquet.write_trace(samples, description, trace, markers=markers)


def load_trace(bundle: Bundle, name: str, *, folder: str = "traces") -> tuple[EnergyTrace, tuple[Marker, ...]]:
    """Returns a trace of a bundle and its markers.

    Raises:
        FormatError: the section is missing, of a newer version or damaged.
    """
    paths = [
        bundle.locate(f"{folder}/{name}{suffix}", schema=trace_parquet.SCHEMA, version=trace_parquet.VERSION)
        for suffix in (".parquet", ".json")
    ]
    return trace_parquet.read_trace(*paths)


def open_trace(bundle: Bundle, name: str, *, folder: str = "traces") -> Trace:
    """Returns a trace of a bundle; the samples of a long one stay in their section and are streamed from it.

    Raises:
        FormatError: as :func:`load_trace`.
    """
    paths = [
        bundle.locate(f"{folder}/{name}{suffix}", schema=trace_parquet.SCHEMA, version=trace_parquet.VERSION)
        for suffix in (".parquet", ".json")
    ]
    return trace_parquet.open_trace(*paths)


def list_traces(bundle: Bundle, *, folder: str = "traces") -> tuple[str, ...]:
    """Returns the names of the bundle's traces, sorted."""
    prefix, suffix = f"{folder}/", ".parquet"
    return tuple(
        sorted(
            path.removeprefix(prefix).removesuffix(suffix)
            for path in bundle.sections
            if path.startswith(prefix) and path.endswith(suffix)
        )
    )


def add_timeline(writer: BundleWriter, timeline: Timeline, *, path: str = TIMELINE) -> None:
    """Adds a timeline to a bundle in the making.

    Raises:
        ValueError, ReportError: as :func:`add_trace`.
    """
    file = writer.place(path, media_type=_PARQUET, schema=timeline_parquet.SCHEMA, version=timeline_parquet.VERSION)
    with writer.writing():
        timeline_parquet.write_timeline(file, timeline)


def load_timeline(bundle: Bundle, *, path: str = TIMELINE) -> Timeline:
    """Returns a timeline of a bundle.

    Raises:
        FormatError: the section is missing, of a newer version or damaged.
    """
    return timeline_parquet.read_timeline(
        bundle.locate(path, schema=timeline_parquet.SCHEMA, version=timeline_parquet.VERSION)
    )


def add_table(
    writer: BundleWriter,
    path: str,
    columns: Mapping[str, Any],
    *,
    schema: str,
    version: int = 1,
    optional: bool = False,
    types: Mapping[str, str] | None = None,
) -> None:
    """Adds a table of results, one column per key: lists (None for missing) or arrays of one length.

    Args:
        writer: the bundle in the making.
        path: of the section.
        columns: name -> values.
        schema: what the table means.
        version: of that schema.
        optional: the bundle is whole without it.
        types: name -> ``int64``, ``float64``, ``string`` or ``bool``, for columns that could be all missing.

    Raises:
        ValueError, ReportError: as :func:`add_trace`; ValueError too when the columns differ in length.
    """
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost

    file = writer.place(path, media_type=_PARQUET, schema=schema, version=version, optional=optional)
    with writer.writing():
        typed = {name: pa.array(columns[name], pa.type_for_alias(alias)) for name, alias in (types or {}).items()}
        parquet.write_parquet(file, pa.table({name: typed.get(name, columns[name]) for name in columns}), encodings={})


def load_table(bundle: Bundle, path: str, *, schema: str, version: int = 1) -> dict[str, list[Any]]:
    """Returns the columns of a table of results.

    Raises:
        FormatError: the section is missing, of a newer version or damaged.
    """
    return parquet.read_columns(bundle.locate(path, schema=schema, version=version))


def add_lane(writer: BundleWriter, path: str, lane: Lane) -> None:
    """Adds a lane to a bundle in the making.

    Raises:
        ValueError, ReportError: as :func:`add_trace`.
    """
    file = writer.place(path, media_type=_PARQUET, schema=lane_parquet.SCHEMA, version=lane_parquet.VERSION)
    with writer.writing():
        lane_parquet.write_lane(file, lane)


def load_lane(bundle: Bundle, path: str) -> Lane:
    """Returns a lane of a bundle.

    Raises:
        FormatError: the section is missing, of a newer version or damaged.
    """
    return lane_parquet.read_lane(bundle.locate(path, schema=lane_parquet.SCHEMA, version=lane_parquet.VERSION))


def add_markers(writer: BundleWriter, path: str, tracks: Sequence[MarkerTrack]) -> None:
    """Adds marker tracks to a bundle in the making.

    Raises:
        ValueError, ReportError: as :func:`add_trace`.
    """
    document = marker_json.describe_markers(tracks)
    writer.write_json(path, document, schema=marker_json.SCHEMA, version=marker_json.VERSION)


def load_markers(bundle: Bundle, path: str) -> tuple[MarkerTrack, ...]:
    """Returns the marker tracks of a section.

    Raises:
        FormatError: the section is missing, of a newer version or damaged.
    """
    return marker_json.parse_markers(bundle.read_json(path, schema=marker_json.SCHEMA, version=marker_json.VERSION))


def add_published(writer: BundleWriter, path: str, run: PublishedRun) -> None:
    """Adds what a published rule needs to a bundle in the making.

    Raises:
        ValueError, ReportError: as :func:`add_trace`.
    """
    file = writer.place(path, media_type=_PARQUET, schema=published_parquet.SCHEMA, version=published_parquet.VERSION)
    with writer.writing():
        published_parquet.write_published(file, run)


def load_published(bundle: Bundle, path: str) -> PublishedRun:
    """Returns what a published rule needs.

    Raises:
        FormatError: the section is missing, of a newer version or damaged.
    """
    return published_parquet.read_published(
        bundle.locate(path, schema=published_parquet.SCHEMA, version=published_parquet.VERSION)
    )


def add_recordings(writer: BundleWriter, entries: Sequence[RecordingEntry]) -> None:
    """Adds the list of recordings to a bundle in the making.

    Raises:
        ValueError, ReportError: as :func:`add_trace`.
    """
    document = recording_json.describe_entries(tuple(entries))
    writer.write_json(RECORDINGS, document, schema=recording_json.SCHEMA, version=recording_json.VERSION)


def load_recordings(bundle: Bundle) -> tuple[RecordingEntry, ...]:
    """Returns the list of recordings of a bundle.

    Raises:
        FormatError: the section is missing, of a newer version or damaged.
    """
    return recording_json.parse_entries(
        bundle.read_json(RECORDINGS, schema=recording_json.SCHEMA, version=recording_json.VERSION)
    )
