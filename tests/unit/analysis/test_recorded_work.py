"""What a server counted, joined to the energy of the runs: rises, restarts, silence, and joules per unit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.recorded.runs import DomainRuns
from joulemap.analysis.recorded.work import LOST, RESTARTED, CountedUnit, Series, count_between, measure_unit
from joulemap.estimate import Boundary, Estimate, Provenance, Unavailable


@pytest.mark.parametrize(
    ("answers", "count", "why"),
    [
        ([{"a": 5.0}, {"a": 9.0}], 4.0, ""),
        ([{"a": 5.0}, None, {"a": 9.0}], 4.0, ""),  # it was busy once
        ([{"a": 5.0, "b": 1.0}, {"a": 9.0, "b": 3.0}], 6.0, ""),
        ([{}, {"a": 3.0}], 3.0, ""),  # a series appears with its first unit
        ([{"a": 5.0}, {"a": 9.0}, {"a": 2.0}, {"a": 12.0}], None, RESTARTED),  # though the ends rise
        ([{"a": 5.0, "b": 1.0}, {"a": 9.0}], None, RESTARTED),  # a model was unloaded
        ([{"a": 5.0}, {"a": 9.0}, None], None, LOST),
        ([None, {"a": 9.0}], None, LOST),
        ([{"a": 9.0}], None, LOST),
        ([], None, LOST),
    ],
)
def test_a_count_is_a_rise_or_not_known(answers: list[Series | None], count: float | None, why: str) -> None:
    assert count_between(answers) == (count, why)


def runs(*energy_j: float, gain: float = 0.0, idle_w: float | None = 10.0) -> DomainRuns:
    n = len(energy_j)
    return DomainRuns(
        name="m:a",
        boundary=Boundary.PACKAGE,
        provenance=Provenance.MEASURED_COUNTER,
        energy_j=np.array(energy_j),
        duration_s=np.full(n, 2.0),
        edge_std_j=np.zeros(n),
        lost_std_j=np.zeros(n),
        noise_w=0.0,
        idle_w=idle_w,
        idle_std_w=0.0,
        errors=MeterErrors(name="m", gain_std=gain),
    )


def unit(*counts: float | None) -> CountedUnit:
    return CountedUnit(name="request", metric="x", counts=counts)


def test_energy_per_unit_follows_the_counts_of_each_run() -> None:
    found = measure_unit([runs(100.0, 220.0, 330.0)], unit(100.0, 200.0, 300.0))
    assert isinstance(found.energy_j, Estimate)
    assert found.energy_j.value == pytest.approx((1.0 + 1.1 + 1.1) / 3)
    assert found.energy_j.boundary is Boundary.PACKAGE
    assert found.energy_j.std > np.std([1.0, 1.1, 1.1], ddof=1) / math.sqrt(3) * 0.999
    assert isinstance(found.above_idle_j, Estimate)
    assert found.above_idle_j.value == pytest.approx(((80 / 100) + (200 / 200) + (310 / 300)) / 3)
    assert isinstance(found.per_s, Estimate)
    assert found.per_s.value == pytest.approx(100.0)


def test_a_gain_is_shared_and_one_unit_is_in_doubt_at_the_edges() -> None:
    found = measure_unit([runs(100.0, gain=0.03)], unit(10.0))
    assert isinstance(found.energy_j, Estimate)
    assert found.energy_j.std == pytest.approx(10.0 * math.hypot(0.03, 0.1 / math.sqrt(3)))


def test_runs_without_counts_are_left_out_and_too_few_leave_nothing() -> None:
    some = measure_unit([runs(100.0, 500.0, 120.0)], unit(100.0, None, 120.0))
    assert isinstance(some.energy_j, Estimate)
    assert some.energy_j.value == pytest.approx(1.0)
    few = measure_unit([runs(100.0, 500.0, 120.0)], unit(100.0, None, None))
    assert few.energy_j == Unavailable(reason="samples_lost")
    assert measure_unit([runs(100.0)], unit(None)).energy_j == Unavailable(reason="counts_lost")
    assert measure_unit([runs(100.0)], unit(0.0)).energy_j == Unavailable(reason="nothing_counted")
    assert measure_unit([runs(100.0, idle_w=None)], unit(10.0)).above_idle_j == Unavailable(reason="no_baseline")
