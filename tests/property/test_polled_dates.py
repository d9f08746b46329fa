"""Values of a file of polls belong to the time before the sensor renewed them, and its intervals hold the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polled_study import POLLED_CASES, PolledCase, late_j, poll_sensor, polled_study
from recording_truth import draw


@pytest.mark.parametrize("what", POLLED_CASES, ids=lambda what: what.case.name)
def test_bursts_lose_no_more_than_to_a_sensor_that_is_read_when_it_renews(what: PolledCase, tmp_path: Path) -> None:
    renewal_s = 1.0 / what.case.rate_hz
    late_s = renewal_s - 0.5 * what.poll_s  # dated by the last poll that shows a value
    off_j, late, best = [], [], []
    for number in range(8):
        drawn = draw(what.case, np.random.default_rng((3, number)))
        trace = poll_sensor(drawn, what, tmp_path)
        off_j.append(float(late_j(trace, drawn).mean()))
        late.append(float(late_j(trace, drawn, late_s).mean()))
        best.append(float(late_j(drawn.trace, drawn).mean()))
    bias_j, removed_j = abs(np.mean(off_j) - np.mean(best)), np.mean(off_j) - np.mean(late)
    assert removed_j > 0.4  # a step of some 10 W at the end of a burst, times what it would be late
    assert bias_j < 0.15 * removed_j


def test_intervals_of_polls_hold_the_truth(tmp_path: Path) -> None:
    for what in POLLED_CASES[:2]:
        result = polled_study(what, 8, tmp_path)
        assert result.covered >= 0.88, result.line()
        assert result.refused == 0
