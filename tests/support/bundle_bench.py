"""A small bundle, and what the tests do to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joulemap.errors import InputError, JoulemapError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.bundle import MANIFEST, read_bundle
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.formats.registry import (
    LAYERS,
    LOG,
    RUN,
    add_table,
    add_timeline,
    add_trace,
)
from joulemap.trace import (
    Channel,
    Clock,
    ClockKind,
    EdgeDirection,
    EnergyTrace,
    KernelKind,
    Marker,
    SensorKernel,
    Slice,
    Timeline,
)

__all__ = ["CLOCK", "TRUTH", "build_trace", "edit_manifest", "list_names", "open_writer", "refuse", "write"]

CLOCK = Clock(name="instrument", kind=ClockKind.LOCAL, rate_std_ppm=10.0)
TRUTH = "truth/truth.json"


def build_trace(n: int = 5000) -> EnergyTrace:
    return EnergyTrace(
        clock=CLOCK,
        channel=Channel(
            name="rail",
            boundary=Boundary.RAIL,
            provenance=Provenance.SIMULATED,
            kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1e-6, quantum_w=1e-7),
        ),
        power_w=np.random.default_rng(1).random(n).astype(np.float32),
        start_ns=-250,
        period_s=1e-6,
        gaps=np.array([[3, 9]]),
    )


def open_writer(target: Path, *, force: bool = False, run_id: str = "run-1") -> BundleWriter:
    return BundleWriter(
        target,
        kind="profile",
        run_id=run_id,
        tool={"name": "joulemap", "version": "0"},
        created="2026-01-02T03:04:05Z",
        force=force,
    )


def write(target: Path, *, force: bool = False, run_id: str = "run-1") -> Path:
    with open_writer(target, force=force, run_id=run_id) as writer:
        writer.write_json(RUN, {"seed": 0, "x": 0.1}, schema="joulemap.run")
        add_trace(
            writer, "capture-1", build_trace(), markers=[Marker(time_ns=5, name="gate", direction=EdgeDirection.RISE)]
        )
        add_timeline(writer, Timeline.from_slices(CLOCK, [Slice(name="a", start_ns=0, end_ns=5, kind="layer")]))
        add_table(writer, LAYERS, {"index": [0, 1], "energy_j": [1.5, None]}, schema="joulemap.layers")
        writer.write_json(TRUTH, {"gate_j": 1.0}, schema="joulemap.truth", optional=True)
        writer.write_text(LOG, "all is well\n", schema="joulemap.log")
        return writer.commit(validity="valid")


def edit_manifest(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text())
    change(manifest)
    (bundle / MANIFEST).write_text(json.dumps(manifest))


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refuse(bundle: Path) -> JoulemapError:
    with pytest.raises(InputError) as caught:
        read_bundle(bundle)
    assert caught.value.exit_code == 6
    assert caught.value.hint
    return caught.value
