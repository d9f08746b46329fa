"""A constant between two clocks moves the trace and not the slices: the map is the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap
from joulemap.trace import Slice, Timeline
from mapped_traces import METER, WORK, build_trace

MS = 1_000_000


def mapped(offset_ns: int) -> EnergyMap:
    trace = build_trace(np.random.default_rng(0).random(5000) + 1.0, period_s=1e-4, start_ns=10**9)
    slices = [
        Slice(name=f"op {k % 3}", start_ns=10**9 + MS + 5 * k * MS, end_ns=10**9 + 4 * MS + 5 * k * MS + 1001 * k)
        for k in range(90)
    ]
    moved = [replace(s, start_ns=s.start_ns - offset_ns, end_ns=s.end_ns - offset_ns) for s in slices]
    clock = ClockMap(source=WORK, target=METER, offset_ns=offset_ns)
    return map_energy([trace], Timeline.from_slices(WORK, moved), clock, MeterErrors(), request=MapRequest())


def test_an_offset_changes_no_figure_and_is_told() -> None:
    plain, other = mapped(0), mapped(123_456_789)
    assert [replace(row) for row in other.rows] == list(plain.rows)
    assert other.idle_j == plain.idle_j
    assert other.total_j == plain.total_j
    assert [clock.offset_ns for clock in other.clocks] == [123_456_789]
