"""Routes of a map's rows: repetition in place, sums of rows, paths, plans, doubtful clocks, stretches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.analysis.mapping.keys import MapKey
from joulemap.analysis.mapping.planning import runs_for
from joulemap.analysis.mapping.repetition import compile_pattern, map_repetitions
from joulemap.analysis.sampling import describe_trace
from joulemap.analysis.separation.stretches import build_stretches, find_period
from joulemap.errors import InputError
from joulemap.estimate import Estimate, Unavailable
from joulemap.records.energy import Resolution
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap
from joulemap.trace import EnergyTrace, Slice, Timeline
from mapped_traces import METER, WORK, build_trace, group_rows
from recording_study import map_drawn
from recording_truth import Case, draw, layer_schedule

LAYERS = {"conv": (2e-3, 9.0), "dense": (1e-3, 4.0), "pool": (0.5e-3, 2.0)}
REST_J, REST_S = 1e-3, 0.5e-3


def repeated(
    times: tuple[int, ...] = (1, 5, 20), *, bend: float = 0.0, seed: int = 0
) -> tuple[EnergyTrace, Timeline, float]:
    """Ten seconds of each layer and number of repetitions at 10 Hz; energies of a pass follow by hand."""
    rng = np.random.default_rng(seed)
    whole_j = sum(s * w for s, w in LAYERS.values()) + REST_J
    whole_s = sum(s for s, _ in LAYERS.values()) + REST_S
    configs = [(name, k) for name in LAYERS for k in times]
    slices, powers, edges, at = [], [1.0], [0.0, 1.0], 1.0
    for place in rng.permutation(len(configs)):
        name, k = configs[place]
        seconds, watts = LAYERS[name]
        pass_s = whole_s + (k - 1) * seconds
        pass_j = whole_j + (k - 1) * seconds * watts - bend * (k - 1) ** 2
        passes = round(10.0 / pass_s)
        end = at + passes * pass_s
        slices.append(Slice(name=f"{name} x{k} n{passes}", start_ns=round(at * 1e9), end_ns=round(end * 1e9)))
        powers += [pass_j / pass_s, 1.0]
        edges += [end, end + 1.0]
        at = end + 1.0
    until = np.concatenate([[0.0], np.cumsum(np.array(powers) * np.diff(edges))])
    stamps = np.arange(int(at * 10)) * 0.1
    sampled = np.diff(np.interp(stamps, edges, until)) / 0.1
    trace = build_trace(sampled + 0.02 * rng.standard_normal(sampled.size), period_s=0.1)
    return trace, Timeline.from_slices(METER, slices), whole_j


def in_place(trace: EnergyTrace, timeline: Timeline, pattern: str = "{layer} x{k} n{n}") -> EnergyMap:
    known = describe_trace(trace), MeterErrors()
    return map_repetitions([trace], timeline, ClockMap(source=METER, target=METER), known, pattern=pattern)


def test_layers_of_a_slow_meter_are_the_slope_over_repetitions() -> None:
    held = []
    for seed in range(12):
        trace, timeline, whole_j = repeated((1, 5, 10, 20), seed=seed)
        told = in_place(trace, timeline)
        assert told.per == "pass"
        assert not told.findings
        truths = {name: seconds * watts for name, (seconds, watts) in LAYERS.items()}
        asked = [(row.energy_j, truths[row.key]) for row in told.rows] + [
            (told.total_j, whole_j),
            (told.idle_j, REST_J),
        ]
        for energy, truth in asked:
            assert isinstance(energy, Estimate)
            held.append(abs(energy.value - truth) <= energy.expanded)
        for row in told.rows:
            assert row.resolution is Resolution.IN_PLACE
            assert isinstance(row.energy_j, Estimate)
            assert row.energy_j.expanded < 0.05 * truths[row.key]
            assert row.duration_s == pytest.approx(LAYERS[row.key][0], rel=1e-6)
    assert np.mean(held) >= 0.85


def test_layers_that_get_cheaper_when_they_repeat_are_told() -> None:
    trace, timeline, _ = repeated((1, 5, 10, 20), bend=2e-5)
    assert "repetition_not_linear" in {finding.slug for finding in in_place(trace, timeline).findings}


def test_one_number_of_repetitions_is_no_slope() -> None:
    trace, timeline, _ = repeated((5,))
    told = in_place(trace, timeline)
    assert told.total_j == Unavailable(reason="repetitions_missing")
    assert {row.reason for row in told.rows} == {"repetitions_missing"}


def test_slices_shorter_than_samples_are_no_point() -> None:
    trace = build_trace(np.ones(100), period_s=0.1)
    slices = [Slice(name=f"a x{k}", start_ns=10**9 * k, end_ns=10**9 * k + 10**8) for k in (1, 2, 3)]
    told = in_place(trace, Timeline.from_slices(METER, slices), "{layer} x{k}")
    assert told.total_j == Unavailable(reason="too_short_for_samples")


def test_a_pattern_needs_layer_and_number() -> None:
    assert compile_pattern("{layer} x{k}").fullmatch("a x b x12")
    for wrong in ("{layer}", "{k}", "{layer} {layer} {k}", "{layer} {k} {n} {n}"):
        with pytest.raises(InputError, match="must stand"):
            compile_pattern(wrong)
    with pytest.raises(InputError, match="no slice"):
        in_place(
            build_trace(np.ones(10)),
            Timeline.from_slices(METER, [Slice(name="a", start_ns=0, end_ns=9)]),
            "{layer}:{k}",
        )


def test_rows_that_only_their_sum_is_known_of_are_told_as_a_sum() -> None:
    """Two layers that always follow each other and are far shorter than a sample."""
    schedule = (np.array([2e-3, 30e-6, 30e-6, 4e-3]), np.array([5.0, 6.0, 7.0, 9.0]))
    drawn = draw(Case(name="", schedule=schedule, runs=500, noise=0.01), np.random.default_rng(0))
    told = map_drawn(drawn)
    rows = {row.key: row for row in told.rows}
    assert rows["l01"].energy_j == rows["l02"].energy_j == Unavailable(reason="too_short_for_samples")
    assert [group.keys for group in told.groups] == [("l01", "l02")]
    together = told.groups[0].energy_j
    assert isinstance(together, Estimate)
    assert abs(together.value - drawn.truth_j["l01"] - drawn.truth_j["l02"]) <= 1.5 * together.expanded
    assert told.fit is not None
    assert told.fit.rank == told.fit.columns == 5
    assert abs(told.fit.closure) <= 4 * told.fit.closure_std


def test_sampling_that_is_locked_to_the_work_tells_nothing() -> None:
    schedule = (np.array([0.3e-3, 0.7e-3]), np.array([5.0, 20.0]))
    told = map_drawn(draw(Case(name="", schedule=schedule, gap_s=0.0, noise=0.01), np.random.default_rng(0)))
    assert told.fit is not None
    assert told.fit.rank < told.fit.columns
    assert all(row.energy_j == Unavailable(reason="too_short_for_samples") for row in told.rows)
    assert all(row.runs_needed is None for row in told.rows)


def test_paths_are_told_by_least_squares_too() -> None:
    drawn = draw(Case(name="", nested=True, schedule=layer_schedule(layers=6)), np.random.default_rng(0))
    clock = ClockMap(source=WORK, target=METER)
    told = map_energy(
        [drawn.trace], drawn.timeline, replace(clock, source=drawn.timeline.clock), drawn.errors,
        request=MapRequest(key=MapKey.PATH),
    )  # fmt: skip
    rows = {row.key: row for row in told.rows}
    assert set(rows) == {"run", *(f"run;l{k:02d}" for k in range(6))}
    held = 0
    for key, row in rows.items():
        truth = drawn.truth_j[key.removeprefix("run;")]
        assert row.resolution is Resolution.LEAST_SQUARES or key == "run"
        assert isinstance(row.energy_j, Estimate)
        held += abs(row.energy_j.value - truth) <= row.energy_j.expanded
    assert held >= 6


def test_stamps_in_whole_ticks_are_a_doubt_of_the_clock_inside_one_recording() -> None:
    drawn = draw(Case(name="", tick_s=50e-6, runs=300), np.random.default_rng(4))
    told = map_drawn(drawn)
    assert told.fit is not None
    assert told.fit.shift_s == pytest.approx(25e-6, abs=6 * (told.fit.shift_std_s or 0.0) + 1e-6)


def test_a_plan_says_never_below_what_the_meter_leaves() -> None:
    drawn = draw(Case(name="", gain=0.02, runs=300), np.random.default_rng(0))
    row = next(row for row in map_drawn(drawn).rows if row.resolution is Resolution.LEAST_SQUARES)
    assert runs_for(row, 0.005) is None
    easy = runs_for(row, 0.2)
    assert easy is not None
    assert 0 < easy < 1


def test_stretches_keep_their_rhythm_where_stamps_leave_a_slice_no_length() -> None:
    rows = [(0, 10, 0, 0), (10, 10, 1, 0), (10, 20, 2, 0)]
    rows += [(100 * k, 100 * k + 10, 0, 0) for k in range(1, 30)]
    rows += [(100 * k + 10, 100 * k + 15, 1, 0) for k in range(1, 30)]
    rows += [(100 * k + 15, 100 * k + 20, 2, 0) for k in range(1, 30)]
    stretches = build_stretches(group_rows(rows, groups=3), 0, 3)
    assert find_period(stretches) == 3
    assert stretches.inside_s[2, 2] == pytest.approx((10 + 29 * 5) * 1e-9)
