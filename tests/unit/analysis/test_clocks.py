"""Clocks from marks, edges, pairs, power and likelihood; the known answers of METHODS 1.4; refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from joulemap.analysis.clocks.correlation import correlate_activity
from joulemap.analysis.clocks.likelihood import profile_offset
from joulemap.analysis.clocks.markers import match_edges, match_marks, relate_hosts
from joulemap.analysis.clocks.regression import fit_clock
from joulemap.analysis.clocks.solve import Align, AlignRequest, solve_clock
from joulemap.errors import InputError, NotComparableError
from joulemap.records.mapping.clock_map import AlignMethod, ClockMap
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, ClockKind, EdgeDirection, Marker, Slice, Timeline
from mapped_traces import METER, WORK, build_trace, sampled_powers

UTC = Clock(name="utc", kind=ClockKind.UTC)


def pulses(
    rng: np.random.Generator, *, count: int = 100, span_s: float = 100.0, sigma_s: float = 10e-6, drift: float = 50e-6
) -> tuple[np.ndarray, np.ndarray]:
    source = np.linspace(0, span_s * 1e9, count).astype(np.int64)
    noise = rng.normal(0, sigma_s * 1e9, count)
    target = source + 7_000_000_123 + np.rint(source * drift + noise).astype(np.int64)
    return source, target


def test_sync_pulses_give_the_known_answers_of_the_methods() -> None:
    found = fit_clock((WORK, pulses(np.random.default_rng(0))[0]), (METER, pulses(np.random.default_rng(0))[1]),
                      method=AlignMethod.MARKERS)  # fmt: skip
    assert found.std_s == pytest.approx(1.0e-6, rel=0.2)
    assert found.drift_std == pytest.approx(0.035e-6, rel=0.2)
    assert found.std_at_s(int(100e9)) == pytest.approx(2.0e-6, rel=0.2)
    assert found.drift == pytest.approx(50e-6, abs=3 * found.drift_std)
    assert found.points == 100


def test_late_stamps_cost_nothing_but_themselves() -> None:
    rng = np.random.default_rng(4)
    source, target = pulses(rng)
    target[::7] += rng.integers(1_000_000, 9_000_000, target[::7].size)
    found = fit_clock((WORK, source), (METER, target), method=AlignMethod.MARKERS)
    plain = fit_clock((WORK, source), (METER, target), method=AlignMethod.MARKERS, robust="ols")
    assert abs(found.drift - 50e-6) < 4 * found.drift_std < abs(plain.drift - 50e-6) + plain.drift_std
    assert found.std_s < 3e-6 < plain.std_s


def test_one_mark_gives_an_offset_and_two_a_drift() -> None:
    one = fit_clock((WORK, np.array([5])), (METER, np.array([1_005])), method=AlignMethod.MARKERS)
    assert (one.offset_ns, one.drift, one.points) == (1000, 0.0, 1)
    two = fit_clock((WORK, np.array([0, 10**9])), (METER, np.array([0, 10**9 + 1000])), method=AlignMethod.MARKERS)
    assert two.drift == pytest.approx(1e-6)
    with pytest.raises(InputError):
        fit_clock((WORK, np.array([], np.int64)), (METER, np.array([], np.int64)), method=AlignMethod.MARKERS)


def test_offsets_keep_their_nanoseconds_at_the_age_of_the_epoch() -> None:
    source = np.array([10**18 + k * 10**9 for k in range(5)], np.int64)
    found = fit_clock((UTC, source), (METER, source - 10**18 + 17), method=AlignMethod.MARKERS)
    assert found.apply(source).tolist() == [17 + k * 10**9 for k in range(5)]


def track(clock: Clock, *marks: tuple[int, str]) -> MarkerTrack:
    return MarkerTrack(name="m", clock=clock, markers=tuple(Marker(time_ns=t, name=n) for t, n in marks))


def test_marks_of_one_name_are_matched_where_both_have_as_many() -> None:
    source, target = match_marks(
        [track(WORK, (1, "a"), (2, "b"), (3, "b"), (9, "c"))], [track(METER, (11, "a"), (12, "b"), (13, "b"))]
    )
    assert (source.tolist(), target.tolist()) == ([1, 2, 3], [11, 12, 13])


def test_edges_stand_for_slices_that_are_as_many() -> None:
    timeline = Timeline.from_slices(WORK, [Slice(name="run", start_ns=k * 10, end_ns=k * 10 + 4) for k in range(3)])
    edges = tuple(
        Marker(time_ns=100 + k * 10 + (0 if way is EdgeDirection.RISE else 4), name="gpi0", direction=way)
        for k in range(3)
        for way in (EdgeDirection.RISE, EdgeDirection.FALL)
    )
    tracks = [MarkerTrack(name="gpi", clock=METER, markers=edges)]
    source, target = match_edges(tracks, timeline, line="gpi0", name="run")
    assert (target - source).tolist() == [100] * 6
    with pytest.raises(InputError, match="stand for") as refused:
        match_edges(tracks, timeline, line="gpi1", name="run")
    assert refused.value.hint.endswith("lines here: gpi0")


def test_the_last_fall_may_lie_beyond_the_record() -> None:
    timeline = Timeline.from_slices(WORK, [Slice(name="run", start_ns=k * 10, end_ns=k * 10 + 4) for k in range(3)])
    rises = [Marker(time_ns=100 + k * 10, name="gpi0", direction=EdgeDirection.RISE) for k in range(3)]
    falls = [Marker(time_ns=104 + k * 10, name="gpi0", direction=EdgeDirection.FALL) for k in range(3)]

    def matched(*edges: Marker) -> list[int]:
        tracks = [MarkerTrack(name="gpi", clock=METER, markers=edges)]
        source, target = match_edges(tracks, timeline, line="gpi0", name="run")
        return [int(apart) for apart in target - source]

    assert matched(*rises, *falls[:2]) == [100] * 5
    for edges in ((*rises, falls[0], falls[2]), (*rises, falls[0]), (*rises[:2], *falls)):  # one is missing inside
        with pytest.raises(InputError, match="stand for"):
            matched(*edges)


def test_hosts_that_read_two_clocks_together_relate_them() -> None:
    wall = track(UTC, (10**18, "start"), (10**18 + 5 * 10**9, "stop"))
    mono = track(WORK, (3 * 10**9, "start"), (8 * 10**9, "stop"))
    (found,) = relate_hosts([wall, mono])
    assert (found.source, found.target, found.method) == (WORK, UTC, AlignMethod.PAIRS)
    assert found.apply(np.array([3 * 10**9])).tolist() == [10**18]
    assert relate_hosts([wall]) == ()


SCHEDULE = (("a", 7e-3, 6.0), ("b", 4e-3, 3.0))


def test_correlation_finds_the_offset_within_its_bound() -> None:
    rng = np.random.default_rng(5)
    trace, timeline, _ = sampled_powers(SCHEDULE, runs=150, rate_hz=1000.0, rng=rng, gap_s=(5e-3, 60e-3), noise_w=0.05)
    moved = replace(timeline, start_ns=timeline.start_ns - 12_345_678_901, end_ns=timeline.end_ns - 12_345_678_901)
    found = correlate_activity(trace, moved)
    error_s = abs(found.offset_ns - 12_345_678_901) * 1e-9
    assert error_s < 4 * found.std_s < 1e-3
    assert found.step_w == pytest.approx(4.0, rel=0.2)
    rows = [
        Slice(name=moved.names[n], start_ns=int(a), end_ns=int(b))
        for n, a, b in zip(moved.name_index, moved.start_ns, moved.end_ns, strict=True)
    ]
    plain = correlate_activity(
        trace, Timeline.from_slices(moved.clock, [*rows, *(replace(r, name="in") for r in rows)])
    )
    assert plain.step_w == pytest.approx(found.step_w, rel=0.01)  # what is open twice is busy once


def under_a_root(timeline: Timeline, moved_ns: int, margin_ns: int, track: str) -> Timeline:
    """The slices on another clock, inside one that covers all of them and a margin on both sides."""
    start_ns, end_ns = timeline.start_ns - moved_ns, timeline.end_ns - moved_ns
    rows = [
        Slice(name=timeline.names[n], start_ns=int(a), end_ns=int(b), track="core")
        for n, a, b in zip(timeline.name_index, start_ns, end_ns, strict=True)
    ]
    begin_ns, end = int(start_ns.min()) - margin_ns, int(end_ns.max()) + margin_ns
    root = Slice(name="main", start_ns=begin_ns, end_ns=end, track=track)
    return Timeline.from_slices(WORK, [root, *rows])


@pytest.mark.parametrize("track", ["core", "process"])
@pytest.mark.parametrize(("gap_s", "margin_ns"), [((5e-3, 60e-3), 0), ((5e-3, 60e-3), 90_000_000), ((0.0, 0.0), 0)])
def test_what_is_inside_tells_where_an_outer_slice_covers_all(
    gap_s: tuple[float, float], margin_ns: int, track: str
) -> None:
    moved_ns, apart = 9_876_543_210, []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        schedule = SCHEDULE if gap_s[1] else tuple((name, s * rng.uniform(0.5, 2.0), w) for name, s, w in SCHEDULE * 3)
        trace, timeline, _ = sampled_powers(
            schedule, runs=150 if gap_s[1] else 1, rate_hz=1000.0, rng=rng, gap_s=gap_s, noise_w=0.05
        )
        found = correlate_activity(trace, under_a_root(timeline, moved_ns, margin_ns, track))
        apart.append((found.offset_ns - moved_ns) * 1e-9 / found.std_s)
        assert found.std_s < 1e-3
    assert max(map(abs, apart)) < 4.0
    assert sum(abs(z) < 2.0 for z in apart) >= 10


def test_a_root_alone_that_is_longer_than_the_trace_has_no_offset() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(NotComparableError, match="more than one offset"):
        correlate_activity(
            build_trace(2.0 + 0.1 * rng.standard_normal(500)),
            Timeline.from_slices(WORK, [Slice(name="main", start_ns=0, end_ns=10**9)]),
        )


def test_a_load_without_a_beginning_has_no_offset() -> None:
    power = np.tile(np.repeat([1.0, 5.0], 10), 200)
    slices = [Slice(name="x", start_ns=k * 20_000_000, end_ns=k * 20_000_000 + 10_000_000) for k in range(50)]
    with pytest.raises(NotComparableError, match="more than one offset"):
        correlate_activity(build_trace(power), Timeline.from_slices(WORK, slices))
    with pytest.raises(NotComparableError):
        correlate_activity(build_trace(np.ones(100)), Timeline.from_slices(WORK, slices[:2]))


def test_likelihood_is_sharper_than_correlation() -> None:
    rng = np.random.default_rng(6)
    trace, timeline, _ = sampled_powers(
        (("a", 1.3e-3, 8.0), ("b", 2.7e-3, 3.0), ("c", 0.8e-3, 12.0)), runs=500, rate_hz=1000.0, rng=rng, noise_w=0.05
    )
    off_ns = 60_000
    moved = replace(timeline, start_ns=timeline.start_ns + off_ns, end_ns=timeline.end_ns + off_ns)
    found = profile_offset(trace, moved, half_range_s=0.5e-3)
    assert found is not None
    assert found.std_s < 5e-6
    assert abs(found.shift_ns + off_ns) * 1e-9 < 4 * found.std_s + 1e-6


def solve(trace_clock: Clock, work_clock: Clock, *tracks: MarkerTrack, **said: object) -> ClockMap:
    trace = build_trace(np.ones(10), clock=trace_clock)
    timeline = Timeline.from_slices(work_clock, [Slice(name="x", start_ns=0, end_ns=10)])
    return solve_clock(trace, timeline, tracks, AlignRequest(**said))[0]  # type: ignore[arg-type]


def test_the_best_relation_that_a_recording_gives_is_taken() -> None:
    other_utc = Clock(name="host", kind=ClockKind.UTC)
    assert solve(METER, METER, together=True).method is AlignMethod.SAME
    assert solve(UTC, other_utc).std_s == pytest.approx(1e-3)
    assert solve(METER, WORK, offset_s=2.5).offset_ns == 2_500_000_000
    marks = track(WORK, (0, "s"), (10, "t")), track(METER, (100, "s"), (110, "t"))
    assert solve(METER, WORK, *marks).offset_ns == 100


@pytest.mark.parametrize("kind", [ClockKind.MONOTONIC, ClockKind.LOCAL, ClockKind.COUNTER])
def test_clocks_that_nothing_relates_are_refused(kind: ClockKind) -> None:
    with pytest.raises(NotComparableError) as caught:
        solve(UTC, Clock(name="x", kind=kind))
    assert caught.value.slug == "clocks-unrelated"
    with pytest.raises(NotComparableError):
        solve(METER, METER)  # one name in two recordings is not one clock
    with pytest.raises(NotComparableError):
        solve(METER, WORK, method=Align.MARKERS)


def test_a_clock_map_refuses_numbers_that_are_none() -> None:
    with pytest.raises(ValueError, match="finite"):
        ClockMap(source=WORK, target=METER, std_s=math.nan)
