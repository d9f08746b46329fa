"""The map of a recording: mapped power first, lanes of what ran, then rails inside it and counters. Pure.

A bundle without power has a map too: how many tracks were busy, or its first counter, takes the place of power.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from joulemap.records.finding import Finding, Severity
from joulemap.report.view.fold import build_fold
from joulemap.report.view.recording.sections import Document, PlacedWork, PowerLine, RecordingSections
from joulemap.report.view.recording.work import LaidWork, lay_work, plan_slices
from joulemap.report.view.scene import Excerpt, Level, Mark, Origin, PowerUncertainty, Scene, SliceName, Track
from joulemap.report.view.slices import empty_slices
from joulemap.report.view.text import format_measured, printable, shorten
from joulemap.report.view.tracks import (
    BINS,
    bin_trace,
    build_excerpt,
    build_power_track,
    build_value_track,
    plan_edges,
)
from joulemap.report.view.windows import open_window, worst_windows
from joulemap.trace import Clock, ClockKind, Timeline
from joulemap.units import format_si

__all__ = ["MARK_LIMIT", "TRACK_LIMIT", "SceneParts", "build_scene"]

TRACK_LIMIT = 20
"""Tracks that a page holds: mapped power, then rails by energy, then counters in their order."""

MARK_LIMIT = 1000
"""Instants that a page holds."""

_OPEN_BINS = 2000
_RAW_SAMPLES = 2000
_UNITS = ("inference", "iteration", "step", "request")
_IDLE_SHARE = 0.01

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SceneParts:
    """The map, its fold, where names are found on it, and what was left out."""

    scene: Scene | None
    fold: Scene | None
    shown: Mapping[str, tuple[int, ...]]
    findings: tuple[Finding, ...]


def build_scene(sections: RecordingSections, known: Mapping[str, SliceName]) -> SceneParts:
    """Returns the map; without a scene when everything in the bundle is of one instant.

    Args:
        sections: of the page.
        known: what the tooltip says of each slice name.
    """
    span_ns = _span(sections)
    if span_ns is None:
        return SceneParts(scene=None, fold=None, shown={}, findings=())
    mapped = tuple(line for line in sections.lines if line.mapped and line.trace is not None)
    periods_ns = _periods(sections.work, span_ns)
    opened = open_window(periods_ns, start_ns=span_ns[0], end_ns=span_ns[1])
    edges_ns = plan_edges(*span_ns)
    excerpts = _excerpts(mapped, periods_ns, (opened, span_ns))
    tracks, left_out = _tracks(sections, mapped, edges_ns)
    if not tracks:
        return SceneParts(scene=None, fold=None, shown={}, findings=())
    laid = LaidWork(slices=empty_slices(), shown={}, findings=())
    if sections.work is not None:
        windows = [opened, *((_ns(e.start_s, span_ns), _ns(e.end_s, span_ns)) for e in excerpts)]
        samples = sum(e.mean.size * (1 if e.raw else 3) for e in excerpts)
        limit = plan_slices(sections.work, tracks=len(tracks), bins=edges_ns.size - 1, samples=samples)
        laid = lay_work(sections.work, mapped, span_ns, windows_ns=windows, known=known, limit=limit)
    level = None if sections.document is None else _level(sections.document)
    marks, lost_marks = _marks(sections, span_ns, opened)
    scene = Scene(
        label=_label(sections, periods_ns),
        span_s=float(edges_ns[-1] - edges_ns[0]) * 1e-9,
        tracks=tracks,
        slices=laid.slices,
        bands=(),
        level=level,
        excerpts=excerpts,
        open_s=((opened[0] - span_ns[0]) * 1e-9, (opened[1] - span_ns[0]) * 1e-9),
        period_s=float(np.mean(np.diff(periods_ns[:, 0]))) * 1e-9 if periods_ns.shape[0] > 1 else None,
        marks=marks,
        origin=describe_origin(sections.clock, span_ns[0]),
    )
    fold = None
    if len(mapped) == 1 and mapped[0].trace is not None and periods_ns.shape[0]:
        fold = build_fold(
            mapped[0].trace,
            replace(laid.slices, expanded_j=None),
            periods_ns,
            origin_ns=span_ns[0],
            name=tracks[0].name,
            uncertainty=tracks[0].uncertainty,
            level=level,
            label=f"{periods_ns.shape[0]} units of work folded into one",
        )
    return SceneParts(scene=scene, fold=fold, shown=laid.shown, findings=(*laid.findings, *left_out, *lost_marks))


def _ns(at_s: float, span_ns: tuple[int, int]) -> int:
    return round(at_s * 1e9) + span_ns[0]


def describe_origin(clock: Clock, at_ns: int) -> Origin:
    """Returns what 0 of the axis is on its clock."""
    if clock.kind in (ClockKind.UTC, ClockKind.LOCAL):
        whole, rest_ns = divmod(at_ns, 1_000_000_000)
        stamp = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%d %H:%M:%S") + f".{rest_ns // 1_000_000:03d}"
        if clock.kind is ClockKind.UTC:
            return Origin(label=f"0 = {stamp} UTC", utc_ns=at_ns)
        return Origin(label=f"0 = {stamp} local time, as the source has it")
    if clock.kind is ClockKind.SAMPLE_INDEX:
        first = "the first sample" if at_ns == 0 else f"{format_si(at_ns * 1e-9, 's', digits=6)} after the first sample"
        return Origin(label=f"0 = {first}; the source has no time of day")
    word = {ClockKind.MONOTONIC: "monotonic", ClockKind.COUNTER: "counter"}.get(clock.kind, str(clock.kind))
    return Origin(label=f"0 = {at_ns * 1e-9:.6f}\u2009s of the {word} clock {printable(clock.name)}")


def _span(sections: RecordingSections) -> tuple[int, int] | None:
    """Returns start and end of the map, ns: of the mapped traces, else of everything; None for a single instant."""
    ends = [(line.trace.start_ns, line.trace.end_ns) for line in sections.lines if line.mapped and line.trace]
    if not ends and sections.work is not None and len(sections.work.timeline):
        timeline = sections.work.timeline
        ends = [(int(timeline.start_ns.min()), int(timeline.end_ns.max()))]
    if not ends:
        ends = [(int(v.time_ns[0]), int(v.time_ns[-1])) for v in sections.values if v.time_ns.size > 1]
    if not ends:
        return None
    start_ns, end_ns = min(a for a, _ in ends), max(b for _, b in ends)
    return (start_ns, end_ns) if end_ns > start_ns else None


def _periods(work: PlacedWork | None, span_ns: tuple[int, int]) -> Ints:
    """Returns (p, 2) ns of the units of work inside the scene, in order; empty when none is known to be one."""
    none = np.empty((0, 2), np.int64)
    if work is None:
        return none
    timeline = work.timeline
    if work.per in timeline.names:
        rows = timeline.name_index == timeline.names.index(work.per)
    else:
        kind = next((k for k, word in enumerate(timeline.kinds) if word in (work.per or _UNITS)), None)
        if kind is None:
            return none
        rows = timeline.kind_index == kind
    rows = rows & (timeline.start_ns >= span_ns[0]) & (timeline.end_ns <= span_ns[1])
    pairs = np.column_stack([timeline.start_ns[rows], timeline.end_ns[rows]])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    apart = (
        pairs.shape[0] > 1 and bool(np.all(pairs[1:, 0] >= pairs[:-1, 1])) and bool(np.all(pairs[:, 1] > pairs[:, 0]))
    )
    return pairs if apart else none


def _excerpts(
    mapped: Sequence[PowerLine], periods_ns: Ints, windows: tuple[tuple[int, int], tuple[int, int]]
) -> tuple[Excerpt, ...]:
    """Returns finer bins of the window that the page opens on, and raw samples of the worst ones."""
    opened, span_ns = windows
    if len(mapped) != 1 or mapped[0].trace is None:
        return ()
    trace, made = mapped[0].trace, []
    if opened != span_ns:
        made.append(build_excerpt(trace, *opened, origin_ns=span_ns[0], bins=_OPEN_BINS, label=""))
    if trace.n > 2 * BINS:  # else the bins of the map are about as fine as the samples
        for window in worst_windows(trace, periods_ns, samples=_RAW_SAMPLES, inside_ns=None):
            if window.end_ns > window.start_ns:
                ends = (window.start_ns, window.end_ns)
                made.append(
                    build_excerpt(trace, *ends, origin_ns=span_ns[0], bins=_RAW_SAMPLES + 2, label=window.label)
                )
    return tuple(made)


def _tracks(
    sections: RecordingSections, mapped: Sequence[PowerLine], edges_ns: Ints
) -> tuple[tuple[Track, ...], tuple[Finding, ...]]:
    made: list[Track] = []
    if len(mapped) == 1:
        made.append(_power_track(mapped[0], edges_ns, f"Power, {_title(mapped[0])}"))
    elif mapped:
        made.append(_sum_track(mapped, edges_ns))
    elif sections.work is not None and len(sections.work.timeline):
        made.append(_busy_track(sections.work.timeline, edges_ns))
    rails = [line for line in sections.lines if line.trace is not None and (not line.mapped or len(mapped) > 1)]
    rails.sort(key=lambda line: -(line.energy["value"] or 0.0))
    wanted = [(_title(line), line) for line in rails] + [(printable(shorten(v.name, 48)), v) for v in sections.values]
    room = TRACK_LIMIT - len(made)
    for name, source in wanted[:room]:
        if isinstance(source, PowerLine):
            made.append(_power_track(source, edges_ns, name))
        else:
            unit = "\u00b0C" if source.unit == "degC" else source.unit
            made.append(build_value_track(source.time_ns, source.value, edges_ns, name=name, unit=unit))
    left = [name for name, _ in wanted[room:]]
    if not left:
        return tuple(made), ()
    message = f"the map shows {len(made)} of {len(made) + len(left)} tracks; left out are {', '.join(left[:8])}"
    message += f" and {len(left) - 8} more" if len(left) > 8 else ""
    return tuple(made), (Finding(slug="tracks_left_out", severity=Severity.INFO, message=message),)


def _power_track(line: PowerLine, edges_ns: Ints, name: str) -> Track:
    assert line.trace is not None  # only such lines are drawn
    track = build_power_track(line.trace, edges_ns, name=name, uncertainty=_known(line.limits))
    if not line.inside or line.mapped:
        return track
    return replace(track, note=printable(f"inside {shorten(', '.join(line.inside), 60)}: part of it, never added"))


def _known(limits: PowerUncertainty) -> PowerUncertainty | None:
    """Returns the limits, or None when nothing at all is known: then a window has no U."""
    stds = (limits.gain_std, limits.clock_std, limits.offset_std_w, limits.noise_std_w)
    return limits if any(std > 0 for std in stds) else None


def _title(line: PowerLine) -> str:
    if not line.inside or line.mapped:
        return printable(shorten(line.name, 48))
    return printable(f"\u21b3 {shorten(line.name, 48)}")


def _sum_track(lines: Sequence[PowerLine], edges_ns: Ints) -> Track:
    """Returns the sum of traces: its mean is exact, low and high are what the sum cannot leave."""
    bins = [bin_trace(line.trace, edges_ns) for line in lines if line.trace is not None]
    limits = max((line.limits for line in lines), key=lambda known: known.gain_std)
    limits = replace(
        limits,
        offset_std_w=sum(line.limits.offset_std_w for line in lines),  # one meter: offsets may add up
        noise_std_w=float(np.hypot.reduce([line.limits.noise_std_w for line in lines])),
        rate_hz=min(line.limits.rate_hz for line in lines),
    )
    return Track(
        name=f"Power, {printable(shorten(' + '.join(line.name for line in lines), 60))}",
        unit="W",
        low=np.sum([b.low_w for b in bins], axis=0),
        high=np.sum([b.high_w for b in bins], axis=0),
        mean=np.sum([b.mean_w for b in bins], axis=0),
        uncertainty=_known(limits),
        spread="sums of lows and highs",
    )


def _busy_track(timeline: Timeline, edges_ns: Ints) -> Track:
    """Returns how many tracks have a slice open, over time."""
    steps = []
    for track in range(len(timeline.tracks)):
        rows = np.flatnonzero(timeline.track_index == track)
        start_ns, end_ns = timeline.start_ns[rows], timeline.end_ns[rows]
        order = np.argsort(start_ns, kind="stable")
        start_ns, reach_ns = start_ns[order], np.maximum.accumulate(end_ns[order]) if rows.size else end_ns
        first = np.ones(rows.size, np.bool_)
        first[1:] = start_ns[1:] > reach_ns[:-1]
        last = np.append(first[1:], True)[: rows.size]
        steps += [(start_ns[first], 1), (reach_ns[last], -1)]
    at_ns = np.concatenate([at for at, _ in steps])
    change = np.concatenate([np.full(at.size, by, np.float64) for at, by in steps])
    times_ns, home = np.unique(at_ns, return_inverse=True)
    busy = np.cumsum(np.bincount(home, weights=change), dtype=np.float64)
    return build_value_track(times_ns, busy, edges_ns, name="Busy tracks", unit="1")


def _level(document: Document) -> Level | None:
    idle, idle_s = document["idle_j"], document["duration_s"] - document["busy_s"]
    if idle["value"] is None or idle_s <= _IDLE_SHARE * document["duration_s"] or not document["rows"]:
        return None
    power = {"value": idle["value"] / idle_s, "expanded": idle["expanded"] / idle_s}
    return Level(label=f"idle {format_measured(power, 'W')}", value=power["value"])


def _marks(
    sections: RecordingSections, span_ns: tuple[int, int], opened: tuple[int, int]
) -> tuple[tuple[Mark, ...], tuple[Finding, ...]]:
    inside = sorted((m for m in sections.marks if span_ns[0] <= m.at_ns <= span_ns[1]), key=lambda mark: mark.at_ns)
    shown = inside
    if len(inside) > MARK_LIMIT:  # half of them where the page opens, the others over everything, each every so many
        near = [mark for mark in inside if opened[0] <= mark.at_ns <= opened[1]]
        kept = {id(mark) for part in (near, inside) for mark in part[:: -(-len(part) // (MARK_LIMIT // 2)) or 1]}
        shown = [mark for mark in inside if id(mark) in kept]
    marks = tuple(Mark(label=shorten(printable(m.label), 48), at_s=(m.at_ns - span_ns[0]) * 1e-9) for m in shown)
    if len(inside) == len(shown):
        return marks, ()
    message = f"the map shows {len(shown)} of {len(inside)} instants (edges, marks)"
    return marks, (Finding(slug="tracks_left_out", severity=Severity.INFO, message=message),)


def _label(sections: RecordingSections, periods_ns: Ints) -> str:
    parts = []
    if sections.work is not None and sections.work.name:
        parts.append(f"timeline {printable(shorten(sections.work.name, 40))}")
    if periods_ns.size:
        parts.append(f"{periods_ns.shape[0]} units of work")
    return ", ".join(parts) or "whole recording"
