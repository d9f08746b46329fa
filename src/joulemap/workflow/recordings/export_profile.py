"""A profile for another tool: the waveform of one capture, with run, inferences and layers where its gate shows them.

Slices hold what the waveform holds between their edges where the samples resolve the layer; a layer that only many
samples together tell (least squares) has its energy per inference on each of its slices; what was refused has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError, UsageError
from joulemap.formats.bundle import Bundle
from joulemap.formats.registry import RESULT, TIMELINE, list_traces, load_timeline, load_trace
from joulemap.records.finding import Finding, Severity
from joulemap.records.mapping.clock_map import AlignMethod, ClockMap
from joulemap.trace import Clock, ClockKind, EnergyTrace, Timeline
from joulemap.trace.sweep import GroupedSlices, Split, sweep_energy
from joulemap.workflow.recordings.export_writers import ExportSource
from joulemap.workflow.recordings.placed_slices import PlacedSlices
from joulemap.workflow.result import SCHEMA as PROFILE_SCHEMA

__all__ = ["place_profile"]

_WORDS = ("overlap", "least_squares", "in_place", "refused", "outside")
_EDGE = 12.0**-0.5  # an instant known to one sample: standard deviation of a rectangle

Document = Mapping[str, Any]


def place_profile(
    bundle: Bundle, wanted: Sequence[str]
) -> tuple[ExportSource, PlacedSlices | None, tuple[EnergyTrace, ...]]:
    """Returns what is exported of a profile: its source, the slices, and the trace.

    Args:
        bundle: of kind ``profile``.
        wanted: name of one capture's trace; empty for the first valid capture.

    Raises:
        UsageError: no capture has that name, or several are named.
        InputError: no capture left samples (``no-waveform``).
        FormatError: a section is damaged.
    """
    result = bundle.read_json(RESULT, schema=PROFILE_SCHEMA)
    names = {int(name.rpartition("-")[2]): name for name in list_traces(bundle) if name.rpartition("-")[2].isdecimal()}
    captures = {capture["index"]: capture for capture in result["captures"] if capture["index"] in names}
    index = _choose(bundle, captures, names, wanted)
    trace, edges = load_trace(bundle, names[index])
    timeline = _lay(bundle, captures, index) if bundle.has(TIMELINE) else None
    placed = None if timeline is None else _place(trace, timeline, result)
    clock = None if timeline is None else _relate(trace, captures[index], result)
    source = ExportSource(
        name=names[index],
        boundary=str(trace.channel.boundary),
        provenance=str(trace.channel.provenance),
        clock=clock,
        findings=tuple(
            Finding(slug=f["slug"], severity=Severity(f["severity"]), message=f["message"], span=f["span"] or "")
            for f in result["findings"]
        ),
        marks=edges,
    )
    return source, placed, (trace,)


def _choose(bundle: Bundle, captures: Mapping[int, Document], names: Mapping[int, str], wanted: Sequence[str]) -> int:
    if not captures:
        raise InputError(
            f"{bundle.folder.name}: no capture left a waveform",
            hint="export its energies per inference with --table, or run joulemap profile with --power",
            slug="no-waveform",
        )
    if len(wanted) > 1:
        raise UsageError(
            f"--trace {' --trace '.join(wanted)}: captures are repeats of one run and never added",
            hint="name one of them",
            slug="flags-contradict",
        )
    if wanted:
        named = [index for index in captures if names[index] == wanted[0]]
        if not named:
            raise UsageError(
                f"the bundle has no trace {wanted[0]!r}",
                hint=f"one of: {', '.join(names[index] for index in captures)}",
                slug="trace-unknown",
            )
        return named[0]
    valid = [index for index, capture in captures.items() if capture["observation"]["integrity"] == "valid"]
    return (valid or list(captures))[0]


def _lay(bundle: Bundle, captures: Mapping[int, Document], index: int) -> Timeline | None:
    """Returns the bundle's timeline, moved from the gate that it was laid in to that of another capture."""
    timeline = load_timeline(bundle)
    if captures[index]["observation"]["integrity"] != "valid":
        return None  # only there N is known to fill the gate
    home = next(k for k, capture in captures.items() if capture["observation"]["integrity"] == "valid")
    if index == home:
        return timeline
    here, there = (captures[k]["observation"]["result"]["gate"] for k in (home, index))
    scale = (there["fall_ns"] - there["rise_ns"]) / (here["fall_ns"] - here["rise_ns"])

    def move(at_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        moved_ns = np.rint((at_ns - np.int64(here["rise_ns"])) * scale).astype(np.int64)
        return np.asarray(moved_ns + np.int64(there["rise_ns"]), np.int64)

    return replace(timeline, start_ns=move(timeline.start_ns), end_ns=move(timeline.end_ns))


def _relate(trace: EnergyTrace, capture: Document, result: Document) -> ClockMap:
    """Returns where the board's time since GATE lies on the instrument's clock; both edges are known to a sample."""
    gate = capture["observation"]["result"]["gate"]
    step_s = trace.duration_s / max(trace.n, 1)
    return ClockMap(
        source=Clock(name=f"{result['target']['name']} since GATE", kind=ClockKind.COUNTER),
        target=trace.clock,
        offset_ns=gate["rise_ns"],
        std_s=step_s * _EDGE,
        points=2,
        method=AlignMethod.MARKERS,
    )


def _place(trace: EnergyTrace, timeline: Timeline, result: Document) -> PlacedSlices:
    order = np.lexsort((-timeline.end_ns, timeline.start_ns))
    name = timeline.name_index[order]
    inside = (timeline.start_ns[order] >= trace.start_ns) & (timeline.end_ns[order] <= trace.end_ns)
    slices = GroupedSlices(
        start_ns=timeline.start_ns[order],
        end_ns=timeline.end_ns[order],
        group=np.where(inside, name, -1).astype(np.int32),
        groups=len(timeline.names),
        track=timeline.track_index[order],
        tracks=max(len(timeline.tracks), 1),
    )
    swept = sweep_energy(trace, slices, split=Split.NONE, per_slice=True)
    each_j, relative, way = _told(timeline, result)
    spread = way[name] == _WORDS.index("least_squares")
    refused = (way[name] == _WORDS.index("refused")) | ~inside
    energy_j = np.where(spread, each_j[name], swept.slice_energy_j)
    self_j = np.where(spread, each_j[name], swept.slice_self_j)
    energy_j, self_j = np.where(refused, np.nan, energy_j), np.where(refused, np.nan, self_j)
    return PlacedSlices(
        slices=slices,
        energy_j=energy_j,
        self_j=self_j,
        relative=relative,
        way=way,
        words=_WORDS,
        timeline=timeline,
        row_order=np.asarray(order, np.int64),
    )


def _told(timeline: Timeline, result: Document) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int8]]:
    """Returns energy per inference (J), relative U and way of resolution of each name of the timeline."""
    total = result["energy_per_inference_j"]
    energies = {"gate": (total, "overlap"), "inference": (total, "overlap")}
    for layer in result["layers"]:
        known = layer["energy_j"]["value"] is not None
        energies[f"{layer['op']} #{layer['index']}"] = (
            layer["energy_j"],
            layer["resolution"] or "overlap" if known else "refused",
        )
    each_j, relative = np.full(len(timeline.names), np.nan), np.full(len(timeline.names), np.nan)
    way = np.full(len(timeline.names), _WORDS.index("refused"), np.int8)
    for index, name in enumerate(timeline.names):
        energy, word = energies.get(name, ({"value": None}, "refused"))
        if energy["value"]:
            each_j[index] = energy["value"]
            relative[index] = energy["expanded"] / abs(energy["value"])
            way[index] = _WORDS.index(word)
    return each_j, relative, way
