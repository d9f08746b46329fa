"""A run on this machine as sections of a bundle: result, run, operators, windows, timeline, the whole recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from joulemap.formats.bundle_writer import BundleWriter
from joulemap.formats.registry import LAYERS, LOG, RESULT, RUN, add_lane, add_table, add_timeline, add_trace
from joulemap.records.host.campaign import LoadWindow
from joulemap.records.instrument import ErrorDistribution, InstrumentSpec
from joulemap.runtimes.simulated.runtime import SimulatedRuntimeSession
from joulemap.trace import EnergyTrace
from joulemap.workflow.environment import describe_environment
from joulemap.workflow.host.context import Accounted
from joulemap.workflow.host.meter_access import declared_limits
from joulemap.workflow.host.result import shown_windows
from joulemap.workflow.host.timeline import build_host_timeline
from joulemap.workflow.journal import StageTiming
from joulemap.workflow.plain import plain
from joulemap.workflow.recordings.recording_bundle import section_name
from joulemap.workflow.result import SCHEMA, SCHEMA_VERSION
from joulemap.workflow.score import TRUTH_PATH, TRUTH_SCHEMA

__all__ = ["write_host_sections"]

WINDOWS = "windows.parquet"
_MARGIN = 0.05
_PACKAGES = ("numpy", "pyarrow", "numba", "onnx", "onnxruntime", "ai-edge-litert", "torch")
_LAYER_TYPES = {
    "index": "int64",
    "op": "string",
    "name": "string",
    "group": "string",
    "macs": "int64",
    "bytes": "int64",
    "duration_s": "float64",
    "share": "float64",
    "time_share": "float64",
    "resolution": "string",
    "provider": "string",
    "dtype": "string",
}


def write_host_sections(
    writer: BundleWriter,
    done: Accounted,
    result: Mapping[str, object],
    *,
    timings: Sequence[StageTiming],
    log: Sequence[str],
) -> None:
    """Writes every section.

    Args:
        writer: of the bundle in the making.
        done: what was measured.
        result: the document.
        timings: of the stages so far.
        log: what was said so far.
    """
    writer.write_json(RESULT, result, schema=SCHEMA, version=SCHEMA_VERSION)
    writer.write_json(RUN, _run(done, result, timings), schema="joulemap.run")
    columns, types = _layer_columns(result)
    add_table(writer, LAYERS, columns, schema="joulemap.layers", types=types)
    add_table(writer, WINDOWS, _window_columns(done), schema="joulemap.windows")
    name = section_name(done.trace.channel.name)
    for energy in shown_windows(done):
        add_trace(writer, f"{name}-{energy.window.block + 1}", _around(done.trace, energy.window))
    shown = shown_windows(done)
    if shown:
        durations_s = done.times.usual_s if done.times.duration_s.size else np.empty(0)
        timeline = build_host_timeline(done.session.model, shown[0].window, durations_s, done.trace.clock)
        add_timeline(writer, timeline)
    for trace in done.recording.traces:
        add_trace(writer, section_name(trace.channel.name), trace, folder="recording")
    for lane in done.recording.lanes:
        add_lane(writer, f"recording/{section_name(lane.name)}.lane.parquet", lane)
    if isinstance(done.session, SimulatedRuntimeSession):
        writer.write_json(TRUTH_PATH, _truth(done, done.session), schema=TRUTH_SCHEMA, optional=True)
    writer.write_text(LOG, "".join(f"{line}\n" for line in log), schema="joulemap.log")


def _truth(done: Accounted, session: SimulatedRuntimeSession) -> dict[str, object]:
    """Returns what the simulated machine really took, for ``score``: the same mean inference for every window."""
    truth = session.truth
    inference = {
        "run_factor": 1.0,
        "gate_j": truth.total_j,
        "gap_j": truth.gap_j,
        "layer_j": [float(energy_j) for energy_j in truth.energy_j],
    }
    captures = [{"index": energy.window.block + 1, **inference} for energy in shown_windows(done)]
    return {"schema": TRUTH_SCHEMA, "schema_version": 1, "count": 1, "captures": captures}


def _around(trace: EnergyTrace, window: LoadWindow) -> EnergyTrace:
    """Returns the samples of a window and a little before and after it."""
    edges_ns = trace.edges_ns
    if edges_ns is None:
        edges_ns = trace.start_ns + np.rint(np.arange(trace.n + 1) * trace.step_ns).astype(np.int64)
    margin_ns = round(_MARGIN * window.duration_s * 1e9)
    first = max(int(np.searchsorted(edges_ns, window.start_ns - margin_ns, side="right")) - 1, 0)
    last = min(int(np.searchsorted(edges_ns, window.end_ns + margin_ns, side="left")), trace.n)
    gaps = np.clip(trace.gaps, first, last) - first
    return EnergyTrace(
        clock=trace.clock,
        channel=trace.channel,
        power_w=trace.power_w[first:last],
        start_ns=int(edges_ns[first]),
        edges_ns=edges_ns[first : last + 1],
        gaps=gaps[gaps[:, 1] > gaps[:, 0]],
    )


def _run(done: Accounted, result: Mapping[str, object], timings: Sequence[StageTiming]) -> dict[str, object]:
    request, session = done.request, done.request.session
    return {
        "schema": "joulemap.run",
        "schema_version": 1,
        "run_id": result["run_id"],
        "request": {
            "model": session.model.name,  # never a path of the machine
            "target": "host",
            "engine": done.runtime.traits.name,
            "runtime": done.runtime.traits.name,
            "meters": list(request.meters),
            "batch": session.batch,
            "threads": session.threads,
            "precision": session.precision or None,
            "provider": session.provider or None,
            "input": None if request.input is None else request.input.name,
            "window_s": request.window_s,
            "repeats": request.repeats,
            "operators": request.operators,
            "tokens": request.tokens,
            "seed": request.seed,
        },
        "instrument": plain(_instrument(done)),
        "operating_point": result["operating_point"],
        "plan": result["plan"],
        "deployments": [],
        "checkpoints": result["checkpoints"],
        "stages": [plain(timing) for timing in timings],
        "environment": describe_environment(_PACKAGES),
    }


def _instrument(done: Accounted) -> InstrumentSpec:
    limits, _ = declared_limits(done.access, done.domains)
    period_s = done.access.update_period_s or 0.1
    domains = [done.access.domains[name] for name in done.domains if name in done.access.domains]
    return InstrumentSpec(
        name=done.access.name,
        rate_hz=1.0 / period_s,
        gain_std=limits.gain_std,
        offset_std_w=limits.offset_std_w,
        noise_std_w=limits.noise_std_w,
        quantum_w=done.trace.channel.kernel.quantum_w,
        clock_std_ppm=0.0,
        edge_rate_hz=1e9,
        edge_skew_std_s=0.0,
        distribution=ErrorDistribution.RECTANGULAR if limits.rectangular else ErrorDistribution.NORMAL,
        provenance=done.trace.channel.provenance,
        source="; ".join(dict.fromkeys(d.source for d in domains if d.source)) or "nothing is declared",
    )


def _layer_columns(result: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, str]]:
    rows = result["layers"]
    assert isinstance(rows, list)  # build_host_result made it
    columns: dict[str, Any] = {key: [row[key] for row in rows] for key in _LAYER_TYPES}
    types = dict(_LAYER_TYPES)
    for key, source in (("energy_j", "energy_j"), ("modelled_j", "modelled_j")):
        for suffix, field in (("", "value"), ("_std", "std"), ("_expanded", "expanded")):
            name = key.replace("_j", f"{suffix}_j")
            columns[name] = [row[source].get(field) for row in rows]
            types[name] = "float64"
    columns["provenance"] = [row["energy_j"]["provenance"] for row in rows]
    types["provenance"] = "string"
    return columns, types


def _window_columns(done: Accounted) -> dict[str, list[object]]:
    """Returns one row per window: what ran, when, how often, and its mean power (null where it was not seen)."""
    seen = {(e.window.start_ns, e.window.end_ns): e for e in done.energies}
    found = [seen.get((w.start_ns, w.end_ns)) for w in done.windows]
    return {
        "block": [w.block + 1 for w in done.windows],
        "load": [str(w.load.kind) for w in done.windows],
        "operators": [" ".join(map(str, w.load.operators)) for w in done.windows],
        "copies": [w.load.copies for w in done.windows],
        "start_ns": [w.start_ns for w in done.windows],
        "end_ns": [w.end_ns for w in done.windows],
        "count": [w.count for w in done.windows],
        "power_w": [None if e is None else e.power_w for e in found],
        "samples": [None if e is None else e.samples for e in found],
    }
