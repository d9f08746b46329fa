"""Slices of a window on this machine: as many as can be shown, inside each other, on the clock of the meter."""

from __future__ import annotations

import numpy as np
import pytest

from host_coverage import small_host_model
from joulemap.records.host.campaign import BASE, LoadWindow
from joulemap.trace import Clock, ClockKind
from joulemap.workflow.host.timeline import build_host_timeline

CLOCK = Clock(name="host", kind=ClockKind.MONOTONIC)


def window(count: int, each_s: float) -> LoadWindow:
    return LoadWindow(load=BASE, block=0, start_ns=10**9, end_ns=10**9 + round((count * each_s + 1e-3) * 1e9),
                      count=count, latency_s=np.full(count, each_s))  # fmt: skip


@pytest.mark.parametrize(("count", "placed"), [(100, 100), (30_000, 30_000 // 9), (70_000, 0)])
def test_operators_are_placed_inside_the_inferences_in_the_middle(count: int, placed: int) -> None:
    model = small_host_model()
    durations_s = np.linspace(1.0, 2.0, 9) * 1e-5
    timeline = build_host_timeline(model, window(count, 2e-4), durations_s, CLOCK)
    kinds = np.bincount(timeline.kind_index, minlength=3)
    assert kinds[0] == 1
    assert kinds[1] == (count if count < 60_000 else 0)
    assert kinds[2] == 9 * placed if count < 60_000 else kinds[2] == 0
    assert bool(np.all(np.diff(timeline.start_ns) >= 0))
    assert timeline.start_ns.min() >= 10**9
    if not kinds[2]:
        return
    inferences = np.flatnonzero(timeline.kind_index == 1)
    layers = np.flatnonzero(timeline.kind_index == 2)
    holder = inferences[np.searchsorted(timeline.start_ns[inferences], timeline.start_ns[layers], side="right") - 1]
    assert bool(np.all(timeline.end_ns[layers] <= timeline.end_ns[holder]))
    held_s = (timeline.end_ns - timeline.start_ns)[layers][:9] * 1e-9
    assert held_s == pytest.approx(durations_s, abs=2e-9)


def test_times_that_add_up_to_more_than_the_inference_are_scaled() -> None:
    timeline = build_host_timeline(small_host_model(), window(4, 1e-4), np.full(9, 1e-4), CLOCK)
    held_ns = (timeline.end_ns - timeline.start_ns)[timeline.kind_index == 2]
    assert int(held_ns[:9].sum()) == pytest.approx(1e5, abs=10)


def test_unknown_times_leave_the_inferences_alone() -> None:
    timeline = build_host_timeline(small_host_model(), window(4, 1e-4), np.full(9, np.nan), CLOCK)
    assert np.bincount(timeline.kind_index, minlength=3).tolist() == [1, 4, 0]
