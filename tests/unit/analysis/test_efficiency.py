"""Figures of merit against the known answers of METHODS 3, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import nnls

from joulemap.analysis.efficiency.drivers import split_trace
from joulemap.analysis.efficiency.figures import (
    duty_average_w,
    ops_per_watt,
    rate_per_watt,
    subtract_energy,
    sum_energy,
)
from joulemap.analysis.efficiency.power_split import solve_nonnegative, split_power
from joulemap.analysis.metrics import energy_delay_product, frames_per_joule
from joulemap.errors import NotComparableError
from joulemap.estimate import Boundary, Estimate, Provenance, Unavailable
from joulemap.records.recording import Lane
from mapped_traces import METER, build_trace


def figure(value: float, std: float = 0.0, boundary: Boundary = Boundary.BOARD) -> Estimate:
    return Estimate(value=value, std=std, provenance=Provenance.MEASURED_SAMPLED, boundary=boundary)


def value_of(quantity: object) -> float:
    assert isinstance(quantity, Estimate)
    return quantity.value


def test_known_answers_of_the_figures() -> None:
    assert value_of(frames_per_joule(figure(2 / 30))) == pytest.approx(15.0)
    assert value_of(rate_per_watt(figure(2.0), 30.0)) == pytest.approx(15.0)
    assert value_of(ops_per_watt(figure(10 / 50), 4e9)) == pytest.approx(20e9)
    assert energy_delay_product(figure(2.0), 0.01).value == pytest.approx(0.02)
    assert energy_delay_product(figure(2.0), 0.01, power=2).value == pytest.approx(2e-4)
    assert value_of(rate_per_watt(figure(50.0), 98.0)) == pytest.approx(1.96)
    duty = duty_average_w(figure(5e-3 * 50e-3), 50e-3, figure(2e-6), 10.0)
    assert value_of(duty) == pytest.approx(26.99e-6, rel=1e-9)


def test_idle_subtraction_does_not_cancel() -> None:
    """12 +- 0.1 W less 10 +- 0.1 W: 2 W, 7.07 % when they are independent; a shared gain only scales the rest."""
    difference = subtract_energy(figure(12.0, 0.1), figure(10.0, 0.1))
    assert difference.value == pytest.approx(2.0)
    assert difference.std / difference.value == pytest.approx(0.0707107, rel=1e-5)
    shared = subtract_energy(figure(12.0, 0.12), figure(10.0, 0.10), shared=0.01)
    assert shared.std == pytest.approx(0.02)


def test_sums_keep_to_one_boundary_and_share_a_gain() -> None:
    total = sum_energy((figure(3.0, 0.03), figure(1.0, 0.01)), shared=0.01)
    assert isinstance(total, Estimate)
    assert total.std == pytest.approx(0.04)
    assert value_of(sum_energy((figure(3.0, 0.03), figure(4.0, 0.04)))) == 7.0
    with pytest.raises(NotComparableError, match="not added"):
        sum_energy((figure(3.0), figure(1.0, boundary=Boundary.WALL)))
    assert sum_energy((figure(3.0), Unavailable(reason="x"))) == Unavailable(reason="x")


def test_figures_without_energy_are_unavailable() -> None:
    assert ops_per_watt(figure(1.0), 0.0) == Unavailable(reason="no_ops")
    assert ops_per_watt(figure(0.0), 1.0) == Unavailable(reason="no_energy")
    assert rate_per_watt(figure(-1.0), 1.0) == Unavailable(reason="no_energy")
    assert duty_average_w(figure(1.0), 2.0, figure(1.0), 1.0) == Unavailable(reason="duty_impossible")
    assert duty_average_w(Unavailable(reason="x"), 2.0, figure(1.0), 10.0) == Unavailable(reason="x")


@pytest.mark.parametrize("seed", range(8))
def test_nonnegative_least_squares_agrees_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(30, 4))
    asked = rng.normal(size=30)
    np.testing.assert_allclose(solve_nonnegative(design, asked), nnls(design, asked)[0], atol=1e-10)


def test_static_and_dynamic_power_are_recovered_exactly() -> None:
    frequency = np.linspace(0.5, 2.0, 40)
    voltage = 0.6 + 0.2 * frequency
    split = split_power(2.0 + 3.0 * frequency * voltage**2, frequency_hz=frequency, voltage_v=voltage)
    assert value_of(split.static_w) == pytest.approx(2.0)
    assert split.slope == pytest.approx(3.0)
    assert split.label == "dynamic"
    assert split.explained == pytest.approx(1.0)
    alone = split_power(2.0 + 3.0 * frequency, frequency_hz=frequency)
    assert alone.label == "frequency-dependent"
    load = split_power(5.0 + 20.0 * np.tile([0.0, 0.5, 1.0], 20), utilisation=np.tile([0.0, 0.5, 1.0], 20))
    assert value_of(load.static_w) == pytest.approx(5.0)
    assert value_of(load.dynamic_w) == pytest.approx(10.0)


def test_a_tenth_less_voltage_and_frequency() -> None:
    """Dynamic power 0.729 times, energy of an operation 0.81 times."""
    assert pytest.approx(0.729) == 0.9 * 0.9**2
    assert pytest.approx(0.81) == (0.9 * 0.9**2) / 0.9


def test_a_driver_that_does_not_vary_splits_nothing() -> None:
    split = split_power(np.ones(20), frequency_hz=np.full(20, 1e9))
    assert split.static_w == Unavailable(reason="driver_constant")
    assert math.isnan(split.slope)
    assert split_power(np.ones(3), utilisation=np.array([0.0, 1.0, 0.5])).static_w == Unavailable(
        reason="split_too_few"
    )
    with pytest.raises(ValueError, match="needs a frequency"):
        split_power(np.ones(20))


def test_a_static_part_is_never_negative() -> None:
    drive = np.linspace(1.0, 2.0, 50)
    assert value_of(split_power(4.0 * drive - 1.0, utilisation=drive).static_w) == 0.0


def test_lanes_of_the_device_drive_its_power() -> None:
    load = np.repeat([0.0, 1.0, 0.5, 0.25], 25)
    trace = build_trace(10.0 + 40.0 * load, period_s=0.1)
    stamps = np.arange(1, 101, dtype=np.int64) * 100_000_000
    lane = Lane(name="power utilisation", unit="1", clock=METER, time_ns=stamps, value=load)
    split = split_trace(trace, [lane])
    assert split is not None
    assert value_of(split.static_w) == pytest.approx(10.0, rel=1e-6)
    assert split.label == "load-dependent"
    assert split_trace(trace, []) is None
