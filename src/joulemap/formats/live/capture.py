"""Captures that ``joulemap record`` and the Python API write, alone or in the folder of a recording that was killed.

The folder holds ``capture.jmc`` and, when the program under test set marks, ``marks/``. Times are on the machine's
monotonic clock.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, sources_of
from joulemap.formats.live.clock_steps import calendar_marks, say_clock_steps, utc_facts
from joulemap.formats.live.counters import CounterReadings, counter_trace
from joulemap.formats.live.mark_tracks import place_marks
from joulemap.formats.live.marks import read_marks
from joulemap.formats.live.overlaps import list_overlaps, say_disagreements, say_machines
from joulemap.formats.live.powers import power_trace
from joulemap.formats.live.quality import describe_sampling
from joulemap.formats.live.segments import Capture, read_capture
from joulemap.records.finding import Severity
from joulemap.records.live.capture_header import qualify
from joulemap.records.live.capture_layout import MAGIC, SampleRows
from joulemap.records.live.domain import DomainReading
from joulemap.records.recording import Lane, MarkerTrack, Recording
from joulemap.trace import Clock, ClockKind, EdgeDirection, EnergyTrace, Marker, Timeline
from joulemap.trace.pauses import list_paused, unite_pauses

__all__ = ["CAPTURE_FILE", "FRAME_KINDS", "MARKS_FOLDER", "MONOTONIC", "CaptureReader"]

CAPTURE_FILE: Final = "capture.jmc"
MARKS_FOLDER: Final = "marks"
MONOTONIC: Final = Clock(name="monotonic", kind=ClockKind.MONOTONIC, resolution_ns=1.0, rate_std_ppm=50.0)
"""Clock of captures and marks; a crystal that nothing disciplines is good for some 50 ppm."""
FRAME_KINDS: Final = frozenset({"run", "baseline"})
"""Kinds of marks that the recorder itself sets around the program under test."""

_NOTES: Final = {
    "meter_lost": Severity.WARNING,
    "meter_unreadable": Severity.WARNING,
    "meter_changed": Severity.WARNING,
    "meter_back": Severity.INFO,
    "capture_unwritable": Severity.WARNING,
}


class CaptureReader:
    """Reads captures of live meters, also what a killed recording left of one.

    Args:
        through_pauses: take what counters tell across the pauses of the sampling; else pauses are gaps.

    References:
        This project's :mod:`joulemap.records.live.capture_layout`.
    """

    name: ClassVar[str] = "joulemap-capture"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = True

    def __init__(self, *, through_pauses: bool = False) -> None:
        self._through_pauses = through_pauses

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the magic number, or a folder that holds such a file."""
        if path.is_dir():
            return 1.0 if (path / CAPTURE_FILE).is_file() else 0.0
        return 1.0 if head.startswith(MAGIC) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns traces, lanes and marks; counters are differenced, what was lost is a gap with a finding.

        Raises:
            FormatError: no capture, or nothing was read before it was cut.
        """
        del options  # a capture says everything itself
        log = FindingLog()
        folder = path if path.is_dir() else path.parent
        file = path / CAPTURE_FILE if path.is_dir() else path
        capture = read_capture(file, log)
        if self._through_pauses:
            capture = replace(capture, pauses=())
        files = [file, *sorted((folder / MARKS_FOLDER).glob("*"))] if path.is_dir() else [file]
        for note in capture.notes:
            log.add(note.slug if note.slug in _NOTES else "sampler_note", note.message, f"{note.at_ns} ns",
                    _NOTES.get(note.slug, Severity.INFO))  # fmt: skip
        if capture.starts > 1:
            log.add("sampler_restarted", f"the sampling process was lost and replaced {capture.starts - 1} times")
        traces, lanes = _read_streams(capture, log)
        if capture.pauses:
            _say_pauses(capture, log)
        if not (traces or lanes):
            raise FormatError(
                f"{path.name} holds no energy: {_last_word(log)}",
                hint="Record again, for longer; joulemap meters says whether the meter can be read.",
                slug="recording-empty",
            )
        say_machines(capture.header, log)
        say_disagreements(traces, capture.header, log)
        timeline, frames = _read_marks(path, traces, log)
        names = {trace.channel.name for trace in traces}
        return Recording(
            format=self.name,
            sources=sources_of(files, folder),
            traces=tuple(traces),
            timelines=(timeline,) if timeline is not None else (),
            lanes=tuple(lanes),
            markers=(*((frames,) if frames.markers else ()), *_calendar(capture, log)),
            overlaps=tuple(pair for pair in list_overlaps(capture.header) if pair[0] in names and pair[1] in names),
            metadata=_describe(capture, log) | _describe_pauses(capture, traces),
            findings=log.findings(),
        )


def _last_word(log: FindingLog) -> str:
    """Returns what is known of the reason."""
    found = log.findings()
    return found[-1].message if found else "no reading succeeded twice"


def _say_pauses(capture: Capture, log: FindingLog) -> None:
    paused_s = sum(end_ns - begin_ns for begin_ns, end_ns in capture.pauses) * 1e-9
    log.add(
        "sampling_paused",
        f"sampling paused {len(capture.pauses)} times, {paused_s:.4g} s in all, as it was told to; no energy is counted"
        " there",
        f"{capture.pauses[0][0]} ns",
        Severity.INFO,
    )


def _describe_pauses(capture: Capture, traces: list[EnergyTrace]) -> dict[str, str]:
    """Returns how much of each trace is a gap because nothing was to be measured, s, as text."""
    facts = {}
    for trace in traces if capture.pauses else ():
        edges_ns = trace.edges_ns
        assert edges_ns is not None  # stamped readings
        pauses = np.array(capture.pauses, np.int64)
        paused_ns = 0
        for first, last in trace.gaps:
            spans_ns = edges_ns[first : last + 1]
            paused_ns += int(np.diff(spans_ns)[list_paused(spans_ns, pauses)].sum())
        facts[f"paused_s {trace.channel.name}"] = repr(paused_ns * 1e-9)
    return facts


def _calendar(capture: Capture, log: FindingLog) -> tuple[MarkerTrack, ...]:
    stepped = bool(log.count("clock_stepped") or log.count("machine_slept"))
    return calendar_marks(capture.clocks, MONOTONIC, stepped=stepped)


def _read_streams(capture: Capture, log: FindingLog) -> tuple[list[EnergyTrace], list[Lane]]:
    ordered_pauses = np.array(capture.pauses, np.int64).reshape(-1, 2)
    silent = unite_pauses(np.concatenate([ordered_pauses, say_clock_steps(capture.clocks, log)]))
    traces: list[EnergyTrace] = []
    lanes: list[Lane] = []
    for number, (stream, rows) in enumerate(zip(capture.header.streams, capture.rows, strict=True)):
        ordered = _in_order(rows, stream.meter, log)
        backs = [note.at_ns for note in capture.notes if note.slug == "meter_back" and note.stream == number]
        reopened_ns = np.array(backs, np.int64)
        for column, domain in enumerate(stream.domains):
            name = qualify(stream.meter, domain.name)
            raw = ordered.raw[:, column]
            if domain.reading is DomainReading.SIGNAL:
                if np.isfinite(raw).any():
                    unit = domain.unit
                    lanes.append(
                        Lane(name=name, unit=unit, clock=MONOTONIC, time_ns=ordered.stamp_ns, value=raw * domain.scale)
                    )
                continue
            readings = CounterReadings(
                channel=name,
                domain=domain,
                stamp_ns=ordered.stamp_ns,
                raw=raw,
                period_s=stream.period_s,
                reopened_ns=reopened_ns,
                pauses=silent,
            )
            make = counter_trace if domain.reading is DomainReading.ENERGY_COUNTER else power_trace
            with np.errstate(over="ignore", invalid="ignore"):  # a damaged number overflows to a missing value
                trace = make(readings, MONOTONIC, log)
            if trace is not None:
                traces.append(trace)
    return traces, lanes


def _in_order(rows: SampleRows, meter: str, log: FindingLog) -> SampleRows:
    """Returns the rows that move time forward."""
    stamp_ns = rows.stamp_ns
    forward = np.ones(stamp_ns.size, np.bool_)
    if stamp_ns.size:
        forward[1:] = stamp_ns[1:] > np.maximum.accumulate(stamp_ns)[:-1]
    if forward.all():
        return rows
    log.add(
        "backward_stamp",
        f"{meter}: {int((~forward).sum())} readings do not move time forward; they are left out",
        f"row {int(np.argmin(forward))}",
    )
    return SampleRows(
        stamp_ns=stamp_ns[forward], tick=rows.tick[forward], took_ns=rows.took_ns[forward], raw=rows.raw[forward]
    )


def _read_marks(path: Path, traces: list[EnergyTrace], log: FindingLog) -> tuple[Timeline | None, MarkerTrack]:
    """Returns the program's marks as a timeline, or the recorder's own when it set none; and those as markers."""
    tables = read_marks(path / MARKS_FOLDER, log) if path.is_dir() else ()
    end_ns = max((trace.end_ns for trace in traces), default=0)
    placed = place_marks(tables, end_ns, log)
    frame = np.isin(placed.kind, [number for number, kind in enumerate(placed.kinds) if kind in FRAME_KINDS])
    frames = placed.timeline(MONOTONIC, frame)
    shown = frames if frame.all() else placed.timeline(MONOTONIC, ~frame)
    edges = [
        Marker(time_ns=instant_ns, name=piece.kind, direction=way)
        for piece in frames
        for instant_ns, way in ((piece.start_ns, EdgeDirection.RISE), (piece.end_ns, EdgeDirection.FALL))
    ]
    track = MarkerTrack(name="recorder", clock=MONOTONIC, markers=tuple(sorted(edges, key=lambda m: m.time_ns)))
    return (shown if len(shown) else None), track


def _describe(capture: Capture, log: FindingLog) -> dict[str, str]:
    header = capture.header
    facts = {
        "session": header.session,
        "priority": header.priority,
        "meters": ", ".join(stream.meter for stream in header.streams),
        **utc_facts(capture.clocks),
        **describe_sampling(capture, log),
    }
    for stream in header.streams:
        for domain in stream.domains:
            name = qualify(stream.meter, domain.name)
            facts[f"reading {name}"] = str(domain.reading)
            if domain.gain_std is not None:
                facts[f"gain_std {name}"] = repr(domain.gain_std)
            if domain.update_period_s is not None:
                facts[f"update_period_s {name}"] = repr(domain.update_period_s)
            if domain.source:
                facts[f"source {name}"] = domain.source
    return facts
