"""Which relation puts a timeline on the clock of a trace: the best that the recording gives, never a guess.

In this order: what the user states; one and the same clock; marks that both saw; two clocks that both say UTC, or of
which one does and the other was read beside a calendar; and, asked for by name, correlation of power with activity.
Clocks that nothing relates are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from joulemap.analysis.clocks.correlation import correlate_activity
from joulemap.analysis.clocks.likelihood import profile_offset
from joulemap.analysis.clocks.markers import match_edges, match_marks
from joulemap.analysis.clocks.regression import fit_clock
from joulemap.errors import NotComparableError
from joulemap.records.finding import Finding, Severity
from joulemap.records.mapping.clock_map import AlignMethod, ClockMap
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, ClockKind, Timeline
from joulemap.trace.streamed import Trace

__all__ = ["Align", "AlignRequest", "solve_clock"]

_UTC_STD_S = 1e-3
"""Two clocks set by NTP agree to about a millisecond (METHODS 1.4); nothing in a file says better."""
_RATE_STD_PPM = 30.0
"""Rate of a crystal that states none: +-50 ppm, rectangular. An offset alone was found, so rates stay in doubt."""


class Align(StrEnum):
    """How the user wants a timeline to be put on the clock of a trace."""

    AUTO = "auto"
    MARKERS = "markers"
    CORRELATE = "correlate"
    LIKELIHOOD = "likelihood"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignRequest:
    """What the user says of the clocks.

    Args:
        method: how.
        offset_s: trace less timeline, s; None when not stated.
        line: edges on the trace's clock that stand for slices; empty without.
        slices: name of these slices.
        together: both were read from one recording, whose clocks of one name are one clock.
    """

    method: Align = Align.AUTO
    offset_s: float | None = None
    line: str = ""
    slices: str = ""
    together: bool = False


def solve_clock(
    trace: Trace, timeline: Timeline, markers: Sequence[MarkerTrack], request: AlignRequest
) -> tuple[ClockMap, tuple[Finding, ...]]:
    """Returns the relation from the timeline's clock to the trace's, and what is doubtful about it.

    Args:
        trace: power.
        timeline: slices, at least one.
        markers: of all sources.
        request: what the user says.

    Raises:
        NotComparableError: nothing relates the clocks (``clocks-unrelated``), or two offsets fit alike.
        InputError: named edges and slices do not fit each other.
    """
    source, target = timeline.clock, trace.clock
    stated = _stated(trace, timeline, markers, request)
    if stated is not None:
        return stated
    if request.method is Align.AUTO and source == target and (request.together or source.kind is ClockKind.UTC):
        if request.together:
            return ClockMap(source=source, target=target), ()
        return _both_utc(source.name, ClockMap(source=source, target=target, method=AlignMethod.UTC, std_s=_UTC_STD_S))
    marks = match_marks(
        [track for track in markers if track.clock == source], [track for track in markers if track.clock == target]
    )
    if source != target and marks[0].size >= 2:
        return fit_clock((source, marks[0]), (target, marks[1]), method=AlignMethod.MARKERS), ()
    if request.method is Align.AUTO and source.kind is target.kind is ClockKind.UTC:
        relation = ClockMap(source=source, target=target, method=AlignMethod.UTC, std_s=_UTC_STD_S)
        return _both_utc(f"{source.name} and {target.name}", relation)
    bridged = _by_calendar(source, target, markers) if request.method is Align.AUTO else None
    if bridged is not None:
        return _both_utc(f"{source.name} and {target.name}, whose machine noted its calendar", bridged)
    raise NotComparableError(
        f"nothing relates the timeline's clock {source.name} ({source.kind}) to the trace's {target.name}"
        f" ({target.kind})",
        hint="give a mark that both saw (--marker LINE=SLICE), the offset (--offset), a zone when importing"
        " (--utc-offset), or try --align correlate",
        slug="clocks-unrelated",
    )


def _stated(
    trace: Trace, timeline: Timeline, markers: Sequence[MarkerTrack], request: AlignRequest
) -> tuple[ClockMap, tuple[Finding, ...]] | None:
    """Returns the relation that the user asked for by name; None to take the best that the recording gives."""
    source, target = timeline.clock, trace.clock
    if request.offset_s is not None:
        offset_ns = round(request.offset_s * 1e9)
        return ClockMap(source=source, target=target, offset_ns=offset_ns, method=AlignMethod.STATED), ()
    if request.line:
        own = [track for track in markers if track.clock == target]
        pair = match_edges(own, timeline, line=request.line, name=request.slices)
        return fit_clock((source, pair[0]), (target, pair[1]), method=AlignMethod.MARKERS), ()
    if request.method in (Align.CORRELATE, Align.LIKELIHOOD):
        return _correlated(trace, timeline, request)
    return None


def _by_calendar(source: Clock, target: Clock, markers: Sequence[MarkerTrack]) -> ClockMap | None:
    """Returns the relation of two clocks of which one says UTC and the other was read together with a third that does.

    A recorder notes its machine's calendar beside its monotonic clock; another source's UTC is that calendar to 1 ms.
    """
    if (source.kind is ClockKind.UTC) == (target.kind is ClockKind.UTC):
        return None
    other = target if source.kind is ClockKind.UTC else source
    calendars = [track for track in markers if track.clock.kind is ClockKind.UTC]
    utc_ns, other_ns = match_marks(calendars, [track for track in markers if track.clock == other])
    if not utc_ns.size:
        return None
    stamps = (utc_ns, other_ns) if source.kind is ClockKind.UTC else (other_ns, utc_ns)
    relation = fit_clock((source, stamps[0]), (target, stamps[1]), method=AlignMethod.UTC)
    return replace(relation, std_s=math.hypot(relation.std_s, _UTC_STD_S))


def _both_utc(names: str, relation: ClockMap) -> tuple[ClockMap, tuple[Finding, ...]]:
    message = f"{names}: both say UTC and nothing in the recording checks it; they are taken to agree to 1 ms (1 sd)"
    return relation, (Finding(slug="clocks_taken_as_utc", severity=Severity.INFO, message=message),)


def _correlated(trace: Trace, timeline: Timeline, request: AlignRequest) -> tuple[ClockMap, tuple[Finding, ...]]:
    found = correlate_activity(trace, timeline)
    middle_ns = int(timeline.start_ns[0]) + int((timeline.start_ns - timeline.start_ns[0]).mean())
    rates = (timeline.clock.rate_std_ppm, trace.clock.rate_std_ppm)
    relation = ClockMap(
        source=timeline.clock,
        target=trace.clock,
        reference_ns=middle_ns,
        offset_ns=found.offset_ns,
        std_s=found.std_s,
        drift_std=math.hypot(*(_RATE_STD_PPM if rate is None else rate for rate in rates)) * 1e-6,
        points=found.points,
        method=AlignMethod.CORRELATION,
    )
    said = f"the activity explains {found.share:.0%} of the power's variance and adds {found.step_w:.4g} W to idle"
    if request.method is Align.LIKELIHOOD:
        moved = Timeline(
            clock=trace.clock,
            start_ns=relation.apply(timeline.start_ns),
            end_ns=relation.apply(timeline.end_ns),
            name_index=timeline.name_index,
            names=timeline.names,
            track_index=timeline.track_index,
            tracks=timeline.tracks,
            kind_index=timeline.kind_index,
            kinds=timeline.kinds,
        )
        step_s = trace.period_s or 0.0
        finer = profile_offset(trace, moved, half_range_s=max(4.0 * found.std_s, step_s))
        if finer is not None:
            shift_ns = round(finer.shift_ns)
            relation = replace(
                relation,
                offset_ns=found.offset_ns + shift_ns,
                std_s=finer.std_s,
                method=AlignMethod.LIKELIHOOD,
            )
            said += f"; the schedule's likelihood moved it by {finer.shift_ns * 1e-9:.3g} s"
    message = f"the timeline was placed to {relation.std_s:.3g} s (1 sd) by its power: {said}"
    return relation, (Finding(slug="clock_from_power", severity=Severity.INFO, message=message),)
