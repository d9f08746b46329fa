"""Traces, timelines and repeats as scenes: exact where it can be told, marked where nothing was seen."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.estimate import Boundary, Provenance
from joulemap.report.view.colors import NEUTRAL, PALETTE, assign_colors
from joulemap.report.view.scene import PowerUncertainty, Scene, SliceName, SliceTable, Track
from joulemap.report.view.slices import build_slices, empty_slices, thin_slices
from joulemap.report.view.waveform.fold import build_fold
from joulemap.report.view.waveform.tracks import build_excerpt, build_power_track, build_value_track, plan_edges
from joulemap.report.view.waveform.windows import open_window, worst_windows
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel, Slice, Timeline
from joulemap.trace.resample import build_envelope

CLOCK = Clock(name="instrument", kind=ClockKind.SAMPLE_INDEX)


def trace(power_w: np.ndarray, *, period_s: float = 1e-3, gaps: list[tuple[int, int]] | None = None) -> EnergyTrace:
    kernel = SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=period_s)
    return EnergyTrace(
        clock=CLOCK,
        channel=Channel(name="rail", boundary=Boundary.RAIL, provenance=Provenance.SIMULATED, kernel=kernel),
        power_w=np.asarray(power_w, np.float64),
        start_ns=5_000_000,
        period_s=period_s,
        gaps=np.array(gaps or [], np.int64).reshape(-1, 2),
    )


def timeline(*slices: tuple[str, int, int, str, str]) -> Timeline:
    return Timeline.from_slices(
        CLOCK, [Slice(name=n, start_ns=a, end_ns=b, track=t, kind=k) for n, a, b, t, k in slices]
    )


def test_bins_have_one_whole_length_and_cover_everything() -> None:
    edges = plan_edges(7, 1_000_008, bins=4000)
    assert edges[0] == 7
    assert edges[-1] >= 1_000_008
    assert edges.size - 1 <= 4000
    assert set(np.diff(edges)) == {int(edges[1] - edges[0])}
    assert plan_edges(0, 10, bins=4000).tolist() == list(range(11))
    with pytest.raises(ValueError, match="length"):
        plan_edges(3, 3)


def test_a_power_track_holds_extremes_and_the_mean_of_each_bin() -> None:
    wave = np.arange(1000.0)
    source = trace(wave)
    edges = plan_edges(source.start_ns, source.end_ns, bins=100)
    track = build_power_track(source, edges, name="Power", uncertainty=None)
    bins = wave.reshape(100, 10)
    assert track.low == pytest.approx(bins.min(axis=1))
    assert track.high == pytest.approx(bins.max(axis=1))
    assert track.mean == pytest.approx(bins.mean(axis=1))


def test_what_was_lost_is_missing_and_never_0() -> None:
    source = trace(np.ones(100), gaps=[(20, 40)])
    track = build_power_track(
        source, plan_edges(source.start_ns, source.end_ns, bins=10), name="Power", uncertainty=None
    )
    assert np.isnan(track.mean[2:4]).all()
    assert (track.mean[[0, 1, 4, 9]] == 1).all()


@pytest.mark.parametrize("gaps", [[], [(30, 47), (90, 91)]])
def test_extremes_are_those_of_every_sample_that_a_bin_touches(gaps: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(8)
    wave = rng.normal(size=200)
    source = trace(wave, gaps=gaps)
    kept = wave.copy()
    for first, last in gaps:
        kept[first:last] = np.nan
    for _ in range(50):
        count = int(rng.integers(2, 60))
        edges = np.unique(rng.integers(source.start_ns - 9_000_000, source.end_ns + 9_000_000, count)).astype(np.int64)
        envelope = build_envelope(source, edges)
        for k in range(edges.size - 1):
            left = max(0, (int(edges[k]) - source.start_ns) // 1_000_000)
            right = max(0, min(200, -((source.start_ns - int(edges[k + 1])) // 1_000_000)))
            seen = kept[left:right][np.isfinite(kept[left:right])]
            wanted = (seen.min(), seen.max()) if seen.size else (np.nan, np.nan)
            assert [envelope.low_w[k], envelope.high_w[k]] == pytest.approx(list(wanted), nan_ok=True)


def test_a_counter_holds_its_value_until_the_next() -> None:
    edges = np.array([0, 10, 20, 30, 40], np.int64)
    track = build_value_track(
        np.array([5, 15, 32], np.int64), np.array([1.0, 3.0, np.nan]), edges, name="clock", unit="Hz"
    )
    assert track.mean.tolist() == pytest.approx([1.0, 2.0, 3.0, 3.0])
    assert track.low.tolist() == pytest.approx([1.0, 1.0, 3.0, 3.0])
    assert track.high.tolist() == pytest.approx([1.0, 3.0, 3.0, 3.0])


def test_an_excerpt_is_raw_when_the_samples_are_few_enough() -> None:
    wave = np.arange(1000.0)
    source = trace(wave)
    raw = build_excerpt(source, 105_000_000, 115_000_000, origin_ns=5_000_000, bins=20, label="peak")
    assert raw.raw
    assert raw.mean.tolist() == wave[100:110].tolist()
    assert [raw.start_s, raw.step_s] == pytest.approx([0.1, 1e-3])
    coarse = build_excerpt(source, 105_000_000, 305_000_000, origin_ns=5_000_000, bins=20, label="peak")
    assert not coarse.raw
    assert coarse.mean.size == 20
    assert coarse.low[0] == 100.0
    assert coarse.high[0] == 109.0


def test_slices_carry_the_energy_of_the_trace_and_none_when_it_was_not_all_seen() -> None:
    source = trace(np.full(100, 2.0), gaps=[(50, 60)])
    lanes = timeline(
        ("a", 15_000_000, 25_000_000, "core", "layer"),
        ("b", 50_000_000, 60_000_000, "core", "layer"),
        ("c", 0, 10_000_000, "core", "layer"),
    )
    known = {"a": SliceName(name="A", op="CONV", color=0)}
    table = build_slices(lanes, source, origin_ns=source.start_ns, known=known)
    assert [table.names[k].name for k in table.name_index] == ["c", "A", "b"]
    assert table.energy_j[1] == pytest.approx(0.02)
    assert np.isnan(table.energy_j[[0, 2]]).all()
    assert table.names[1].color == NEUTRAL
    assert table.start_s[1] == pytest.approx(0.01)


def test_lanes_are_tracks_and_kinds_and_overlaps_go_deeper() -> None:
    lanes = timeline(
        ("run", 0, 100, "gpu0", "run"),
        ("x", 0, 60, "gpu0", "kernel"),
        ("y", 10, 50, "gpu0", "kernel"),
        ("z", 60, 100, "gpu0", "kernel"),
        ("w", 0, 100, "gpu1", ""),
    )
    table = build_slices(lanes, None, origin_ns=0, known={})
    assert table.lanes == ("gpu0 Run", "gpu0 Kernel", "", "gpu1 Gpu1")
    placed = {table.names[n].name: int(lane) for n, lane in zip(table.name_index, table.lane_index, strict=True)}
    assert placed == {"run": 0, "x": 1, "z": 1, "y": 2, "w": 3}
    assert np.isnan(table.energy_j).all()


def test_too_many_slices_are_thinned_with_a_finding_and_windows_stay_whole() -> None:
    n = 1000
    table = SliceTable(
        start_s=np.arange(n, dtype=np.float64),
        duration_s=np.where(np.arange(n) % 2, 0.9, 0.1),
        energy_j=np.zeros(n),
        name_index=np.zeros(n, np.int32),
        lane_index=np.zeros(n, np.int32),
        names=(SliceName(name="a", op="", color=0),),
        lanes=("",),
    )
    thinned, finding = thin_slices(table, [(100.0, 110.0)], limit=300)
    assert finding is not None
    assert finding.slug == "slices_thinned"
    assert "300 of 1000" in finding.message
    assert len(thinned) == 300
    assert set(np.arange(100.0, 110.0)) <= set(thinned.start_s)
    outside = (thinned.start_s < 99) | (thinned.start_s > 110)
    assert (thinned.duration_s[outside] == 0.9).all()
    assert (np.diff(thinned.start_s) > 0).all()
    assert thin_slices(table, [], limit=n) == (table, None)
    crowded, _ = thin_slices(table, [(500.0, 520.0), (0.0, 900.0)], limit=300)  # more in the second than there is room
    assert set(np.arange(500.0, 520.0)) <= set(crowded.start_s)


def test_a_fold_is_the_mean_period_with_the_spread_of_the_periods() -> None:
    shape = np.repeat([1.0, 3.0], 50)
    factors = np.linspace(0.9, 1.1, 20)
    source = trace(np.concatenate([shape * factor for factor in factors]))
    begins = source.start_ns + np.arange(20, dtype=np.int64) * 100_000_000
    periods = np.column_stack([begins, begins + 100_000_000])
    lanes = timeline(
        *(("layer", int(b) + 50_000_000, int(b) + 100_000_000, "core", "layer") for b in begins),
        ("run", int(begins[0]), int(begins[-1]) + 100_000_000, "core", "run"),
    )
    table = build_slices(lanes, source, origin_ns=source.start_ns, known={})
    fold = build_fold(
        source,
        table,
        periods,
        origin_ns=source.start_ns,
        name="Power",
        uncertainty=None,
        level=None,
        label="20 folded",
    )
    assert fold is not None
    assert fold.span_s == pytest.approx(0.1)
    half = fold.tracks[0].mean.size // 2
    assert fold.tracks[0].mean[:half] == pytest.approx(np.full(half, 1.0))
    assert fold.tracks[0].mean[half:] == pytest.approx(np.full(half, 3.0))
    assert fold.tracks[0].low[0] == pytest.approx(np.percentile(factors, 5))
    assert fold.tracks[0].high[-1] == pytest.approx(3 * np.percentile(factors, 95))
    assert len(fold.slices) == 1
    assert fold.slices.lanes == ("Layer",)
    assert fold.slices.energy_j[0] == pytest.approx(0.15)
    assert fold.slices.start_s[0] == pytest.approx(0.05)


def test_few_periods_are_not_folded() -> None:
    source = trace(np.ones(100))
    periods = np.array([[5_000_000, 35_000_000]] * 3, np.int64)
    assert (
        build_fold(source, empty_slices(), periods, origin_ns=0, name="", uncertainty=None, level=None, label="")
        is None
    )


def test_the_page_opens_on_three_periods_or_on_everything() -> None:
    begins = np.arange(10, dtype=np.int64) * 100
    periods = np.column_stack([begins, begins + 100])
    left, right = open_window(periods, start_ns=0, end_ns=1000)
    assert 300 <= right - left <= 320
    assert open_window(periods[:3], start_ns=0, end_ns=1000) == (0, 1000)


def test_the_worst_windows_hold_peak_dip_odd_period_and_lost_samples() -> None:
    wave = np.ones(1000)
    wave[123], wave[456], wave[700:710] = 9.0, 0.1, 1.5
    source = trace(wave, gaps=[(900, 910)])
    begins = source.start_ns + np.arange(10, dtype=np.int64) * 100_000_000
    windows = worst_windows(source, np.column_stack([begins, begins + 100_000_000]), samples=20, inside_ns=None)
    by_label = {window.label: (window.start_ns + window.end_ns) // 2 - source.start_ns for window in windows}
    assert by_label == {
        "highest peak": 123_000_000,
        "lowest dip": 456_000_000,
        "most unusual period (no. 2)": 150_000_000,  # no. 10 was not wholly recorded
        "first lost samples": 900_000_000,
    }


def test_known_kinds_keep_their_colour_and_no_colour_stands_for_two() -> None:
    colors = assign_colors(["MYSTERY", "CONV_2D", "OTHER", "DEPTHWISE_CONV_2D"])
    assert colors["CONV_2D"] == assign_colors(["CONV_2D"])["CONV_2D"] == 0
    assert len(set(colors.values())) == 4
    many = assign_colors([f"op {k}" for k in range(20)])
    assert sorted(many.values())[:NEUTRAL] == list(range(NEUTRAL))
    assert list(many.values())[NEUTRAL:] == [NEUTRAL] * (20 - NEUTRAL)
    assert len(PALETTE) == NEUTRAL + 1


def test_the_uncertainty_of_a_window_is_what_the_instrument_declares() -> None:
    limits = PowerUncertainty(gain_std=3e-3, clock_std=0.0, offset_std_w=4e-3, noise_std_w=0.0, rate_hz=1e3)
    assert limits.window_std_j(1.0, 1.0) == pytest.approx(5e-3)
    noise = PowerUncertainty(gain_std=0.0, clock_std=0.0, offset_std_w=0.0, noise_std_w=1e-3, rate_hz=1e4)
    assert noise.window_std_j(1.0, 1.0) == pytest.approx(1e-5)  # 1e4 samples of 1e-4 s: noise * dt * sqrt(n)
    with pytest.raises(ValueError, match="rate"):
        PowerUncertainty(gain_std=0.0, clock_std=0.0, offset_std_w=0.0, noise_std_w=0.0, rate_hz=0.0)


def test_a_scene_refuses_tracks_of_different_lengths() -> None:
    one, two = (Track(name="", unit="W", low=np.ones(n), high=np.ones(n), mean=np.ones(n)) for n in (1, 2))
    with pytest.raises(ValueError, match="bins"):
        Scene(
            label="",
            span_s=1.0,
            tracks=(one, two),
            slices=empty_slices(),
            bands=(),
            level=None,
            excerpts=(),
            open_s=(0.0, 1.0),
            period_s=None,
        )
