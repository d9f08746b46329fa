"""``report`` of a bundle of recordings: its map, further groupings and everything beside it, as records for the page.

The page shows more than ``map`` answers: where the map asks for a choice, the page takes the largest and says so; where
nothing relates a timeline to the power, it shows the power alone and says that too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.analysis.mapping.keys import MapKey
from joulemap.analysis.mapping.sums import describe_traces
from joulemap.errors import InputError, NotComparableError, UsageError
from joulemap.formats.bundle import MANIFEST, Bundle, digest
from joulemap.formats.registry import RESULT, load_recordings
from joulemap.records.finding import Finding, Severity
from joulemap.report.view.recording.sections import PlacedWork, RecordingSections
from joulemap.trace import Clock, ClockKind, Timeline
from joulemap.trace.streamed import StreamedTrace
from joulemap.workflow.recordings.map_bundle import (
    BundleMapRequest,
    MappedRecording,
    describe_map,
    map_recording,
)
from joulemap.workflow.recordings.placed_slices import place_energies
from joulemap.workflow.recordings.recording_bundle import RecordingBundle, timeline_name
from joulemap.workflow.recordings.report_lines import (
    Place,
    list_lines,
    list_marks,
    list_values,
    plan_place,
)
from joulemap.workflow.recordings.row_documents import describe_row

__all__ = ["collect_sections"]

_GROUPED = 300_000
"""Slices up to which a page has further groupings: each of them is a pass of its own."""

_SCHEMAS = ("joulemap.import", "joulemap.record")
"""What a bundle of recordings may have as its result; a recorded command names its recordings like an import."""


def collect_sections(bundle: Bundle, request: BundleMapRequest, *, flags: Sequence[str]) -> RecordingSections:
    """Returns what the page of a bundle of recordings is made from.

    Args:
        bundle: of kind ``recording``, verified.
        request: what is mapped, and how.
        flags: of the command line that say so.

    Raises:
        UsageError, InputError, NotComparableError, FormatError: as :func:`map_bundle`, but for choices that the page
            makes itself.
    """
    recordings = RecordingBundle(bundle=bundle, entries=load_recordings(bundle))
    findings: list[Finding] = []
    mapped, document = None, None
    if recordings.traces:
        mapped, document, request = _map(recordings, request, findings)
    tables, paths = ({}, []) if mapped is None else _group(mapped, request)
    work, clock, place = _lay(recordings, mapped, request)
    values, points, lost = list_values(recordings, place)
    marks = list_marks(recordings, place)
    lines = () if mapped is None else list_lines(recordings, mapped, request, place)
    lost += [line.name for line in lines if line.trace is None]
    if lost:
        message = f"{', '.join(lost[:6])}{f' and {len(lost) - 6} more' if len(lost) > 6 else ''}"
        message = f"not on the map: {message}, whose clock nothing relates to the page's"
        findings.append(Finding(slug="lanes_unplaced", severity=Severity.INFO, message=message))
    return RecordingSections(
        document=document,
        tables=tables,
        paths=paths,
        entries=recordings.entries,
        imported=_read_result(bundle),
        created=bundle.created,
        digest=digest(bundle.folder / MANIFEST),
        clock=clock,
        lines=lines,
        work=work,
        values=values,
        marks=marks,
        points=points,
        findings=tuple(findings),
        flags=tuple(flags),
    )


def _read_result(bundle: Bundle) -> Mapping[str, Any]:
    """Returns the document of the import or of the recorded command."""
    held = bundle.sections[RESULT].schema if bundle.has(RESULT) else _SCHEMAS[0]
    return bundle.read_json(RESULT, schema=held if held in _SCHEMAS else _SCHEMAS[0])


def _map(
    recordings: RecordingBundle, request: BundleMapRequest, findings: list[Finding]
) -> tuple[MappedRecording, Mapping[str, Any], BundleMapRequest]:
    request = _choose_trace(recordings, request, findings)
    try:
        try:
            mapped, published = map_recording(recordings, request)
        except UsageError as error:
            if error.slug != "timeline-ambiguous" or request.timeline:
                raise
            request = _choose_timeline(recordings, request, findings)
            mapped, published = map_recording(recordings, request)
    except (NotComparableError, InputError) as error:
        if error.slug not in ("clocks-unrelated", "no-such-slices") or _says_how(request):
            raise
        message = f"the timeline is not laid over the power: {error.message}"
        findings.append(Finding(slug="timeline_unplaced", severity=Severity.WARNING, message=message))
        request = replace(request, timeline="")
        mapped, published = map_recording(_without_timelines(recordings), request)
    document = describe_map(recordings, mapped, published, "")
    return mapped, document, request


def _says_how(request: BundleMapRequest) -> bool:
    """True when the user says which timeline, how it is placed or what its rows are: then an error is an answer."""
    align = request.align
    stated = align.offset_s is not None or align.line or str(align.method) != "auto"
    return bool(stated or request.per or request.map.key is not MapKey.NAME)


def _without_timelines(recordings: RecordingBundle) -> RecordingBundle:
    return replace(recordings, entries=tuple(replace(entry, timelines=()) for entry in recordings.entries))


def _choose_trace(recordings: RecordingBundle, request: BundleMapRequest, findings: list[Finding]) -> BundleMapRequest:
    """Returns the request with the trace of most energy named, where several contain no other and none was named."""
    if request.traces or request.rule:
        return request
    outer = [
        trace.name
        for entry in recordings.entries
        for trace in entry.traces
        if trace.channel not in {inner for inner, _ in entry.overlaps}
    ]
    if len(outer) < 2:
        return request
    largest = max(outer, key=lambda name: describe_traces([recordings.open_trace(name)]).energy_j)
    message = f"the page maps {largest}, which holds most of {len(outer)} traces; name others with --trace"
    findings.append(Finding(slug="trace_chosen", severity=Severity.INFO, message=message))
    return replace(request, traces=(largest,))


def _choose_timeline(
    recordings: RecordingBundle, request: BundleMapRequest, findings: list[Finding]
) -> BundleMapRequest:
    """Returns the request with the timeline of most slices named."""
    largest = max(recordings.timelines, key=lambda name: len(recordings.load_timeline(name)))
    message = f"the page shows {largest}, which has most slices of {len(recordings.timelines)} timelines"
    findings.append(
        Finding(slug="timeline_chosen", severity=Severity.INFO, message=f"{message}; name others with --timeline")
    )
    return replace(request, timeline=largest)


def _group(
    mapped: MappedRecording, request: BundleMapRequest
) -> tuple[dict[str, list[dict[str, object]]], list[dict[str, object]]]:
    """Returns rows by grouping, the wanted one first, and the rows by path."""
    if mapped.timeline is None or mapped.clock is None or not len(mapped.timeline):
        return {}, []
    wanted = request.map.key
    tables = {str(wanted): [describe_row(row) for row in mapped.map.rows]}
    keys = [MapKey.NAME]
    if any(isinstance(trace, StreamedTrace) for trace in mapped.traces):
        keys += [MapKey.PATH] if len(mapped.timeline) <= _GROUPED else []  # each grouping reads the whole file again
    elif len(mapped.timeline) <= _GROUPED:
        keys += [MapKey.OP, MapKey.LAYER, MapKey.KERNEL, MapKey.PATH]
    for key in keys:
        if str(key) in tables:
            continue
        rows = _rows_by(mapped, replace(request.map, key=key))
        if rows and (key in (MapKey.NAME, MapKey.PATH) or _says_more(rows, tables)):
            tables[str(key)] = rows
    paths = tables.get("path", [])
    if paths and wanted is not MapKey.PATH and not any(";" in str(row["key"]) for row in paths):
        del tables["path"]  # nothing is inside anything: the table by name says the same
    return tables, paths


def _says_more(rows: Sequence[Mapping[str, object]], tables: Mapping[str, Sequence[Mapping[str, object]]]) -> bool:
    keys = {row["key"] for row in rows}
    return all(keys != {row["key"] for row in other} for other in tables.values())


def _rows_by(mapped: MappedRecording, request: MapRequest) -> list[dict[str, object]]:
    try:
        energy = map_energy(mapped.traces, mapped.timeline, mapped.clock, mapped.meter, request=request)
    except (InputError, ValueError):  # no slice of that kind; more paths than a map may have
        return []
    return [describe_row(row) for row in energy.rows]


def _lay(
    recordings: RecordingBundle, mapped: MappedRecording | None, request: BundleMapRequest
) -> tuple[PlacedWork | None, Clock, Place]:
    """Returns what ran on the page's clock, that clock, and how instants of other clocks get there."""
    if mapped is not None:
        home = recordings.entries.index(recordings.entry_of(mapped.trace_names[0]))
        clock = mapped.traces[0].clock
        own = _entry_of_timeline(recordings, mapped.timeline_name)
        place = plan_place((home, clock), None if mapped.clock is None or own is None else (own, mapped.clock))
        placed = place_energies(mapped, request.map.split)
        if placed is None or mapped.clock is None or not len(placed.timeline):
            return None, clock, place
        line = placed.timeline
        moved = Timeline(
            clock=clock,
            start_ns=placed.slices.start_ns,
            end_ns=placed.slices.end_ns,
            name_index=line.name_index[placed.order],
            names=line.names,
            track_index=line.track_index[placed.order],
            tracks=line.tracks,
            kind_index=line.kind_index[placed.order],
            kinds=line.kinds,
        )
        middle_ns = int(line.start_ns[len(line) // 2])
        alone = placed.resolution == placed.words.index("overlap")
        return (
            PlacedWork(
                name=mapped.timeline_name if len(recordings.timelines) > 1 else "",
                timeline=moved,
                energy_j=np.where(alone, placed.energy_j, np.nan),
                shift_s=mapped.clock.std_at_s(middle_ns),
                per=request.per,
            ),
            clock,
            place,
        )
    return _lay_alone(recordings, request)


def _lay_alone(recordings: RecordingBundle, request: BundleMapRequest) -> tuple[PlacedWork | None, Clock, Place]:
    """Returns the same for a bundle without power: the named timeline, else the one with most slices."""
    names = [request.timeline] if request.timeline else list(recordings.timelines)
    name = max(names, key=lambda name: len(recordings.load_timeline(name)), default="")
    if name:
        line = recordings.load_timeline(name)
        own = _entry_of_timeline(recordings, name)
        work = PlacedWork(
            name=name if len(names) > 1 else "",
            timeline=_in_order(line),
            energy_j=np.full(len(line), np.nan),
            shift_s=0.0,
            per=request.per,
        )
        if len(line):
            return work, line.clock, plan_place((own or 0, line.clock), None)
    for number, entry in enumerate(recordings.entries):
        lanes = recordings.load_lanes_of(entry)
        longest = max(lanes, key=lambda lane: lane.value.size, default=None)
        if longest is not None:
            return None, longest.clock, plan_place((number, longest.clock), None)
    nothing = Clock(name="none", kind=ClockKind.COUNTER)
    return None, nothing, plan_place((0, nothing), None)


def _in_order(line: Timeline) -> Timeline:
    order = np.lexsort((-line.end_ns, line.start_ns))
    return replace(
        line,
        start_ns=line.start_ns[order],
        end_ns=line.end_ns[order],
        name_index=line.name_index[order],
        track_index=line.track_index[order],
        kind_index=line.kind_index[order],
    )


def _entry_of_timeline(recordings: RecordingBundle, name: str) -> int | None:
    for number, entry in enumerate(recordings.entries):
        if any(timeline_name(section) == name for section in entry.timelines):
            return number
    return None
