"""What every reader of recordings promises, over the whole registry."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from joulemap.errors import FormatError, InputError, JoulemapError, UsageError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.readers import READERS, reader, reader_names, sniff
from joulemap.records.recording import Recording
from reader_cases import CASES, IN_A_CHILD, Case
from reader_fuzz import fuzz_reader
from value_fields import changed_values

ALL = [(name, at) for name in reader_names() for at in range(len(CASES.get(name, ())))]


@cache
def files_of(name: str, at: int) -> Mapping[str, bytes]:
    return CASES[name][at].files()


def case_of(name: str, at: int = 0) -> tuple[Case, Mapping[str, bytes]]:
    return CASES[name][at], files_of(name, at)


def test_every_reader_has_a_seed_of_its_own() -> None:
    assert set(CASES) == set(reader_names())


@pytest.mark.parametrize("name", reader_names())
def test_a_reader_is_what_its_registry_line_says(name: str) -> None:
    found = reader(name)
    assert found.name == name
    assert found.certainty in Certainty
    assert isinstance(found.folders, bool)


@pytest.mark.parametrize("name", reader_names())
def test_a_reader_claims_nothing_that_is_empty_or_noise(name: str, tmp_path: Path) -> None:
    found = reader(name)
    path = tmp_path / "x"
    noise = random.Random(7).randbytes(65536)
    for body in (b"", b"\0" * 4096, noise, b"hello\n"):
        path.write_bytes(body)
        assert found.sniff(path, body) == 0.0


@pytest.mark.parametrize("name", reader_names())
def test_a_reader_refuses_what_it_cannot_read_with_a_typed_error(name: str, tmp_path: Path) -> None:
    found = reader(name)
    noise = random.Random(7).randbytes(4096)
    for number, body in enumerate((b"", b"\0" * 64, noise, b"hello\nworld\n", b"a,b\n1,2\n")):
        path = tmp_path / f"x{number}"
        path.write_bytes(body)
        with pytest.raises(JoulemapError) as caught:
            found.read(path, ReadOptions(voltage_v=3.3, rate_hz=1000.0))
        assert isinstance(caught.value, InputError)
        assert caught.value.slug != "internal-fault"
        assert caught.value.hint
        assert path.read_bytes() == body


@pytest.mark.parametrize(("name", "at"), ALL)
def test_a_seed_is_sniffed_as_its_own_and_read(name: str, at: int, tmp_path: Path) -> None:
    case, files = case_of(name, at)
    path = case.write(tmp_path, files)
    assert sum(map(len, files.values())) <= 8192
    found = sniff(path)
    assert found.name == name
    recording = found.read(path, case.options)
    assert recording.format == name
    assert recording.traces or recording.timelines or recording.totals or recording.lanes
    digests = {sha256(body).hexdigest() for body in files.values()}
    assert recording.sources
    assert {source.sha256 for source in recording.sources} <= digests
    assert {name: (tmp_path / name).read_bytes() for name in files} == files
    for trace in recording.traces:
        assert all(0 <= bound <= trace.n for bound in trace.gaps.ravel().tolist())
        assert all(float(trace.power_w[a:b].sum()) == 0.0 for a, b in trace.gaps.tolist())


BLANKS_MEAN_SOMETHING = {"turbostat", "powermetrics-plist", "carbontracker"}


def is_plain_text(name: str, at: int) -> bool:
    """A single file of text whose blank lines mean nothing."""
    body, *more = files_of(name, at).values()
    return not more and b"\0" not in body and body.isascii() and name not in BLANKS_MEAN_SOMETHING


TEXTS = [case for case in ALL if is_plain_text(*case)]


def content(recording: Recording) -> tuple[object, ...]:
    return (
        [trace.power_w.tolist() for trace in recording.traces],
        [trace.edges_ns is not None and trace.edges_ns.tolist() for trace in recording.traces],
        [(lane.time_ns.tolist(), str(lane.value.tolist())) for lane in recording.lanes],
        [list(timeline) for timeline in recording.timelines],
        [total.value for total in recording.totals],
    )


@pytest.mark.parametrize(("name", "at"), TEXTS)
@pytest.mark.parametrize("ends", ["crlf", "blank lines and a byte order mark"])
def test_line_ends_and_blank_lines_change_nothing(name: str, at: int, ends: str, tmp_path: Path) -> None:
    case, files = case_of(name, at)
    body = next(iter(files.values()))
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(body)
    plain = body.replace(b"\r\n", b"\n")
    changed = plain.replace(b"\n", b"\r\n") if ends == "crlf" else b"\xef\xbb\xbf" + plain.replace(b"\n", b"\n\n")
    second.write_bytes(changed)
    assert sniff(second).name == name
    one, two = (reader(name).read(path, case.options) for path in (first, second))
    assert content(one) == content(two)


@pytest.mark.parametrize(("name", "at"), ALL)
def test_every_cut_of_a_seed_gives_a_recording_or_a_typed_error(name: str, at: int, tmp_path: Path) -> None:
    case, files = case_of(name, at)
    found = reader(name)
    path = case.write(tmp_path, files)
    for file, body in files.items():
        for cut in sorted({round(len(body) * k / 16) for k in range(16)})[: 5 if name in IN_A_CHILD else 16]:
            (tmp_path / file).write_bytes(body[:cut])
            try:
                outcome = found.read(path, case.options).format
            except InputError as error:
                outcome = error.slug
            assert outcome
            assert outcome != "internal-fault"
            assert (tmp_path / file).read_bytes() == body[:cut]
        (tmp_path / file).write_bytes(body)


@pytest.mark.parametrize("name", reader_names())
def test_mutants_give_recordings_or_typed_errors(name: str, tmp_path: Path) -> None:
    case_of(name)
    child = name in IN_A_CHILD
    report = fuzz_reader(reader(name), CASES[name], mutants=50 if child else 200, folder=tmp_path, draw=11, child=child)
    assert report.failures == []
    assert report.reached >= 0.3, report.outcomes
    assert report.late_s <= 0.0
    assert report.excess_b <= 0


@pytest.mark.parametrize("name", reader_names())
def test_one_changed_value_changes_one_value_or_is_said(name: str, tmp_path: Path) -> None:
    at = next(at for at, case in enumerate(CASES[name]) if case.value)
    case, files = case_of(name, at)
    assert case.value is not None
    file, change = case.value
    path = case.write(tmp_path, files)
    found = reader(name)
    before = found.read(path, case.options)
    rng = random.Random(5)
    for _ in range(8 if name in IN_A_CHILD else 20):
        (tmp_path / file).write_bytes(change(files[file], rng))
        after = found.read(path, case.options)
        most, _ = changed_values(before, after)
        assert after.findings != before.findings or 0 < most <= case.changed, (most, after.findings)


def test_two_readers_that_claim_alike_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, files = case_of("ppk2-csv")
    monkeypatch.setitem(READERS, "twin", READERS["ppk2-csv"])
    with pytest.raises(FormatError) as caught:
        sniff(case.write(tmp_path, files))
    assert caught.value.slug == "format-ambiguous"
    assert "ppk2-csv" in caught.value.message


def test_an_unknown_name_and_a_missing_path_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        reader("no-such-format")
    assert caught.value.slug == "format-name-unknown"
    with pytest.raises(InputError) as missing:
        sniff(tmp_path / "nothing")
    assert missing.value.slug == "recording-unreadable"
