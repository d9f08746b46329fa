"""What integration keeps, whatever the trace: sums, shifts, linearity, and the agreement of both backends."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from joulemap.estimate import Boundary, Provenance
from joulemap.trace import (
    Channel,
    Clock,
    ClockKind,
    EnergyTrace,
    KernelKind,
    SensorKernel,
    integrate_energy,
    integrate_offsets,
)
from joulemap.trace.resample import build_envelope

powers = st.floats(2.0**-30, 2.0**20, width=32)


@st.composite
def traces(draw: st.DrawFn, *, start_ns: int | None = None) -> EnergyTrace:
    power = np.array(draw(st.lists(powers, min_size=1, max_size=50)), np.float32)
    cuts = draw(st.lists(st.integers(0, power.size), unique=True, max_size=6).map(sorted))
    gaps = np.array(cuts[: len(cuts) // 2 * 2], np.int64).reshape(-1, 2)
    start = draw(st.integers(-(2**61), 2**61)) if start_ns is None else start_ns
    kernel = SensorKernel(kind=draw(st.sampled_from([KernelKind.INTERVAL_MEAN, KernelKind.POINT])), window_s=0.0)
    channel = Channel(name="rail", boundary=Boundary.RAIL, provenance=Provenance.SIMULATED, kernel=kernel)
    clock = Clock(name="c", kind=ClockKind.UTC)
    if draw(st.booleans()):
        steps = draw(st.lists(st.integers(1, 5000), min_size=power.size, max_size=power.size))
        edges = start + np.concatenate([[0], np.cumsum(np.array(steps, np.int64))])
        return EnergyTrace(clock=clock, channel=channel, power_w=power, start_ns=start, edges_ns=edges, gaps=gaps)
    period_s = draw(st.sampled_from([1e-6, 2e-5, 1e-6 / 3, 7.5e-9]))
    return EnergyTrace(clock=clock, channel=channel, power_w=power, start_ns=start, period_s=period_s, gaps=gaps)


@st.composite
def cut_traces(draw: st.DrawFn) -> tuple[EnergyTrace, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    trace = draw(traces())
    span = trace.end_ns - trace.start_ns
    cuts = draw(st.lists(st.integers(-100, span + 100), min_size=2, max_size=12))
    return trace, np.array(sorted(cuts), np.int64) + trace.start_ns


@settings(deadline=None)
@given(case=cut_traces())
def test_neighbouring_slices_add_up(case: tuple[EnergyTrace, np.ndarray[tuple[int], np.dtype[np.int64]]]) -> None:
    trace, cuts = case
    parts = integrate_energy(trace, cuts[:-1], cuts[1:])
    whole = integrate_energy(trace, cuts[:1], cuts[-1:])
    assert math.fsum(parts.energy_j) == pytest.approx(float(whole.energy_j[0]), rel=1e-12, abs=0)
    assert math.fsum(parts.covered_s) == pytest.approx(float(whole.covered_s[0]), rel=1e-9, abs=1e-15)
    assert (parts.energy_j >= 0).all()
    assert (parts.covered_s >= 0).all()
    assert (parts.covered_s <= (np.diff(cuts) * 1e-9) * (1 + 1e-12) + 1e-18).all()


@settings(deadline=None)
@given(case=cut_traces(), data=st.data())
def test_both_backends_agree_to_twelve_digits(
    case: tuple[EnergyTrace, np.ndarray[tuple[int], np.dtype[np.int64]]], data: st.DataObject
) -> None:
    trace, cuts = case
    order = np.array(data.draw(st.permutations(range(cuts.size - 1))), np.int64)
    start, end = cuts[:-1][order], cuts[order + 1 + (cuts.size - 2 - order) * (order % 2)]  # some nest, some touch
    by_numpy = integrate_energy(trace, start, end, backend="numpy")
    by_numba = integrate_energy(trace, start, end, backend="numba")
    assert by_numba.energy_j == pytest.approx(by_numpy.energy_j, rel=1e-12, abs=0)
    assert by_numba.covered_s.tolist() == by_numpy.covered_s.tolist()


@settings(deadline=None)
@given(case=cut_traces(), double=st.booleans(), negate=st.booleans())
def test_an_envelope_is_the_same_in_one_pass_and_in_two(
    case: tuple[EnergyTrace, np.ndarray[tuple[int], np.dtype[np.int64]]], double: bool, negate: bool
) -> None:
    trace, cuts = case
    edges = np.unique(cuts)
    if edges.size < 2:
        return
    power_w: NDArray[Any] = trace.power_w.astype(np.float64 if double else np.float32)
    power_w[1::2] *= -1 if negate else 1
    trace = dataclasses.replace(trace, power_w=power_w)
    by_numpy = build_envelope(trace, edges, backend="numpy")
    by_numba = build_envelope(trace, edges, backend="numba")
    assert np.array_equal(by_numba.low_w, by_numpy.low_w, equal_nan=True)
    assert np.array_equal(by_numba.high_w, by_numpy.high_w, equal_nan=True)
    scale = float(np.abs(power_w).max())  # powers of both signs may cancel in a mean
    assert by_numba.mean_w == pytest.approx(by_numpy.mean_w, rel=1e-12, abs=1e-12 * scale * negate, nan_ok=True)


@settings(deadline=None)
@given(trace=traces(start_ns=0), shift=st.integers(-(2**61), 2**61), data=st.data())
def test_an_energy_does_not_depend_on_where_the_clock_starts(
    trace: EnergyTrace, shift: int, data: st.DataObject
) -> None:
    bounds = data.draw(st.tuples(st.integers(0, trace.end_ns), st.integers(0, trace.end_ns)).map(sorted))
    moved = EnergyTrace(
        clock=trace.clock,
        channel=trace.channel,
        power_w=trace.power_w,
        start_ns=shift,
        period_s=trace.period_s,
        edges_ns=None if trace.edges_ns is None else trace.edges_ns + shift,
        gaps=trace.gaps,
    )
    start, end = np.array([bounds[0]], np.int64), np.array([bounds[1]], np.int64)
    here = integrate_energy(trace, start, end)
    there = integrate_energy(moved, start + shift, end + shift)
    offsets = integrate_offsets(trace, (start * 1e-9).astype(np.float64), (end * 1e-9).astype(np.float64))
    assert there.energy_j[0] == here.energy_j[0]
    assert there.covered_s[0] == here.covered_s[0]
    if bounds[1] - bounds[0] > 10:
        assert offsets.energy_j[0] == pytest.approx(here.energy_j[0], rel=1e-6, abs=1e-15)


@settings(deadline=None)
@given(trace=traces(), factor=st.integers(-6, 6))
def test_energy_is_proportional_to_power(trace: EnergyTrace, factor: int) -> None:
    louder = EnergyTrace(
        clock=trace.clock,
        channel=trace.channel,
        power_w=trace.power_w * np.float32(2.0**factor),
        start_ns=trace.start_ns,
        period_s=trace.period_s,
        edges_ns=trace.edges_ns,
        gaps=trace.gaps,
    )
    bounds = np.array([trace.start_ns]), np.array([trace.end_ns])
    plain = integrate_energy(trace, *bounds).energy_j[0]
    assert integrate_energy(louder, *bounds).energy_j[0] == pytest.approx(plain * 2.0**factor, rel=1e-12, abs=0)
