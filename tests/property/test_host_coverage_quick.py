"""Whether intervals of operators on simulated machines hold as often as they say: some dozens of machines, quickly."""

from __future__ import annotations

from host_coverage import study_host
from joulemap.runtimes.simulated.meter import power_spec


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
