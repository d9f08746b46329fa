"""Pooled least squares against the known answer of METHODS 1.5 and against planted powers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from energy_accounts import flawless, small
from joulemap.analysis.capture import gated_captures
from joulemap.analysis.design import Rows, build_rows
from joulemap.analysis.least_squares import PooledFit, fit_pooled
from joulemap.analysis.schedule import LayerSchedule
from joulemap.estimate import Boundary
from synthetic_board import measure

Array = NDArray[np.float64]
WINDOW_S = 1e-3


def known_layers() -> tuple[Array, Array]:
    """Returns durations (s) and powers (W) of the 20 layers of METHODS 1.5: schedule seed 7."""
    rng = np.random.default_rng(7)
    duration_s = np.exp(rng.uniform(np.log(50e-6), np.log(500e-6), 20))
    duration_s[0], duration_s[1] = 50e-6, 500e-6
    return rng.permutation(duration_s), rng.uniform(4.0, 20.0, 20)


def draw(seed: int, inferences: int = 1000) -> tuple[Rows, float]:
    """Returns rows of a 1 kHz boxcar over inferences with random pauses of 0..1 ms at 2 W, noise 1 %."""
    rng = np.random.default_rng(seed)
    duration_s, power_w = known_layers()
    pieces_s = np.column_stack([np.tile(duration_s, (inferences, 1)), rng.uniform(0, WINDOW_S, inferences)]).ravel()
    watts = np.tile(np.append(power_w, 2.0), inferences)
    at = np.concatenate([[0.0], np.cumsum(pieces_s)])
    column = np.tile(np.arange(21), inferences)
    edges = np.arange(rng.uniform(0, WINDOW_S), at[-1], WINDOW_S)
    time_s = np.empty((edges.size - 1, 21))
    for k in range(21):
        held = np.concatenate([[0.0], np.cumsum(np.where(column == k, pieces_s, 0.0))])
        time_s[:, k] = np.diff(np.interp(edges, at, held))
    noise_w = 0.01 * float(duration_s @ power_w) / float(duration_s.sum())
    energy_j = np.diff(np.interp(edges, at, np.concatenate([[0.0], np.cumsum(pieces_s * watts)])))
    energy_j += noise_w * WINDOW_S * rng.standard_normal(energy_j.size)
    cluster = np.searchsorted(at[::21], edges[:-1])
    rows = Rows(design_s=time_s, regions=21, energy_j=energy_j, cluster=cluster.astype(np.int64))
    return rows, noise_w * WINDOW_S


def test_twenty_layers_below_a_millisecond_at_one_kilohertz() -> None:
    """METHODS 1.5, test to keep: n 1000, sigma 1 %: worst half-width 4..6 %, coverage > .88, bias < 1 %."""
    duration_s, power_w = known_layers()
    worst, inside, error = [], [], []
    for seed in range(60):
        rows, noise_j = draw(seed)
        fit = fit_pooled([rows], noise_j)
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
    rows = [build_rows(c, p, board.count) for c, p in zip(captures, plans, strict=True)]
    return fit_pooled(rows, 1e-3 * board.mean_w / rate_hz), board.layer_j, plans[0]


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
    assert fit.shape_std < 0.02


def test_each_capture_has_its_own_factor() -> None:
    fit, layer_j, plan = fit_small(1234.5, run_std=0.05)
    assert np.ptp(fit.factor) > 0.02
    assert fit.factor.mean() == pytest.approx(1.0)
    assert_held(fit, layer_j * float(fit.power_w[:4] @ plan.duration_s) / float(layer_j.sum()), plan)


def test_uneven_layers_are_noticed_and_widen_the_intervals() -> None:
    even, _, plan = fit_small(7e3)
    uneven, _, _ = fit_small(7e3, ripple=0.2)
    assert uneven.shape_std > 5 * even.shape_std
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
    empty = Rows(design_s=np.empty((0, 3)), regions=3, energy_j=np.empty(0), cluster=np.empty(0, np.int64))
    with pytest.raises(ValueError, match="at least one sample"):
        fit_pooled([empty], 1e-9)
