"""Whether intervals of operators on simulated machines hold as often as they say: some dozens of machines, quickly."""

from __future__ import annotations

import pytest

from host_coverage import run_host, study_host
from joulemap.estimate import Estimate
from joulemap.runtimes.simulated.meter import counter_spec, power_spec
from joulemap.runtimes.simulated.runtime import SimulatedSpec


def test_operator_intervals_hold_and_are_not_too_wide_with_a_counter() -> None:
    result = study_host(20)
    assert result.covered >= 0.85
    assert result.above_idle_covered >= 0.85
    assert result.part_covered >= 0.9
    assert result.closed >= 0.85
    assert result.width_ratio <= 1.25
    assert result.worst_width_ratio <= 1.25
    assert result.modelled_error >= 20 * result.part_error  # a split by time cannot tell what repetition does


def test_operator_intervals_hold_with_a_slow_noisy_power_sensor() -> None:
    result = study_host(10, meter=power_spec(update_period_s=0.02, noise_std_w=0.2), first_seed=100)
    assert result.part_covered >= 0.88
    assert result.worst_width_ratio <= 1.25
    assert result.closed >= 0.8


def test_sessions_that_differ_by_where_their_memory_lies_are_noise_that_the_repeats_show() -> None:
    """One session for all windows would put 2 % of the whole into an operator that takes a tenth of it."""
    result = study_host(
        12, first_seed=200, meter=counter_spec(gain_std=0.0005), machine=SimulatedSpec(placement_std=0.02)
    )
    assert result.part_covered >= 0.9
    assert result.covered >= 0.75
    assert result.worst_width_ratio <= 1.35


@pytest.mark.parametrize(("in_place", "closed"), [(0.0, True), (0.1, False), (-0.1, False)])
def test_copies_that_cost_more_or_less_do_not_close_and_widen_their_intervals(in_place: float, closed: bool) -> None:
    done, truth = run_host(7, machine=SimulatedSpec(in_place=in_place))
    assert done.account is not None
    closure = done.account.closure
    assert closure is not None
    assert closure.closed is closed
    assert ("closure_failed" in {f.slug for f in done.findings}) is not closed
    off = closure.difference_j
    parts_j = truth.total_j - truth.gap_j
    assert off.value == pytest.approx(in_place * parts_j, abs=0.02 * parts_j)
    assert off.expanded < 0.03 * truth.total_j  # not made wide by what it misses
    held = [
        abs(row.energy_j.value - truth.energy_j[row.index]) <= row.energy_j.expanded
        for row in done.account.account.layers
        if row.group is None and isinstance(row.energy_j, Estimate)
    ]
    assert len(held) >= 6
    assert sum(held) >= len(held) - 1  # one in twenty may lie outside
