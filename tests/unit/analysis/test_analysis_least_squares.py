"""Pooled least squares against the known answer of METHODS 1.5 and against planted powers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from energy_accounts import flawless, small
from joulemap.analysis.capture import gated_captures
from joulemap.analysis.design import Rows, build_cells, build_rows
from joulemap.analysis.least_squares import PooledFit, fit_pooled
from joulemap.analysis.schedule import LayerSchedule
from joulemap.analysis.unevenness import Unevenness
from joulemap.estimate import Boundary
from synthetic_board import measure

Array = NDArray[np.float64]
WINDOW_S = 1e-3
EVEN = (1e-6, 1e-6)


def known_layers() -> tuple[Array, Array]:
    """Returns durations (s) and powers (W) of the 20 layers of METHODS 1.5: schedule seed 7."""
    rng = np.random.default_rng(7)
    duration_s = np.exp(rng.uniform(np.log(50e-6), np.log(500e-6), 20))
    duration_s[0], duration_s[1] = 50e-6, 500e-6
    return rng.permutation(duration_s), rng.uniform(4.0, 20.0, 20)


def known_schedule() -> LayerSchedule:
    """Returns the layers one after the other, and a pause of half a millisecond."""
    duration_s, _ = known_layers()
    end_s = np.cumsum(duration_s)
    return LayerSchedule(
        start_s=end_s - duration_s, duration_s=duration_s, period_s=float(end_s[-1]) + 0.5e-3, boundary_std_s=0.0
    )


def draw(seed: int, inferences: int = 1000) -> tuple[Rows, float]:
    """Returns rows of a 1 kHz boxcar over inferences with pauses at 2 W, noise 1 %."""
    rng = np.random.default_rng(seed)
    plan, watts = known_schedule(), np.append(known_layers()[1], 2.0)
    edges_s = np.arange(rng.uniform(0, WINDOW_S), inferences * plan.period_s, WINDOW_S)
    noise_w = 0.01 * float(plan.duration_s @ watts[:20]) / float(plan.duration_s.sum())
    power_w = np.diff(plan.region_time(edges_s), axis=0) @ watts / WINDOW_S
    power_w += noise_w * rng.standard_normal(power_w.size)
    rows = Rows(
        cells=build_cells(plan, WINDOW_S),
        power_w=power_w,
        start=edges_s[:-1] / plan.period_s,
        length=np.full(power_w.size, WINDOW_S / plan.period_s),
        capture=np.zeros(power_w.size, np.int64),
        captures=1,
    )
    return rows, noise_w


def test_twenty_layers_below_a_millisecond_at_one_kilohertz() -> None:
    """METHODS 1.5, test to keep: n 1000, sigma 1 %: worst half-width 4..6 %, coverage > .88, bias < 1 %."""
    duration_s, power_w = known_layers()
    worst, inside, error = [], [], []
    for seed in range(60):
        rows, noise_w = draw(seed)
        fit = fit_pooled(rows, noise_w, widths=EVEN)
        std_w = np.sqrt([fit.variance(unit) for unit in np.eye(21)[:20]])
        worst.append(float((1.96 * std_w / power_w).max()))
        inside.append(np.abs(fit.power_w[:20] - power_w) <= 1.96 * std_w)
        error.append(fit.power_w[:20] / power_w - 1)
    assert 0.04 <= np.median(worst) <= 0.06
    assert np.mean(inside) > 0.88
    assert np.abs(np.mean(error, axis=0)).max() < 0.01
    assert float(duration_s @ power_w) == pytest.approx(44.487e-3, rel=1e-3)  # the case is the one of the table


def fit_small(rate_hz: float, ripple: float = 0.0, run_std: float = 0.0) -> tuple[PooledFit, Array, LayerSchedule]:
    board = small(count=400, ripple=ripple)
    run = measure(board, flawless(rate_hz), seed=1, repeats=3, run_std=run_std)
    captures = gated_captures(run, Boundary.RAIL)
    plans = [LayerSchedule.build(board.profile, c.gate_s / board.count) for c in captures]
    rows = build_rows(captures, build_cells(plans[0], 1 / rate_hz), board.count)
    return fit_pooled(rows, 1e-3 * board.mean_w), board.layer_j, plans[0]


def assert_held(fit: PooledFit, layer_j: Array, plan: LayerSchedule) -> None:
    """Holds every layer to three standard uncertainties, and those to a useful size."""
    for layer, truth_j in enumerate(layer_j):
        weight_s = np.zeros(layer_j.size + 1)
        weight_s[layer] = plan.duration_s[layer]
        std_j = fit.variance(weight_s) ** 0.5
        assert abs(float(weight_s @ fit.power_w) - truth_j) <= 3 * std_j
        assert std_j < 0.02 * truth_j


def test_planted_powers_come_back_from_samples_longer_than_the_layers() -> None:
    fit, layer_j, plan = fit_small(1234.5)
    assert_held(fit, layer_j, plan)
    assert max(fit.widths) < 0.02


def test_each_capture_has_its_own_factor() -> None:
    fit, layer_j, plan = fit_small(1234.5, run_std=0.05)
    assert np.ptp(fit.factor) > 0.02
    assert fit.factor.mean() == pytest.approx(1.0)
    assert_held(fit, layer_j * float(fit.power_w[:4] @ plan.duration_s) / float(layer_j.sum()), plan)


def test_uneven_layers_are_noticed_and_widen_the_intervals() -> None:
    even, _, plan = fit_small(7e3)
    uneven, _, _ = fit_small(7e3, ripple=0.2)
    assert uneven.widths[0] > 5 * even.widths[0]
    weight_s = np.zeros(5)
    weight_s[1] = plan.duration_s[1]
    assert uneven.variance(weight_s) > even.variance(weight_s)
    assert even.robust is None or even.white is False


def test_a_sample_that_holds_whole_inferences_says_the_sum_and_nothing_else() -> None:
    period_s = small().profile.clean_latency_s
    fit, _, plan = fit_small(1 / period_s)
    total = float(fit.variance(plan.region_s)) ** 0.5 / float(plan.region_s @ fit.power_w)
    single = np.zeros(5)
    single[0] = plan.duration_s[0]
    assert total < 1e-3
    assert fit.variance(single) ** 0.5 / float(single @ fit.power_w) > 0.1


def test_no_sample_no_fit() -> None:
    rows, noise_w = draw(0, inferences=3)
    nothing = replace(
        rows, power_w=rows.power_w[:0], start=rows.start[:0], length=rows.length[:0], capture=rows.capture[:0]
    )
    with pytest.raises(ValueError, match="at least one sample"):
        fit_pooled(nothing, noise_w)


@pytest.mark.parametrize("window_s", [0.3e-3, 1e-3, 7e-3, 12e-3])
def test_shares_of_a_sample_add_up_and_explain_what_they_should(window_s: float) -> None:
    plan, rng = known_schedule(), np.random.default_rng(1)
    cells = build_cells(plan, window_s)
    start_s = rng.uniform(0, 50e-3, 200)
    rows = Rows(
        cells=cells,
        power_w=np.ones(200),
        start=start_s / plan.period_s,
        length=np.full(200, window_s / plan.period_s),
        capture=np.zeros(200, np.int64),
        captures=1,
    )
    region_s = plan.region_time(start_s + window_s) - plan.region_time(start_s)
    cell_w = rng.uniform(1, 2, cells.region.size)
    for members, cell, share in rows.blocks():
        assert share.sum(axis=1) == pytest.approx(1.0)
        held = np.stack([share[:, cells.region[cell] == region].sum(axis=1) for region in range(21)], axis=1)
        assert held * window_s == pytest.approx(region_s[members], abs=1e-12)
        assert rows.explained(cell_w)[members] == pytest.approx(share @ cell_w[cell])
    assert np.sort(np.concatenate([members for members, _, _ in rows.blocks()])).tolist() == list(range(200))


@pytest.mark.parametrize("sample_s", [1e-5, 1e-4, 1e-3, 1.0])
def test_cells_fill_their_layers_and_are_short_at_both_ends(sample_s: float) -> None:
    plan = known_schedule()
    cells = build_cells(plan, sample_s)
    assert np.bincount(cells.region, cells.length_s) == pytest.approx(plan.region_s)
    assert cells.shares().sum(axis=1) == pytest.approx(1.0)
    for layer, duration_s in enumerate(plan.duration_s):
        own_s = cells.length_s[cells.region == layer]
        assert own_s == pytest.approx(own_s[::-1])
        assert own_s[0] <= min(sample_s, duration_s) / 4 * (1 + 1e-9)


def test_unevenness_is_a_covariance_of_unit_width_at_a_point() -> None:
    cells = build_cells(known_schedule(), 1e-4)
    uneven = Unevenness.build(cells, 1e-4)
    for kind in uneven.kinds:
        assert np.linalg.eigvalsh(kind).min() > -1e-9
        assert 0 < np.diag(kind)[:-1].min() <= np.diag(kind).max() <= 1.0
        assert not kind[-1].any()  # the gap


def test_its_width_is_found_where_the_samples_show_it() -> None:
    rows, _ = draw(3)
    uneven = Unevenness.build(rows.cells, WINDOW_S)
    rng, noise_w = np.random.default_rng(5), 0.02
    found = []
    for _ in range(5):
        cell = rng.multivariate_normal(np.zeros(rows.cells.region.size), uneven.covariance((0.2, 1e-6), np.ones(21)))
        power_w = rows.explained(10.0 * (1.0 + cell)) + noise_w * rng.standard_normal(rows.power_w.size)
        found.append(fit_pooled(replace(rows, power_w=power_w), noise_w).widths[0])
    assert 0.1 <= np.median(found) <= 0.3


def test_a_shift_of_one_capture_moves_the_powers_as_said() -> None:
    board = small(count=400)
    run = measure(board, flawless(2345.6), seed=2, repeats=3, run_std=0.0)
    captures = list(gated_captures(run, Boundary.RAIL))
    plan = LayerSchedule.build(board.profile, captures[0].gate_s / board.count)
    cells, noise_w = build_cells(plan, captures[0].period_s), 0.1 * board.mean_w  # much, so that both fits use it
    fit = fit_pooled(build_rows(captures, cells, board.count), noise_w)
    step_s = 1e-6
    captures[1] = captures[1].moved(captures[1].rise_s + step_s, captures[1].fall_s + step_s, captures[1].edge_std_s)
    moved = fit_pooled(build_rows(captures, cells, board.count), noise_w, widths=fit.widths)
    change_j_s = (moved.power_w - fit.power_w)[:4] / step_s * plan.duration_s
    assert np.abs(change_j_s).max() > 1e-2 * board.mean_w
    assert -fit.shift_w_s[1, :4] * plan.duration_s == pytest.approx(
        change_j_s, abs=0.15 * float(np.abs(change_j_s).max())
    )
