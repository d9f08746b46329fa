"""The slices of one capture: run, inferences and layers inside GATE, on the instrument's clock.

Layers are placed by the mean schedule of the profile run, scaled to GATE over N: the power image itself carries no
marks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.schedule import LayerSchedule
from joulemap.records.model import ModelSummary
from joulemap.records.power import PowerResult
from joulemap.records.profile import PmuResult
from joulemap.trace import Timeline

__all__ = ["build_timeline"]

_KINDS = ("run", "inference", "layer")


def build_timeline(model: ModelSummary, profile: PmuResult, result: PowerResult, *, count: int) -> Timeline:
    """Returns 1 + N + N * layers slices, each inference followed by its layers; instants rounded to 1 ns.

    Args:
        model: names of the layers.
        profile: their durations.
        result: a gated capture.
        count: N, inferences inside GATE.

    Raises:
        ValueError: the capture has no gate.
    """
    if result.gate is None:
        raise ValueError("only a gated capture has a timeline")
    rise_ns = result.gate.rise_ns
    period_s = result.gate.duration_s / count
    schedule = LayerSchedule.build(profile, period_s)
    layers = len(model.layers)
    starts_ns = rise_ns + np.arange(count) * (period_s * 1e9)
    offsets_s = np.concatenate([[0.0], schedule.start_s])
    ends_s = np.concatenate([[period_s], schedule.end_s])
    kinds = np.tile(np.array([1] + [2] * layers, np.int32), count)
    names = np.tile(np.arange(1, layers + 2, dtype=np.int32), count)
    return Timeline(
        clock=result.recording.trace.clock,
        start_ns=_with_run(rise_ns, starts_ns[:, None] + offsets_s * 1e9),
        end_ns=_with_run(result.gate.fall_ns, starts_ns[:, None] + ends_s * 1e9),
        name_index=np.concatenate([[0], names]).astype(np.int32),
        names=("gate", "inference", *(f"{layer.op} #{layer.index}" for layer in model.layers)),
        track_index=np.zeros(1 + count * (layers + 1), np.int32),
        tracks=("core",),
        kind_index=np.concatenate([[0], kinds]).astype(np.int32),
        kinds=_KINDS,
    )


def _with_run(run_ns: float, instants_ns: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(np.rint(np.concatenate([[run_ns], instants_ns.ravel()])), np.int64)
