"""Recordings for the tests of the page: bundles imported from files written here, and records made by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from joulemap.formats.base import ReadOptions
from joulemap.formats.sections.recording_json import RecordingEntry, TraceEntry
from joulemap.records.recording import SourceFile
from joulemap.report.view.page import PageView
from joulemap.report.view.recording.sections import (
    Document,
    MarkLine,
    PlacedWork,
    PowerLine,
    RecordingSections,
    ValueLine,
)
from joulemap.report.view.scene import PowerUncertainty
from joulemap.trace import Clock, EnergyTrace, Slice, Timeline
from joulemap.workflow.recordings.import_recording import ImportRequest, import_recordings
from joulemap.workflow.recordings.map_bundle import BundleMapRequest
from joulemap.workflow.report import ReportRequest, load_view
from mapped_traces import build_trace

__all__ = [
    "SLOW_NAMES",
    "build_sections",
    "import_files",
    "load_recording_page",
    "make_row",
    "write_nested",
    "write_rails",
]

SLOW_NAMES = ("load", "conv", "<script>document.title='owned'</script>", "post")
"""Slices of :func:`write_nested`, the hostile one among them."""


def estimate(value: float, expanded: float) -> dict[str, object]:
    """Returns an estimate as the contract's JSON."""
    return {
        "value": value,
        "std": expanded / 1.96,
        "expanded": expanded,
        "coverage_probability": 0.95,
        "k": 1.96,
        "dof": None,
        "provenance": "measured_sampled",
        "boundary": "rail",
    }


def make_row(key: str, held_j: float, *, total_j: float, **changed: object) -> dict[str, object]:
    """Returns a row of a map, told by overlap unless changed."""
    row: dict[str, object] = {
        "key": key,
        "count": 3,
        "outside": 0,
        "energy_j": estimate(held_j, 0.01 * held_j),
        "self_j": estimate(held_j, 0.01 * held_j),
        "share": held_j / total_j,
        "cumulative_share": held_j / total_j,
        "duration_s": 1.0,
        "self_s": 1.0,
        "mean_power_w": estimate(held_j, 0.01 * held_j),
        "resolution": "overlap",
        "reason": None,
        "runs_needed": None,
    }
    return row | changed


def build_sections(
    timeline: Timeline,
    *,
    trace: EnergyTrace | None = None,
    values: Sequence[ValueLine] = (),
    marks: Sequence[MarkLine] = (),
    rows: Sequence[Document] | None = None,
    shift_s: float = 0.0,
) -> RecordingSections:
    """Returns sections of one trace and one timeline on its clock, each name one row.

    Args:
        timeline: what ran.
        trace: power; by default 2 s of 1 kHz with a seeded ripple.
        values: counters.
        marks: instants.
        rows: of the map; by default one a name.
        shift_s: of the timeline, 1 sd.
    """
    if trace is None:
        trace = build_trace(5.0 + np.random.default_rng(1).random(2000))
    total_j = 11.0
    names = timeline.names
    rows = [make_row(name, total_j / (2 * len(names)), total_j=total_j) for name in names] if rows is None else rows
    document = {
        "validity": "valid",
        "findings": [],
        "total_j": estimate(total_j, 0.1),
        "idle_j": estimate(total_j / 2, 0.05),
        "power_w": estimate(5.5, 0.05),
        "duration_s": 2.0,
        "busy_s": 1.0,
        "split": "equal",
        "concurrent_tracks": 1,
        "rows": rows,
        "rule": "joulemap",
        "metrics": {},
        "clocks": [],
        "budget": [{"name": "gain", "kind": "B", "std_j": 0.05, "dof": None}],
        "meter": {"name": "test meter", "source": "made by hand"},
    }
    limits = PowerUncertainty(gain_std=5e-3, clock_std=1e-5, offset_std_w=1e-4, noise_std_w=1e-2, rate_hz=1e3)
    line = PowerLine(
        name="power",
        trace=trace,
        inside=(),
        mapped=True,
        energy=estimate(total_j, 0.1),
        power=estimate(5.5, 0.05),
        boundary="rail",
        samples=trace.n,
        step_s=1e-3,
        limits=limits,
    )
    source = SourceFile(name="power.csv", size_b=1000, sha256="0" * 64)
    entry = RecordingEntry(
        format="csv",
        embedded=True,
        root="power.csv",
        options=ReadOptions(),
        sources=(source,),
        traces=(TraceEntry(name="power", channel="power"),),
    )
    return RecordingSections(
        document=document,
        tables={"name": rows},
        paths=rows,
        entries=(entry,),
        imported={
            "validity": "valid",
            "findings": [],
            "run_id": "0" * 32,
            "tool": {"name": "joulemap", "version": "0"},
        },
        created="2026-01-01T00:00:00+00:00",
        digest="1" * 64,
        clock=trace.clock,
        lines=(line,),
        work=PlacedWork(name="", timeline=timeline, energy_j=np.full(len(timeline), 1e-3), shift_s=shift_s, per=""),
        values=tuple(values),
        marks=tuple(marks),
        points=(),
        findings=(),
        flags=(),
    )


def slices_at(clock: Clock, slices: Sequence[tuple[str, int, int, str]]) -> Timeline:
    """Returns a timeline of (name, start ns, end ns, track)."""
    made = [Slice(name=name, start_ns=a, end_ns=b, track=track, kind="op") for name, a, b, track in slices]
    return Timeline.from_slices(clock, made)


def import_files(bundle: Path, *paths: Path, **options: object) -> Path:
    """Imports files into a bundle, always at the same time, and returns it."""
    given = ReadOptions(**options)  # type: ignore[arg-type]
    import_recordings(ImportRequest(paths=paths, options=given), bundle)
    return bundle


def load_recording_page(bundle: Path, request: BundleMapRequest | None = None) -> PageView:
    """Returns the page of a bundle of recordings."""
    return load_view(bundle, ReportRequest(map=request or BundleMapRequest()))


def write_nested(folder: Path) -> tuple[Path, Path]:
    """Writes 4 s of power at 1 kHz and a Chrome trace over it: ten units of work with slices inside, and a counter."""
    rng = np.random.default_rng(2)
    power_w = np.full(4000, 1.0)
    events: list[dict[str, object]] = []
    lengths = (40, 100, 60, 50)
    levels = (2.0, 6.0, 4.0, 3.0)
    at_ms = 100
    for _ in range(10):
        begin_ms = at_ms
        for name, length, level in zip(SLOW_NAMES, lengths, levels, strict=True):
            power_w[at_ms : at_ms + length] = level
            events.append(_event(name, "operator", at_ms, at_ms + length))
            at_ms += length
        events.append(_event("infer", "inference", begin_ms, at_ms))
        events.append({"ph": "C", "pid": 1, "name": "load", "ts": begin_ms * 1000, "args": {"cpu": 0.25}})
        at_ms += 120
    power_w += rng.normal(0.0, 0.02, power_w.size)
    rows = "".join(f"{(k + 1) / 1000:.6f},{value!r}\n" for k, value in enumerate(power_w.tolist()))
    power = folder / "power.csv"
    power.write_text("moment (s),power (W)\n" + rows, encoding="utf-8")
    trace = folder / "layers.json"
    trace.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return power, trace


def _event(name: str, kind: str, begin_ms: int, end_ms: int) -> dict[str, object]:
    return {
        "ph": "X",
        "name": name,
        "cat": kind,
        "pid": 1,
        "tid": 1,
        "ts": begin_ms * 1000,
        "dur": (end_ms - begin_ms) * 1000,
    }


def write_rails(folder: Path) -> Path:
    """Writes a log of tegrastats: VDD_IN holds VDD_CPU_GPU_CV and VDD_SOC, with utilisation and temperature."""
    rows = []
    for second in range(60):
        load = (second // 10) % 2
        total_mw = 5000 + 9000 * load
        rows.append(
            f"01-02-2026 03:04:{second:02d} RAM 2462/7620MB (lfb 4x2MB) CPU [{5 + 80 * load}%@1510,off]"
            f" EMC_FREQ 0%@2133 GR3D_FREQ {4 + 90 * load}%@[305,0] cpu@{48.5 + load}C VDD_IN {total_mw}mW/5000mW"
            f" VDD_CPU_GPU_CV {total_mw // 2}mW/1mW VDD_SOC {total_mw // 5}mW/1400mW"
        )
    path = folder / "tegrastats.log"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
