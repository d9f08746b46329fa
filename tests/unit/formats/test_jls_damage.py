"""JLS v2 files that are unclosed, cut, damaged, or would hang or crash the library."""

from __future__ import annotations

import contextlib
import random
import resource
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from jls_files import read, write_jls, write_signals
from joulemap.errors import FormatError, InputError
from joulemap.formats.joulescope import jls_link
from joulemap.formats.joulescope.jls_file import JLS_MAGIC, crc32c, last_whole_chunk, stated_length
from recording_files import shared_file, slugs


def test_an_unclosed_file_is_saved_on_a_copy() -> None:
    recording = read(shared_file("generated", "jls", "v2_unclosed.jls"), voltage_v=3.3)
    assert recording.traces[0].n == 12000
    assert float(recording.traces[0].power_w.mean()) == pytest.approx(0.033, rel=1e-6)
    finding = next(finding for finding in recording.findings if finding.slug == "recording_salvaged")
    assert "current 12000" in finding.message


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
