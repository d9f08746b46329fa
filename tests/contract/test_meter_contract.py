"""What every shipped instrument and the meter behind it must do: run by its declaration in ``meters/specs`` alone."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.errors import PowerError
from joulemap.meters.base import PowerMeter
from joulemap.meters.registry import instrument, instrument_names, open_simulated_meter
from joulemap.records.fault import Fault, FaultPlan, FaultSlug
from joulemap.records.rail import RailActivity
from joulemap.trace import EdgeDirection, Marker

ROW_S = 1e-6
POWER_W = 0.02
SECONDS = 0.4
RISE_NS, FALL_NS = 100_000_000, 300_000_000


def rail() -> RailActivity:
    """Returns 0.4 s at 20 mW with one gate of 0.2 s."""
    edges = (
        Marker(time_ns=RISE_NS, name="gate", direction=EdgeDirection.RISE),
        Marker(time_ns=FALL_NS, name="gate", direction=EdgeDirection.FALL),
    )
    energy_fj = np.full(round(SECONDS / ROW_S), round(POWER_W * ROW_S * 1e15), np.uint32)
    return RailActivity(row_s=ROW_S, energy_fj=energy_fj, edges=edges)


def opened(name: str, *faults: FaultSlug, seed: int = 5) -> PowerMeter:
    plan = FaultPlan(faults=tuple(Fault(slug=slug) for slug in faults))
    return open_simulated_meter(instrument(name), rail, seed, plan)


@pytest.fixture(params=instrument_names())
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def test_a_recording_is_what_the_declaration_says(name: str) -> None:
    meter = opened(name)
    meter.arm(repeat=1)
    recording = meter.collect()
    spec = recording.instrument
    assert spec == meter.spec
    assert recording.trace.period_s == pytest.approx(1.0 / spec.rate_hz)
    clock_s = 6e-6 * spec.clock_std_ppm * SECONDS
    assert recording.trace.duration_s == pytest.approx(SECONDS, abs=2.5 / spec.rate_hz + clock_s)
    assert recording.trace.channel.provenance is spec.provenance
    error_w = 6 * (spec.gain_std * POWER_W + spec.offset_std_w + spec.noise_std_w) + spec.quantum_w
    inner_w = recording.trace.power_w[1:-1]
    assert inner_w.size
    assert float(np.mean(inner_w)) == pytest.approx(POWER_W, abs=error_w)


def test_edges_are_seen_in_order_within_a_tick_and_the_skew(name: str) -> None:
    meter = opened(name)
    meter.arm(repeat=1)
    rise, fall = meter.collect().edges
    spec = meter.spec
    assert (rise.direction, fall.direction) == (EdgeDirection.RISE, EdgeDirection.FALL)
    slack_ns = 2e9 / spec.edge_rate_hz + 6e-6 * spec.clock_std_ppm * (FALL_NS - RISE_NS)
    assert fall.time_ns - rise.time_ns == pytest.approx(FALL_NS - RISE_NS, abs=slack_ns)


def test_equal_seeds_give_equal_recordings_and_repeats_differ(name: str) -> None:
    recordings = []
    for repeat in (1, 1, 2):
        meter = opened(name)
        meter.arm(repeat=repeat)
        recordings.append(meter.collect().trace.power_w)
    assert np.array_equal(recordings[0], recordings[1])
    assert not np.array_equal(recordings[0], recordings[2])


@pytest.mark.parametrize(
    ("fault", "slug"), [(FaultSlug.CAPTURE_EMPTY, "capture-empty"), (FaultSlug.INSTRUMENT_LOST, "instrument-lost")]
)
def test_what_cannot_be_had_is_an_error_with_its_slug(name: str, fault: FaultSlug, slug: str) -> None:
    meter = opened(name, fault)
    meter.arm(repeat=1)
    with pytest.raises(PowerError) as caught:
        meter.collect()
    assert caught.value.slug == slug
    assert caught.value.hint


def test_what_was_lost_is_a_gap_with_a_finding(name: str) -> None:
    meter = opened(name, FaultSlug.CAPTURE_LOSSY)
    meter.arm(repeat=1)
    recording = meter.collect()
    assert recording.trace.lost_samples > 0
    assert recording.findings
    for first, last in recording.trace.gaps:
        assert np.all(recording.trace.power_w[first:last] == 0)


def test_closing_twice_is_no_error(name: str) -> None:
    meter = opened(name)
    meter.close()
    meter.close()
