"""A real network on the virtual board: its energy is that of memory hooks on every access, layer by layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from board_bench import open_session
from joulemap.firmware.boards.base import ResetOptions, StopReason
from joulemap.firmware.boards.virtual_m33.board import VIRTUAL_M33
from joulemap.firmware.engines.registry import engine
from joulemap.firmware.stages.sources import render_profile_source
from joulemap.firmware.toolchains.registry import toolchain
from joulemap.records.fault import FaultPlan

MODELS = Path(__file__).parents[3] / "shared" / "models" / "mlperf_tiny"


@pytest.mark.parametrize(
    "name",
    [
        "ad01_int8",
        pytest.param("kws_ref_model", marks=pytest.mark.soak),
        pytest.param("str_ww_ref_model", marks=pytest.mark.soak),
        pytest.param("vww_96_int8", marks=pytest.mark.soak),
        pytest.param("pretrainedResnet_quant", marks=pytest.mark.soak),
    ],
)
def test_a_real_network_costs_what_memory_hooks_say(name: str) -> None:
    model = MODELS / f"{name}.tflite"
    if not model.exists():
        pytest.skip("the shared models are not beside this checkout")
    prepared = engine("aot").prepare(model, inputs=None, seed=0)
    artifact = toolchain("zig").build(render_profile_source(prepared, VIRTUAL_M33, FaultPlan()), VIRTUAL_M33.cpu)
    layers = tuple(f"hpx_layer_{index:03d}" for index in range(len(prepared.summary.layers)))
    seen = []
    for pricing in ("scout", "hook"):
        with open_session(artifact, layers=layers, pricing=pricing) as session:
            session.reset(ResetOptions(deadline_s=60.0, record_rail=True))
            assert session.run().reason is StopReason.IDLE
            counts = session.counts()
            assert counts["varying_blocks"] == 0
            seen.append((counts["true_fj"], counts["cycles"], counts["instructions"], session.layer_instructions()))
    assert seen[0] == seen[1]
    assert np.all(np.array(seen[0][3]) > 0)
