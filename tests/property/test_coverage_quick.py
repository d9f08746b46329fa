"""Sixty draws of each promise that the soak counts in full: limits that chance alone hardly ever crosses.

With a true coverage of .95, 50 or fewer of 60 draws hold with a probability below 1e-3; a true coverage of .80 is
caught four times out of five.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from energy_accounts import noisy
from energy_coverage import study
from joulemap.meters.registry import instrument
from synthetic_board import IDLE_W, Board, ad01, kws

DRAWS = 60
ENOUGH = 51 / 60


@pytest.mark.parametrize("board", [kws(count=3), ad01(count=40)], ids=lambda board: board.name)
def test_headline_at_ten_kilosamples(board: Board) -> None:
    draws = 40
    result = study(board, instrument("virtual-10k"), draws=draws, idle_w=IDLE_W)
    assert result.covered >= ENOUGH
    assert result.above_idle_covered is not None
    assert result.above_idle_covered >= ENOUGH
    assert result.width_ratio <= 1.4
    assert result.median_error <= 0.002
    assert result.resolutions == {"least_squares": draws}
    assert result.part_covered >= ENOUGH
    assert result.closure <= 1e-4


@pytest.mark.parametrize("board", [kws(), ad01()], ids=lambda board: board.name)
def test_layers_at_a_megasample(board: Board) -> None:
    result = study(board, instrument("virtual-shunt"), draws=6)
    assert result.resolutions == {"overlap": 6}
    assert result.layer_median_error <= 0.003
    assert result.layer_worst_error <= 0.015
    assert result.split_median_error >= 20 * result.layer_median_error
    assert result.closure <= 1e-12


@pytest.mark.parametrize("board", [kws(), ad01()], ids=lambda board: board.name)
def test_layers_and_groups_at_one_kilohertz(board: Board) -> None:
    result = study(board, noisy(board), draws=DRAWS)
    assert result.part_covered >= 0.9
    assert result.worst_margin >= 0
    assert result.covered >= ENOUGH
    assert result.refused == 0


def test_one_kilohertz_with_coarse_edges_and_with_a_lock() -> None:
    board = ad01()
    for spec in (noisy(board, edge_rate_hz=1e3), noisy(board, rate_hz=17 / board.inference_s, clock_std_ppm=0.0)):
        result = study(board, spec, draws=10)
        assert result.part_covered >= 0.9
        assert result.refused == 0


def test_ten_hertz_is_refused_or_grouped_and_never_wrong() -> None:
    fast, slow = ad01(), kws()
    assert study(fast, noisy(fast, "virtual-10hz"), draws=DRAWS).refused == DRAWS
    result = study(slow, noisy(slow, "virtual-10hz"), draws=DRAWS)
    assert result.part_covered >= 0.9
    assert result.covered >= ENOUGH


def test_rectangular_limits_cover_too() -> None:
    board = ad01(count=40)
    spec = replace(instrument("virtual-shunt-rect"), rate_hz=10e3)
    result = study(board, spec, draws=30)
    assert result.covered >= 25 / 30
    assert result.width_ratio <= 1.4


@pytest.mark.parametrize(("rate_hz", "draws"), [(1e3, DRAWS), (10e3, 20)])
def test_layers_of_uneven_power_stay_covered(rate_hz: float, draws: int) -> None:
    """A tenth more power in the first fifth of each layer, which lasts a fifth of a sample at 1 kHz."""
    board = ad01(count=40, ripple=0.1)
    result = study(board, noisy(board, rate_hz=rate_hz), draws=draws)
    assert result.part_covered >= 0.9
    assert result.worst_margin >= 0
