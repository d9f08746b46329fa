"""Warm-up, quantiles, windows, plans and slopes by known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from joulemap.analysis.host.latency import estimate_mean, estimate_quantile, least_count, quantile_ranks
from joulemap.analysis.host.plan import WeightRoom, plan_loads, plan_window
from joulemap.analysis.host.repetition import BlockedLoads, slope_weights
from joulemap.analysis.host.steadiness import find_steady
from joulemap.analysis.host.window_energy import measure_window
from joulemap.estimate import Boundary, Provenance
from joulemap.records.host.campaign import BASE, Load, LoadKind, LoadWindow
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel

MEASURED = Provenance.MEASURED_COUNTER


def test_warm_up_is_cut_where_latencies_settle() -> None:
    rng = np.random.default_rng(0)
    values = 10.0 + rng.normal(0.0, 0.1, 600)
    values[:100] += 5.0 * np.exp(-np.arange(100) / 20.0)
    found = find_steady(values)
    assert 60 <= found.cut <= 130
    assert found.steady


def test_a_series_that_still_drifts_is_not_steady() -> None:
    rng = np.random.default_rng(1)
    values = 10.0 + rng.normal(0.0, 0.05, 400) + np.linspace(0.0, 3.0, 400)
    found = find_steady(values)
    assert not found.steady
    assert found.drift > 0.05


@pytest.mark.parametrize("count", [0, 3, 19])
def test_too_few_values_are_never_steady(count: int) -> None:
    assert not find_steady(np.ones(count)).steady


def test_ranks_of_the_median_of_twenty_are_six_and_fifteen() -> None:
    """METHODS 2: n = 20, ranks 6 and 15."""
    assert quantile_ranks(20, 0.5) == (6, 15)


def test_a_p99_needs_368_independent_values() -> None:
    assert least_count(0.99) == 368
    assert quantile_ranks(367, 0.99) is None
    assert quantile_ranks(400, 0.99) is not None
    assert quantile_ranks(3, 0.5) is None


def test_quantiles_of_independent_values_hold_and_correlated_ones_count_less() -> None:
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        series = [rng.exponential(1.0, 300) for _ in range(2)]
        found = estimate_quantile(series, 0.95, MEASURED)
        assert found.low_s is not None
        assert found.high_s is not None
        held += found.low_s <= -np.log(0.05) <= found.high_s
    assert held >= 184
    slow = np.repeat(rng.exponential(1.0, 60), 10)
    few = estimate_quantile([slow], 0.5, MEASURED)
    assert few.independent < 150 < few.executions
    refused = estimate_quantile([slow], 0.99, MEASURED)
    assert (refused.value_s, refused.reason) == (None, "too_few_executions")


def test_the_mean_latency_is_as_good_as_its_windows() -> None:
    found = estimate_mean([np.full(50, 1.0), np.full(50, 1.2)], MEASURED)
    assert found.value == pytest.approx(1.1)
    assert found.std == pytest.approx(0.1)
    assert estimate_mean([np.array([1.0, 2.0, 3.0, 2.0])], MEASURED).value == pytest.approx(2.0)


def make_trace(power_w: np.ndarray, *, period_s: float = 0.01, kernel: SensorKernel | None = None) -> EnergyTrace:
    return EnergyTrace(
        clock=Clock(name="host", kind=ClockKind.MONOTONIC),
        channel=Channel(
            name="p",
            boundary=Boundary.PACKAGE,
            provenance=MEASURED,
            kernel=kernel or SensorKernel(kind=KernelKind.COUNTER, window_s=period_s),
        ),
        power_w=power_w,
        start_ns=0,
        period_s=period_s,
    )


def window(start_s: float, end_s: float, count: int = 10) -> LoadWindow:
    return LoadWindow(load=BASE, block=0, start_ns=round(start_s * 1e9), end_ns=round(end_s * 1e9), count=count,
                      latency_s=np.empty(0))  # fmt: skip


def test_a_window_holds_power_times_time_and_shifts_with_the_sensors_delay() -> None:
    power_w = np.concatenate([np.full(50, 2.0), np.full(50, 12.0)])
    seen = measure_window(make_trace(power_w), window(0.5, 1.0))
    assert seen is not None
    assert seen.energy_j == pytest.approx(12.0 * 0.5 / 10)
    assert (seen.samples, seen.peak_w) == (50, 12.0)
    late = SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=0.01, latency_s=0.1)
    moved = measure_window(make_trace(power_w, kernel=late), window(0.4, 0.8))
    assert moved is not None
    assert moved.power_w == pytest.approx(12.0)


def test_the_peak_is_not_that_of_a_sample_cut_short_by_a_late_reading() -> None:
    spans_ns = np.full(60, 10_000_000)
    spans_ns[20], spans_ns[21] = 18_000_000, 2_000_000  # the reading between came late: its energy is the next one's
    power_w = np.full(60, 20.0)
    power_w[21] = 37.0
    power_w[40] = 23.0
    even = make_trace(power_w)
    edges_ns = np.concatenate([[0], np.cumsum(spans_ns)])
    trace = replace(even, start_ns=0, period_s=None, edges_ns=edges_ns)
    found = measure_window(trace, window(0.0, 0.6))
    assert found is not None
    assert found.peak_w == pytest.approx(23.0)


def test_a_window_that_was_not_seen_has_no_energy() -> None:
    trace = make_trace(np.full(100, 5.0))
    assert measure_window(trace, window(0.5, 0.505)) is None
    assert measure_window(trace, window(2.0, 3.0)) is None
    lossy = EnergyTrace(clock=trace.clock, channel=trace.channel, power_w=trace.power_w, start_ns=0, period_s=0.01,
                        gaps=np.array([[20, 60]]))  # fmt: skip
    assert measure_window(lossy, window(0.0, 1.0)) is None
    kept = measure_window(lossy, window(0.6, 1.0))
    assert kept is not None
    assert kept.lost_share == pytest.approx(0.0)


def test_windows_are_as_long_as_the_meter_and_the_model_need() -> None:
    plan = plan_window(0.005, wanted_s=None, update_period_s=0.1, smear_s=0.0)
    assert plan.window_s == 2.0
    assert plan.updates == pytest.approx(20.0)
    assert "updates" in plan.reason
    assert plan_window(0.5, wanted_s=0.1, update_period_s=1e-3, smear_s=0.0).window_s == 5.0
    assert plan_window(1e-3, wanted_s=None, update_period_s=1e-3, smear_s=1.0).window_s == 10.0
    assert plan_window(1e-3, wanted_s=3.0, update_period_s=None, smear_s=0.0).window_s == 3.0


def test_large_operators_stand_alone_and_small_ones_together() -> None:
    shares = np.array([0.5, 0.3, 0.004, 0.19, 0.006, np.nan])
    loads = plan_loads(shares, frozenset(range(5)), most=12)
    assert [load.operators for load in loads] == [(0,), (1,), (3,), (2, 4)]
    assert [load.copies for load in loads] == [5, 8, 12, 201]
    assert [load.operators for load in plan_loads(shares, frozenset(range(6)), most=2)] == [(0,), (1, 2, 3, 4)]
    assert plan_loads(shares, frozenset(), most=12) == ()
    assert plan_loads(shares, frozenset(range(5)), most=0) == ()


def test_slopes_give_back_what_was_put_in_and_blocks_cancel() -> None:
    energies = np.array([3.0, 1.0])  # two operators; the whole takes 5
    loads = [BASE, Load(kind=LoadKind.REPEATED, operators=(0,), copies=3),
             Load(kind=LoadKind.REPEATED, operators=(1,), copies=5)]  # fmt: skip
    exact = np.array([5.0, 5.0 + 2 * energies[0], 5.0 + 4 * energies[1]])
    level = np.array([1.0, 1.02, 0.98, 1.01])
    blocked = BlockedLoads.build(loads, level[:, None] * exact)
    assert blocked.noise_rel == pytest.approx(0.0, abs=1e-12)
    assert blocked.block_rel == pytest.approx(float(level.std(ddof=1) / level.mean()), rel=1e-6)
    for column, energy_j in ((1, 3.0), (2, 1.0)):
        found = blocked.combine(slope_weights(loads, [column]))
        assert found.value == pytest.approx(energy_j * level.mean())
        assert found.noise == pytest.approx(0.0, abs=1e-12)
    assert blocked.combine(slope_weights(loads, [1, 2])).value == pytest.approx(4.0 * level.mean())


def test_the_noise_of_windows_is_pooled_over_all_loads() -> None:
    rng = np.random.default_rng(3)
    loads = [BASE, *(Load(kind=LoadKind.REPEATED, operators=(k,), copies=3) for k in range(9))]
    found = [BlockedLoads.build(loads, 10.0 * (1 + rng.normal(0, 0.01, (5, 10)))).noise_rel for _ in range(200)]
    assert float(np.sqrt(np.mean(np.square(found)))) == pytest.approx(0.01, rel=0.03)


@pytest.mark.parametrize("values", [np.ones((1, 2)), np.array([[1.0, 0.0], [1.0, 1.0]])])
def test_one_block_or_no_energy_cannot_be_told(values: np.ndarray) -> None:
    with pytest.raises(ValueError, match="two blocks"):
        BlockedLoads.build([BASE, BASE], values)


def test_a_group_whose_passes_would_hold_too_much_of_what_they_read_is_not_planned() -> None:
    """What they read stays until the model is through, but for what the copy before wrote."""
    room = WeightRoom(model_b=0, operators_b=(0,) * 6, spare_b=0, all_b=250, read_b=(100,) * 6)
    shares = np.full(6, 0.005)
    (whole,) = plan_loads(shares, frozenset(range(6)), most=3, room=room)
    assert room.graph_b(whole) == 100
    assert plan_loads(shares, frozenset({0, 2, 4}), most=3, room=room) == ()
    (alone,) = plan_loads(shares, frozenset({2}), most=3, room=room)
    assert room.graph_b(alone) == 0  # its copies run right before it
