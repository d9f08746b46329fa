"""The map of a profile: the waveform of one capture with its gate, idle power, inferences and layers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.records.finding import Finding
from joulemap.report.view.colors import NEUTRAL
from joulemap.report.view.scene import Band, Level, Mark, PowerUncertainty, Scene, SliceName
from joulemap.report.view.slices import build_slices, empty_slices, thin_slices
from joulemap.report.view.text import format_quantity, format_share, format_time, printable
from joulemap.report.view.waveform.fold import build_fold
from joulemap.report.view.waveform.tracks import build_excerpt, build_power_track, plan_edges
from joulemap.report.view.waveform.windows import open_window, worst_windows
from joulemap.trace import EnergyTrace, Marker, Timeline

__all__ = ["Waveform", "build_scenes"]

Document = Mapping[str, Any]
_OPEN_BINS = 2000
_RAW_SAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waveform:
    """One capture as it was recorded.

    Args:
        capture: its number.
        trace: power over time.
        timeline: what ran when, on the same clock; None when the capture has none.
        edges: of the logic lines, on the same clock.
    """

    capture: int
    trace: EnergyTrace
    timeline: Timeline | None
    edges: tuple[Marker, ...] = ()


def build_scenes(
    document: Document, run: Document, waveform: Waveform, colors: Mapping[str, int]
) -> tuple[Scene, Scene | None, dict[int, int], tuple[Finding, ...]]:
    """Returns the map, its fold, the slice name of each layer, and what had to be left out.

    Args:
        document: of the profile.
        run: ``run.json``.
        waveform: to show.
        colors: palette index by op.
    """
    trace, timeline = waveform.trace, waveform.timeline
    end_ns = max(trace.end_ns, trace.start_ns + 1)
    edges_ns = plan_edges(trace.start_ns, end_ns)
    uncertainty = _uncertainty(run.get("instrument"))
    name = f"Power, {printable(trace.channel.name)}"
    level = _level(document)
    slices, periods_ns = empty_slices(), np.empty((0, 2), np.int64)
    names: dict[int, int] = {}
    if timeline is not None:
        known = _known(document, colors)
        slices = build_slices(timeline, trace, origin_ns=trace.start_ns, known=known)
        periods_ns = _periods(timeline)
        shown = {word: k for k, word in enumerate(timeline.names)}
        names = {
            layer["index"]: shown[key]
            for layer in document["layers"]
            if (key := f"{layer['op']} #{layer['index']}") in shown
        }
    fold = build_fold(
        trace,
        slices,
        periods_ns,
        origin_ns=trace.start_ns,
        name=name,
        uncertainty=uncertainty,
        level=level,
        label=f"{periods_ns.shape[0]} inferences folded into one",
    )
    bands = _bands(document, waveform, trace.start_ns)
    opened = open_window(periods_ns, start_ns=trace.start_ns, end_ns=end_ns)
    gate_ns = (
        (trace.start_ns + round(bands[0].start_s * 1e9), trace.start_ns + round(bands[0].end_s * 1e9))
        if bands
        else None
    )
    worst = worst_windows(trace, periods_ns, samples=_RAW_SAMPLES, inside_ns=gate_ns)
    excerpts = [build_excerpt(trace, *opened, origin_ns=trace.start_ns, bins=_OPEN_BINS, label="")] + [
        build_excerpt(trace, w.start_ns, w.end_ns, origin_ns=trace.start_ns, bins=_RAW_SAMPLES + 2, label=w.label)
        for w in worst
    ]
    open_s = ((opened[0] - trace.start_ns) * 1e-9, (opened[1] - trace.start_ns) * 1e-9)
    slices, thinned = thin_slices(slices, [open_s, *((e.start_s, e.end_s) for e in excerpts[1:])])
    scene = Scene(
        label=f"capture {waveform.capture}",
        span_s=float(edges_ns[-1] - edges_ns[0]) * 1e-9,
        tracks=(build_power_track(trace, edges_ns, name=name, uncertainty=uncertainty),),
        slices=slices,
        bands=bands,
        level=level,
        excerpts=tuple(excerpts),
        open_s=open_s,
        period_s=float(np.mean(periods_ns[:, 1] - periods_ns[:, 0])) * 1e-9 if periods_ns.size else None,
        marks=_marks(waveform, bands),
    )
    return scene, fold, names, () if thinned is None else (thinned,)


def _uncertainty(spec: Document | None) -> PowerUncertainty | None:
    if spec is None:
        return None
    return PowerUncertainty(
        gain_std=spec["gain_std"],
        clock_std=spec["clock_std_ppm"] * 1e-6,
        offset_std_w=spec["offset_std_w"],
        noise_std_w=spec["noise_std_w"],
        rate_hz=spec["rate_hz"],
    )


def _level(document: Document) -> Level | None:
    idle = document["idle_power_w"]
    if idle["value"] is None:
        return None
    return Level(label=f"idle {format_quantity(idle, 'W')}", value=idle["value"])


def _periods(timeline: Timeline) -> NDArray[np.int64]:
    """Returns (p, 2) ns of the inferences, in order; empty without any."""
    if "inference" not in timeline.kinds:
        return np.empty((0, 2), np.int64)
    rows = timeline.kind_index == timeline.kinds.index("inference")
    order = np.argsort(timeline.start_ns[rows], kind="stable")
    return np.column_stack([timeline.start_ns[rows][order], timeline.end_ns[rows][order]])


def _bands(document: Document, waveform: Waveform, origin_ns: int) -> tuple[Band, ...]:
    for capture in document["captures"]:
        measured = capture["observation"]["result"]
        if capture["index"] == waveform.capture and measured is not None and measured["gate"] is not None:
            gate = measured["gate"]
            return (
                Band(
                    label="GATE",
                    start_s=(gate["rise_ns"] - origin_ns) * 1e-9,
                    end_s=(gate["fall_ns"] - origin_ns) * 1e-9,
                ),
            )
    return ()


def _marks(waveform: Waveform, bands: tuple[Band, ...]) -> tuple[Mark, ...]:
    """Returns the edges of the logic lines; those of GATE only where no band shows them."""
    shown = {band.label.lower() for band in bands}
    origin_ns = waveform.trace.start_ns
    return tuple(
        Mark(label=printable(f"{edge.name.upper()} {edge.direction}"), at_s=(edge.time_ns - origin_ns) * 1e-9)
        for edge in waveform.edges
        if edge.name not in shown
    )


def _known(document: Document, colors: Mapping[str, int]) -> dict[str, SliceName]:
    """Returns what the tooltip says of each slice name: the very texts of the table."""
    total = document["energy_per_inference_j"]
    groups = {group["id"]: group for group in document["groups"]}
    known = {
        "gate": SliceName(name="run", op="", color=NEUTRAL),
        "inference": SliceName(
            name="inference", op="", color=NEUTRAL, facts=(f"{format_quantity(total, 'J')} per inference",)
        ),
    }
    for layer in document["layers"]:
        key = f"{layer['op']} #{layer['index']}"
        energy = layer["energy_j"]
        if energy["value"] is not None and total["value"]:
            share = format_share(energy["value"] / total["value"], energy["expanded"] / abs(total["value"]))
            fact = f"{format_quantity(energy, 'J')} per inference ({share})"
        elif layer["group"]:
            fact = f"in {layer['group']}: {format_quantity(groups[layer['group']]['energy_j'], 'J')} together"
        else:
            fact = f"no energy: {energy['reason']}"
        facts = (fact, f"{format_time(layer['duration_s'])} per inference", layer["name"])
        known[key] = SliceName(
            name=printable(key),
            op=printable(layer["op"]),
            color=colors.get(layer["op"], NEUTRAL),
            facts=tuple(printable(text) for text in facts if text),
        )
    return known
