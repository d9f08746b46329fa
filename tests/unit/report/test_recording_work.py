"""How much of a recording a page takes: folded slices, lanes, names, bins, windows, samples that stay in their file."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from joulemap.analysis.clocks.solve import AlignRequest
from joulemap.report.html.pack import MISSING, list_blocks, pack_scene_head
from joulemap.report.html.page import render_page
from joulemap.report.view.recording.folding import fold_slices
from joulemap.report.view.recording.page import build_recording_page
from joulemap.report.view.recording.scene import MARK_LIMIT, TRACK_LIMIT
from joulemap.report.view.recording.sections import MarkLine, ValueLine
from joulemap.report.view.recording.work import LANE_LIMIT, NAME_LIMIT, PAGE_B, lay_work, plan_slices
from joulemap.report.view.slices import SLICE_LIMIT
from joulemap.report.view.waveform.tracks import bin_trace
from joulemap.report.view.waveform.windows import worst_windows
from joulemap.trace import EnergyTrace, Timeline, integrate_energy
from joulemap.trace.streamed import StreamedTrace
from mapped_traces import METER, build_trace
from recording_sections import (
    build_sections,
    make_row,
    slices_at,
)

OFFSET = AlignRequest(offset_s=0.0)
COLUMNS = {"columns": {"time": "moment (s)", "power": "power (W)"}}


def busy_timeline(n: int, *, names: int = 40, tracks: int = 4) -> Timeline:
    """Returns n slices side by side over 2 s, names and tracks in turn."""
    edges_ns = np.linspace(0, 2_000_000_000, n + 1).astype(np.int64)
    index = np.arange(n)
    return Timeline(
        clock=METER,
        start_ns=edges_ns[:-1],
        end_ns=edges_ns[1:],
        name_index=(index % names).astype(np.int32),
        names=tuple(f"CONV_2D #{k}" for k in range(names)),
        track_index=(index % tracks).astype(np.int32),
        tracks=tuple(f"core {k}" for k in range(tracks)),
        kind_index=np.zeros(n, np.int32),
        kinds=("op",),
    )


def test_too_many_slices_are_folded_by_a_rule_and_none_is_lost() -> None:
    timeline = busy_timeline(50_000)
    sections = build_sections(timeline)
    assert sections.work is not None
    laid = lay_work(sections.work, sections.lines, (0, 2 * 10**9), windows_ns=[(0, 10**7)], known={}, limit=5000)
    assert len(laid.slices) <= 5000
    folded = np.array([name.name.startswith("mostly") for name in laid.slices.names])[laid.slices.name_index]
    assert laid.slices.energy_j[folded].sum() == pytest.approx(50_000 * 1e-3)  # each stretch holds all of its slices
    assert [finding.slug for finding in laid.findings] == ["slices_thinned"]
    inside = laid.slices.start_s + laid.slices.duration_s <= 1e-2
    single = np.array([not name.name.startswith("mostly") for name in laid.slices.names])[laid.slices.name_index]
    assert int((inside & single).sum()) == 250  # every slice of the window that must stay whole
    names = laid.shown["CONV_2D #3"]
    assert [laid.slices.names[k].name for k in names] == ["CONV_2D #3", "mostly CONV_2D #3"] or len(names) == 1
    assert any(lane.startswith("folded") for lane in laid.slices.lanes)


def test_folded_slices_that_overlap_have_no_sum() -> None:
    flat = busy_timeline(8000, tracks=1)
    nested = replace(flat, end_ns=np.minimum(flat.end_ns + 10**6, 2 * 10**9))
    for timeline, known in ((flat, True), (nested, False)):
        sections = build_sections(timeline)
        assert sections.work is not None
        laid = lay_work(sections.work, sections.lines, (0, 2 * 10**9), windows_ns=[], known={}, limit=1000)
        folded = np.array([name.name.startswith("mostly") for name in laid.slices.names])[laid.slices.name_index]
        assert folded.any()
        assert bool(np.isfinite(laid.slices.energy_j[folded]).all()) is known
        assert bool(np.isfinite(laid.slices.energy_j[folded]).any()) is known


def test_folding_names_what_took_most_however_many_blocks_there_are() -> None:
    rng = np.random.default_rng(6)
    n = 3 * (1 << 20)
    edges_ns = np.sort(rng.integers(0, 2 * 10**9, n + 1))
    names = rng.integers(0, 5, n).astype(np.int32)
    timeline = replace(
        busy_timeline(n, names=5, tracks=1), start_ns=edges_ns[:-1], end_ns=edges_ns[1:], name_index=names
    )
    energy_j = rng.random(n)
    folded, sums_j = fold_slices(timeline, energy_j, np.empty(0, np.int64), (0, 2 * 10**9), limit=7)
    middle = (edges_ns[:-1] + (edges_ns[1:] - edges_ns[:-1]) // 2) * (7 / 2e9)
    home = np.clip(middle.astype(np.int64), 0, 6)
    for k in range(7):
        rows = home == k
        assert sums_j[k] == pytest.approx(energy_j[rows].sum())
        took = np.bincount(names[rows], weights=np.diff(edges_ns)[rows])
        assert folded.name_index[k] == np.argmax(took)
        assert (folded.start_ns[k], folded.end_ns[k]) == (edges_ns[:-1][rows].min(), edges_ns[1:][rows].max())


def test_lanes_and_names_have_limits_that_are_said() -> None:
    timeline = busy_timeline(3 * (LANE_LIMIT + 5), names=2 * NAME_LIMIT, tracks=LANE_LIMIT + 5)
    sections = build_sections(timeline, rows=[make_row("CONV_2D #1", 1.0, total_j=11.0)])
    assert sections.work is not None
    laid = lay_work(sections.work, sections.lines, (0, 2 * 10**9), windows_ns=[], known={})
    assert len(laid.slices.lanes) == LANE_LIMIT
    assert "5 lanes with the least work are left out" in laid.findings[0].message
    many = busy_timeline(4000, names=2000)
    sections = build_sections(many, rows=[make_row("CONV_2D #1", 1.0, total_j=11.0)])
    assert sections.work is not None
    laid = lay_work(sections.work, sections.lines, (0, 2 * 10**9), windows_ns=[], known={})
    assert len(laid.slices.names) == NAME_LIMIT + 1
    assert laid.slices.names[-1].name == "one of 1750 further names"


def test_a_slice_that_reaches_out_of_the_map_ends_there_without_an_energy() -> None:
    timeline = slices_at(
        METER, [("a", -(10**9), 10**9, "t"), ("b", 10**9, 3 * 10**9, "t"), ("c", 5 * 10**9, 6 * 10**9, "t")]
    )
    sections = build_sections(timeline)
    assert sections.work is not None
    slices = lay_work(sections.work, sections.lines, (0, 2 * 10**9), windows_ns=[], known={}).slices
    assert slices.start_s.tolist() == [0.0, 1.0]
    assert slices.duration_s.tolist() == [1.0, 1.0]
    assert np.isnan(slices.energy_j).all()


def test_u_of_one_slice_holds_the_meter_and_the_doubt_of_its_edges() -> None:
    power_w = np.where(np.arange(2000) < 1000, 2.0, 8.0)
    trace = build_trace(power_w)
    timeline = slices_at(
        METER, [("edge", 500_000_000, 1_000_000_000, "t"), ("flat", 1_200_000_000, 1_700_000_000, "t")]
    )
    sections = build_sections(timeline, trace=trace, shift_s=2e-3)
    assert sections.work is not None
    energy_j = integrate_energy(trace, timeline.start_ns, timeline.end_ns).energy_j
    work = replace(sections.work, energy_j=energy_j)
    slices = lay_work(work, sections.lines, (0, 2 * 10**9), windows_ns=[], known={}).slices
    assert slices.expanded_j is not None
    limits = sections.lines[0].limits
    meter = [limits.window_std_j(energy, 0.5) for energy in energy_j]
    moved_j = 0.5 * 2e-3 * (8.0 - 2.0)  # half of what enters when the edge moves, over both directions
    wanted = 1.959963984540054 * np.array([np.hypot(meter[0], moved_j), meter[1]])
    assert slices.expanded_j == pytest.approx(wanted, rel=1e-9)
    still = lay_work(replace(work, shift_s=0.0), sections.lines, (0, 2 * 10**9), windows_ns=[], known={}).slices
    assert still.expanded_j is None  # then the page works it out from the meter's limits


def test_u_of_a_slice_is_packed_within_a_thousandth() -> None:
    timeline = slices_at(METER, [(name, k * 10**8, (k + 1) * 10**8, "t") for k, name in enumerate("abc")])
    view = build_recording_page(build_sections(timeline, shift_s=1e-3))
    assert view.scene is not None
    slices = view.scene.slices
    head = pack_scene_head(view.scene)["slices"]
    assert head["expanded"] is True
    data = base64.b64decode(dict(list_blocks(view.scene, 0))["slices-0"])
    n = head["count"]
    assert len(data) == 17 * n
    codes = np.frombuffer(data, "<u2", n, 14 * n)
    energies = np.frombuffer(data, "<f4", n, 8 * n)
    assert (codes != MISSING).all()
    assert np.abs(energies) * 2.0 ** (codes / 1024 - 32) == pytest.approx(slices.expanded_j, rel=1e-3)


def test_the_largest_page_that_is_promised_is_below_a_megabyte() -> None:
    at_ns = np.arange(0, 2_000_000_000, 250_000, dtype=np.int64)
    rng = np.random.default_rng(4)
    values = [ValueLine(name=f"counter {k}", unit="1", time_ns=at_ns, value=rng.random(at_ns.size)) for k in range(19)]
    trace = build_trace(5.0 + rng.random(200_000), period_s=1e-5)
    sections = build_sections(busy_timeline(SLICE_LIMIT), trace=trace, values=values)
    view = build_recording_page(sections)
    assert view.scene is not None
    assert len(view.scene.tracks) == TRACK_LIMIT
    assert view.scene.tracks[0].mean.size == 4000
    assert len(view.scene.slices) == SLICE_LIMIT  # each of them by itself
    assert len(render_page(view).encode()) <= PAGE_B


def test_more_than_fits_is_left_out_and_named() -> None:
    at_ns = np.arange(0, 2_000_000_000, 10_000_000, dtype=np.int64)
    rng = np.random.default_rng(4)
    values = [ValueLine(name=f"counter {k}", unit="1", time_ns=at_ns, value=rng.random(at_ns.size)) for k in range(30)]
    names = [f"void kernel<{k}, float, {'x' * 80}>({k})" for k in range(3000)]
    timeline = replace(busy_timeline(60_000, names=3000), names=tuple(names))
    rows = [make_row(name, 0.001, total_j=11.0) for name in names]
    marks = [MarkLine(label=f"edge {k % 3}", at_ns=k * 100_000) for k in range(3 * MARK_LIMIT)]
    view = build_recording_page(build_sections(timeline, values=values, marks=marks, rows=rows))
    messages = [finding.message for finding in view.findings if finding.slug == "tracks_left_out"]
    assert any("20 of 31 tracks; left out are counter 19" in message for message in messages)
    assert any(f"of {3 * MARK_LIMIT} instants" in message for message in messages)
    assert view.scene is not None
    assert len(view.scene.marks) <= MARK_LIMIT
    assert view.tables[0].rows[-2].name == "2950 further rows (joulemap map --json has them)"
    assert view.tables[0].rows[-2].energy_j == pytest.approx(2.95)
    assert len(render_page(view).encode()) <= PAGE_B


def test_room_for_slices_is_what_the_page_has_left() -> None:
    sections = build_sections(busy_timeline(10, names=10))
    assert sections.work is not None
    assert plan_slices(sections.work, tracks=1, bins=4000, samples=0) == SLICE_LIMIT
    crowded = replace(
        sections.work, timeline=replace(sections.work.timeline, names=tuple("y" * 200 for _ in range(10)))
    )
    few = plan_slices(crowded, tracks=40, bins=4000, samples=0)
    assert few < plan_slices(sections.work, tracks=20, bins=4000, samples=0) <= SLICE_LIMIT


def test_bins_are_the_same_however_many_samples_are_read_at_a_time() -> None:
    rng = np.random.default_rng(9)
    trace = build_trace(rng.random(10_000), gaps=[(100, 140), (5000, 5100)])
    edges_ns = np.linspace(0, trace.end_ns, 101).astype(np.int64)
    whole, parts = bin_trace(trace, edges_ns), bin_trace(trace, edges_ns, at_once=700)
    for field in ("edges_ns", "low_w", "high_w", "mean_w"):
        assert np.array_equal(getattr(whole, field), getattr(parts, field), equal_nan=True), field


def test_the_worst_windows_are_the_same_however_many_samples_are_read_at_a_time() -> None:
    rng = np.random.default_rng(9)
    power_w = rng.random(10_000)
    power_w[[4321, 8765]] = 7.0, -3.0
    trace = build_trace(power_w, gaps=[(100, 140)])
    none = np.empty((0, 2), np.int64)
    whole = worst_windows(trace, none, samples=50, inside_ns=None)
    assert whole == worst_windows(trace, none, samples=50, inside_ns=None, at_once=600)
    middles = {window.label: (window.start_ns + window.end_ns) // 2 for window in whole}
    assert middles["highest peak"] == pytest.approx(4321 * 10**6, abs=10**6)
    assert middles["lowest dip"] == pytest.approx(8765 * 10**6, abs=10**6)


class Stored:
    """Samples as a file would give them: 300 at a time, the power as a product of two factors."""

    def __init__(self, power_w: NDArray[np.float64]) -> None:
        self._power_w = power_w

    def stream(self, first: int, count: int) -> Iterator[tuple[int, tuple[NDArray[np.float64], NDArray[np.float64]]]]:
        for at in range(first, first + count, 300):
            part = self._power_w[at : min(at + 300, first + count)]
            yield at, (part / 3.3, np.full(part.size, 3.3))


def streamed_pair() -> tuple[EnergyTrace, StreamedTrace]:
    """The same samples in memory and streamed, some of them lost."""
    power_w = 5.0 + np.random.default_rng(8).random(20_000)
    power_w[[4321, 15_000]] = 9.0, 1.0
    gaps = [(100, 140), (12_000, 12_700)]
    held = power_w.copy()
    for begin, end in gaps:
        held[begin:end] = 0.0
        power_w[begin:end] = np.nan
    whole = build_trace(held, period_s=1e-4, gaps=gaps)
    stored = StreamedTrace(
        clock=whole.clock,
        channel=whole.channel,
        start_ns=whole.start_ns,
        period_s=1e-4,
        n=whole.n,
        source=Stored(power_w),
    )
    return whole, stored


@pytest.mark.parametrize(("start_ns", "end_ns"), [(0, 2 * 10**9), (333_333, 1_777_777_777), (-(10**8), 3 * 10**9)])
def test_samples_that_stay_in_their_file_give_the_same_bins(start_ns: int, end_ns: int) -> None:
    whole, stored = streamed_pair()
    edges_ns = np.linspace(start_ns, end_ns, 301).astype(np.int64)
    one, other = bin_trace(whole, edges_ns), bin_trace(stored, edges_ns)
    assert other.low_w == pytest.approx(one.low_w, rel=1e-12, nan_ok=True)
    assert other.high_w == pytest.approx(one.high_w, rel=1e-12, nan_ok=True)
    assert other.mean_w == pytest.approx(one.mean_w, rel=1e-9, nan_ok=True)
    assert np.isnan(one.mean_w).any() == np.isnan(other.mean_w).any()


def test_samples_that_stay_in_their_file_give_the_same_page() -> None:
    whole, stored = streamed_pair()
    periods = [("unit", k * 2 * 10**8, (k + 1) * 2 * 10**8, "t") for k in range(10)]
    timeline = slices_at(METER, periods)
    views = []
    for trace in (whole, stored):
        sections = build_sections(timeline, trace=whole, shift_s=1e-3)
        assert sections.work is not None
        work = replace(sections.work, per="unit")
        lines = (replace(sections.lines[0], trace=trace),)
        views.append(build_recording_page(replace(sections, lines=lines, work=work)))
    one, other = (view.scene for view in views)
    assert one is not None
    assert other is not None
    assert [e.label for e in other.excerpts] == [e.label for e in one.excerpts]
    assert {"highest peak", "lowest dip", "first lost samples"} <= {e.label for e in one.excerpts}
    for left, right in zip(one.excerpts, other.excerpts, strict=True):
        assert right.start_s == pytest.approx(left.start_s)
        assert (right.step_s, right.raw) == (left.step_s, left.raw)
        assert right.mean == pytest.approx(left.mean, rel=1e-9, nan_ok=True)
    assert other.slices.expanded_j == pytest.approx(one.slices.expanded_j, rel=1e-6)
    folds = [view.fold for view in views]
    assert folds[0] is not None
    assert folds[1] is not None
    assert folds[1].tracks[0].mean == pytest.approx(folds[0].tracks[0].mean, rel=1e-9, nan_ok=True)
