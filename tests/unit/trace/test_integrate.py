"""Exact integration: known answers, both backends, and both against exactly rounded sums."""

from __future__ import annotations

import bisect
import math
from fractions import Fraction

import numpy as np
import pytest

from instrument_traces import UTC_NS, build_trace
from joulemap.trace import (
    EnergyTrace,
    KernelKind,
    cumulative_energy_j,
    integrate_energy,
    integrate_offsets,
    mean_power,
    peak_power,
)
from joulemap.trace.integrate import Backend
from joulemap.trace.resample import build_envelope

BACKENDS: tuple[Backend, ...] = ("numpy", "numba")


def integrate_exactly(trace: EnergyTrace, start: Fraction, end: Fraction) -> tuple[float, float]:
    """Energy J and covered s of one slice given in ns from the trace's start, in rational arithmetic."""
    if trace.edges_ns is None:
        edges = [k * Fraction(trace.step_ns) for k in range(trace.n + 1)]
    else:
        edges = [Fraction(int(edge) - trace.start_ns) for edge in trace.edges_ns]
    lost = {k for first, last in trace.gaps.tolist() for k in range(first, last)}
    point = trace.channel.kernel.kind is KernelKind.POINT
    start, end = max(start, Fraction(0)), min(end, edges[-1])
    energy, covered = Fraction(0), Fraction(0)
    for k in range(max(bisect.bisect_right(edges, start) - 1, 0), trace.n):
        left, right = max(start, edges[k]), min(end, edges[k + 1])
        if edges[k] >= end:
            break
        if right <= left or k in lost:
            continue
        here = Fraction(float(trace.power_w[k]))
        following = here
        if point and k + 1 < trace.n and k + 1 not in lost:
            following = Fraction(float(trace.power_w[k + 1]))
        middle = ((left - edges[k]) + (right - edges[k])) / (2 * (edges[k + 1] - edges[k]))
        energy += (here + (following - here) * middle) * (right - left)
        covered += right - left
    return float(energy / 10**9), float(covered / 10**9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_fractional_edges_take_their_share_of_a_sample(backend: Backend) -> None:
    trace = build_trace(np.array([1, 10, 100], np.float32))
    got = integrate_energy(trace, np.array([250, 1500]), np.array([2500, 1750]), backend=backend)
    assert got.energy_j == pytest.approx([750e-9 + 10e-6 + 50e-6, 2.5e-6], rel=1e-15)
    assert got.covered_s == pytest.approx([2250e-9, 250e-9], rel=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_ramp_of_the_methods_page(backend: Backend) -> None:
    # 0 to 10 W in 1 s, sampled at 10 Hz: points give 5.0 J, means held over their own interval 4.5 J
    ramp = np.linspace(0, 10, 11)
    whole = (np.array([0]), np.array([1_000_000_000]))
    point = integrate_energy(build_trace(ramp, period_s=0.1, kind=KernelKind.POINT), *whole, backend=backend)
    mean = integrate_energy(build_trace(ramp, period_s=0.1), *whole, backend=backend)
    assert point.energy_j == pytest.approx([5.0], rel=1e-14)
    assert mean.energy_j == pytest.approx([4.5], rel=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_lost_samples_add_neither_energy_nor_time(backend: Backend) -> None:
    power = np.array([2, 0, 0, 4], np.float32)
    trace = build_trace(power, gaps=[[1, 3]])
    got = integrate_energy(trace, np.array([0, 1200, 500]), np.array([4000, 2800, 3250]), backend=backend)
    assert got.energy_j == pytest.approx([6e-6, 0.0, 2e-6], rel=1e-15)
    assert got.covered_s == pytest.approx([2e-6, 0.0, 0.75e-6], rel=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [KernelKind.INTERVAL_MEAN, KernelKind.POINT])
def test_the_values_inside_a_gap_are_never_read(backend: Backend, kind: KernelKind) -> None:
    power = np.array([2, np.nan, np.nan, 4, 4], np.float32)
    trace = build_trace(power, gaps=[[1, 3]], kind=kind)
    got = integrate_energy(trace, np.array([0, 900, 1500]), np.array([5000, 3100, 2500]), backend=backend)
    assert got.energy_j == pytest.approx([10e-6, 0.2e-6 + 0.4e-6, 0.0], rel=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_slices_outside_are_clipped_and_say_so(backend: Backend) -> None:
    trace = build_trace(np.array([1, 1], np.float32), start_ns=UTC_NS)
    start = UTC_NS + np.array([-5000, 3000, -10, 1500, -(2**62) // 1], np.int64)
    end = UTC_NS + np.array([-1000, 9000, 500, 4000, 2**62], np.int64)
    got = integrate_energy(trace, start, end, backend=backend)
    assert got.covered_s == pytest.approx([0, 0, 500e-9, 500e-9, 2e-6], rel=1e-15)
    assert got.energy_j == pytest.approx([0, 0, 500e-9, 500e-9, 2e-6], rel=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_empty_slices_and_empty_traces_hold_nothing(backend: Backend) -> None:
    trace = build_trace(np.array([3, 5], np.float32))
    at = np.array([0, 500, 1000, 2000])
    assert integrate_energy(trace, at, at, backend=backend).energy_j.tolist() == [0, 0, 0, 0]
    none = np.array([], np.int64)
    assert integrate_energy(trace, none, none, backend=backend).energy_j.shape == (0,)
    nothing = build_trace(np.zeros(0, np.float32))
    assert integrate_energy(nothing, at, at + 5, backend=backend).energy_j.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_utc_sized_instants_keep_every_nanosecond(backend: Backend) -> None:
    trace = build_trace(np.full(1000, 3, np.float32), start_ns=UTC_NS)
    start = UTC_NS + np.arange(0, 900_000, 997)
    got = integrate_energy(trace, start, start + 1, backend=backend)
    assert got.energy_j == pytest.approx(np.full(start.size, 3e-9), rel=1e-15)


def test_float_instants_that_cannot_hold_the_clock_are_refused() -> None:
    trace = build_trace(np.ones(10, np.float32), start_ns=UTC_NS)
    with pytest.raises(ValueError, match="integrate_offsets"):
        integrate_energy(trace, np.array([float(UTC_NS)]), np.array([float(UTC_NS + 1000)]))
    got = integrate_offsets(trace, np.array([1.25e-6]), np.array([2.5e-6]))
    assert got.energy_j == pytest.approx([1.25e-6], rel=1e-12)


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [([5.0], [4.0], "ends before"), ([math.nan], [4.0], "finite"), ([0.0], [math.inf], "finite"), ([0], [1, 2], "m,")],
)
def test_impossible_slices_are_refused(start: list[float], end: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        integrate_energy(build_trace(np.ones(10)), np.array(start), np.array(end))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("gaps", [None, [[3, 40], [40, 41], [300, 303], [395, 400]]])
@pytest.mark.parametrize("kind", [KernelKind.INTERVAL_MEAN, KernelKind.POINT])
@pytest.mark.parametrize("clock", ["whole", "fractional", "edges"])
@pytest.mark.parametrize("instants", ["whole", "fractional"])
def test_every_slice_is_exact_over_sixteen_decades(
    backend: Backend, gaps: list[list[int]] | None, kind: KernelKind, clock: str, instants: str
) -> None:
    rng = np.random.default_rng(11)
    n = 400
    power = np.exp(rng.normal(0, 6, n))
    edges = np.concatenate([[0], np.cumsum(rng.integers(1, 2000, n))]) if clock == "edges" else None
    trace = build_trace(power, period_s=1e-6 if clock == "whole" else 1e-5 / 7, edges_ns=edges, gaps=gaps, kind=kind)
    span = trace.end_ns
    duration = np.exp(rng.uniform(0, math.log(span), 60))
    start = rng.uniform(-1000, span, 60)
    if instants == "whole":
        start, duration = np.floor(start), np.floor(duration)
        got = integrate_energy(trace, start.astype(np.int64), (start + duration).astype(np.int64), backend=backend)
    else:
        got = integrate_energy(trace, start, start + duration, backend=backend)
    for k in range(start.size):
        energy, covered = integrate_exactly(trace, Fraction(start[k]), Fraction(start[k] + duration[k]))
        assert got.energy_j[k] == pytest.approx(energy, rel=1e-12, abs=0)
        assert got.covered_s[k] == pytest.approx(covered, rel=1e-12, abs=1e-20)


def test_a_long_carry_costs_no_digit() -> None:
    from joulemap.trace import kernels
    from joulemap.trace.reference import Positions, Samples, integrate_positions

    rng = np.random.default_rng(3)
    power = np.exp(rng.normal(0, 6, 20_000)).astype(np.float32)
    runs = np.array([[0, power.size]])
    first = rng.integers(0, 15_000, 200)
    last = first + rng.integers(1, 4000, 200)
    exact = np.array([math.fsum(power[a:b].astype(float)) for a, b in zip(first, last, strict=True)])
    zeros = np.zeros(200)
    samples = Samples(power_w=power, step_ns=1.0, edges_ns=None, runs=runs, point=False)
    positions = Positions(start=first, start_ns=zeros, end=last, end_ns=zeros)
    assert integrate_positions(samples, positions, carry=1e13) == pytest.approx(exact, rel=1e-12, abs=0)

    index = np.concatenate([first, last])
    order = np.argsort(index, kind="stable")
    opened, energy = np.empty((200, 4)), np.empty(200)
    places = (index[order], np.zeros(400), order)
    kernels.integrate_uniform(power, 1.0, *places, runs, False, 1e13, opened, energy)
    assert energy == pytest.approx(exact, rel=1e-12, abs=0)
    edges = np.arange(power.size + 1)
    kernels.integrate_edges(power, edges, index[order], np.empty(0), order, runs, False, 1e13, opened, energy)
    assert energy == pytest.approx(exact, rel=1e-12, abs=0)


@pytest.mark.parametrize("edges", [False, True])
def test_both_backends_agree_on_chunks_blocks_and_long_gaps(edges: bool) -> None:
    rng = np.random.default_rng(5)
    n = 700_000  # several chunks of the reference, many blocks of the kernel
    power = np.exp(rng.normal(0, 3, n)).astype(np.float32)
    at = np.concatenate([[0], np.cumsum(rng.integers(1, 2000, n))]) if edges else None
    for kind in (KernelKind.INTERVAL_MEAN, KernelKind.POINT):
        trace = build_trace(power, edges_ns=at, gaps=[[5, 9], [262_143, 262_145], [300_000, 500_000]], kind=kind)
        start = rng.integers(0, trace.end_ns, 300)
        end = np.minimum(start + np.exp(rng.uniform(0, 20, 300)).astype(np.int64), trace.end_ns)
        by_numpy = integrate_energy(trace, start, end, backend="numpy")
        by_numba = integrate_energy(trace, start, end, backend="numba")
        assert by_numba.energy_j == pytest.approx(by_numpy.energy_j, rel=1e-12, abs=0)
        assert by_numba.covered_s.tolist() == by_numpy.covered_s.tolist()


def test_slices_that_tile_the_trace_add_up_to_it() -> None:
    rng = np.random.default_rng(8)
    trace = build_trace(rng.random(5000).astype(np.float32), gaps=[[100, 250]])
    cuts = np.unique(np.concatenate([[0, trace.end_ns], rng.integers(0, trace.end_ns, 500)]))
    parts = integrate_energy(trace, cuts[:-1], cuts[1:])
    whole = integrate_energy(trace, cuts[:1], cuts[-1:])
    assert math.fsum(parts.energy_j) == pytest.approx(float(whole.energy_j[0]), rel=1e-13)
    assert math.fsum(parts.covered_s) == pytest.approx(4850e-6, rel=1e-13)


def test_cumulative_energy_is_the_running_integral() -> None:
    trace = build_trace(np.array([1, 2, 4], np.float32), start_ns=UTC_NS)
    at_s = np.array([2.5e-6, -1.0, 0.0, 1e-6, 9.0])
    assert cumulative_energy_j(trace, at_s) == pytest.approx([5e-6, 0, 0, 1e-6, 7e-6], rel=1e-12)


@pytest.mark.parametrize("edges", [False, True])
def test_the_end_of_an_empty_slice_may_come_before_its_start(edges: bool) -> None:
    from joulemap.trace import kernels

    power, runs = np.ones(8, np.float32), np.array([[0, 8]])
    opened, energy = np.full((1, 4), 1e15), np.empty(1)  # scratch holds anything: a rank far outside among it
    at, order = np.array([3, 3]), np.array([1, 0])
    if edges:
        kernels.integrate_edges(power, np.arange(9), at, np.empty(0), order, runs, False, 0.0, opened, energy)
    else:
        kernels.integrate_uniform(power, 1.0, at, np.zeros(2), order, runs, False, 0.0, opened, energy)
    instants = np.array([3.5, 1.0])
    for backend in BACKENDS:
        at_rest = integrate_energy(build_trace(power), instants, instants, backend=backend)
        assert at_rest.energy_j.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("step_ns", [1, 3, 500, 999_999_937])
def test_bounds_come_back_from_their_words_as_whole_numbers_say(step_ns: int) -> None:
    from joulemap.trace import kernels

    rng = np.random.default_rng(step_ns)
    edge = rng.integers(0, 2**52 // step_ns, 500) * step_ns
    bounds = np.concatenate([edge, edge + step_ns - 1, rng.integers(0, 2**52, 1000), [0, 2**52 - 1, 0, 2**52 - 1]])
    bounds = np.minimum(bounds, 2**52 - 1)
    start, end = bounds[: bounds.size // 2], bounds[bounds.size // 2 :]
    words, where, part = np.empty(bounds.size, np.int64), np.empty(bounds.size, np.int64), np.empty(bounds.size)
    kernels.pack_bounds(start, end, 11, words)
    words.sort()
    kernels.unpack_bounds(words, 11, step_ns, where, part)
    assert sorted(words.tolist()) == list(range(bounds.size))
    assert (where.tolist(), part.tolist()) == tuple(column.tolist() for column in np.divmod(bounds[words], step_ns))
    assert (np.diff(bounds[words]) >= 0).all()


def test_halves_side_by_side_say_what_one_pass_says() -> None:
    rng = np.random.default_rng(12)
    trace = build_trace(rng.random(5000), gaps=[[100, 250]])
    start = rng.integers(-5000, trace.end_ns, 200_001)  # so many that two threads share them
    end = start + rng.integers(0, 90_000, start.size)
    whole = integrate_energy(trace, start, end, backend="numba")
    part = integrate_energy(trace, start[:5000], end[:5000], backend="numba")
    assert whole.energy_j[:5000] == pytest.approx(part.energy_j, rel=1e-12, abs=0)
    assert whole.energy_j == pytest.approx(integrate_energy(trace, start, end, backend="numpy").energy_j, rel=1e-12)


def test_mean_power_divides_by_what_was_seen() -> None:
    trace = build_trace(np.array([2, 0, 4], np.float32), gaps=[[1, 2]])
    got = mean_power(trace, np.array([0, 1100]), np.array([3000, 1900]))
    assert got[0] == pytest.approx(3.0, rel=1e-14)
    assert math.isnan(got[1])


def test_peak_power_is_the_highest_sample_that_overlaps() -> None:
    trace = build_trace(np.array([-5, -1, 0, -3, -2], np.float32), gaps=[[2, 3]])
    assert peak_power(trace, 0, 5000) == -1
    assert peak_power(trace, 3000, 4000) == -3
    assert peak_power(trace, 3000.5, 4000.5) == -2
    assert math.isnan(peak_power(trace, 2100, 2900))
    assert math.isnan(peak_power(trace, 9000, 9900))


def test_an_envelope_has_the_extremes_and_the_mean_of_each_bin() -> None:
    rng = np.random.default_rng(4)
    power = rng.normal(size=997)
    power[50:60] = 0
    trace = build_trace(power, start_ns=UTC_NS, gaps=[[50, 60]])
    edges = UTC_NS + np.array([-3000, -100, 50, 777, 50_000, 60_000, 123_456, 500_000, 997_000, 2_000_000])
    envelope = build_envelope(trace, edges)
    kept = power.copy()
    kept[50:60] = np.nan
    for k, (left, right) in enumerate(zip(edges[:-1] - UTC_NS, edges[1:] - UTC_NS, strict=True)):
        seen = kept[max(left // 1000, 0) : max(-(-right // 1000), 0)]
        seen = seen[~np.isnan(seen)]
        expected = (seen.min(), seen.max()) if seen.size else (math.nan, math.nan)
        assert (envelope.low_w[k], envelope.high_w[k]) == pytest.approx(expected, nan_ok=True)
        mean = integrate_energy(trace, edges[k : k + 1], edges[k + 1 : k + 2])
        assert math.isnan(envelope.mean_w[k]) == (mean.covered_s[0] == 0)
    with pytest.raises(ValueError, match="increasing"):
        build_envelope(trace, np.array([5, 5]))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [KernelKind.INTERVAL_MEAN, KernelKind.POINT])
def test_a_long_envelope_keeps_its_digits(backend: Backend, dtype: type[np.floating], kind: KernelKind) -> None:
    rng = np.random.default_rng(6)
    n = 60_000  # many blocks of the kernel in one bin
    power = np.exp(rng.normal(0, 6, n)).astype(dtype)
    gaps = [[0, 3], [4095, 4097], [20_000, 33_333], [n - 1, n]]
    trace = build_trace(power, gaps=gaps, kind=kind)
    edges = np.array([0, 1500, 1501, 4_000_000, 20_000_500, 33_333_001, 59_998_500, 60_000_000])
    envelope = build_envelope(trace, edges, backend=backend)
    lost = np.zeros(n, bool)
    for left, right in gaps:
        lost[left:right] = True
    for k, (left, right) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        seen = power[left // 1000 : -(-right // 1000)][~lost[left // 1000 : -(-right // 1000)]]
        if not seen.size:
            assert np.isnan([envelope.low_w[k], envelope.high_w[k], envelope.mean_w[k]]).all()
            continue
        assert (envelope.low_w[k], envelope.high_w[k]) == (seen.min(), seen.max())
        energy, covered = integrate_exactly(trace, Fraction(left), Fraction(right))
        assert envelope.mean_w[k] == pytest.approx(energy / covered, rel=1e-12, abs=0)


def test_extremes_of_one_pass_know_signs_zeros_and_the_largest_numbers() -> None:
    power = np.array([-0.0, 0.0, -1e-45, 3e38, -3e38, -2.0, -1.0, 1e-45], np.float32)
    trace = build_trace(power)
    envelope = build_envelope(trace, np.array([0, 2000, 3000, 5000, 7000, 8000]), backend="numba")
    assert envelope.low_w.tolist() == [0.0, float(power[2]), float(power[4]), -2.0, float(power[7])]
    assert envelope.high_w.tolist() == [0.0, float(power[2]), float(power[3]), -1.0, float(power[7])]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_bin_beyond_the_end_holds_nothing_whatever_the_period(backend: Backend) -> None:
    trace = build_trace(np.ones(3), period_s=7.5e-9)  # ends at 22.5 ns
    envelope = build_envelope(trace, np.array([0, 23, 24]), backend=backend)
    assert (envelope.low_w[0], envelope.high_w[0], envelope.mean_w[0]) == pytest.approx((1.0, 1.0, 1.0))
    assert np.isnan([envelope.low_w[1], envelope.high_w[1], envelope.mean_w[1]]).all()
