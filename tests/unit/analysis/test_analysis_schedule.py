"""The mean layer schedule, and how long an instant is into each of its regions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy_accounts import small
from joulemap.analysis.schedule import LayerSchedule
from joulemap.records.profile import PmuResult

BOARD = small()


def schedule(period_s: float | None = None) -> LayerSchedule:
    return LayerSchedule.build(BOARD.profile, period_s or BOARD.profile.clean_latency_s)


def test_layers_follow_head_and_loop_gaps() -> None:
    plan = schedule()
    assert plan.start_s[0] == pytest.approx(5e-6)
    assert np.diff(plan.start_s) == pytest.approx(plan.duration_s[:-1] + 1e-6, rel=1e-9)
    assert plan.end_s[-1] == pytest.approx(plan.period_s - 1e-6)
    assert plan.gap_s == pytest.approx(9e-6)
    assert plan.region_s.sum() == pytest.approx(plan.period_s)


def test_it_scales_with_the_gate() -> None:
    plan, stretched = schedule(), schedule(2 * BOARD.profile.clean_latency_s)
    assert stretched.start_s == pytest.approx(2 * plan.start_s)
    assert plan.scaled(3e-3).duration_s == pytest.approx(plan.duration_s * 3e-3 / plan.period_s)


def test_marks_that_ate_the_gap_do_not_push_layers_out_of_the_inference() -> None:
    greedy = replace(BOARD.profile, clean_cycles=BOARD.profile.clean_cycles - 5000)
    plan = LayerSchedule.build(greedy, greedy.clean_latency_s)
    assert plan.end_s[-1] <= plan.period_s * (1 + 1e-12)
    assert plan.gap_s >= 0


def test_passes_that_differ_make_the_boundaries_uncertain() -> None:
    cycles = BOARD.profile.layer_cycles.copy()
    cycles[::2] += 100
    shaky: PmuResult = replace(BOARD.profile, layer_cycles=cycles)
    assert LayerSchedule.build(shaky, 2e-3).boundary_std_s > 1e-7
    assert schedule().boundary_std_s == 0.0


@given(st.floats(0.0, 0.5), st.floats(0.0, 0.5))
def test_region_times_add_up_and_only_grow(first_s: float, second_s: float) -> None:
    plan = schedule()
    times = plan.region_time(np.array(sorted((first_s, second_s))))
    assert times.sum(axis=1) == pytest.approx(sorted((first_s, second_s)), abs=1e-12)
    assert (times[1] - times[0] >= -1e-12).all()


def test_split_layers_fill_their_layer() -> None:
    plan = schedule()
    parts = plan.cut(plan.duration_s[:, None] * np.array([0.1, 0.2, 0.3, 0.4]))
    at_s = np.linspace(0, 5 * plan.period_s, 777)
    fine = parts.region_time(at_s)
    assert np.allclose(fine[:, :-1].reshape(at_s.size, -1, 4).sum(axis=2), plan.region_time(at_s)[:, :-1], atol=1e-15)
