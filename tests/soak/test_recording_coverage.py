"""How often the intervals of the recordings' routes hold the truth, and how wide they are: thousands of draws.

Run with ``make soak`` or ``pytest -m soak -s``: one line a case, as in docs/uncertainty.md. Where an environment
variable JOULEMAP_STUDY names a file, the lines are appended to it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from joulemap.analysis.mapping.planning import runs_for
from joulemap.estimate import Estimate
from recording_cases import LAYER_CASES, LayerCase, repetition_study, study_layers, tracks_study
from recording_study import Study, map_drawn, share_bounds
from recording_truth import Case, draw

pytestmark = pytest.mark.soak

DRAWS = 100
RATIO = 1.25


def show(result: Study) -> None:
    print(f"\n{result.line()}")  # noqa: T201  # figures for who runs the soak with -s
    table = os.environ.get("JOULEMAP_STUDY")
    if table:
        with Path(table).open("a", encoding="utf-8") as lines:
            lines.write(result.line() + "\n")


def hold(result: Study) -> None:
    """Holds all intervals to 95 % within chance, and each row to what chance may take of it."""
    low, high = result.bounds()
    assert low <= result.covered <= max(high, 0.985), result.line()
    alarm = 1e-3 / len(result.rows)
    for key, row in result.rows.items():
        if row.told >= result.draws // 2:
            assert row.held >= share_bounds(row.told, alarm=alarm), (key, row.held, row.told)


@pytest.mark.parametrize("what", LAYER_CASES, ids=lambda what: what.case.name)
def test_layers(what: LayerCase) -> None:
    result = study_layers(what, DRAWS)
    show(result)
    hold(result)
    assert result.ratio <= RATIO, result.line()


@pytest.mark.parametrize("drift_w", [0.0, 1e-3])
def test_repetition_in_place(drift_w: float) -> None:
    result = repetition_study(2 * DRAWS, drift_w=drift_w)
    show(result)
    hold(result)
    assert result.ratio <= RATIO
    assert result.refused == 0


def test_tracks_that_share_power() -> None:
    result = tracks_study(DRAWS)
    show(result)
    assert result.covered >= result.bounds()[0]


PLANS = [(0.005, 7, 150, 0.03), (0.01, 7, 300, 0.05), (0.02, 7, 600, 0.06), (0.01, 11, 300, 0.04), (0.02, 3, 400, 0.08)]


@pytest.mark.parametrize(("noise", "schedule", "pilot", "wanted"), PLANS)
def test_plans_are_within_a_fifth_of_what_is_needed(noise: float, schedule: int, pilot: int, wanted: float) -> None:
    """The planned runs are measured; what they would have needed to be is read off the width that came of it."""
    from recording_truth import layer_schedule

    case = Case(name="", noise=noise, runs=pilot, schedule=layer_schedule(schedule))
    plan = {row.key: runs_for(row, wanted) for row in map_drawn(draw(case, np.random.default_rng(1))).rows}
    planned = sorted((times, key) for key, times in plan.items() if times is not None and times * pilot >= 60)
    ratios = []
    for times, key in planned[-8:]:
        after = map_drawn(draw(replace(case, runs=round(times * pilot)), np.random.default_rng(2)))
        own = next(row.energy_j for row in after.rows if row.key == key)
        assert isinstance(own, Estimate)
        ratios.append((own.expanded / own.value / wanted) ** 2)
    assert 0.8 <= float(np.median(ratios)) <= 1.25, ratios
