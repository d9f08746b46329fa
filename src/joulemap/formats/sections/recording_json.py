"""The list of a bundle's recordings as JSON: what was read, from which files, and which sections hold it.

A recording is either *embedded* (its traces are sections) or *referred to*: then ``root`` says where its files lie,
relative to the folder that holds the bundle, and every use checks first that they are what was imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import ReadOptions
from joulemap.formats.sections.file_stamp import FileStamp
from joulemap.records.finding import Finding, Severity
from joulemap.records.recording import SourceFile, StatedTotal

__all__ = ["SCHEMA", "VERSION", "RecordingEntry", "TraceEntry", "describe_entries", "parse_entries"]

SCHEMA = "joulemap.recording"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEntry:
    """One trace of a recording.

    Args:
        name: unique in the bundle; the name of its sections when it is embedded.
        channel: as the reader named it.
    """

    name: str
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingEntry:
    """One recording of a bundle.

    Args:
        format: registry name of its reader.
        embedded: its traces are sections of the bundle.
        root: the file or folder that was read, relative to the folder that holds the bundle; POSIX.
        options: with which it was read.
        sources: files of it, named relative to ``root`` (or its folder).
        stamps: by which files that are referred to are known again; one is missing where a file changed meanwhile.
        traces: in the reader's order.
        timelines: section paths.
        lanes: section paths.
        markers: section path; empty without markers.
        published: section path; empty without.
        totals: figures that the source states itself.
        overlaps: pairs of channel names, the second containing the first.
        metadata: facts as text.
        findings: of the reader.
    """

    format: str
    embedded: bool
    root: str
    options: ReadOptions
    sources: tuple[SourceFile, ...]
    traces: tuple[TraceEntry, ...]
    timelines: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    stamps: tuple[FileStamp, ...] = ()
    markers: str = ""
    published: str = ""
    totals: tuple[StatedTotal, ...] = ()
    overlaps: tuple[tuple[str, str], ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def describe_entries(entries: tuple[RecordingEntry, ...]) -> dict[str, object]:
    """Returns the list as a JSON document."""
    return {"schema": SCHEMA, "schema_version": VERSION, "recordings": [_describe(entry) for entry in entries]}


def parse_entries(document: Mapping[str, Any]) -> tuple[RecordingEntry, ...]:
    """Returns the list of a document.

    Raises:
        FormatError: it is none (``recording-list-damaged``).
    """
    try:
        return tuple(_parse(entry) for entry in document["recordings"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"the list of recordings of the bundle cannot be read: {error}",
            hint="take the bundle again from where it was made",
            slug="recording-list-damaged",
        ) from error


def _describe(entry: RecordingEntry) -> dict[str, object]:
    options = {
        "columns": dict(entry.options.columns),
        "units": dict(entry.options.units),
        "voltage_v": entry.options.voltage_v,
        "rate_hz": entry.options.rate_hz,
        "utc_offset_s": entry.options.utc_offset_s,
        "boundary": entry.options.boundary,
        "provenance": entry.options.provenance,
    }
    return {
        "format": entry.format,
        "embedded": entry.embedded,
        "root": entry.root,
        "options": options,
        "sources": [asdict(source) for source in entry.sources],
        "stamps": [asdict(stamp) for stamp in entry.stamps],
        "traces": [asdict(trace) for trace in entry.traces],
        "timelines": list(entry.timelines),
        "lanes": list(entry.lanes),
        "markers": entry.markers,
        "published": entry.published,
        "totals": [
            {
                "key": total.key,
                "value": total.value,
                "provenance": str(total.provenance),
                "boundary": None if total.boundary is None else str(total.boundary),
                "span": total.span,
            }
            for total in entry.totals
        ],
        "overlaps": [list(pair) for pair in entry.overlaps],
        "metadata": dict(entry.metadata),
        "findings": [finding.to_json() for finding in entry.findings],
    }


def _parse(entry: Any) -> RecordingEntry:
    return RecordingEntry(
        format=str(entry["format"]),
        embedded=bool(entry["embedded"]),
        root=str(entry["root"]),
        options=ReadOptions(**entry["options"]),
        sources=tuple(SourceFile(**source) for source in entry["sources"]),
        stamps=tuple(FileStamp(**stamp) for stamp in entry.get("stamps", ())),
        traces=tuple(TraceEntry(**trace) for trace in entry["traces"]),
        timelines=tuple(entry["timelines"]),
        lanes=tuple(entry["lanes"]),
        markers=str(entry["markers"]),
        published=str(entry["published"]),
        totals=tuple(
            StatedTotal(
                key=str(total["key"]),
                value=float(total["value"]),
                provenance=Provenance(total["provenance"]),
                boundary=None if total["boundary"] is None else Boundary(total["boundary"]),
                span=str(total["span"]),
            )
            for total in entry["totals"]
        ),
        overlaps=tuple((str(inner), str(outer)) for inner, outer in entry["overlaps"]),
        metadata={str(key): str(value) for key, value in entry["metadata"].items()},
        findings=tuple(
            Finding(
                slug=str(finding["slug"]),
                severity=Severity(finding["severity"]),
                message=str(finding["message"]),
                span=finding["span"] or "",
            )
            for finding in entry["findings"]
        ),
    )
