"""Slices shorter than a sample on tracks that are busy at once: told as a sum with the idle time, beside the rest."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.estimate import Estimate, Unavailable
from joulemap.records.energy import Resolution
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap
from joulemap.trace import Slice, Timeline
from mapped_traces import METER, build_trace

MS = 1_000_000


def mapped(seed: int) -> tuple[EnergyMap, dict[str, float]]:
    """Twenty bursts of 60 ms at about 9 W, each followed by short work on two tracks at once; samples of 1 ms."""
    rng = np.random.default_rng(seed)
    slices, edges, powers = [], [0], [2.0]
    at = 20 * MS
    for _ in range(20):
        begin = at + int(rng.integers(0, MS))
        slices.append(Slice(name="burst", start_ns=begin, end_ns=begin + 60 * MS, track="cpu"))
        edges += [begin, begin + 60 * MS]
        powers += [9.0, 2.0]
        at = begin + 62 * MS
        for _ in range(15):
            length, late = int(rng.integers(100_000, 400_000)), int(rng.integers(0, 200_000))
            slices.append(Slice(name="copy", start_ns=at, end_ns=at + length + late, track="dma"))
            slices.append(Slice(name="kernel", start_ns=at + late, end_ns=at + late + length, track="gpu"))
            edges += [at, at + length + late]
            powers += [14.0, 2.0]
            at += length + late + int(rng.integers(100_000, 500_000))
        at += 5 * MS
    count = at // MS + 20
    edges_s = np.array([*edges, count * MS]) * 1e-9
    until = np.concatenate([[0.0], np.cumsum(np.diff(edges_s) * powers)])
    sampled_w = np.diff(np.interp(np.arange(count + 1) * 1e-3, edges_s, until)) * 1e3
    trace = build_trace(sampled_w + rng.normal(0.0, 0.1, count))
    clock = ClockMap(source=METER, target=METER)
    energy = map_energy([trace], Timeline.from_slices(METER, slices), clock, MeterErrors(), request=MapRequest())
    burst_j = 20 * 0.06 * 9.0
    return energy, {"burst": burst_j, "rest": float(until[-1]) - burst_j, "total": float(until[-1])}


def test_short_concurrent_slices_refuse_neither_the_others_nor_their_own_sum() -> None:
    energy, truth = mapped(0)
    rows = {row.key: row for row in energy.rows}
    assert energy.concurrent == 2
    assert rows["burst"].resolution is Resolution.OVERLAP
    for name in ("copy", "kernel"):
        assert rows[name].self_j == Unavailable(reason="too_short_for_samples")
    (rest,) = energy.groups
    assert sorted(rest.keys) == ["copy", "kernel"]
    assert rest.contains_idle
    assert isinstance(rest.energy_j, Estimate)
    own = rows["burst"].self_j
    assert isinstance(own, Estimate)
    assert isinstance(energy.total_j, Estimate)
    assert rest.energy_j.value + own.value == pytest.approx(energy.total_j.value, rel=1e-12)
    assert rest.energy_j.value == pytest.approx(truth["rest"], rel=0.01)
    assert rest.energy_j.expanded < 0.02 * truth["rest"]


def test_the_sum_of_short_concurrent_slices_holds_the_truth() -> None:
    held = {"burst": 0, "rest": 0, "total": 0}
    draws = 60
    for seed in range(draws):
        energy, truth = mapped(seed)
        burst = next(row for row in energy.rows if row.key == "burst")
        told = {"burst": burst.self_j, "rest": energy.groups[0].energy_j, "total": energy.total_j}
        for name, figure in told.items():
            assert isinstance(figure, Estimate)
            held[name] += abs(figure.value - truth[name]) <= figure.expanded
    assert min(held.values()) >= 52, held  # of 60 honest ones fewer than 52 come once in a thousand
