"""What the records of the waist refuse and what they derive."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from joulemap.estimate import Boundary, Provenance
from joulemap.trace import (
    Channel,
    Clock,
    ClockKind,
    EnergyTrace,
    KernelKind,
    Marker,
    SensorKernel,
    Slice,
    Timeline,
)

CLOCK = Clock(name="instrument", kind=ClockKind.LOCAL)
CHANNEL = Channel(
    name="rail",
    boundary=Boundary.RAIL,
    provenance=Provenance.SIMULATED,
    kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1e-6),
)


def test_a_trace_is_either_uniform_or_not() -> None:
    power = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="either a period_s"):
        EnergyTrace(clock=CLOCK, channel=CHANNEL, power_w=power, start_ns=0)
    with pytest.raises(ValueError, match="either a period_s"):
        EnergyTrace(
            clock=CLOCK,
            channel=CHANNEL,
            power_w=power,
            start_ns=0,
            period_s=1e-6,
            edges_ns=np.arange(4, dtype=np.int64),
        )


@pytest.mark.parametrize("edges", [[0, 1, 1, 2], [0, 3, 2, 4], [0, 1, 2], [1, 2, 3, 4]])
def test_edges_must_increase_fit_and_start_at_the_start(edges: list[int]) -> None:
    with pytest.raises(ValueError, match="edges_ns"):
        EnergyTrace(clock=CLOCK, channel=CHANNEL, power_w=np.ones(3), start_ns=0, edges_ns=np.array(edges, np.int64))


@pytest.mark.parametrize("gaps", [[[0, 0]], [[2, 1]], [[0, 4]], [[1, 3], [2, 3]], [[2, 3], [0, 1]], [[-1, 1]]])
def test_gaps_must_be_sorted_disjoint_and_inside(gaps: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="gaps"):
        EnergyTrace(
            clock=CLOCK, channel=CHANNEL, power_w=np.ones(3), start_ns=0, period_s=1e-6, gaps=np.array(gaps, np.int64)
        )


@pytest.mark.parametrize("power", [np.ones(3, np.int32), np.ones((3, 1)), np.ones(3, np.float16)])
def test_power_is_one_row_of_floats(power: np.ndarray) -> None:
    with pytest.raises(ValueError, match="power_w"):
        EnergyTrace(clock=CLOCK, channel=CHANNEL, power_w=power, start_ns=0, period_s=1e-6)


def test_arrays_of_a_trace_are_read_only_and_the_caller_keeps_his() -> None:
    power = np.ones(3, np.float32)
    trace = EnergyTrace(clock=CLOCK, channel=CHANNEL, power_w=power, start_ns=0, period_s=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        trace.power_w[0] = 2
    power[0] = 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.start_ns = 4  # type: ignore[misc]


def test_runs_are_what_gaps_leave() -> None:
    trace = EnergyTrace(
        clock=CLOCK,
        channel=CHANNEL,
        power_w=np.zeros(10),
        start_ns=0,
        period_s=1e-6,
        gaps=np.array([[0, 2], [4, 5], [5, 6], [9, 10]]),
    )
    assert trace.runs.tolist() == [[2, 4], [6, 9]]
    assert trace.lost_samples == 5
    assert trace.n == 10


def test_a_trace_without_samples_has_no_runs() -> None:
    trace = EnergyTrace(clock=CLOCK, channel=CHANNEL, power_w=np.zeros(0), start_ns=7, period_s=1e-6)
    assert trace.runs.shape == (0, 2)
    assert (trace.n, trace.duration_s, trace.end_ns) == (0, 0.0, 7)


@pytest.mark.parametrize(("period_s", "step_ns"), [(1e-6, 1000.0), (2e-5, 20000.0), (1e-1, 1e8), (1 / 3, 1e9 / 3)])
def test_a_period_meant_as_whole_ns_is_whole(period_s: float, step_ns: float) -> None:
    trace = EnergyTrace(clock=CLOCK, channel=CHANNEL, power_w=np.zeros(2), start_ns=0, period_s=period_s)
    assert trace.step_ns == pytest.approx(step_ns, rel=1e-15)
    assert trace.step_ns.is_integer() == float(step_ns).is_integer()


def test_a_non_uniform_trace_has_no_step() -> None:
    trace = EnergyTrace(clock=CLOCK, channel=CHANNEL, power_w=np.zeros(1), start_ns=0, edges_ns=np.array([0, 5]))
    assert not trace.uniform
    assert trace.end_ns == 5
    with pytest.raises(ValueError, match="no step"):
        _ = trace.step_ns


def test_a_timeline_gives_back_its_slices_in_order() -> None:
    slices = [
        Slice(name="CONV_2D #0", start_ns=5, end_ns=9, track="core0", kind="layer"),
        Slice(name="inference", start_ns=0, end_ns=20, track="core0", kind="inference"),
        Slice(name="CONV_2D #0", start_ns=12, end_ns=12, track="core0", kind="layer"),
    ]
    timeline = Timeline.from_slices(CLOCK, slices)
    assert list(timeline) == slices
    assert len(timeline) == 3
    assert timeline.names == ("CONV_2D #0", "inference")


def test_a_timeline_refuses_bad_columns() -> None:
    good = Timeline.from_slices(CLOCK, [Slice(name="a", start_ns=0, end_ns=1)])
    with pytest.raises(ValueError, match="ends before"):
        dataclasses.replace(good, end_ns=np.array([-1]))
    with pytest.raises(ValueError, match="name index"):
        dataclasses.replace(good, name_index=np.array([1]))
    with pytest.raises(ValueError, match="one length"):
        dataclasses.replace(good, end_ns=np.array([1, 2]))
    with pytest.raises(ValueError, match="ends before"):
        Slice(name="a", start_ns=2, end_ns=1)


def test_clocks_and_kernels_refuse_nonsense() -> None:
    with pytest.raises(ValueError, match="name"):
        Clock(name="", kind=ClockKind.UTC)
    with pytest.raises(ValueError, match="resolution_ns"):
        Clock(name="a", kind=ClockKind.UTC, resolution_ns=0)
    with pytest.raises(ValueError, match="rate_std_ppm"):
        Clock(name="a", kind=ClockKind.UTC, rate_std_ppm=-1)
    with pytest.raises(ValueError, match="window_s"):
        SensorKernel(kind=KernelKind.POINT, window_s=-1)
    assert Marker(time_ns=3, name="gate").direction == "none"
