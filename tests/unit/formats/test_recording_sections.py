"""Sections of an imported recording: what is written is what is read, and damage is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import ReadOptions
from joulemap.formats.bundle import Bundle, read_bundle
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.formats.registry import (
    add_lane,
    add_markers,
    add_published,
    add_recordings,
    add_timeline,
    load_lane,
    load_markers,
    load_published,
    load_recordings,
    load_timeline,
)
from joulemap.formats.sections.marker_json import parse_markers
from joulemap.formats.sections.recording_json import RecordingEntry, TraceEntry, parse_entries
from joulemap.records.finding import Finding, Severity
from joulemap.records.published import EnergyrunnerRun, EnergyrunnerTrial, EnergyrunnerTrials, MlperfRun
from joulemap.records.recording import Lane, MarkerTrack, SourceFile, StatedTotal
from joulemap.trace import Clock, ClockKind, EdgeDirection, Marker, Slice, Timeline

CLOCK = Clock(name="c", kind=ClockKind.UTC, resolution_ns=1e6, rate_std_ppm=3.0)


def writer(target: Path) -> BundleWriter:
    return BundleWriter(target, kind="recording", run_id="r", tool={"name": "t"}, created="2026-01-01T00:00:00+00:00")


def written(target: Path, add: object) -> Bundle:
    with writer(target) as bundle:
        add(bundle)  # type: ignore[operator]
        bundle.commit(validity="valid")
    return read_bundle(target)


def test_a_lane_comes_back_with_its_missing_samples(tmp_path: Path) -> None:
    lane = Lane(name="gpu 0", unit="1", clock=CLOCK, time_ns=np.array([1, 5, 9]), value=np.array([0.5, np.nan, 1.0]))
    back = load_lane(written(tmp_path / "b.jm", lambda w: add_lane(w, "lanes/x.parquet", lane)), "lanes/x.parquet")
    assert (back.name, back.unit, back.clock) == (lane.name, lane.unit, lane.clock)
    assert back.time_ns.tolist() == [1, 5, 9]
    np.testing.assert_array_equal(back.value, lane.value)


def test_markers_come_back(tmp_path: Path) -> None:
    marks = (
        Marker(time_ns=10**18 + 1, name="gpi0", direction=EdgeDirection.RISE),
        Marker(time_ns=2 * 10**18, name="x"),
    )
    tracks = (MarkerTrack(name="a", clock=CLOCK, markers=marks),)
    bundle = written(tmp_path / "b.jm", lambda w: add_markers(w, "markers/1.json", tracks))
    assert load_markers(bundle, "markers/1.json") == tracks
    with pytest.raises(FormatError):
        parse_markers({"tracks": [{"name": "a", "clock": {}, "markers": []}]})


@pytest.mark.parametrize("number", range(3))
def test_what_a_published_rule_needs_comes_back_bit_for_bit(number: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    run = (
        MlperfRun(time_ns=np.array([5, 4, 9]), power_w=rng.normal(size=3), begin_ns=1, end_ns=9, scenario="Offline",
                  queries=None, samples_per_query=7),
        EnergyrunnerRun(
            energy_uj=rng.normal(size=5).astype(np.float32), rate_hz=1000.0, stamps_s=(0.1, 0.30000000000004)
        ),
        EnergyrunnerTrials(trials=tuple(
            EnergyrunnerTrial(energy_j=rng.normal(size=n), begin=1, end=n, iterations=n) for n in (3, 5))),
    )[number]  # fmt: skip
    back = load_published(written(tmp_path / "b.jm", lambda w: add_published(w, "p.parquet", run)), "p.parquet")
    assert type(back) is type(run)
    assert repr(back) == repr(run)


def test_the_list_of_recordings_comes_back(tmp_path: Path) -> None:
    entry = RecordingEntry(
        format="csv",
        embedded=False,
        root="../data/p.csv",
        options=ReadOptions(columns={"time": "t"}, units={"time": "ms"}, voltage_v=3.3, utc_offset_s=-3600.0),
        sources=(SourceFile(name="p.csv", size_b=7, sha256="0" * 64),),
        traces=(TraceEntry(name="power", channel="power"),),
        timelines=("timelines/x.parquet",),
        totals=(StatedTotal(key="energy_j", value=1.5, provenance=Provenance.ESTIMATED, boundary=Boundary.NODE),),
        overlaps=(("core", "package"),),
        metadata={"a": "b"},
        findings=(Finding(slug="s", severity=Severity.INFO, message="m", span="line 3"),),
    )
    assert load_recordings(written(tmp_path / "b.jm", lambda w: add_recordings(w, [entry]))) == (entry,)
    with pytest.raises(FormatError):
        parse_entries({"recordings": [{"format": "csv"}]})


def test_words_of_a_timeline_stand_in_order_of_first_use(tmp_path: Path) -> None:
    slices = [Slice(name=name, start_ns=k, end_ns=k + 1, track=f"t{k % 2}") for k, name in enumerate("zabza")]
    timeline = Timeline.from_slices(CLOCK, slices)
    unused = Timeline(
        clock=CLOCK, start_ns=timeline.start_ns, end_ns=timeline.end_ns, name_index=timeline.name_index + 1,
        names=("never", *timeline.names), track_index=timeline.track_index, tracks=timeline.tracks,
        kind_index=timeline.kind_index, kinds=timeline.kinds,
    )  # fmt: skip
    back = load_timeline(written(tmp_path / "b.jm", lambda w: add_timeline(w, unused)))
    assert back.names == ("z", "a", "b")
    assert list(back) == slices
