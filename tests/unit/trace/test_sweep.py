"""The sweep: nesting, overlap, concurrency, idle time, paths, and both ways of running it."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.trace import integrate_between, integrate_energy
from joulemap.trace.sweep import Split, Swept, sweep_energy, sweep_lost_time
from mapped_traces import build_trace, group_rows

MS = 1_000_000


def ramp() -> np.ndarray:
    return np.arange(1.0, 11.0)  # 1..10 W in intervals of 1 ms


def test_a_slice_holds_what_the_trace_holds_there() -> None:
    swept = sweep_energy(build_trace(ramp()), group_rows([(2 * MS, 4 * MS, 0, 0)], groups=1))
    assert swept.energy_j.tolist() == pytest.approx([7e-3])
    assert swept.self_j.tolist() == pytest.approx([7e-3])
    assert swept.idle_j == pytest.approx(48e-3)
    assert (swept.count.tolist(), swept.concurrent) == ([1], 1)
    assert swept.busy_s == pytest.approx(2e-3)


def test_what_is_inside_is_not_the_outer_slice_s_own() -> None:
    rows = [(0, 10 * MS, 0, 0), (2 * MS, 4 * MS, 1, 0), (3 * MS, 4 * MS, 2, 0)]
    swept = sweep_energy(build_trace(ramp()), group_rows(rows, groups=3))
    assert swept.energy_j.tolist() == pytest.approx([55e-3, 7e-3, 4e-3])
    assert swept.self_j.tolist() == pytest.approx([48e-3, 3e-3, 4e-3])
    assert swept.self_s.tolist() == pytest.approx([8e-3, 1e-3, 1e-3])


def test_of_overlapping_slices_the_later_one_is_innermost() -> None:
    rows = [(0, 5 * MS, 0, 0), (3 * MS, 8 * MS, 1, 0)]
    swept = sweep_energy(build_trace(np.ones(10)), group_rows(rows, groups=2))
    assert swept.energy_j.tolist() == pytest.approx([5e-3, 5e-3])
    assert swept.self_j.tolist() == pytest.approx([3e-3, 5e-3])
    assert swept.idle_j == pytest.approx(2e-3)


def test_a_slice_inside_one_of_its_own_group_counts_once() -> None:
    rows = [(0, 6 * MS, 0, 0), (1 * MS, 3 * MS, 0, 0), (2 * MS, 3 * MS, 0, 0)]
    swept = sweep_energy(build_trace(np.ones(10)), group_rows(rows, groups=1))
    assert swept.energy_j.tolist() == pytest.approx([6e-3])
    assert swept.duration_s.tolist() == pytest.approx([6e-3])
    assert swept.count.tolist() == [3]


@pytest.mark.parametrize(
    ("split", "held"),
    [(Split.EQUAL, [3e-3, 1e-3]), (Split.DURATION, [2e-3 + 4e-3 / 3, 2e-3 / 3]), (Split.NONE, [4e-3, 2e-3])],
)
def test_tracks_that_are_busy_at_once_share_by_the_rule(split: Split, held: list[float]) -> None:
    rows = [(0, 4 * MS, 0, 0), (2 * MS, 4 * MS, 1, 1)]
    swept = sweep_energy(build_trace(np.ones(10)), group_rows(rows, groups=2), split=split)
    assert swept.energy_j.tolist() == pytest.approx(held)
    assert swept.concurrent == 2
    assert swept.busy_j == pytest.approx(4e-3)


def test_paths_are_made_from_names_outermost_first() -> None:
    rows = [(0, 4 * MS, 0, 0), (1 * MS, 2 * MS, 1, 0), (2 * MS, 3 * MS, 1, 0), (5 * MS, 6 * MS, 1, 0)]
    swept = sweep_energy(build_trace(np.ones(10)), group_rows(rows, groups=2, by_path=True))
    paths = list(zip(swept.path_parent.tolist(), swept.path_name.tolist(), swept.count.tolist(), strict=True))
    assert paths == [(-1, 0, 1), (0, 1, 2), (-1, 1, 1)]
    assert swept.energy_j.tolist() == pytest.approx([4e-3, 2e-3, 1e-3])


def test_a_slice_without_length_is_counted_and_holds_nothing() -> None:
    swept = sweep_energy(build_trace(np.ones(10)), group_rows([(MS, MS, 0, 0), (2 * MS, 3 * MS, 0, 0)], groups=1))
    assert (swept.count.tolist(), swept.energy_j.tolist()) == ([2], pytest.approx([1e-3]))


def test_left_out_slices_leave_idle_time() -> None:
    swept = sweep_energy(build_trace(np.ones(10)), group_rows([(0, 5 * MS, -1, 0)], groups=1))
    assert swept.idle_j == pytest.approx(10e-3)


def test_lost_time_is_told_apart_from_energy() -> None:
    trace = build_trace(np.where(np.arange(10) == 3, 0.0, 1.0), gaps=[(3, 4)])
    slices = group_rows([(2 * MS, 5 * MS, 0, 0)], groups=1)
    assert sweep_energy(trace, slices).energy_j.tolist() == pytest.approx([2e-3])
    assert sweep_lost_time(trace, trace.gaps, slices).energy_j.tolist() == pytest.approx([1e-3])


def test_slices_out_of_order_are_refused() -> None:
    slices = group_rows([(0, 1, 0, 0), (5, 6, 0, 0)], groups=1)
    slices.start_ns[0] = 9
    with pytest.raises(ValueError, match="order"):
        sweep_energy(build_trace(ramp()), slices)


@pytest.mark.parametrize("edges", [False, True])
def test_compiled_and_plain_agree(edges: bool) -> None:
    rng = np.random.default_rng(1)
    start = np.sort(rng.integers(0, 9_000 * MS, 4000))
    end = start + np.exp(rng.uniform(0, np.log(4e8), start.size)).astype(np.int64)
    rows = list(zip(start.tolist(), end.tolist(), rng.integers(0, 5, start.size).tolist(),
                    rng.integers(0, 3, start.size).tolist(), strict=True))  # fmt: skip
    watts = rng.uniform(0, 5, 10_000)
    marks = np.concatenate([[0], np.cumsum(rng.integers(500_000, 1_500_000, watts.size))])
    trace = build_trace(watts, edges_ns=marks.tolist()) if edges else build_trace(watts)
    for split in Split:
        one, two = (
            sweep_energy(trace, group_rows(rows, groups=5), split=split, per_slice=True, backend=backend)
            for backend in ("numpy", "numba")
        )
        assert_equal(one, two)


def assert_equal(one: Swept, two: Swept) -> None:
    for name in ("energy_j", "self_j", "slice_energy_j", "slice_self_j", "duration_s", "self_s", "square_j2"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-12, atol=1e-15)
    assert one.count.tolist() == two.count.tolist()
    assert one.pieces.tolist() == two.pieces.tolist()
    assert one.idle_j == pytest.approx(two.idle_j, rel=1e-12)


def test_what_lies_between_instants_is_what_slices_hold() -> None:
    rng = np.random.default_rng(2)
    trace = build_trace(rng.uniform(0, 5, 500), start_ns=-123_456)
    at = np.sort(rng.integers(trace.start_ns - MS, trace.end_ns + MS, 300))
    between = integrate_between(trace, at, backend="numpy")
    slices = integrate_energy(trace, at[:-1], at[1:])
    np.testing.assert_allclose(between.energy_j, slices.energy_j, rtol=1e-12, atol=1e-18)
    np.testing.assert_allclose(between.covered_s, slices.covered_s, rtol=1e-12, atol=1e-18)
    with pytest.raises(ValueError, match="order"):
        integrate_between(trace, at[::-1])
