"""JLS v2 through its own process: values, losses, marks, clocks, and streams in parts."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

from jls_files import read, write_jls, write_signals
from joulemap.errors import FormatError, InputError, SetupError
from joulemap.formats.base import ReadOptions
from joulemap.formats.joulescope import jls_link
from joulemap.formats.joulescope.jls import JlsReader
from joulemap.formats.joulescope.jls_link import open_jls
from joulemap.trace import ClockKind
from recording_files import shared_file, slugs


def test_a_whole_recording_has_power_line_marks_and_utc() -> None:
    recording = read(shared_file("generated", "jls", "v2_closed.jls"))
    (trace,) = recording.traces
    t = np.arange(5000) / 1000
    expected = (0.01 + 0.005 * np.sin(2 * np.pi * 5 * t)).astype(np.float32).astype(float) * np.float32(3.3)
    kept = np.ones(5000, bool)
    kept[2000:2100] = False
    assert np.allclose(trace.power_w[kept], expected[kept], rtol=2e-7)
    assert trace.gaps.tolist() == [[2000, 2100]]
    assert (trace.period_s, trace.n) == (1e-3, 5000)
    assert trace.clock.kind is ClockKind.UTC
    assert trace.start_ns == 1767323045 * 10**9  # 2026-01-02 03:04:05 UTC
    gate, marker = recording.timelines
    assert gate.names == ("gpi[0] high",)
    assert [(one.start_ns - trace.start_ns) // 10**6 for one in gate] == [500, 1500, 2500, 3500, 4500]
    assert marker.names == ("marker 1",)
    assert [(one.start_ns - trace.start_ns, one.end_ns - trace.start_ns) for one in marker] == [(10**9, 1_500_000_000)]
    tracks = {track.name: track for track in recording.markers}
    assert len(tracks["gpi[0]"].markers) == 9
    assert [mark.name for mark in tracks["annotations"].markers] == ["text at 0.5 s", "1a", "1b"]
    assert {"samples_lost", "line_high_at_edge"} == slugs(recording)


def test_an_annotation_file_has_marks_and_no_power() -> None:
    recording = read(shared_file("joulescope", "anno1.anno.jls"))
    assert recording.traces == ()
    (track,) = recording.markers
    assert (track.markers[0].time_ns, track.markers[0].name) == (1347602000, "Hello")
    assert [(one.start_ns, one.end_ns) for one in recording.timelines[0]] == [(1869255000, 2434378000)]


def test_without_utc_entries_time_is_relative_and_not_2018(tmp_path: Path) -> None:
    write_jls(tmp_path / "a.jls", utc=False)
    recording = read(tmp_path / "a.jls")
    assert recording.traces[0].start_ns == 0
    assert recording.traces[0].clock.kind is ClockKind.SAMPLE_INDEX
    assert "utc_missing" in slugs(recording)


def test_utc_entries_beyond_any_time_are_not_taken(tmp_path: Path) -> None:
    write_jls(tmp_path / "a.jls", utc=False, far_utc=True)
    recording = read(tmp_path / "a.jls")
    assert recording.traces[0].start_ns == 0
    assert "utc_missing" in slugs(recording)


def test_nan_runs_are_missing_time_and_not_zero(tmp_path: Path) -> None:
    write_jls(tmp_path / "a.jls", 400)
    trace = read(tmp_path / "a.jls").traces[0]
    assert trace.gaps.tolist() == [[200, 220]]
    assert trace.lost_samples == 20


def test_a_power_signal_is_preferred_and_instruments_stay_apart(tmp_path: Path) -> None:
    ones = np.ones(2000)
    write_signals(
        tmp_path / "a.jls",
        [("current", "A", ones, 1000, 1), ("voltage", "V", ones * 3, 1000, 1), ("power", "W", ones * 2.5, 1000, 1),
         ("current", "A", ones * 2, 1000, 2), ("voltage", "V", ones * 5, 1000, 2)],
    )  # fmt: skip
    recording = read(tmp_path / "a.jls")
    assert {trace.channel.name: float(trace.power_w[0]) for trace in recording.traces} == {
        "JS220-001 power": 2.5,
        "JS220-002 power": 10.0,
    }


def test_a_current_alone_needs_the_supply(tmp_path: Path) -> None:
    write_signals(tmp_path / "a.jls", [("current", "A", np.ones(2000), 1000, 1)])
    with pytest.raises(InputError) as caught:
        read(tmp_path / "a.jls")
    assert caught.value.slug == "voltage-needed"
    assert float(read(tmp_path / "a.jls", voltage_v=1.8).traces[0].power_w[0]) == pytest.approx(1.8)


def test_a_signal_with_another_unit_is_not_taken_for_its_name(tmp_path: Path) -> None:
    write_signals(tmp_path / "a.jls", [("current", "LSB", np.ones(2000), 1000, 1)])
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "a.jls", voltage_v=1.8)
    assert caught.value.slug == "recording-empty"


def test_signals_of_two_rates_are_refused(tmp_path: Path) -> None:
    write_signals(
        tmp_path / "a.jls", [("current", "A", np.ones(2000), 1000, 1), ("voltage", "V", np.ones(200), 100, 1)]
    )
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "a.jls")
    assert caught.value.slug == "rates-differ"


def test_signals_of_two_lengths_keep_what_is_common(tmp_path: Path) -> None:
    write_signals(
        tmp_path / "a.jls", [("current", "A", np.ones(2000), 1000, 1), ("voltage", "V", np.ones(1500), 1000, 1)]
    )
    recording = read(tmp_path / "a.jls")
    assert recording.traces[0].n == 1500
    assert "signals_differ_in_length" in slugs(recording)


def test_a_long_file_streams_in_several_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jls_link, "_CHUNK", 1 << 12)
    values = np.arange(50_000) / 65536
    write_signals(
        tmp_path / "a.jls", [("current", "A", values, 1000, 1), ("voltage", "V", np.full(50_000, 2.0), 1000, 1)]
    )
    power_w = read(tmp_path / "a.jls").traces[0].power_w
    assert np.array_equal(power_w, (values.astype(np.float32) * 2).astype(np.float32))


def test_the_stream_gives_chunks_in_order_with_two_signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jls_link, "_CHUNK", 1 << 10)
    write_jls(tmp_path / "a.jls", 5000)
    with open_jls(tmp_path / "a.jls") as session:
        current, voltage = session.signals[:2]
        stream = session.stream((current, voltage), (100, 100), 4000)
        seen = [(at, arrays[0].size, float(arrays[1][0])) for at, arrays, _ in stream]
    assert [at for at, _, _ in seen] == [0, 1024, 2048, 3072]
    assert sum(size for _, size, _ in seen) == 4000
    assert all(volts == pytest.approx(3.3) for _, _, volts in seen)


def test_a_missing_library_is_a_setup_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_jls(tmp_path / "a.jls")
    monkeypatch.setattr(jls_link, "find_spec", lambda _: None)
    with pytest.raises(SetupError, match="pyjls") as caught:
        read(tmp_path / "a.jls")
    assert "joulemap[joulescope]" in caught.value.hint


def test_a_stream_left_or_entered_twice_does_not_disturb_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jls_link, "_CHUNK", 1 << 9)
    write_jls(tmp_path / "a.jls", 5000)
    (trace,) = JlsReader().open_traces(tmp_path / "a.jls", ReadOptions())
    whole = [factors[0].copy() for _, factors in trace.source.stream(0, trace.n)]
    assert sum(part.size for part in whole) == 5000
    for _ in trace.source.stream(0, trace.n):
        break  # replies are under way when it is left
    inner = []
    outer = []
    for _, factors in trace.source.stream(0, 2000):
        outer.append(factors[0].copy())
        inner.append(trace.load(100, 300).power_w)
    assert np.array_equal(np.concatenate(outer), np.concatenate(whole)[:2000], equal_nan=True)
    assert all(np.array_equal(part, inner[0]) for part in inner)
    assert trace.load(100, 300).power_w[0] == pytest.approx((0.01 + 100e-5) * 3.3, rel=1e-6)


def test_a_process_ends_with_the_trace_that_it_serves(tmp_path: Path) -> None:
    write_jls(tmp_path / "a.jls", 1000)
    (trace,) = JlsReader().open_traces(tmp_path / "a.jls", ReadOptions())
    trace.load(0, 10)
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
    assert any(b"jls_child" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children)
    del trace
    gc.collect()
    left = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
    assert not any(b"jls_child" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left)


def test_the_product_is_formed_in_float64(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    current, voltage = rng.random(3000).astype(np.float32), rng.random(3000).astype(np.float32)
    write_signals(tmp_path / "a.jls", [("current", "A", current, 1000, 1), ("voltage", "V", voltage, 1000, 1)])
    (trace,) = read(tmp_path / "a.jls").traces
    assert trace.power_w.dtype == np.float64
    assert np.array_equal(trace.power_w, current.astype(float) * voltage.astype(float))
    write_signals(tmp_path / "b.jls", [("power", "W", current, 1000, 1)])
    assert read(tmp_path / "b.jls").traces[0].power_w.dtype == np.float32
