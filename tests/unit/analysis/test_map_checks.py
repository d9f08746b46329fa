"""Idle baseline, counter against power, powers that cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from joulemap.analysis.checks.cross_check import compare_counter, pair_counters
from joulemap.analysis.checks.idle_baseline import above_idle, estimate_idle
from joulemap.analysis.checks.plausible import find_impossible_power, stated_limit_w
from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.sampling import describe_trace
from joulemap.estimate import Estimate, Unavailable
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.recording import Lane
from joulemap.trace import EnergyTrace, KernelKind, SensorKernel, Slice, Timeline
from mapped_traces import METER, build_trace

SAME = ClockMap(source=METER, target=METER)
WORK = Timeline.from_slices(METER, [Slice(name="work", start_ns=2_000_000_000, end_ns=6_000_000_000)])


def recorded(before_w: float, after_w: float, rng: np.random.Generator, noise_w: float = 0.02) -> EnergyTrace:
    power_w = np.concatenate([np.full(2000, before_w), np.full(4000, 12.0), np.full(2000, after_w)])
    return build_trace(power_w + noise_w * rng.standard_normal(power_w.size))


def test_idle_power_is_that_of_the_time_without_work() -> None:
    trace = recorded(10.0, 10.0, np.random.default_rng(0))
    baseline = estimate_idle([trace], WORK, SAME, (describe_trace(trace), MeterErrors()))
    assert isinstance(baseline.power_w, Estimate)
    assert abs(baseline.power_w.value - 10.0) <= baseline.power_w.expanded
    assert baseline.stretches == 2
    assert not baseline.findings
    energy = Estimate(value=48.0, std=0.01, provenance=baseline.power_w.provenance)
    above = above_idle(energy, 4.0, baseline, MeterErrors())
    assert isinstance(above, Estimate)
    assert abs(above.value - 8.0) <= above.expanded


def test_the_offset_cancels_and_the_gain_scales_what_is_left() -> None:
    trace = recorded(10.0, 10.0, np.random.default_rng(0), noise_w=0.0)
    meter = MeterErrors(name="m", gain_std=0.01, offset_std_w=0.5)
    baseline = estimate_idle([trace], WORK, SAME, (describe_trace(trace), meter))
    energy = Estimate(value=48.0, std=float(np.hypot(0.48, 2.0)), provenance=trace.channel.provenance)
    above = above_idle(energy, 4.0, baseline, meter)
    assert isinstance(above, Estimate)
    assert above.std == pytest.approx(0.08, rel=1e-6)


def test_a_baseline_that_moved_is_told_and_carried() -> None:
    trace = recorded(10.0, 11.0, np.random.default_rng(0))
    baseline = estimate_idle([trace], WORK, SAME, (describe_trace(trace), MeterErrors()))
    assert baseline.drift_w == pytest.approx(1.0, abs=0.01)
    assert [finding.slug for finding in baseline.findings] == ["idle_drifted"]
    assert "+1" in baseline.findings[0].message
    energy = Estimate(value=48.0, std=0.0, provenance=trace.channel.provenance)
    above = above_idle(energy, 4.0, baseline, MeterErrors())
    assert isinstance(above, Estimate)
    assert above.std == pytest.approx(4.0 * 0.5 / 3**0.5, rel=0.05)


def test_idle_that_was_not_recorded_is_no_number() -> None:
    trace = build_trace(np.full(4000, 12.0))
    busy = Timeline.from_slices(METER, [Slice(name="work", start_ns=0, end_ns=4_000_000_000)])
    baseline = estimate_idle([trace], busy, SAME, (describe_trace(trace), MeterErrors()))
    assert baseline.power_w == Unavailable(reason="idle_not_recorded")
    energy = Estimate(value=48.0, std=0.1, provenance=trace.channel.provenance)
    assert above_idle(energy, 4.0, baseline, MeterErrors()) == Unavailable(reason="idle_not_recorded")


def test_idle_on_one_side_is_not_checked() -> None:
    trace = build_trace(np.concatenate([np.full(1000, 10.0), np.full(3000, 12.0)]))
    work = Timeline.from_slices(METER, [Slice(name="work", start_ns=1_000_000_000, end_ns=4_000_000_000)])
    baseline = estimate_idle([trace], work, SAME, (describe_trace(trace), MeterErrors()))
    assert baseline.drift_w is None
    assert [finding.slug for finding in baseline.findings] == ["idle_not_checked"]


def pair(factor: float) -> tuple[EnergyTrace, EnergyTrace]:
    rng = np.random.default_rng(3)
    true_w = 50.0 + 10.0 * rng.random(600)
    power = build_trace(true_w * factor + rng.standard_normal(600), period_s=0.1)
    counter = build_trace(true_w.reshape(-1, 10).mean(axis=1), period_s=1.0)
    kernel = SensorKernel(kind=KernelKind.COUNTER, window_s=0.0)
    return power, replace(counter, channel=replace(counter.channel, name="power counter", kernel=kernel))


@pytest.mark.parametrize(
    ("factor", "slug", "severity"),
    [(1.0, "counter_confirms", "info"), (1.05, "counter_disagrees", "info"), (0.6, "counter_disagrees", "warning")],
)
def test_a_counter_is_held_against_the_power_beside_it(factor: float, slug: str, severity: str) -> None:
    pairs = pair_counters(pair(factor))
    assert len(pairs) == 1
    ratio, finding = compare_counter(*pairs[0])
    assert ratio is not None
    assert finding is not None
    assert abs(ratio.value - factor) <= ratio.expanded
    assert (finding.slug, str(finding.severity)) == (slug, severity)


def test_traces_that_share_no_time_are_not_compared() -> None:
    power, counter = pair(1.0)
    later = replace(counter, start_ns=10**12)
    assert compare_counter(power, later) == (None, None)
    assert pair_counters([power]) == []


def test_powers_that_cannot_be_are_told_with_their_place() -> None:
    power_w = np.full(100, 10.0)
    power_w[40], power_w[70] = -50.0, 1e6
    trace = build_trace(power_w)
    found = find_impossible_power(trace, describe_trace(trace), 20.0)
    assert {finding.slug for finding in found} == {"impossible_power"}
    spans = [finding.span for finding in found]
    assert spans == ["sample 40", "sample 70", "sample 70"]
    assert not find_impossible_power(build_trace(np.full(100, 10.0)), describe_trace(trace), 20.0)


def test_a_stated_limit_is_the_device_s_own() -> None:
    stamps = np.array([0, 10], np.int64)
    lanes = [
        Lane(name="power power limit", unit="W", clock=METER, time_ns=stamps, value=np.array([300.0, np.nan])),
        Lane(name="other power limit", unit="W", clock=METER, time_ns=stamps, value=np.array([900.0, 900.0])),
    ]
    assert stated_limit_w(build_trace([1.0, 1.0]), lanes) == 300.0
    assert stated_limit_w(build_trace([1.0, 1.0]), lanes[1:]) is None
