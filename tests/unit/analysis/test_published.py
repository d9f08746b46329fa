"""The published rules by themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from joulemap.analysis.mapping.published import PublishedRule, published_figures, sum_in_order
from joulemap.errors import InputError
from joulemap.records.published import EnergyrunnerRun, EnergyrunnerTrial, EnergyrunnerTrials, MlperfRun


def test_the_sum_runs_from_left_to_right() -> None:
    values = [0.1] * 10
    assert sum_in_order(values) == 0.9999999999999999
    assert math.fsum(values) == 1.0
    assert sum_in_order([1e16, 1.0, -1e16]) == 0.0
    assert sum_in_order([]) == 0.0


def run(**more: object) -> MlperfRun:
    values: dict[str, object] = {
        "time_ns": np.arange(5) * 10**9, "power_w": np.array([1.0, 2.0, 4.0, -8.0, 16.0]), "begin_ns": 10**9,
        "end_ns": 3 * 10**9, "scenario": "Server", "queries": 10, "samples_per_query": 1,
    }  # fmt: skip
    return MlperfRun(**(values | more))  # type: ignore[arg-type]


def test_the_mean_is_over_the_samples_that_count_and_energy_is_mean_times_duration() -> None:
    figures = published_figures(run())
    assert figures.rule is PublishedRule.MLPERF
    assert (figures.value, figures.unit) == (3.0, "W")
    assert figures.windows[0].energy_j == 6.0  # not a sum over seconds, not a trapezoid
    assert figures.energy_per_query_j == 0.6


def test_a_stream_is_published_in_millijoules_per_query() -> None:
    figures = published_figures(run(scenario="SingleStream"))
    assert (figures.value, figures.unit) == (600.0, "mJ")
    assert published_figures(run(scenario="SingleStream", queries=None)).unit == "W"


def test_an_empty_window_is_no_figure() -> None:
    with pytest.raises(InputError) as caught:
        published_figures(run(power_w=np.full(5, -1.0)))
    assert caught.value.slug == "published-window-empty"
    with pytest.raises(InputError):
        published_figures(EnergyrunnerRun(energy_uj=np.ones(5, np.float32), rate_hz=1.0, stamps_s=(0.0,)))
    with pytest.raises(InputError):
        published_figures(EnergyrunnerTrials(trials=()))


def test_medians_of_energy_and_speed_are_taken_apart() -> None:
    trials = tuple(
        EnergyrunnerTrial(energy_j=np.full(30, level), begin=0, end=end, iterations=10)
        for level, end in ((1e-6, 30), (4e-6, 10), (3e-6, 20))
    )
    figures = published_figures(EnergyrunnerTrials(trials=trials))
    assert figures.rule is PublishedRule.ENERGYRUNNER_JSON
    assert figures.value == pytest.approx(4.0)
    assert figures.throughput_hz == pytest.approx(500.0)


def test_records_are_read_only_and_checked() -> None:
    with pytest.raises(ValueError, match="one length"):
        run(power_w=np.ones(3))
    assert not run().power_w.flags.writeable
