"""Policy: counts, deadlines and tolerances are the plan's, and the numbers are those of the contract."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.firmware.stages import policy
from joulemap.firmware.stages.seeds import contrast_factors, named_stream, run_factor


def test_the_documents_example() -> None:
    """N 1000, gate 10 s, boot 5, margin 2: 27 s."""
    reference_s = 10e-3
    count = policy.inference_count(10.0, reference_s)
    assert count == 1000
    assert policy.execution_deadline_s(count * reference_s) == 27.0


@pytest.mark.parametrize(
    ("window_s", "reference_s", "count"), [(2.0, 0.2302, 10), (2.0, 0.01736, 116), (2.0, 3.0, 10), (2.0, 1e-3, 2000)]
)
def test_the_count_covers_the_window_and_is_at_least_ten(window_s: float, reference_s: float, count: int) -> None:
    assert policy.inference_count(window_s, reference_s) == count
    assert count * reference_s >= window_s


@pytest.mark.parametrize("reference_s", [0.0, -1.0, float("nan")])
def test_a_reference_without_time_is_refused(reference_s: float) -> None:
    with pytest.raises(ValueError, match="must take time"):
        policy.inference_count(2.0, reference_s)


@pytest.mark.parametrize(
    ("planned_s", "period_s", "virtual", "tolerance_s"),
    [(2.0, 1e-6, True, 2e-3), (2.0, 1e-6, False, 2e-2), (2.0, 0.1, True, 0.2), (1e-3, 1e-6, True, 2e-6)],
)
def test_the_gate_tolerance(planned_s: float, period_s: float, virtual: bool, tolerance_s: float) -> None:
    assert policy.gate_tolerance_s(planned_s, period_s, virtual=virtual) == pytest.approx(tolerance_s)


def test_the_firmware_gives_up_after_the_host_and_before_any_deadline() -> None:
    assert policy.BOOT_ALLOWANCE_S < policy.GO_TIMEOUT_S < policy.execution_deadline_s(0.0)
    assert policy.TERMINAL_TIMEOUT_S < policy.LATE_RECORD_S < policy.FIXED_MARGIN_S


def test_the_contracts_defaults() -> None:
    assert (policy.WARMUP_PASSES, policy.CLEAN_PASSES, policy.INSTRUMENTED_PASSES) == (3, 5, 5)
    assert (policy.WINDOW_VIRTUAL_S, policy.WINDOW_REAL_S, policy.LEAST_COUNT) == (2.0, 10.0, 10)
    assert (policy.IDLE_WINDOW_S, policy.TAIL_S, policy.RUN_TO_RUN_STD) == (0.05, 0.005, 0.002)


def test_the_profile_ring_holds_the_whole_stream() -> None:
    layers = 40
    longest = len(f"INSTRUMENTED_CYCLES.{policy.INSTRUMENTED_PASSES}={2**32 - 1}\n")
    lines = 16 + policy.CLEAN_PASSES + policy.INSTRUMENTED_PASSES * (3 + layers)
    assert policy.profile_ring_b(layers) > lines * longest


def test_streams_are_independent_and_repeatable() -> None:
    draws = {
        (name, seed, k): int(np.random.default_rng(named_stream(seed, name, k)).integers(2**62))
        for name in ("run_factor", "instrument", "contrast")
        for seed in (0, 1)
        for k in range(3)
    }
    assert len(set(draws.values())) == len(draws)
    again = np.random.default_rng(named_stream(0, "run_factor", 1)).integers(2**62)
    assert int(again) == draws["run_factor", 0, 1]


def test_run_factors_have_the_boards_variation() -> None:
    factors = np.array([run_factor(seed, repeat) for seed in range(200) for repeat in range(1, 6)])
    assert factors.mean() == pytest.approx(1.0, abs=3 * 0.002 / 1000**0.5)
    assert factors.std() == pytest.approx(0.002, rel=0.1)


def test_contrast_is_log_uniform_between_half_and_twice() -> None:
    factors = np.array([contrast_factors(seed, 20) for seed in range(100)])
    assert factors.min() >= 0.5
    assert factors.max() <= 2.0
    logs = np.log2(factors)
    assert logs.mean() == pytest.approx(0.0, abs=0.05)
    assert logs.std() == pytest.approx(1 / 3**0.5, rel=0.05)
