"""How many samples least squares over rows looks at: a few, or all where they tell a row more."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.estimate import Estimate, Unavailable
from joulemap.records.energy import Resolution
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap
from joulemap.trace import EnergyTrace, Slice, Timeline
from mapped_traces import METER, build_trace, sampled_powers


def mapped(trace: EnergyTrace, timeline: Timeline) -> EnergyMap:
    clock = ClockMap(source=timeline.clock, target=trace.clock)
    return map_energy([trace], timeline, clock, MeterErrors(), request=MapRequest())


def test_rows_that_samples_tell_get_all_of_them() -> None:
    rng = np.random.default_rng(3)
    schedule = [("a", 0.7e-3, 5.0), ("b", 1.6e-3, 2.0)]
    trace, timeline, truth = sampled_powers(schedule, runs=20_000, rate_hz=1e3, rng=rng, noise_w=0.05)
    told = mapped(trace, timeline)
    assert told.fit is not None
    assert told.fit.samples > 60_000  # the first look takes 20,000 slices, and 40,000 samples lie among them
    for row in told.rows:
        assert row.resolution is Resolution.LEAST_SQUARES
        assert isinstance(row.energy_j, Estimate)
        assert row.energy_j.value == pytest.approx(truth[row.key], rel=0.01)


def test_slivers_that_no_sample_tells_are_not_looked_for() -> None:
    rng = np.random.default_rng(4)
    runs, step_ns, own_ns = 6_000, 20_000, 1
    first, second, rest = 1_000_003, 1_400_007, 300_001
    period = first + own_ns + second + rest
    slices = []
    for run in range(runs):
        at = run * period + 5_000_000
        end = at + first + own_ns + second
        slices += [
            Slice(name="net", start_ns=at, end_ns=end),
            Slice(name="conv", start_ns=at, end_ns=at + first),
            Slice(name="dense", start_ns=at + first + own_ns, end_ns=end),
        ]
    edges = np.array([s for run in range(runs) for s in (0, first, first + own_ns, period - rest)], float)
    edges += np.repeat(np.arange(runs) * period + 5_000_000.0, 4)
    powers = np.tile([6.0, 3.0, 3.0, 1.0], runs)
    edges, powers = np.concatenate([[0.0], edges]), np.concatenate([[1.0], powers])
    edges = np.append(edges, runs * period + 10_000_000.0)
    until = np.concatenate([[0.0], np.cumsum(powers * np.diff(edges))])
    stamps = np.arange(int(edges[-1] // step_ns)) * float(step_ns)
    sampled = np.diff(np.interp(stamps, edges, until)) / step_ns
    trace = build_trace(sampled + 0.02 * rng.standard_normal(sampled.size), period_s=step_ns * 1e-9)
    told = mapped(trace, Timeline.from_slices(METER, slices))
    assert told.fit is not None
    assert told.fit.samples <= 100_000 < trace.n  # four columns: 400,000 entries
    rows = {row.key: row for row in told.rows}
    assert isinstance(rows["net"].self_j, Unavailable)
    assert rows["net"].runs_needed is None or rows["net"].runs_needed > 1e3
    for name, own, watts in (("conv", first, 6.0), ("dense", second, 3.0)):
        energy = rows[name].energy_j
        assert rows[name].resolution is Resolution.OVERLAP
        assert isinstance(energy, Estimate)
        assert abs(energy.value - own * watts * runs * 1e-9) <= 2 * energy.expanded
