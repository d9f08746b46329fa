"""``map``: a bundle to the document that says where its joules went; profiles are only sorted anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path

from joulemap import __version__
from joulemap.analysis.clocks.markers import relate_hosts
from joulemap.analysis.clocks.solve import AlignRequest, solve_clock
from joulemap.analysis.instruments.accuracy import MeterErrors, errors_of
from joulemap.analysis.instruments.library import find_instrument, instrument_for_format
from joulemap.analysis.mapping.energy_map import MapRequest, correct_trace, map_energy
from joulemap.analysis.mapping.sums import describe_traces
from joulemap.analysis.recorded.gain import live_errors, stated_gain
from joulemap.analysis.recorded.headline import choose_headline
from joulemap.analysis.recorded.pauses import stated_pause_s
from joulemap.errors import UsageError
from joulemap.formats.base import StreamingReader
from joulemap.formats.bundle import read_bundle
from joulemap.formats.live.capture import CaptureReader
from joulemap.formats.readers import reader
from joulemap.formats.registry import RECORDINGS, RESULT
from joulemap.formats.sections.recording_json import RecordingEntry
from joulemap.meters.calibration import read_calibration
from joulemap.records.finding import Finding, Severity, Validity, collapse_findings, worst
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap
from joulemap.trace import ClockKind, Timeline
from joulemap.trace.loading import load_steps
from joulemap.trace.streamed import Trace
from joulemap.workflow.plain import plain
from joulemap.workflow.recordings.map_extras import (
    Laid,
    MapExtras,
    WorkRequest,
    map_in_place,
    measure_extras,
    measure_per,
)
from joulemap.workflow.recordings.map_profile import map_profile
from joulemap.workflow.recordings.published_rule import PublishedMap, apply_rule
from joulemap.workflow.recordings.recording_bundle import RecordingBundle, open_recordings
from joulemap.workflow.recordings.row_documents import RowDocuments, describe_group
from joulemap.workflow.result import SCHEMA as PROFILE_SCHEMA

__all__ = [
    "MAP_SCHEMA",
    "BundleMapRequest",
    "MappedRecording",
    "describe_map",
    "find_meter",
    "map_bundle",
    "map_recording",
]

MAP_SCHEMA = "joulemap.map"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleMapRequest:
    """What is to be mapped, and how.

    Args:
        traces: names; empty for the only one that holds all others.
        timeline: name; empty for the only one.
        map: rows and split.
        align: what the user says of the clocks.
        rule: published rule; empty for ours alone.
        per: name or kind of the slices that are one unit of work; empty for none.
        instrument: name in the library; empty to go by the format.
        calibration: record of the very unit; None without.
        recorded: day of the recording; None to go by its clock.
        work: what more is asked of it.
    """

    traces: tuple[str, ...] = ()
    timeline: str = ""
    map: MapRequest = field(default_factory=MapRequest)
    align: AlignRequest = field(default_factory=AlignRequest)
    rule: str = ""
    per: str = ""
    instrument: str = ""
    calibration: Path | None = None
    recorded: date | None = None
    work: WorkRequest = field(default_factory=WorkRequest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MappedRecording:
    """A recording's map with what it was made of.

    Args:
        traces: that were summed, corrected; streamed where the bundle refers to a file that allows it.
        timeline: that was laid over them; None without.
        clock: relation of the two; None without a timeline.
        map: the answer.
        trace_names: of the bundle.
        timeline_name: of the bundle; empty without.
        findings: of the recordings and of the choice.
        meter: errors that the budget holds.
        extras: what was asked of the recording beyond the map.
    """

    traces: tuple[Trace, ...]
    timeline: Timeline | None
    clock: ClockMap | None
    map: EnergyMap
    trace_names: tuple[str, ...]
    timeline_name: str
    findings: tuple[Finding, ...]
    meter: MeterErrors
    extras: MapExtras


def map_bundle(folder: Path, request: BundleMapRequest) -> dict[str, object]:
    """Returns the map of a bundle as ``--json`` shows it.

    Raises:
        UsageError: a name that the bundle does not hold, or a choice that must be made.
        InputError: no bundle, or a file that it refers to is gone or changed, or the rule is not made for it.
        NotComparableError: clocks that nothing relates, or traces that are not added.
        FormatError: a section is damaged.
    """
    bundle = read_bundle(folder)
    if not bundle.has(RECORDINGS):
        result = bundle.read_json(RESULT, schema=PROFILE_SCHEMA)
        if request.rule:
            raise UsageError(
                f"--rule {request.rule}: {folder} is a profile",
                hint="rules are for recordings",
                slug="flags-contradict",
            )
        return map_profile(result, request.map.key, bundle=str(folder))
    recordings = open_recordings(folder)
    mapped, published = map_recording(recordings, request)
    return describe_map(recordings, mapped, published, str(folder))


def map_recording(
    recordings: RecordingBundle, request: BundleMapRequest
) -> tuple[MappedRecording, PublishedMap | None]:
    """Returns the map of a bundle of recordings with its parts, and what a published rule adds.

    Raises:
        UsageError, InputError, NotComparableError, FormatError: as :func:`map_bundle`.
    """
    named = request.traces[0] if request.traces else None
    published, shown = apply_rule(recordings, request.rule, named) if request.rule else (None, None)
    names, findings = _choose_traces(recordings, request.traces, shown)
    entry = recordings.entry_of(names[0])
    with ThreadPoolExecutor(2) as aside:  # the process that reads a recording starts while the timeline is loaded
        loading = aside.submit(load_steps, _likely_samples(entry))
        opening = [aside.submit(recordings.open_trace, name) for name in names]
        timeline_name = _choose_timeline(recordings, request.timeline, entry, opening[0].result)
        timeline = recordings.load_timeline(timeline_name) if timeline_name else None
        traces = [opened.result() for opened in opening]
        loading.result()
    meter = find_meter(request, entry, traces)
    traces = [correct_trace(trace, meter) for trace in traces]
    clock = None
    if timeline is not None and len(timeline):
        together = any(timeline_name in section for section in entry.timelines)
        align = AlignRequest(
            method=request.align.method,
            offset_s=request.align.offset_s,
            line=request.align.line,
            slices=request.align.slices,
            together=together,
        )
        clock, doubts = solve_clock(traces[0], timeline, recordings.load_markers(), align)
        findings = (*findings, *doubts)
    laid = Laid(traces=tuple(traces), timeline=timeline, clock=clock, meter=meter)
    if request.work.in_place:
        energy = map_in_place(laid, request.work)
    else:
        told = replace(request.map, paused_s=max(stated_pause_s(entry.metadata, t.channel.name) for t in traces))
        energy = map_energy(traces, timeline, clock, meter, request=told)
    extras = measure_extras((recordings, entry), laid, energy, request.work)
    if request.per:
        energy = replace(energy, metrics=measure_per(laid, extras, request.per, request.work))
    mapped = MappedRecording(
        traces=tuple(traces),
        timeline=timeline,
        clock=clock,
        map=energy,
        trace_names=names,
        timeline_name=timeline_name,
        findings=(*(f for e in recordings.entries for f in e.findings), *findings, *extras.findings),
        meter=meter,
        extras=extras,
    )
    return mapped, published


def _likely_samples(entry: RecordingEntry) -> int:
    """Returns about how many samples are streamed from the recording's files: current and voltage take 8 bytes."""
    streamed = not entry.embedded and isinstance(reader(entry.format), StreamingReader)
    return max((source.size_b // 8 for source in entry.sources), default=0) if streamed else 0


def _choose_traces(
    recordings: RecordingBundle, wanted: tuple[str, ...], shown: str | None
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    if wanted:
        for name in wanted:
            recordings.entry_of(name)
        _refuse_overlap(recordings, wanted)
        return wanted, ()
    outer = [
        trace.name
        for entry in recordings.entries
        for trace in entry.traces
        if trace.channel not in {inner for inner, _ in entry.overlaps}
    ]
    if len(outer) == 1:
        return (outer[0],), ()
    if outer and len(recordings.entries) == 1 and recordings.entries[0].format == CaptureReader.name:
        return _widest(recordings, outer)
    if shown is not None:
        message = f"the map shows {shown}, the first of {len(outer)} traces; name others with --trace"
        return (shown,), (Finding(slug="trace_chosen", severity=Severity.INFO, message=message),)
    if not outer:
        raise UsageError(
            "the bundle holds no power",
            hint="import a power recording together with the timeline",
            slug="trace-unknown",
        )
    raise UsageError(
        f"the bundle holds {len(outer)} traces: {', '.join(outer[:12])}",
        hint=f"choose with --trace {outer[0]}; name several to have their sum",
        slug="trace-ambiguous",
    )


def _widest(recordings: RecordingBundle, outer: Sequence[str]) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Returns the traces of a capture that are mapped by themselves: those that ``record`` takes for its headline."""
    headline = choose_headline({name: recordings.open_trace(name).channel.boundary for name in outer}, ())
    findings: tuple[Finding, ...] = ()
    if headline.left_out:
        message = (
            f"the map is of {', '.join(headline.domains)} ({headline.boundary}, the widest boundary);"
            f" {', '.join(headline.left_out)} feed something else: map them with --trace"
        )
        findings = (Finding(slug="domains_chosen", severity=Severity.INFO, message=message),)
    return headline.domains, findings


def _refuse_overlap(recordings: RecordingBundle, names: tuple[str, ...]) -> None:
    if len(set(names)) < len(names):
        raise UsageError("a trace is named twice", hint="name each once", slug="flags-contradict")
    for entry in recordings.entries:
        channels = {trace.channel: trace.name for trace in entry.traces if trace.name in names}
        for inner, outer in entry.overlaps:
            if inner in channels and outer in channels:
                raise UsageError(
                    f"{channels[inner]} is inside {channels[outer]}: they are never added",
                    hint="name one of them",
                    slug="domains-overlap",
                )


def _choose_timeline(
    recordings: RecordingBundle, wanted: str, entry: RecordingEntry, opened: Callable[[], Trace]
) -> str:
    if wanted or not recordings.timelines:
        return wanted
    if len(recordings.timelines) == 1:
        return recordings.timelines[0]
    trace = opened()
    own = [section.rsplit("/", 1)[-1].removesuffix(".parquet") for section in entry.timelines]
    on_clock = [name for name in own if recordings.load_timeline(name).clock == trace.clock]
    if len(own) == 1 or len(on_clock) == 1:
        return (on_clock if len(on_clock) == 1 else own)[0]
    names = [name for name in (trace.channel.name, *own) if name in own]
    if len(entry.traces) == len(own):  # one window a trace, in one order
        at = [known.channel for known in entry.traces].index(trace.channel.name)
        return own[at]
    choices = names or list(recordings.timelines)
    raise UsageError(
        f"the bundle holds {len(recordings.timelines)} timelines: {', '.join(recordings.timelines[:12])}",
        hint=f"choose with --timeline {choices[0]}",
        slug="timeline-ambiguous",
    )


def find_meter(request: BundleMapRequest, entry: RecordingEntry, traces: list[Trace]) -> MeterErrors:
    """Returns what is known of the errors of the meter that recorded the traces."""
    if entry.format == CaptureReader.name and not request.instrument and request.calibration is None:
        channel = traces[0].channel
        return live_errors(channel.name, stated_gain(entry.metadata, channel.name), channel.provenance)
    known = find_instrument(request.instrument) if request.instrument else instrument_for_format(entry.format)
    calibration = None if request.calibration is None else read_calibration(request.calibration)
    mean_w = 0.0
    if entry.options.voltage_v and known is not None:  # only then the current, and so the range, is known
        facts = describe_traces(traces)
        mean_w = facts.energy_j / facts.seen_s if facts.seen_s > 0 else 0.0
    day = request.recorded
    if day is None and traces[0].clock.kind is ClockKind.UTC:
        day = datetime.fromtimestamp(traces[0].start_ns * 1e-9, UTC).date()
    return errors_of(
        known,
        calibration,
        mean_power_w=mean_w,
        voltage_v=entry.options.voltage_v,
        day=day,
    )


def describe_map(
    recordings: RecordingBundle, mapped: MappedRecording, published: PublishedMap | None, folder: str
) -> dict[str, object]:
    """Returns the map as JSON; ``folder`` is how the reader of this copy finds the bundle."""
    energy = mapped.map
    findings = [*mapped.findings, *energy.findings, *(published.findings if published else ())]
    severe = any(finding.severity is Severity.ERROR for finding in findings)
    validity = worst([Validity(recordings.bundle.validity), Validity.DEGRADED if severe else Validity.VALID])
    clocks = [clock for clock in (mapped.clock,) if clock is not None]
    clocks += relate_hosts(recordings.load_markers())
    return (
        {
            "schema": MAP_SCHEMA,
            "schema_version": 1,
            "tool": {"name": "joulemap", "version": __version__},
            "run_id": recordings.bundle.run_id,
            "validity": str(validity),
            "findings": [finding.to_json() for finding in collapse_findings(findings)],
            "bundle": folder,
            "traces": list(mapped.trace_names),
            "timeline": mapped.timeline_name or None,
            "total_j": energy.total_j.to_json(),
            "idle_j": energy.idle_j.to_json(),
            "power_w": energy.power_w.to_json(),
            "duration_s": energy.duration_s,
            "busy_s": energy.busy_s,
            "split": energy.split,
            "concurrent_tracks": energy.concurrent,
            "rows": RowDocuments(rows=energy.rows, more=mapped.extras.row),
            "groups": [describe_group(group) for group in energy.groups],
            "least_squares": None if energy.fit is None else plain(energy.fit),
            "rule": published.rule if published else energy.rule,
            "metrics": dict(energy.metrics) | (published.metrics if published else {}),
            "clocks": [clock.to_json() for clock in clocks],
            "budget": [plain(line) for line in energy.budget],
            "meter": {"name": mapped.meter.name or None, "source": mapped.meter.source or None},
        }
        | mapped.extras.document
        | ({"per": energy.per} if energy.per else {})
    )
