"""The slices of one capture."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from joulemap.workflow.timeline import build_timeline
from profile_facts import CLEAN_CYCLES, COUNT, HEAD_CYCLES, LAYER_CYCLES, model, power_result, profile_run


def test_inferences_fill_the_gate_and_layers_follow_the_schedule() -> None:
    result = power_result()
    assert result.gate is not None
    slices = list(build_timeline(model(), profile_run().result, result, count=COUNT))
    assert len(slices) == 1 + COUNT * 4
    run, first, conv = slices[0], slices[1], slices[2]
    assert (run.kind, run.start_ns, run.end_ns) == ("run", round(result.gate.rise_ns), round(result.gate.fall_ns))
    inferences = [s for s in slices if s.kind == "inference"]
    assert inferences[0].start_ns == run.start_ns
    assert inferences[-1].end_ns == run.end_ns
    assert all(a.end_ns == b.start_ns for a, b in pairwise(inferences))
    assert first.end_ns - first.start_ns == CLEAN_CYCLES * 10  # 10 ns per cycle
    assert conv.name == "CONV_2D #0"
    assert conv.start_ns - first.start_ns == HEAD_CYCLES * 10
    assert conv.end_ns - conv.start_ns == LAYER_CYCLES[0] * 10


def test_layers_lie_inside_their_inference_in_order() -> None:
    slices = list(build_timeline(model(), profile_run().result, power_result(), count=COUNT))
    for k in range(COUNT):
        inference, *layers = slices[1 + 4 * k : 5 + 4 * k]
        bounds = np.array([(s.start_ns, s.end_ns) for s in layers]).ravel()
        assert np.all(np.diff(bounds) >= 0)
        assert inference.start_ns <= bounds[0]
        assert bounds[-1] <= inference.end_ns


def test_a_free_form_capture_has_no_timeline() -> None:
    with pytest.raises(ValueError, match="gated"):
        build_timeline(model(), profile_run().result, replace(power_result(), gate=None), count=COUNT)
