"""Times of operators over passes, some of which another program interrupted."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.records.host.campaign import InPlaceError, OperatorTimes, TimeSource


def times(duration_s: object, latency_s: object = ()) -> OperatorTimes:
    return OperatorTimes(
        source=TimeSource.PROFILER, duration_s=np.array(duration_s, float), latency_s=np.array(latency_s, float)
    )


def test_a_usual_pass_is_one_that_nothing_interrupted() -> None:
    counted_us = np.tile([2.0, 3.0], 50)  # a clock of whole microseconds: 2.5 us
    interrupted_us = counted_us.copy()
    interrupted_us[7] = 5e3
    passes = times(np.stack([counted_us, interrupted_us, np.full(100, np.nan)], axis=1), interrupted_us)
    np.testing.assert_allclose(passes.usual_s[:2], 2.5, rtol=0.01)
    assert np.isnan(passes.usual_s[2])
    assert passes.usual_latency_s == pytest.approx(2.5, rel=0.01)


def test_few_passes_give_what_they_can() -> None:
    assert times([[1.0], [9.0], [2.0]]).usual_s == [2.0]
    assert times([[1.0], [2.0]]).usual_s == [1.5]
    nothing = times(np.empty((0, 2)))
    assert np.isnan(nothing.usual_s).tolist() == [True, True]
    assert nothing.usual_latency_s is None


def test_what_a_copy_may_cost_more_grows_with_value_and_executions() -> None:
    error = InPlaceError(relative=0.05, absolute_s=1e-8)
    assert error.half_width(1e-3, executions=10) == pytest.approx(5e-5 + 1e-7)
    assert error.half_width(-2e-2, executions=10, per_s=20.0) == pytest.approx(1e-3 + 2e-6)
