"""Whole-trace statistics: what is summed, what is left out, and that it is labelled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from joulemap.records.power import PowerCapture
from joulemap.trace import EnergyTrace
from joulemap.workflow.trace_statistics import LABEL, build_trace_statistics
from profile_facts import capture, power_result


def recorded(**changes: Any) -> PowerCapture:
    """Returns a capture whose trace has the changes."""
    made = capture(1)
    result = power_result()
    fields: dict[str, Any] = {name: getattr(result.recording.trace, name) for name in ("clock", "channel", "power_w")}
    fields |= {"start_ns": 0, "period_s": 1e-4} | changes
    recording = replace(result.recording, trace=EnergyTrace(**fields))
    return replace(made, observation=replace(made.observation, result=replace(result, recording=recording)))


def statistics(**changes: Any) -> dict[str, Any]:
    block = build_trace_statistics(recorded(**changes))
    assert block is not None
    return block


def test_the_whole_trace_is_summed_and_not_the_gate() -> None:
    block = statistics(power_w=np.full(2600, 0.02, np.float32))
    assert block["label"] == LABEL
    assert block["duration_s"] == pytest.approx(0.26)
    assert block["energy_j"]["value"] == pytest.approx(0.02 * 0.26)
    assert block["average_power_w"]["value"] == pytest.approx(0.02)
    assert 0 < block["energy_j"]["expanded"] < 0.01 * block["energy_j"]["value"]


def test_lost_samples_are_left_out_of_energy_and_time() -> None:
    power_w = np.full(2600, 0.02, np.float32)
    power_w[100:1400] = 0.0
    block = statistics(power_w=power_w, gaps=np.array([[100, 1400]]))
    assert block["duration_s"] == pytest.approx(0.13)
    assert block["average_power_w"]["value"] == pytest.approx(0.02)
    assert block["lost_share"] == pytest.approx(0.5)


def test_intervals_of_different_length_are_weighed() -> None:
    edges_ns = np.array([0, 1_000_000_000, 4_000_000_000])
    block = statistics(power_w=np.array([1.0, 2.0]), period_s=None, edges_ns=edges_ns)
    assert block["energy_j"]["value"] == pytest.approx(7.0)
    assert block["duration_s"] == pytest.approx(4.0)


def test_nothing_recorded_has_no_statistics() -> None:
    assert build_trace_statistics(recorded(gaps=np.array([[0, 2600]]))) is None
    made = capture(1)
    assert build_trace_statistics(replace(made, observation=replace(made.observation, result=None))) is None
