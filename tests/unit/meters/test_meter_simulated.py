"""The simulated meter: what it draws once and what it draws anew, what its samples mean, how it fails."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from joulemap.errors import PowerError
from joulemap.estimate import Provenance
from joulemap.meters.drivers.simulated import SimulatedMeter, SystematicErrors
from joulemap.meters.rail_integral import RailIntegral
from joulemap.meters.registry import instrument
from joulemap.records.fault import Fault, FaultPlan, FaultSlug
from joulemap.records.instrument import ErrorDistribution, InstrumentSpec, MeterRecording
from joulemap.records.rail import RailActivity
from joulemap.trace import EdgeDirection, Marker

RISE_NS, FALL_NS = 3_000_400, 17_000_700


@pytest.fixture(scope="module")
def rail() -> RailActivity:
    rows = np.random.default_rng(3).integers(1_000_000, 3_000_000, 20_000).astype(np.uint32)
    edges = (
        Marker(time_ns=1_000_000, name="ready", direction=EdgeDirection.RISE),
        Marker(time_ns=RISE_NS, name="gate", direction=EdgeDirection.RISE),
        Marker(time_ns=FALL_NS, name="gate", direction=EdgeDirection.FALL),
    )
    return RailActivity(row_s=1e-6, energy_fj=rows, edges=edges)


def perfect(**changes: object) -> InstrumentSpec:
    """Returns a declaration without any error."""
    spec = replace(
        instrument("virtual-shunt"),
        gain_std=0.0,
        offset_std_w=0.0,
        noise_std_w=0.0,
        quantum_w=0.0,
        clock_std_ppm=0.0,
        edge_skew_std_s=0.0,
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


def record(rail: RailActivity, spec: InstrumentSpec, seed: int = 0, repeat: int = 1) -> MeterRecording:
    """Returns one recording of a fresh meter."""
    meter = SimulatedMeter(spec, lambda: rail, seed)
    meter.arm(repeat=repeat)
    return meter.collect()


@pytest.mark.parametrize("rate_hz", [1e6, 123_456.0, 1e3])
def test_a_perfect_meter_conserves_the_energy_between_its_edges(rail: RailActivity, rate_hz: float) -> None:
    recording = record(rail, perfect(rate_hz=rate_hz, edge_rate_hz=1e9))
    period_s = 1 / rate_hz
    inside_s = recording.trace.n * period_s
    lead_s = recording.edges[0].time_ns * 1e-9 - 1e-3
    integral = RailIntegral.build(rail)
    truth = integral.energy_j(np.array([-lead_s, inside_s - lead_s]))
    measured = recording.trace.power_w.sum(dtype=np.float64) * period_s
    assert measured == pytest.approx(truth[1] - truth[0], rel=1e-6)


def test_its_clock_starts_within_one_sample_of_the_board_and_differs_between_captures(rail: RailActivity) -> None:
    leads = [record(rail, perfect(rate_hz=1e3), repeat=k).edges[0].time_ns - 1_000_000 for k in range(1, 9)]
    assert all(0 <= lead <= 1_001_000 for lead in leads)
    assert len(set(leads)) == len(leads)


def test_it_records_to_the_end_of_the_sample_that_was_running(rail: RailActivity) -> None:
    recording = record(rail, perfect(rate_hz=10.0))
    assert recording.trace.duration_s >= 0.02
    assert recording.trace.n <= 2


def test_an_edge_is_seen_at_the_next_tick(rail: RailActivity) -> None:
    recording = record(rail, perfect(edge_rate_hz=1e4))
    rise = recording.edges[1].time_ns
    ready = recording.edges[0].time_ns
    assert rise % 100_000 == 0
    assert abs((rise - ready) - (RISE_NS - 1_000_000)) < 100_000


def test_systematic_errors_are_drawn_once_and_noise_anew(rail: RailActivity) -> None:
    meter = SimulatedMeter(instrument("virtual-shunt"), lambda: rail, 5)
    integral = RailIntegral.build(rail)
    means, first = [], []
    for repeat in (1, 2, 3):
        meter.arm(repeat=repeat)
        recording = meter.record(integral)
        means.append(float(recording.trace.power_w.mean(dtype=np.float64)))
        first.append(float(recording.trace.power_w[0]))
    errors = meter.errors
    truth_w = float(rail.energy_fj.mean()) * 1e-9
    for mean in means:
        assert mean == pytest.approx(truth_w * errors.gain + errors.offset_w, rel=3e-4)
    assert len(set(first)) == 3


def test_equal_seeds_give_equal_recordings_in_any_order(rail: RailActivity) -> None:
    forward = record(rail, instrument("virtual-shunt"), seed=9, repeat=2)
    meter = SimulatedMeter(instrument("virtual-shunt"), lambda: rail, np.random.SeedSequence(9))
    for repeat in (3, 2):
        meter.arm(repeat=repeat)
        again = meter.collect()
    assert np.array_equal(again.trace.power_w, forward.trace.power_w)
    assert again.edges == forward.edges


@pytest.mark.parametrize("distribution", list(ErrorDistribution))
def test_errors_have_the_declared_standard_uncertainty(distribution: ErrorDistribution) -> None:
    spec = replace(instrument("virtual-shunt"), distribution=distribution)
    drawn = [SystematicErrors.draw(spec, np.random.default_rng(seed)) for seed in range(4000)]
    gains = np.array([errors.gain - 1 for errors in drawn])
    assert gains.std() == pytest.approx(spec.gain_std, rel=0.04)
    assert abs(gains.mean()) < 4 * spec.gain_std / np.sqrt(gains.size)
    assert np.std([errors.offset_w for errors in drawn]) == pytest.approx(spec.offset_std_w, rel=0.04)
    assert np.std([errors.clock - 1 for errors in drawn]) == pytest.approx(spec.clock_std_ppm * 1e-6, rel=0.04)
    assert np.std([errors.skew_s for errors in drawn]) == pytest.approx(spec.edge_skew_std_s, rel=0.04)
    inside = np.abs(gains) <= np.sqrt(3) * spec.gain_std
    assert inside.all() == (distribution is ErrorDistribution.RECTANGULAR)


def test_noise_and_quantum_are_as_declared() -> None:
    flat = RailActivity(row_s=1e-6, energy_fj=np.full(50_000, 2_000_000, np.uint32), edges=())
    recording = record(flat, perfect(noise_std_w=20e-6, quantum_w=0.5e-6))
    power_w = recording.trace.power_w.astype(np.float64)
    assert power_w.std() == pytest.approx(20e-6, rel=0.02)
    steps = power_w / 0.5e-6
    assert np.abs(steps - np.rint(steps)).max() < 1e-3


def test_it_is_simulated_whatever_the_declaration_says(rail: RailActivity) -> None:
    recording = record(rail, replace(instrument("virtual-shunt"), provenance=Provenance.MEASURED_SAMPLED))
    assert recording.instrument.provenance is Provenance.SIMULATED
    assert recording.trace.channel.provenance is Provenance.SIMULATED


@pytest.mark.parametrize(
    ("slug", "error"),
    [(FaultSlug.INSTRUMENT_LOST, "instrument-lost"), (FaultSlug.CAPTURE_EMPTY, "capture-empty")],
)
def test_a_planted_loss_hits_its_repeat_only(rail: RailActivity, slug: FaultSlug, error: str) -> None:
    plan = FaultPlan(faults=(Fault(slug=slug, repeat=2),))
    meter = SimulatedMeter(perfect(), lambda: rail, 0, plan)
    meter.arm(repeat=1)
    assert meter.collect().trace.n > 0
    meter.arm(repeat=2)
    with pytest.raises(PowerError) as caught:
        meter.collect()
    assert caught.value.slug == error
    assert caught.value.phase == "power"


def test_a_lossy_capture_has_gaps_and_says_how_much(rail: RailActivity) -> None:
    plan = FaultPlan(faults=(Fault(slug=FaultSlug.CAPTURE_LOSSY),))
    meter = SimulatedMeter(perfect(), lambda: rail, 0, plan, lost_share=0.1)
    meter.arm(repeat=1)
    recording = meter.collect()
    assert recording.trace.lost_samples / recording.trace.n == pytest.approx(0.1, abs=0.03)
    (finding,) = recording.findings
    assert finding.slug == "samples_lost"
    assert str(recording.trace.lost_samples) in finding.message
    for first, last in recording.trace.gaps:
        assert not recording.trace.power_w[first:last].any()


def test_collecting_without_arming_is_a_fault_of_the_caller(rail: RailActivity) -> None:
    meter = SimulatedMeter(perfect(), lambda: rail, 0)
    with pytest.raises(RuntimeError, match="not armed"):
        meter.collect()
    meter.arm(repeat=1)
    meter.close()
    with pytest.raises(RuntimeError, match="not armed"):
        meter.collect()
    with pytest.raises(ValueError, match="counted from 1"):
        meter.arm(repeat=0)


def test_the_integral_is_exact_and_held_outside_the_rows() -> None:
    rail = RailActivity(row_s=1e-6, energy_fj=np.array([1, 3, 5, 7], np.uint32), edges=())
    integral = RailIntegral.build(rail)
    at_s = np.array([0.0, 0.5e-6, 1e-6, 2.25e-6, 4e-6, 5e-6, -1e-6])
    expected = np.array([0.0, 0.5, 1.0, 5.25, 16.0, 20.0, -4.0]) * 1e-15
    assert np.allclose(integral.energy_j(at_s), expected, atol=1e-27)
    with pytest.raises(ValueError, match="without rows"):
        RailIntegral.build(replace(rail, energy_fj=np.empty(0, np.uint32)))


def test_a_long_gate_costs_little_more_memory_than_its_samples() -> None:
    rows = np.full(2_000_000, 1_500_000, np.uint32)
    integral = RailIntegral.build(RailActivity(row_s=1e-6, energy_fj=rows, edges=()))
    meter = SimulatedMeter(instrument("virtual-shunt"), lambda: pytest.fail("not asked"), 0)
    meter.arm(repeat=1)
    tracemalloc.start()
    try:
        recording = meter.record(integral)
        peak_b = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert recording.trace.power_w.nbytes == 4 * recording.trace.n
    assert peak_b < 4 * recording.trace.n + 16_000_000


def test_intervals_passed_over_change_no_bit_of_the_rest(rail: RailActivity) -> None:
    integral = RailIntegral.build(rail)
    whole_w = integral.interval_power_w(-0.4e-6, 1.000_013e-6, 20_010)
    for begin in (1, 777, 19_990, 20_009):
        rest_w = integral.interval_power_w(-0.4e-6, 1.000_013e-6, 20_010 - begin, begin=begin)
        assert rest_w.tolist() == whole_w[begin:].tolist()
