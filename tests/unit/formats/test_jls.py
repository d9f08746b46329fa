"""JLS v2 through its own process: values, losses, salvage, and files that would hang or crash the library."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import random
import resource
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import FormatError, InputError, SetupError
from joulemap.formats.base import ReadOptions
from joulemap.formats.joulescope import jls_link
from joulemap.formats.joulescope.jls import JlsReader
from joulemap.formats.joulescope.jls_file import JLS_MAGIC, crc32c, last_whole_chunk, stated_length
from joulemap.formats.joulescope.jls_link import open_jls
from joulemap.records.recording import Recording
from joulemap.trace import ClockKind
from recording_files import shared_file, slugs, write_jls

pyjls = pytest.importorskip("pyjls")


def read(path: Path, **options: object) -> Recording:
    """Reads and checks that the file is the same afterwards."""
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        return JlsReader().read(path, ReadOptions(**options))  # type: ignore[arg-type]
    finally:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def write_signals(path: Path, signals: list[tuple[str, str, np.ndarray, int, int]], *, source: int = 1) -> None:
    """Writes float signals (name, unit, values, rate, source)."""
    writer = pyjls.Writer(str(path))
    for number in sorted({entry[4] for entry in signals} | {source}):
        writer.source_def(
            source_id=number, name="JS220", vendor="j", model="m", version="1", serial_number=f"00{number}"
        )
    for number, (name, units, _, rate_hz, owner) in enumerate(signals, 1):
        writer.signal_def(
            signal_id=number, source_id=owner, signal_type=pyjls.SignalType.FSR, data_type=pyjls.DataType.F32,
            sample_rate=rate_hz, samples_per_data=1000, sample_decimate_factor=10, entries_per_summary=100,
            summary_decimate_factor=10, name=name, units=units,
        )  # fmt: skip
    for at in range(0, max(entry[2].size for entry in signals), 500):  # side by side, as an instrument records
        for number, (_, _, values, _, _) in enumerate(signals, 1):
            if at < values.size:
                writer.fsr(number, at, values[at : at + 500].astype(np.float32))
    writer.close()


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


def test_an_unclosed_file_is_saved_on_a_copy() -> None:
    recording = read(shared_file("generated", "jls", "v2_unclosed.jls"), voltage_v=3.3)
    assert recording.traces[0].n == 12000
    assert float(recording.traces[0].power_w.mean()) == pytest.approx(0.033, rel=1e-6)
    finding = next(finding for finding in recording.findings if finding.slug == "recording_salvaged")
    assert "current 12000" in finding.message


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


@pytest.mark.parametrize("share", [0.15, 0.4, 0.6, 0.8, 0.97])
def test_a_file_cut_short_is_never_opened_itself_and_saved_as_far_as_it_goes(share: float, tmp_path: Path) -> None:
    write_signals(
        tmp_path / "a.jls",
        [("current", "A", np.full(40_000, 0.5), 1000, 1), ("voltage", "V", np.full(40_000, 2.0), 1000, 1)],
    )
    whole = (tmp_path / "a.jls").read_bytes()
    cut = tmp_path / "cut.jls"
    cut.write_bytes(whole[: int(len(whole) * share)])
    try:
        recording = read(cut)
    except FormatError as error:
        assert error.slug in {"jls-unrecoverable", "recording-empty", "jls-unreadable"}  # noqa: PT017
    else:
        assert "recording_salvaged" in slugs(recording)
        assert np.all(recording.traces[0].power_w == 1.0)


def test_a_damaged_block_is_a_gap_and_not_a_refused_file(tmp_path: Path) -> None:
    values = np.full(60_000, 0.5)
    write_signals(tmp_path / "a.jls", [("current", "A", values, 1000, 1), ("voltage", "V", values * 4, 1000, 1)])
    body = bytearray((tmp_path / "a.jls").read_bytes())
    at = 32
    payloads = []
    while at + 32 <= len(body):
        tag, (payload,) = body[at + 16], struct.unpack_from("<I", body, at + 20)
        if tag == 0x22:
            payloads.append((at + 32, payload))
        at += 32 + (0 if payload == 0 else (payload + 4 + 7) // 8 * 8)
    spot, payload = payloads[len(payloads) // 4]
    body[spot + payload // 2] ^= 0x55  # its checksum now fails
    (tmp_path / "b.jls").write_bytes(body)
    recording = read(tmp_path / "b.jls")
    assert "samples_unreadable" in slugs(recording)
    trace = recording.traces[0]
    assert 0 < trace.lost_samples < trace.n // 4
    kept = np.ones(trace.n, bool)
    for first, last in trace.gaps.tolist():
        kept[first:last] = False
    assert np.all(trace.power_w[kept] == 1.0)


def test_a_killed_writer_loses_its_buffer_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "killed.jls"
    script = (
        "import sys, os, numpy as np, pyjls\n"
        "w = pyjls.Writer(sys.argv[1])\n"
        "w.source_def(source_id=1, name='d', vendor='v', model='m', version='1', serial_number='1')\n"
        "for k, (n, u) in enumerate([('current', 'A'), ('voltage', 'V')], 1):\n"
        "    w.signal_def(signal_id=k, source_id=1, signal_type=pyjls.SignalType.FSR, data_type=pyjls.DataType.F32,\n"
        "                 sample_rate=100000, name=n, units=u)\n"
        "for at in range(0, 400_000, 20_000):\n"
        "    w.fsr(1, at, np.full(20_000, 0.5, np.float32)); w.fsr(2, at, np.full(20_000, 2.0, np.float32))\n"
        "w.flush()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False, capture_output=True, timeout=60)
    recording = read(path)
    assert recording.traces[0].n >= 400_000 - 10_000
    assert np.all(recording.traces[0].power_w == 1.0)


def test_header_corruptions_never_hang_crash_or_rewrite(tmp_path: Path) -> None:
    write_jls(tmp_path / "a.jls")
    whole = (tmp_path / "a.jls").read_bytes()
    rng = random.Random(3)
    outcomes = set()
    for _ in range(12):
        body = bytearray(whole)
        body[rng.randrange(32, min(len(body), 1500))] ^= 1 << rng.randrange(8)
        (tmp_path / "b.jls").write_bytes(body)
        try:
            outcomes.add(read(tmp_path / "b.jls").format)
        except InputError as error:
            outcomes.add(error.slug)
    assert outcomes <= {
        "jls",
        "jls-unreadable",
        "jls-unrecoverable",
        "recording-empty",
        "voltage-needed",
        "rates-differ",
    }


def test_the_length_field_decides_what_is_opened(tmp_path: Path) -> None:
    write_jls(tmp_path / "a.jls")
    body = (tmp_path / "a.jls").read_bytes()
    assert stated_length(body) == len(body)
    assert stated_length(body[:20]) == 0
    assert last_whole_chunk(tmp_path / "a.jls") == len(body)
    (tmp_path / "grown.jls").write_bytes(body + b"x" * 100)
    assert last_whole_chunk(tmp_path / "grown.jls") == len(body)
    recording = read(tmp_path / "grown.jls")
    assert "recording_salvaged" in slugs(recording)
    assert recording.traces[0].n == 400


def test_crc32c_has_its_known_answer() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_a_header_alone_cannot_be_saved(tmp_path: Path) -> None:
    (tmp_path / "a.jls").write_bytes(JLS_MAGIC + bytes(16))
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "a.jls")
    assert caught.value.slug in {"jls-unrecoverable", "jls-unreadable", "recording-empty"}


def test_a_missing_library_is_a_setup_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_jls(tmp_path / "a.jls")
    monkeypatch.setattr(jls_link, "find_spec", lambda _: None)
    with pytest.raises(SetupError, match="pyjls") as caught:
        read(tmp_path / "a.jls")
    assert "joulemap[joulescope]" in caught.value.hint


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    write_jls(tmp_path / "a.jls")
    cut = tmp_path / "cut.jls"
    cut.write_bytes((tmp_path / "a.jls").read_bytes()[:-200])
    read(cut)
    assert list(scratch.iterdir()) == []


def test_a_file_whose_damage_the_library_would_repair_in_place_stays_as_it_is(tmp_path: Path) -> None:
    write_jls(tmp_path / "a.jls")
    whole = (tmp_path / "a.jls").read_bytes()
    for at in range(len(whole) - 64, len(whole), 4):  # the last chunks are what the library looks at when it opens
        body = bytearray(whole)
        body[at] ^= 0x40
        (tmp_path / "b.jls").write_bytes(body)
        with contextlib.suppress(InputError):
            read(tmp_path / "b.jls")


def test_where_the_process_cannot_give_up_writing_a_copy_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jls(tmp_path / "a.jls")
    weak = tmp_path / "child.py"
    source = jls_link._CHILD.read_text().replace(
        "def _give_up_writing() -> bool:", "def _give_up_writing() -> bool:\n    return False\n", 1
    )
    weak.write_text(source)
    monkeypatch.setattr(jls_link, "_CHILD", weak)
    assert read(tmp_path / "a.jls").traces[0].n == 400


@pytest.mark.parametrize(
    ("hangs", "slug", "cut_b"),
    [
        ("reader = pyjls.Reader(path)", "jls-unreadable", 0),
        ("got = reader.fsr(signal, first + at, take)", "jls-unreadable", 0),
        ("pyjls.copy(words[1], words[2])", "jls-unrecoverable", 40),
    ],
    ids=["opening", "reading", "copying"],
)
def test_a_library_that_never_comes_back_is_ended_by_the_time_it_spent(
    hangs: str, slug: str, cut_b: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jls(tmp_path / "a.jls", 5000)
    if cut_b:
        (tmp_path / "a.jls").write_bytes((tmp_path / "a.jls").read_bytes()[:-cut_b])
    busy = tmp_path / "child.py"
    source = jls_link._CHILD.read_text()
    assert source.count(hangs) == 1
    busy.write_text(source.replace(hangs, "while True: pass"))
    monkeypatch.setattr(jls_link, "_CHILD", busy)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with pytest.raises(FormatError, match="all the processor time") as told:
        read(tmp_path / "a.jls")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert told.value.slug == slug
    assert after.ru_utime - before.ru_utime < 3.0  # it was ended by what it spent, not by a clock


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
