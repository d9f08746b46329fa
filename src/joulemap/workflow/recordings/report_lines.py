"""Traces, counters and marks of a bundle on one clock, as the page draws them; what nothing relates is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.mapping.energy_map import MapRequest, correct_trace, map_energy
from joulemap.analysis.mapping.sums import describe_traces
from joulemap.analysis.recorded.pauses import stated_pause_s
from joulemap.analysis.sampling import TraceFacts
from joulemap.estimate import Quantity
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap
from joulemap.report.view.recording.sections import MarkLine, PowerLine, ValueLine
from joulemap.report.view.scene import PowerUncertainty
from joulemap.report.view.text import printable, shorten
from joulemap.trace import Clock, ClockKind
from joulemap.trace.streamed import Trace
from joulemap.units import format_si
from joulemap.workflow.recordings.map_bundle import BundleMapRequest, MappedRecording, find_meter
from joulemap.workflow.recordings.recording_bundle import RecordingBundle

__all__ = ["Place", "list_lines", "list_marks", "list_values", "plan_place"]

_POINTS = 40
"""Counters of one instant that a page names."""

Ints = NDArray[np.int64]
Place = Callable[[int, Clock, Ints], "Ints | None"]
"""Number of a recording, a clock of it, instants: the instants on the page's clock, None when nothing relates them."""


def plan_place(page: tuple[int, Clock], line: tuple[int, ClockMap] | None) -> Place:
    """Returns how instants get onto the page's clock.

    Clocks of one name are one clock within one recording; two clocks that say UTC are one; a timeline's clock goes
    where its slices went.

    Args:
        page: number of the recording that the page's clock is of, and that clock.
        line: number of the timeline's recording, and the relation of its clock to the page's; None without.
    """

    def place(number: int, clock: Clock, at_ns: Ints) -> Ints | None:
        same = clock == page[1] and (number == page[0] or clock.kind is ClockKind.UTC)
        if same or clock.kind is page[1].kind is ClockKind.UTC:
            return at_ns
        if line is not None and number == line[0] and clock == line[1].source:
            return line[1].apply(at_ns)
        return None

    return place


def list_lines(
    recordings: RecordingBundle, mapped: MappedRecording, request: BundleMapRequest, place: Place
) -> tuple[PowerLine, ...]:
    """Returns every trace of the bundle, the mapped ones first, each with its energy."""
    lines = []
    for number, entry in enumerate(recordings.entries):
        names = {trace.channel: trace.name for trace in entry.traces}
        for known in entry.traces:
            inside = tuple(names[outer] for inner, outer in entry.overlaps if inner == known.channel and outer in names)
            mapped_one = known.name in mapped.trace_names
            if mapped_one:
                trace, meter = mapped.traces[mapped.trace_names.index(known.name)], mapped.meter
            else:
                trace = recordings.open_trace(known.name)
                meter = find_meter(request, entry, [trace])
                trace = correct_trace(trace, meter)
            alone = mapped.map if mapped_one and len(mapped.trace_names) == 1 else None  # then it is measured already
            told = MapRequest(paused_s=stated_pause_s(entry.metadata, trace.channel.name))
            energy = alone or map_energy([trace], None, None, meter, request=told)
            shown = mapped_one or place(number, trace.clock, np.array([trace.start_ns], np.int64)) is not None
            line = _line(known.name, trace, energy, meter)
            lines.append(replace(line, inside=inside, mapped=mapped_one, trace=line.trace if shown else None))
    return tuple(sorted(lines, key=lambda line: not line.mapped))


def _line(name: str, trace: Trace, energy: EnergyMap, meter: MeterErrors) -> PowerLine:
    facts = describe_traces([trace])
    return PowerLine(
        name=name,
        trace=trace if trace.n else None,
        inside=(),
        mapped=False,
        energy=_json(energy.total_j),
        power=_json(energy.power_w),
        boundary=str(trace.channel.boundary),
        samples=trace.n,
        step_s=facts.step_s,
        limits=_limits(trace, facts, meter),
    )


def _json(quantity: Quantity) -> dict[str, object]:
    return quantity.to_json()


def _limits(trace: Trace, facts: TraceFacts, meter: MeterErrors) -> PowerUncertainty:
    return PowerUncertainty(
        gain_std=meter.gain_std,
        clock_std=(trace.clock.rate_std_ppm or 0.0) * 1e-6,
        offset_std_w=meter.offset_std_w,
        noise_std_w=facts.noise_w,
        rate_hz=1.0 / facts.step_s if facts.step_s > 0 else 1.0,
    )


def list_values(
    recordings: RecordingBundle, place: Place
) -> tuple[tuple[ValueLine, ...], tuple[tuple[str, str], ...], list[str]]:
    """Returns counters over time, those of one instant as label and text, and the names of what has no place."""
    values, points, lost = [], [], []
    for number, entry in enumerate(recordings.entries):
        for lane in recordings.load_lanes_of(entry):
            if lane.value.size < 2:
                if np.isfinite(lane.value).any():
                    points.append((printable(shorten(lane.name, 60)), _say(float(lane.value[0]), lane.unit)))
                continue
            at_ns = place(number, lane.clock, lane.time_ns)
            if at_ns is None:
                lost.append(printable(shorten(lane.name, 48)))
                continue
            values.append(ValueLine(name=lane.name, unit=lane.unit, time_ns=at_ns, value=lane.value))
    if len(points) > _POINTS:
        points = [*points[:_POINTS], (f"{len(points) - _POINTS} more", "in the bundle")]
    return tuple(values), tuple(points), lost


def _say(value: float, unit: str) -> str:
    if unit == "degC":
        return f"{value:.4g}\u2009\u00b0C"
    return format_si(value, "" if unit == "1" else unit)


def list_marks(recordings: RecordingBundle, place: Place) -> tuple[MarkLine, ...]:
    """Returns edges and marks that have a place on the page's clock."""
    marks = []
    for number, entry in enumerate(recordings.entries):
        for track in recordings.load_markers_of(entry):
            at_ns = place(number, track.clock, np.array([m.time_ns for m in track.markers], np.int64))
            if at_ns is None:
                continue
            for marker, moved_ns in zip(track.markers, at_ns.tolist(), strict=True):
                edge = "" if str(marker.direction) == "none" else f" {marker.direction}"
                marks.append(MarkLine(label=f"{marker.name}{edge}", at_ns=moved_ns))
    return tuple(marks)
