"""``import``: files and folders of somebody else's measurement to one bundle. What joins readers and sections."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from joulemap import __version__
from joulemap.errors import FormatError
from joulemap.formats.base import Reader
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.formats.readers import reader, sniff, sniff_scores
from joulemap.formats.registry import (
    RESULT,
    add_lane,
    add_markers,
    add_published,
    add_recordings,
    add_timeline,
    add_trace,
)
from joulemap.formats.sections.file_stamp import FileStamp, stamp_file
from joulemap.formats.sections.recording_json import RecordingEntry, TraceEntry
from joulemap.records.finding import Finding, Severity, Validity, collapse_findings
from joulemap.records.recording import Recording
from joulemap.trace import Clock, Timeline
from joulemap.trace.streamed import Trace
from joulemap.workflow.recordings.import_request import ImportRequest, check_request
from joulemap.workflow.recordings.recording_bundle import section_name
from joulemap.workflow.recordings.stated_provenance import lower_recording

__all__ = [
    "EMBED_LIMIT_B",
    "ImportRequest",
    "SectionNames",
    "import_recordings",
    "store_recording",
]

EMBED_LIMIT_B = 64 << 20
"""Sources up to this size are embedded; larger ones are referred to unless asked otherwise."""

SCHEMA = "joulemap.import"


@dataclass(slots=True)
class SectionNames:
    """Names of sections, each used once."""

    used: set[str] = field(default_factory=set)

    def take(self, wanted: str, otherwise: str) -> str:
        """Returns the wanted name, else the other one, else that with a number from 2; never one twice."""
        for name in (section_name(wanted), section_name(otherwise)):
            if name not in self.used:
                self.used.add(name)
                return name
        number = 2
        while f"{section_name(otherwise)}-{number}" in self.used:
            number += 1
        name = f"{section_name(otherwise)}-{number}"
        self.used.add(name)
        return name


def import_recordings(
    request: ImportRequest, output: Path, *, force: bool = False, now: datetime | None = None
) -> dict[str, object]:
    """Writes the bundle and returns what it holds, as ``--json`` shows it; a failure leaves nothing behind.

    Args:
        request: what to import.
        output: the bundle to write.
        force: replace a bundle that is there.
        now: time of the import; the system's when None.

    Raises:
        UsageError: the output exists, or no format has the given name.
        InputError: a file is missing, or needs a word of the user.
        FormatError: no reader knows a file, or it is damaged.
        SetupError: an extra is missing, or the output cannot be written.
    """
    check_request(request)
    run_id = uuid.uuid4().hex
    writer = BundleWriter(
        output,
        kind="recording",
        run_id=run_id,
        tool={"name": "joulemap", "version": __version__},
        created=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        force=force,
    )
    with writer:
        traces, timelines = SectionNames(), SectionNames()
        entries: list[RecordingEntry] = []
        summaries: list[dict[str, object]] = []
        findings: list[Finding] = []
        for path in request.paths:
            asked = replace(request, options=request.options_of(path))
            for source, chosen in _readers(path, request.formats, findings):
                before = _modified_ns(source)
                recording = lower_recording(chosen.read(source, asked.options), asked.options.provenance)
                entry, summary = store_recording(
                    writer, recording, (source, asked, output.absolute().parent), (traces, timelines, len(entries))
                )
                if not entry.embedded:
                    entry = replace(entry, stamps=_stamps(source, recording, before))
                entries.append(entry)
                summaries.append(summary | {"certainty": str(chosen.certainty)})
                findings.extend(recording.findings)
                del recording
        add_recordings(writer, entries)
        document = _document(run_id, summaries, findings)
        writer.write_json(RESULT, document, schema=SCHEMA)
        writer.commit(validity=str(document["validity"]))
    return document | {"bundle": str(output)}


def _readers(path: Path, formats: Mapping[str, str], findings: list[Finding]) -> list[tuple[Path, Reader]]:
    """Returns each file or folder to read with its reader; a folder that no reader takes whole is read file by file."""
    named = formats.get(str(path), formats.get(""))
    if named is not None:
        if not path.is_file() and not path.is_dir():
            sniff_scores(path)  # raises what a missing file, a pipe or a device raises
        return [(path, reader(named))]
    if not path.is_dir() or sniff_scores(path):
        return [(path, sniff(path))]
    found: list[tuple[Path, Reader]] = []
    for file in sorted(path.iterdir()):
        if file.name.startswith(".") or not file.is_file():
            continue
        try:
            found.append((file, sniff(file)))
        except FormatError as error:
            message = f"left out of the folder: {error.message}"
            findings.append(Finding(slug="file_left_out", severity=Severity.INFO, message=message, span=file.name))
    if not found:
        inner = sorted(str(folder) for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith("."))
        raise FormatError(
            f"{path.name}: no reader knows the folder or a file in it",
            hint=f"Folders inside are not entered: name the one of a run, for example {inner[0]}."
            if inner
            else "Name the format with --format, or give the files one by one.",
            slug="format-unknown",
        )
    return found


def store_recording(
    writer: BundleWriter,
    recording: Recording,
    asked: tuple[Path, ImportRequest, Path],
    names: tuple[SectionNames, SectionNames, int],
) -> tuple[RecordingEntry, dict[str, object]]:
    """Writes the sections of a recording; returns its entry in the list and what ``--json`` shows of it.

    Args:
        writer: the bundle in the making.
        recording: as its reader found it.
        asked: what was read, with which request, and the folder that holds the bundle.
        names: taken by traces and by timelines, and how many recordings the bundle holds already.

    Raises:
        ReportError: the file system refused.
    """
    source, request, beside = asked
    number = names[2]
    stem = source.name if source.is_dir() else source.stem or source.name
    size_b = sum(file.size_b for file in recording.sources)
    limit_b = EMBED_LIMIT_B if request.embed_limit_b is None else request.embed_limit_b
    embedded = request.copy or size_b <= limit_b
    traces = []
    for trace in recording.all_traces:
        name = names[0].take(trace.channel.name, f"{stem}-{trace.channel.name}")
        if embedded:
            add_trace(writer, name, trace)
        traces.append(TraceEntry(name=name, channel=trace.channel.name))
    timelines = []
    for timeline in recording.timelines:
        name = names[1].take(stem, f"{stem}-{number + 1}" if number else stem)
        add_timeline(writer, timeline, path=f"timelines/{name}.parquet")
        timelines.append(f"timelines/{name}.parquet")
    lanes = []
    for k, lane in enumerate(recording.lanes):
        path = f"lanes/{number + 1}-{k + 1}-{section_name(lane.name)}.parquet"
        add_lane(writer, path, lane)
        lanes.append(path)
    markers = f"markers/{number + 1}.json" if recording.markers else ""
    if markers:
        add_markers(writer, markers, recording.markers)
    published = f"published/{number + 1}.parquet" if recording.published is not None else ""
    if recording.published is not None:
        add_published(writer, published, recording.published)
    entry = RecordingEntry(
        format=recording.format,
        embedded=embedded,
        root=Path(os.path.relpath(source.resolve(), beside.resolve())).as_posix(),
        options=request.options,
        sources=recording.sources,
        traces=tuple(traces),
        timelines=tuple(timelines),
        lanes=tuple(lanes),
        markers=markers,
        published=published,
        totals=recording.totals,
        overlaps=recording.overlaps,
        metadata=recording.metadata,
        findings=recording.findings,
    )
    return entry, _summarise(recording, entry)


def _modified_ns(source: Path) -> dict[str, int]:
    """Returns when each file was changed last, ns, by its name relative to a folder that is imported whole."""
    files = [file for file in source.rglob("*") if file.is_file()] if source.is_dir() else [source]
    root = source if source.is_dir() else source.parent
    return {file.relative_to(root).as_posix(): file.stat().st_mtime_ns for file in files}


def _stamps(source: Path, recording: Recording, before: Mapping[str, int]) -> tuple[FileStamp, ...]:
    """Returns the stamps of the files that did not change while they were read."""
    root = source if source.is_dir() else source.parent
    found = [stamp_file(root / file.name, file.name) for file in recording.sources]
    return tuple(stamp for stamp in found if before.get(stamp.name) == stamp.modified_ns)


def _summarise(recording: Recording, entry: RecordingEntry) -> dict[str, object]:
    return {
        "format": recording.format,
        "embedded": entry.embedded,
        "sources": [{"name": s.name, "size_b": s.size_b, "sha256": s.sha256} for s in recording.sources],
        "traces": [
            _trace(stored.name, trace) for stored, trace in zip(entry.traces, recording.all_traces, strict=True)
        ],
        "timelines": [
            _timeline(section, timeline) for section, timeline in zip(entry.timelines, recording.timelines, strict=True)
        ],
        "lanes": [
            {"name": lane.name, "unit": lane.unit, "samples": int(lane.value.size), "clock": _clock(lane.clock)}
            for lane in recording.lanes
        ],
        "markers": [
            {"name": track.name, "count": len(track.markers), "clock": _clock(track.clock)}
            for track in recording.markers
        ],
        "totals": [
            {"key": total.key, "value": total.value, "provenance": str(total.provenance), "span": total.span or None}
            for total in recording.totals
        ],
        "overlaps": [list(pair) for pair in recording.overlaps],
        "metadata": dict(recording.metadata),
        "published_rule": recording.published is not None,
    }


def _clock(clock: Clock) -> dict[str, object]:
    return {"name": clock.name, "kind": str(clock.kind)}


def _trace(name: str, trace: Trace) -> dict[str, object]:
    return {
        "name": name,
        "channel": trace.channel.name,
        "boundary": str(trace.channel.boundary),
        "provenance": str(trace.channel.provenance),
        "kernel": str(trace.channel.kernel.kind),
        "samples": trace.n,
        "lost_samples": trace.lost_samples,
        "duration_s": trace.duration_s,
        "start_ns": trace.start_ns,
        "clock": _clock(trace.clock),
    }


def _timeline(section: str, timeline: Timeline) -> dict[str, object]:
    n = len(timeline)
    seen = np.zeros(len(timeline.names), bool)
    seen[timeline.name_index] = True
    used = np.flatnonzero(seen)
    return {
        "name": section.rsplit("/", 1)[-1].removesuffix(".parquet"),
        "slices": n,
        "tracks": len(timeline.tracks),
        "names": len(used),
        "first_names": [timeline.names[k] for k in used[:3].tolist()],
        "kinds": sorted(kind for kind in timeline.kinds if kind)[:16],
        "start_ns": int(timeline.start_ns.min()) if n else None,
        "end_ns": int(timeline.end_ns.max()) if n else None,
        "clock": _clock(timeline.clock),
    }


def _document(run_id: str, summaries: Sequence[dict[str, object]], findings: Sequence[Finding]) -> dict[str, object]:
    severe = any(finding.severity is Severity.ERROR for finding in findings)
    return {
        "schema": SCHEMA,
        "schema_version": 1,
        "tool": {"name": "joulemap", "version": __version__},
        "run_id": run_id,
        "validity": str(Validity.DEGRADED if severe else Validity.VALID),
        "findings": [finding.to_json() for finding in collapse_findings(findings)],
        "recordings": list(summaries),
    }
