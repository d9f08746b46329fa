"""Whatever the slices: energy is conserved, and neither the clock's zero nor the sample rate matters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.analysis.sampling import trace_energy_j
from joulemap.estimate import Estimate
from joulemap.records.energy import Resolution
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.trace import Slice, Timeline
from joulemap.trace.sweep import Split, sweep_energy
from mapped_traces import METER, WORK, build_trace, group_rows, sampled_powers
from recording_study import map_drawn
from recording_truth import Case, draw

ROWS = st.lists(
    st.tuples(st.integers(0, 90_000_000), st.integers(0, 10_000_000), st.integers(0, 3), st.integers(0, 2)).map(
        lambda row: (row[0], row[0] + row[1], row[2], row[3])
    ),
    max_size=40,
)


@given(rows=ROWS, seed=st.integers(0, 1000), split=st.sampled_from([Split.EQUAL, Split.DURATION]))
@settings(max_examples=60, deadline=None)
def test_own_energies_and_idle_add_up_to_the_trace(
    rows: list[tuple[int, int, int, int]], seed: int, split: Split
) -> None:
    trace = build_trace(np.random.default_rng(seed).uniform(0, 10, 100))
    swept = sweep_energy(trace, group_rows(rows, groups=4), split=split, per_slice=True, backend="numpy")
    total_j = trace_energy_j(trace)[0]
    assert math.fsum((*swept.self_j, swept.idle_j)) == pytest.approx(total_j, rel=1e-12)
    assert swept.busy_j + swept.idle_j == pytest.approx(total_j, rel=1e-12)
    assert math.fsum(swept.slice_self_j) == pytest.approx(math.fsum(swept.self_j), rel=1e-12, abs=1e-15)
    assert np.all(swept.self_j <= swept.energy_j + 1e-12) or split is Split.DURATION or len(rows) > 1


@given(rows=ROWS, shift=st.integers(-(10**17), 10**17), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_the_clock_s_zero_does_not_matter(rows: list[tuple[int, int, int, int]], shift: int, seed: int) -> None:
    power = np.random.default_rng(seed).uniform(0, 10, 100)
    here = sweep_energy(build_trace(power), group_rows(rows, groups=4), per_slice=True, backend="numpy")
    moved = [(a + shift, b + shift, g, t) for a, b, g, t in rows]
    there = sweep_energy(
        build_trace(power, start_ns=shift), group_rows(moved, groups=4), per_slice=True, backend="numpy"
    )
    np.testing.assert_allclose(here.slice_energy_j, there.slice_energy_j, rtol=1e-12, atol=1e-18)
    assert here.idle_j == pytest.approx(there.idle_j, rel=1e-12)


@given(rows=ROWS, seed=st.integers(0, 1000), factor=st.sampled_from([2, 5]))
@settings(max_examples=40, deadline=None)
def test_finer_samples_of_the_same_power_change_nothing(
    rows: list[tuple[int, int, int, int]], seed: int, factor: int
) -> None:
    power = np.random.default_rng(seed).uniform(0, 10, 100)
    slices = group_rows(rows, groups=4)
    coarse = sweep_energy(build_trace(power), slices, per_slice=True, backend="numpy")
    fine = sweep_energy(
        build_trace(np.repeat(power, factor), period_s=1e-3 / factor), slices, per_slice=True, backend="numpy"
    )
    np.testing.assert_allclose(coarse.slice_self_j, fine.slice_self_j, rtol=1e-12, atol=1e-18)


@given(rows=ROWS.filter(lambda rows: any(b > a for a, b, _, _ in rows)), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_the_figures_of_a_map_add_up_to_the_trace(rows: list[tuple[int, int, int, int]], seed: int) -> None:
    """Slices are drawn a hundred times longer here, so that samples resolve them."""
    slices = [Slice(name=f"n{g}", start_ns=a * 100, end_ns=b * 100, track=f"t{t}") for a, b, g, t in rows]
    trace = build_trace(np.random.default_rng(seed).uniform(1, 10, 1000), period_s=1e-2)
    energy = map_energy(
        [trace], Timeline.from_slices(WORK, slices), ClockMap(source=WORK, target=METER), MeterErrors(),
        request=MapRequest(),
    )  # fmt: skip
    assert isinstance(energy.total_j, Estimate)
    own = [row.self_j for row in energy.rows]
    if isinstance(energy.idle_j, Estimate) and all(isinstance(part, Estimate) for part in own):
        total = math.fsum(part.value for part in (*own, energy.idle_j) if isinstance(part, Estimate))
        assert total == pytest.approx(energy.total_j.value, rel=1e-9)


SCHEDULE = (("a", 1.3e-3, 8.0), ("b", 2.7e-3, 3.0), ("c", 0.8e-3, 12.0), ("d", 5.1e-3, 5.0))


@pytest.mark.parametrize(("rate_hz", "way"), [(100.0, Resolution.LEAST_SQUARES), (200_000.0, Resolution.OVERLAP)])
def test_intervals_hold_the_truth_by_either_way(rate_hz: float, way: Resolution) -> None:
    held = count = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        trace, timeline, truth = sampled_powers(
            SCHEDULE, runs=400 if rate_hz < 1e4 else 30, rate_hz=rate_hz, rng=rng, noise_w=0.03
        )
        energy = map_energy([trace], timeline, ClockMap(source=WORK, target=METER), MeterErrors(), request=MapRequest())
        for row in energy.rows:
            assert row.resolution is way
            assert isinstance(row.energy_j, Estimate)
            held += abs(row.energy_j.value - truth[row.key]) <= row.energy_j.expanded
            count += 1
    assert held / count >= 0.85, f"{held} of {count}"


@given(shift=st.integers(-(10**17), 10**17), seed=st.integers(0, 50))
@settings(max_examples=6, deadline=None)
def test_the_clock_s_zero_does_not_matter_to_least_squares(shift: int, seed: int) -> None:
    drawn = draw(Case(name="", runs=60), np.random.default_rng(seed))
    timeline, trace = drawn.timeline, drawn.trace
    later = replace(timeline, start_ns=timeline.start_ns + shift, end_ns=timeline.end_ns + shift)
    here = map_drawn(drawn)
    there = map_drawn(replace(drawn, trace=replace(trace, start_ns=trace.start_ns + shift), timeline=later))
    assert [row.resolution for row in here.rows] == [row.resolution for row in there.rows]
    for one, two in zip(here.rows, there.rows, strict=True):
        if isinstance(one.energy_j, Estimate) and isinstance(two.energy_j, Estimate):
            assert two.energy_j.value == pytest.approx(one.energy_j.value, rel=1e-6)
            assert two.energy_j.expanded == pytest.approx(one.energy_j.expanded, rel=1e-3)


def test_offset_and_drift_are_recovered_by_the_samples_within_the_printed_bound() -> None:
    """What the fit says of the schedule's place, in its own standard uncertainties, over draws."""
    off = []
    for seed in range(10):
        drawn = draw(Case(name="", runs=200, offset_s=100e-6, drift_ppm=30.0), np.random.default_rng(seed))
        clock = ClockMap(
            source=WORK, target=METER, reference_ns=int(drawn.edges_s[-1] * 0.5e9), std_s=60e-6, drift_std=20e-6
        )
        fit = map_drawn(drawn, clock).fit
        assert fit is not None
        assert fit.shift_std_s is not None
        assert fit.shift_std_s < 5e-6
        off.append((fit.shift_s - drawn.offset_s) / fit.shift_std_s)
        assert fit.drift_ppm == pytest.approx(drawn.drift * 1e6, abs=30.0)
    assert float(np.sqrt(np.mean(np.square(off)))) < 2.0
    assert float(np.abs(off).max()) < 4.0
