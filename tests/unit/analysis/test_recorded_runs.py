"""Energy of runs: the known truth inside its interval, edges, lost time, idle power, scatter, disjoint sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.recorded.energies import (
    estimate_above_idle,
    estimate_duration,
    estimate_energy,
    estimate_mean_power,
)
from joulemap.analysis.recorded.gain import ASSUMED_GAIN_LIMIT, live_errors, stated_gain
from joulemap.analysis.recorded.runs import DomainRuns, measure_runs
from joulemap.estimate import Boundary, Estimate, Provenance, Unavailable
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel

CLOCK = Clock(name="monotonic", kind=ClockKind.MONOTONIC)
EXACT = MeterErrors(name="x", gain_std=0.0)
S = 1_000_000_000


def trace_of(
    power_w: np.ndarray, *, name: str = "m:a", step_ns: int = S // 10, kind: KernelKind = KernelKind.COUNTER,
    boundary: Boundary = Boundary.PACKAGE, gaps: list[tuple[int, int]] | None = None,
) -> EnergyTrace:  # fmt: skip
    kernel = SensorKernel(kind=kind, window_s=0.0 if kind is KernelKind.COUNTER else step_ns * 1e-9)
    channel = Channel(name=name, boundary=boundary, provenance=Provenance.MEASURED_COUNTER, kernel=kernel)
    edges = step_ns * np.arange(power_w.size + 1, dtype=np.int64)
    return EnergyTrace(
        clock=CLOCK,
        channel=channel,
        power_w=power_w.astype(np.float64),
        start_ns=0,
        edges_ns=edges,
        gaps=np.array(gaps or [], np.int64).reshape(-1, 2),
    )


def square(levels: list[tuple[float, float]], step_s: float = 0.1) -> np.ndarray:
    return np.concatenate([np.full(round(span / step_s), power) for power, span in levels])


def test_a_run_between_edges_of_samples_is_exact() -> None:
    trace = trace_of(square([(10.0, 2.0), (50.0, 3.0), (10.0, 2.0)]))
    runs = measure_runs(trace, [(2 * S, 5 * S)], [(0, 2 * S), (5 * S, 7 * S)], errors=EXACT)
    energy, above = estimate_energy([runs]), estimate_above_idle([runs])
    assert isinstance(energy, Estimate)
    assert isinstance(above, Estimate)
    assert energy.value == pytest.approx(150.0)
    assert above.value == pytest.approx(120.0)
    assert runs.idle_w == pytest.approx(10.0)
    assert energy.boundary is Boundary.PACKAGE


def test_an_edge_inside_a_sample_is_worth_the_step_of_power() -> None:
    """10 W to 50 W at 2.05 s, inside the sample from 2.0 to 2.1 s, whose mean is 30 W."""
    power = square([(10.0, 2.0), (30.0, 0.1), (50.0, 3.0), (10.0, 2.0)])
    trace = trace_of(power)
    runs = measure_runs(trace, [(2 * S + S // 20, 5 * S + S // 10)], [], errors=EXACT)
    energy = estimate_energy([runs])
    assert isinstance(energy, Estimate)
    truth = 50.0 * 3.05
    assert abs(energy.value - truth) == pytest.approx(1.0)  # half of the sample went to the wrong side
    assert abs(energy.value - truth) <= energy.expanded


def test_a_late_counter_widens_the_edges() -> None:
    trace = trace_of(square([(10.0, 2.0), (50.0, 3.0), (10.0, 2.0)]))
    quick = measure_runs(trace, [(2 * S, 5 * S)], [], errors=EXACT)
    slow = measure_runs(trace, [(2 * S, 5 * S)], [], errors=EXACT, update_s=0.05)
    assert slow.edge_std_j[0] > quick.edge_std_j[0] + 1.0


def test_scatter_between_runs_is_in_the_interval() -> None:
    power = square([(10.0, 1.0), (50.0, 1.0), (10.0, 1.0), (54.0, 1.0), (10.0, 1.0), (46.0, 1.0), (10.0, 1.0)])
    windows = [(S, 2 * S), (3 * S, 4 * S), (5 * S, 6 * S)]
    energy = estimate_energy([measure_runs(trace_of(power), windows, [], errors=EXACT)])
    assert isinstance(energy, Estimate)
    assert energy.value == pytest.approx(50.0)
    scatter = 4.0 / math.sqrt(3.0)
    assert energy.std >= scatter
    assert energy.dof < 10


def test_a_gain_that_nobody_declares_is_assumed_and_said() -> None:
    errors = live_errors("m:a", None, Provenance.MEASURED_COUNTER)
    assert errors.gain_std == pytest.approx(ASSUMED_GAIN_LIMIT / math.sqrt(3.0))
    assert [finding.slug for finding in errors.findings] == ["gain_assumed"]
    assert live_errors("m:a", 0.01, Provenance.MEASURED_COUNTER).findings == ()
    assert stated_gain({"gain_std m:a": "0.01"}, "m:a") == 0.01
    assert stated_gain({"gain_std m:a": "much"}, "m:a") is None
    assert stated_gain({}, "m:a") is None
    trace = trace_of(square([(20.0, 10.0)]))
    energy = estimate_energy([measure_runs(trace, [(S, 9 * S)], [], errors=errors)])
    assert isinstance(energy, Estimate)
    assert energy.expanded == pytest.approx(0.0475 * 160.0, rel=0.02)  # 95 % of a rectangle


def test_what_was_lost_is_not_taken_as_nothing() -> None:
    power = square([(20.0, 10.0)])
    power[50] = 0.0
    trace = trace_of(power, gaps=[(50, 51)])
    little = measure_runs(trace, [(0, 10 * S)], [], errors=EXACT)
    energy = estimate_energy([little])
    assert isinstance(energy, Estimate)
    assert energy.value == pytest.approx(200.0)
    assert energy.std > 1.0
    much = measure_runs(trace, [(4 * S, 6 * S)], [], errors=EXACT)
    assert estimate_energy([much]) == Unavailable(reason="samples_lost")
    assert [finding.slug for finding in much.findings] == ["run_samples_lost"]


def test_a_run_outside_the_trace_has_no_energy() -> None:
    runs = measure_runs(trace_of(square([(20.0, 1.0)])), [(5 * S, 6 * S)], [], errors=EXACT)
    assert estimate_energy([runs]) == Unavailable(reason="samples_lost")
    assert estimate_mean_power([runs]) == Unavailable(reason="samples_lost")


def test_a_run_too_short_for_its_meter_has_no_energy() -> None:
    trace = trace_of(square([(10.0, 2.0), (50.0, 1.0), (10.0, 2.0)], step_s=1.0), step_ns=S)
    runs = measure_runs(trace, [(2 * S + S // 2, 2 * S + S // 2 + 1000)], [], errors=EXACT, update_s=1.0)
    assert estimate_energy([runs]) == Unavailable(reason="too_short_for_samples")


def test_two_runs_that_differ_too_much_are_no_mean_and_are_not_called_short() -> None:
    trace = trace_of(square([(10.0, 4.0), (40.0, 4.0)]))
    apart = [(1 * S, 3 * S), (5 * S, 7 * S)]
    assert estimate_energy([measure_runs(trace, apart, [], errors=EXACT)]) == Unavailable(reason="runs_differ")
    alike = [(1 * S, 3 * S), (1 * S + S // 2, 3 * S + S // 2)]
    assert isinstance(estimate_energy([measure_runs(trace, alike, [], errors=EXACT)]), Estimate)


def test_idle_power_that_drifts_is_said_and_widens() -> None:
    power = square([(10.0, 2.0), (50.0, 3.0), (14.0, 2.0)])
    runs = measure_runs(trace_of(power), [(2 * S, 5 * S)], [(0, 2 * S), (5 * S, 7 * S)], errors=EXACT)
    above = estimate_above_idle([runs])
    assert isinstance(above, Estimate)
    assert above.value == pytest.approx(150.0 - 36.0)
    assert [finding.slug for finding in runs.findings] == ["baseline_drifted"]
    assert above.std > 3.0


def test_without_a_baseline_nothing_is_above_idle() -> None:
    runs = measure_runs(trace_of(square([(20.0, 5.0)])), [(S, 2 * S)], [], errors=EXACT)
    assert estimate_above_idle([runs]) == Unavailable(reason="no_baseline")


def parts(*names: str, gain: float = 0.05, boundary: Boundary = Boundary.PACKAGE) -> list[DomainRuns]:
    errors = MeterErrors(name="x", gain_std=gain, rectangular=False)
    return [
        measure_runs(trace_of(square([(20.0, 10.0)]), name=name, boundary=boundary), [(S, 9 * S)], [], errors=errors)
        for name in names
    ]


def test_domains_of_one_meter_share_their_gain_and_meters_do_not() -> None:
    one, two = estimate_energy(parts("m:a", "m:b")), estimate_energy(parts("m:a", "n:b"))
    assert isinstance(one, Estimate)
    assert isinstance(two, Estimate)
    assert one.value == two.value == pytest.approx(320.0)
    assert one.std == pytest.approx(16.0)
    assert two.std == pytest.approx(16.0 / math.sqrt(2.0))


def test_different_boundaries_are_not_added() -> None:
    mixed = [*parts("m:a"), *parts("n:b", boundary=Boundary.BOARD)]
    assert estimate_energy(mixed) == Unavailable(reason="boundaries_differ")
    assert estimate_energy([]) == Unavailable(reason="no_meter")
    asked = estimate_energy(mixed, mixed=True)
    assert isinstance(asked, Estimate)
    assert asked.value == pytest.approx(320.0)
    assert asked.boundary is None


def test_a_duration_has_its_scatter() -> None:
    one = estimate_duration([2.0])
    some = estimate_duration([2.0, 2.2, 1.8])
    assert isinstance(one, Estimate)
    assert isinstance(some, Estimate)
    assert one.std == 0.0
    assert some.value == pytest.approx(2.0)
    assert some.dof == pytest.approx(2.0)
    assert estimate_duration([]) == Unavailable(reason="no_run")


@pytest.mark.parametrize("seed", range(3))
def test_intervals_cover_the_truth_of_a_power_sensor(seed: int) -> None:
    """Noisy means over 100 ms of a square wave that the run cuts anywhere: 95 % intervals cover about so often."""
    rng = np.random.default_rng(seed)
    covered = 0
    draws = 300
    for _ in range(draws):
        fine = np.where((np.arange(12_000) // 500) % 2, 40.0, 20.0)  # at 1 ms
        power = fine.reshape(-1, 100).mean(axis=1) + rng.normal(0.0, 1.0, 120)
        begin, end = sorted(rng.integers(500, 11_500, 2).tolist())
        if end - begin < 1000:
            begin, end = 1000, 9000
        truth = float(fine[begin:end].sum()) * 1e-3
        trace = trace_of(power, kind=KernelKind.INTERVAL_MEAN)
        energy = estimate_energy([measure_runs(trace, [(begin * 10**6, end * 10**6)], [], errors=EXACT)])
        assert isinstance(energy, Estimate)
        covered += abs(energy.value - truth) <= energy.expanded
    assert covered / draws > 0.92


def test_short_runs_are_covered_or_refused() -> None:
    """Bursts that begin and end with the run, shorter than a few samples: what is stated must hold the truth."""
    rng = np.random.default_rng(5)
    stated = covered = refused = 0
    for _ in range(400):
        begin = int(rng.integers(2000, 3000))
        length = int(rng.integers(20, 400))
        fine = np.full(6000, 10.0)  # at 1 ms
        fine[begin : begin + length] = rng.uniform(15.0, 60.0)
        trace = trace_of(fine.reshape(-1, 100).mean(axis=1), kind=KernelKind.INTERVAL_MEAN)
        truth = float(fine[begin : begin + length].sum()) * 1e-3
        window = (begin * 10**6, (begin + length) * 10**6)
        energy = estimate_energy([measure_runs(trace, [window], [], errors=EXACT)])
        if isinstance(energy, Unavailable):
            refused += 1
        else:
            stated += 1
            covered += abs(energy.value - truth) <= energy.expanded
    assert covered / stated > 0.92
    assert refused > 20
    assert stated > 100
