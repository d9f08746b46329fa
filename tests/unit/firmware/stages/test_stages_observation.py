"""Edges, windows and energy of one capture, on recordings whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from joulemap.errors import PowerError
from joulemap.estimate import Boundary, Provenance
from joulemap.firmware.stages.observation import find_gate_edges, observe_power
from joulemap.meters.registry import instrument
from joulemap.records.instrument import MeterRecording
from joulemap.records.power import PowerResult
from joulemap.trace import Channel, Clock, ClockKind, EdgeDirection, EnergyTrace, KernelKind, Marker, SensorKernel

RISE, FALL = EdgeDirection.RISE, EdgeDirection.FALL
READY_NS, RISE_NS, FALL_NS = 10_000_000, 60_000_000, 160_000_000
IDLE_W, RUN_W, AFTER_W = 1e-3, 10e-3, 50e-3
GATE_EDGES = ((READY_NS, "ready", RISE), (RISE_NS, "gate", RISE), (FALL_NS, "gate", FALL))


def recording(
    edges: tuple[tuple[int, str, EdgeDirection], ...] = GATE_EDGES,
    *,
    rate_hz: float = 1e5,
    gaps: list[tuple[int, int]] | None = None,
) -> MeterRecording:
    """Returns 200 ms of idle, run and an enabled transport, each of constant power."""
    spec = replace(instrument("virtual-shunt"), rate_hz=rate_hz, edge_rate_hz=1e6)
    time_ns = (np.arange(round(0.2 * rate_hz)) + 0.5) * 1e9 / rate_hz
    power_w = np.select([time_ns < RISE_NS, time_ns < FALL_NS], [IDLE_W, RUN_W], AFTER_W)
    kernel = SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1 / rate_hz)
    trace = EnergyTrace(
        clock=Clock(name="instrument", kind=ClockKind.SAMPLE_INDEX),
        channel=Channel(name="rail", boundary=Boundary.RAIL, provenance=Provenance.SIMULATED, kernel=kernel),
        power_w=power_w,
        start_ns=0,
        period_s=1 / rate_hz,
        gaps=np.array(gaps or [], np.int64).reshape(-1, 2),
    )
    markers = tuple(Marker(time_ns=at, name=name, direction=direction) for at, name, direction in edges)
    return MeterRecording(instrument=spec, trace=trace, edges=markers)


def observe(made: MeterRecording) -> PowerResult:
    return observe_power(made, find_gate_edges(made), 0.05)


def test_an_edge_lies_in_the_middle_of_its_tick() -> None:
    edges = find_gate_edges(recording())
    assert (edges.ready_ns, edges.rise_ns, edges.fall_ns) == (READY_NS - 500, RISE_NS - 500, FALL_NS - 500)


def test_the_first_pulse_counts_and_a_fall_before_it_does_not() -> None:
    spurious = ((5_000_000, "gate", FALL), *GATE_EDGES, (170_000_000, "gate", RISE), (180_000_000, "gate", FALL))
    assert find_gate_edges(recording(spurious)) == find_gate_edges(recording())


@pytest.mark.parametrize(("edges", "seen"), [((), (None, None)), (GATE_EDGES[:2], (RISE_NS - 500, None))])
def test_a_missing_edge_is_none(
    edges: tuple[tuple[int, str, EdgeDirection], ...], seen: tuple[float | None, float | None]
) -> None:
    found = find_gate_edges(recording(edges))
    assert (found.rise_ns, found.fall_ns) == seen
    assert found.window is None


def test_the_energy_inside_the_gate() -> None:
    result = observe(recording())
    assert result.duration_s == pytest.approx(0.1)
    half_tick_j = 0.5e-6 * (RUN_W - IDLE_W)  # the gate is taken half a tick early
    assert result.energy_j == pytest.approx(0.1 * RUN_W - half_tick_j, rel=1e-12)
    assert result.lost_share == pytest.approx(0.0, abs=1e-12)
    assert result.provenance is Provenance.SIMULATED


def test_the_peak_is_of_samples_wholly_inside() -> None:
    assert observe(recording()).peak_power_w == RUN_W
    assert observe(recording(rate_hz=100.0)).peak_power_w == RUN_W


def test_the_idle_window_keeps_clear_of_ready_and_gate() -> None:
    result = observe(recording())
    assert result.idle is not None
    assert READY_NS < result.idle.rise_ns < result.idle.fall_ns < RISE_NS
    assert result.idle.duration_s == pytest.approx(0.049, abs=1e-5)
    assert result.idle_power_w == pytest.approx(IDLE_W)


def test_an_instrument_too_slow_for_the_idle_window_has_none() -> None:
    result = observe(recording(rate_hz=200.0))
    assert result.idle is None
    assert result.idle_power_w is None


def test_free_form_is_the_whole_trace() -> None:
    result = observe(recording(()))
    assert result.gate is None
    assert result.idle is None
    assert result.duration_s == pytest.approx(0.2)
    assert result.energy_j == pytest.approx(0.06 * IDLE_W + 0.1 * RUN_W + 0.04 * AFTER_W)
    assert result.peak_power_w == AFTER_W


def test_lost_samples_are_a_share_and_not_zeros() -> None:
    result = observe(recording(gaps=[(8000, 8100)]))
    assert result.lost_share == pytest.approx(0.01, rel=1e-3)
    assert result.energy_j == pytest.approx(0.099 * RUN_W, rel=1e-3)


def test_a_window_of_which_nothing_was_seen_is_empty() -> None:
    with pytest.raises(PowerError) as caught:
        observe(recording(gaps=[(5000, 17000)]))
    assert caught.value.slug == "capture-empty"
