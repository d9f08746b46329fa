"""Streamed samples give what samples in memory give: energies, gaps, windows, whatever the parts are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from joulemap.errors import SetupError
from joulemap.trace import integrate_between, integrate_energy
from joulemap.trace.integrate import Backend
from joulemap.trace.passes import list_parts, run_pass, sum_between, sum_slices
from joulemap.trace.streamed import Factor, StreamedTrace, cut_window, shift_trace
from joulemap.trace.sweep import GroupedSlices, Split, StreamedSweep, sweep_energy, sweep_trace
from mapped_traces import build_trace, group_rows

MS = 1_000_000
BACKENDS = ["numpy", "numba"]


@dataclass
class Held:
    """Samples in memory, handed out in parts whose room is used again."""

    factors: tuple[Factor, ...]
    part: int = 100
    passes: list[int] = field(default_factory=list)

    def stream(self, first: int, count: int) -> Iterator[tuple[int, tuple[Factor, ...]]]:
        self.passes.append(count)
        rooms = [np.empty(self.part, factor.dtype) for factor in self.factors]
        for at in range(first, first + count, self.part):
            take = min(self.part, first + count - at)
            for room, factor in zip(rooms, self.factors, strict=True):
                room[:take] = factor[at : at + take]
            yield at, tuple(room[:take] for room in rooms)
            for room in rooms:
                room[:] = 1e9  # what a consumer kept of a part would be wrong now


def streamed(*factors: Factor, part: int = 100, period_s: float = 1e-3, start_ns: int = 0) -> StreamedTrace:
    shape = build_trace([1.0], period_s=period_s)
    return StreamedTrace(
        clock=shape.clock, channel=shape.channel, start_ns=start_ns, period_s=period_s, n=factors[0].size,
        source=Held(tuple(factors), part),
    )  # fmt: skip


def draw(seed: int, n: int, *, period_s: float, part: int) -> StreamedTrace:
    rng = np.random.default_rng(seed)
    current = (rng.random(n) + 0.1).astype(np.float32)
    voltage = (rng.random(n) * 10 ** rng.uniform(-6, 3, n)).astype(np.float32)
    for _ in range(4):
        at = rng.integers(0, n)
        current[at : at + rng.integers(1, 20)] = np.nan
    voltage[rng.integers(0, n)] = np.inf
    return streamed(current, voltage, part=part, period_s=period_s, start_ns=1_700_000_000_000_000_123)


def draw_slices(seed: int, trace: StreamedTrace, count: int) -> GroupedSlices:
    rng = np.random.default_rng(seed)
    span = trace.end_ns - trace.start_ns
    start = rng.integers(0, span, count)
    end = np.minimum(
        start + (span * 10 ** rng.uniform(-4, -0.5, count)).astype(np.int64) * rng.integers(0, 2, count), span
    )
    rows = [
        (trace.start_ns + int(a), trace.start_ns + int(b), int(g), int(t))
        for a, b, g, t in zip(start, end, rng.integers(-1, 4, count), rng.integers(0, 3, count), strict=True)
    ]
    return group_rows(rows, groups=4)


def near(found: NDArray[np.float64], wanted: NDArray[np.float64]) -> bool:
    return bool(np.allclose(found, wanted, rtol=1e-13, atol=1e-13 * float(np.abs(wanted).max(initial=0.0))))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("period_s", [1e-3, 5e-7, 1 / 3e5, 1 / 7])
@pytest.mark.parametrize("part", [1, 97, 1000, 5000])
def test_a_sweep_over_parts_is_the_sweep_over_all(part: int, period_s: float, backend: Backend) -> None:
    trace = draw(part, 700 if part == 1 else 5000, period_s=period_s, part=part)
    whole = trace.load(0, trace.n)
    for split in Split:
        slices = draw_slices(3, trace, 400)
        sweep = StreamedSweep(trace, slices, split=split, per_slice=True, backend=backend)
        found = run_pass(trace, [sweep], backend=backend)
        got, wanted = sweep.result(), sweep_energy(whole, slices, split=split, per_slice=True, backend=backend)
        for key in ("energy_j", "self_j", "square_j2", "duration_s", "self_s", "slice_energy_j", "slice_self_j"):
            assert near(getattr(got, key), getattr(wanted, key)), key
        assert got.count.tolist() == wanted.count.tolist()
        assert got.pieces.tolist() == wanted.pieces.tolist()
        assert got.idle_j == pytest.approx(wanted.idle_j, rel=1e-12)
        assert found.gaps.tolist() == whole.gaps.tolist()
        assert found.lost == whole.lost_samples
        if split is Split.EQUAL:
            assert got.busy_j + got.idle_j == pytest.approx(
                found.energy_j, rel=1e-6 if period_s in (1 / 3e5, 1 / 7) else 1e-12
            )


@pytest.mark.parametrize("backend", BACKENDS)
def test_energies_between_instants_and_of_slices_are_those_in_memory(backend: Backend) -> None:
    trace = draw(5, 4000, period_s=1e-3, part=333)
    whole = trace.load(0, trace.n)
    rng = np.random.default_rng(1)
    at_ns = np.sort(rng.integers(trace.start_ns - 5 * MS, trace.end_ns + 5 * MS, 900))
    got, wanted = sum_between(trace, at_ns, backend=backend), integrate_between(whole, at_ns)
    assert near(got.energy_j, wanted.energy_j)
    assert near(got.covered_s, wanted.covered_s)
    start_ns = rng.integers(trace.start_ns - 5 * MS, trace.end_ns, 300)
    end_ns = start_ns + rng.integers(0, 900 * MS, 300)
    got, wanted = sum_slices(trace, start_ns, end_ns, backend=backend), integrate_energy(whole, start_ns, end_ns)
    assert near(got.energy_j, wanted.energy_j)
    assert near(got.covered_s, wanted.covered_s)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_slice_of_microwatts_after_kilowatts_keeps_its_digits(backend: Backend) -> None:
    power_w = np.full(300_000, 1e6)
    power_w[-1000:] = 1e-6
    trace = streamed(power_w, part=4096)
    end_ns = trace.end_ns
    held = sum_slices(trace, np.array([end_ns - 900 * MS]), np.array([end_ns - 100 * MS]), backend=backend)
    assert held.energy_j[0] == pytest.approx(0.8e-6, rel=1e-12)


def test_the_correction_of_a_meter_is_taken_out_of_every_sample() -> None:
    power_w = np.array([1.0, np.nan, 3.0, 4.0])
    plain = streamed(power_w, part=3)
    trace = StreamedTrace(
        clock=plain.clock, channel=plain.channel, start_ns=0, period_s=1e-3, n=4, source=plain.source, scale=2.0,
        offset_w=1.0, gain=4.0,
    )  # fmt: skip
    for backend in BACKENDS:
        found = run_pass(replace(trace, found={}), (), backend=backend)  # type: ignore[arg-type]
        assert found.energy_j == pytest.approx((0.25 + 1.25 + 1.75) * 1e-3, rel=1e-15)
        assert (found.lost, found.gaps.tolist()) == (1, [[1, 2]])
    assert trace.load(1, 4).power_w.tolist() == [0.0, 1.25, 1.75]


def test_a_window_is_a_trace_of_its_own_at_its_place() -> None:
    trace = streamed(np.arange(10.0), part=4, start_ns=500)
    window = trace.load(3, 8)
    assert (window.start_ns, window.n, window.period_s) == (500 + 3 * MS, 5, 1e-3)
    assert window.power_w.tolist() == [3.0, 4.0, 5.0, 6.0, 7.0]
    power_w, seen = cut_window(trace, -5, 2)
    assert (power_w.tolist(), seen.tolist()) == ([0.0, 1.0], [True, True])
    held = build_trace([1, 2, 3, 4], gaps=[(1, 2)])
    assert cut_window(held, 1, 9)[1].tolist() == [False, True, True]
    assert shift_trace(trace, 7).start_ns == 507


def test_everything_of_a_pass_is_read_once() -> None:
    trace = streamed(np.ones(1000), part=64)
    slices = group_rows([(0, 500 * MS, 0, 0)], groups=1)
    sweeps = [StreamedSweep(shift_trace(trace, k * MS), slices) for k in range(3)]  # type: ignore[arg-type]
    run_pass(trace, sweeps)
    assert isinstance(trace.source, Held)
    assert trace.source.passes == [1000]
    assert [sweep.result().energy_j[0] for sweep in sweeps] == pytest.approx([0.5, 0.499, 0.498])
    assert sweep_trace(trace, slices).idle_j == pytest.approx(0.5)


def test_what_a_pass_found_is_not_looked_for_again() -> None:
    trace = streamed(np.array([1.0, np.nan, 3.0]), part=2)
    first = run_pass(trace, ())
    assert run_pass(trace, ()) is first
    assert run_pass(replace(trace, gain=2.0), ()).energy_j == pytest.approx(first.energy_j / 2)
    assert isinstance(trace.source, Held)
    assert trace.source.passes == [3, 3]


@pytest.mark.parametrize("held", [False, True])
def test_parts_are_power_and_what_was_seen(held: bool) -> None:
    trace = streamed(np.array([1.0, np.nan, 3.0, 4.0, 5.0]), part=2)
    parts = [(first, p.copy(), s.copy()) for first, p, s in list_parts(trace.load(0, 5) if held else trace)]
    assert np.concatenate([power_w for _, power_w, _ in parts]).tolist() == [1.0, 0.0, 3.0, 4.0, 5.0]
    assert np.concatenate([seen for _, _, seen in parts]).tolist() == [True, False, True, True, True]
    assert [first for first, _, _ in parts] == ([0] if held else [0, 2, 4])


def test_the_usual_functions_take_a_streamed_trace() -> None:
    trace = streamed(np.arange(10.0), part=3)
    assert integrate_energy(trace, np.array([0]), np.array([2 * MS])).energy_j[0] == pytest.approx(1e-3)
    assert integrate_between(trace, np.array([0, MS, 3 * MS])).energy_j.tolist() == pytest.approx([0.0, 3e-3])
    with pytest.raises(ValueError, match="int64"):
        integrate_energy(trace, np.array([0.0]), np.array([1.0]))


def test_what_makes_no_sense_is_refused() -> None:
    trace = streamed(np.ones(10))
    with pytest.raises(ValueError, match="in order"):
        sum_between(trace, np.array([5, 4]))
    with pytest.raises(ValueError, match="ends before"):
        sum_slices(trace, np.array([5]), np.array([4]))
    with pytest.raises(ValueError, match="samples"):
        streamed(np.ones(0))
    assert sum_between(trace, np.array([5])).energy_j.size == 0


def test_the_compiled_way_is_refused_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)  # neither found nor imported
    with pytest.raises(SetupError):
        run_pass(streamed(np.ones(10)), (), backend="numba")
