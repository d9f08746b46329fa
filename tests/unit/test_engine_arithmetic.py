"""Fixed-point constants against exact arithmetic and hand-checked values."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulemap.firmware.engines.aot.arithmetic import (
    activation_range,
    input_radius,
    padding_before,
    quantize_multiplier,
    round_half_away,
    windowed_extent,
)


@given(st.floats(2.0**-31, 2.0**20))
def test_the_multiplier_is_normal_and_within_half_a_step(real: float) -> None:
    fixed = quantize_multiplier(real)
    assert 1 << 30 <= fixed.multiplier < 1 << 31
    value = Fraction(fixed.multiplier) * Fraction(2) ** (fixed.shift - 31)
    assert abs(value - Fraction(real)) <= Fraction(2) ** (fixed.shift - 32)


@pytest.mark.parametrize(("real", "multiplier", "shift"), [(1.0, 1 << 30, 1), (0.5, 1 << 30, 0), (0.75, 3 << 29, 0)])
def test_known_multipliers(real: float, multiplier: int, shift: int) -> None:
    fixed = quantize_multiplier(real)
    assert (fixed.multiplier, fixed.shift) == (multiplier, shift)


def test_a_ratio_that_rounds_up_to_one_moves_the_shift() -> None:
    fixed = quantize_multiplier(1 - 2.0**-40)
    assert (fixed.multiplier, fixed.shift) == (1 << 30, 1)


@pytest.mark.parametrize("real", [0.0, 2.0**-40])
def test_what_no_shift_reaches_is_zero(real: float) -> None:
    fixed = quantize_multiplier(real)
    assert (fixed.multiplier, fixed.shift) == (0, 0)


@pytest.mark.parametrize(("value", "rounded"), [(0.5, 1), (-0.5, -1), (1.5, 2), (-2.5, -3), (2.4, 2), (-2.6, -3)])
def test_halves_round_away_from_zero(value: float, rounded: int) -> None:
    assert round_half_away(value) == rounded


@pytest.mark.parametrize(
    ("activation", "limits"),
    [("NONE", (-128, 127)), ("RELU", (-28, 127)), ("RELU6", (-28, 32)), ("RELU_N1_TO_1", (-38, -18)), ("TANH", None)],
)
def test_activation_ranges(activation: str, limits: tuple[int, int] | None) -> None:
    assert activation_range(activation, 0.1, -28) == limits


def test_an_activation_range_survives_a_scale_that_overflows_the_quotient() -> None:
    assert activation_range("RELU6", 2.0**-120, 0) == (0, 127)


@pytest.mark.parametrize(
    ("extent", "window", "stride", "dilation", "same", "out", "before"),
    [
        (49, 10, 2, 1, True, 25, 4),
        (10, 4, 2, 1, True, 5, 1),
        (6, 2, 2, 1, True, 3, 0),
        (7, 3, 1, 2, False, 3, 0),
        (7, 3, 2, 2, True, 4, 2),
        (2, 3, 1, 1, False, 0, 0),
    ],
)
def test_windows(extent: int, window: int, stride: int, dilation: int, same: bool, out: int, before: int) -> None:
    assert windowed_extent(extent, window, stride=stride, dilation=dilation, same=same) == out
    assert padding_before(extent, window, stride=stride, dilation=dilation, same=same) == before


def test_the_radius_is_the_last_step_that_the_integer_bits_hold() -> None:
    assert input_radius(5, 20) == 31 * (1 << 26) // (1 << 20)
    assert input_radius(4, 30) == 1
