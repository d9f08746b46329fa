"""What every reader of recordings promises, over the whole registry."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from joulemap.errors import FormatError, InputError, JoulemapError, UsageError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.readers import READERS, reader, reader_names, sniff, sniff_scores
from reader_fuzz import change_one_value, different_values, fuzz_reader
from recording_files import READ_OPTIONS, SEEDS, SHARED, VALUE_FIELDS, shared_file

# Whose recordings the shared files are. A folder is one import.
KNOWN = {
    "generated/jls/v2_closed.jls": "jls",
    "generated/jls/v2_unclosed.jls": "jls",
    "generated/jls/v1.jls": "jls-v1",
    "joulescope/anno1.anno.jls": "jls",
    "generated/monsoon/pymonsoon.csv": "pymonsoon-csv",
    "generated/otii/Main current - Ace.csv": "otii-csv",
    "generated/otii/Main voltage - Ace.csv": "otii-csv",
    "generated/otii": "otii-csv",
    "generated/otii/proj": "otii3",
    "generated/otii/proj/proj.otii3": "otii3",
    "generated/sigrok/demo.sr": "sigrok",
    "generated/sigrok/csv.csv": "sigrok-csv",
    "generated/sigrok/csv_label_channel.csv": "sigrok-csv",
    "generated/sigrok/csv_time_true.csv": "sigrok-csv",
    "generated/sigrok/csv_time_true_label_channel_dedup_true.csv": "sigrok-csv",
    "generated/sigrok/analog_only_time.csv": "sigrok-csv",
    "generated/sigrok/fromsr_time.csv": "sigrok-csv",
    "generated/energytrace_recording/ledblink.etlog": "energytrace",
    "handmade/energy_probe/0000000000": "energy-probe",
    "handmade/joulescope/statistics.csv": "joulescope-csv",
    "handmade/joulescope/waveform_visible.csv": "joulescope-csv",
    "handmade/lpm01a/ascii_dec.txt": "lpm01a",
    "handmade/lpm01a/bin_hexa.bin": "lpm01a-binary",
    "handmade/monsoon/demo.pt4": "pt4",
    "handmade/monsoon/powertool5.csv": "powertool-csv",
    "handmade/otii/Main current - Ace.csv": "otii-csv",
    "handmade/powersensor3/dump.txt": "powersensor3",
    "handmade/ppk2/demo.ppk2": "ppk2",
    "handmade/ppk2/both_bit_columns.csv": "ppk2-csv",
    "handmade/ppk2/old_bits.csv": "ppk2-csv",
    "handmade/ppk2/plain.csv": "ppk2-csv",
    "handmade/saleae/analog.csv": "saleae-csv",
    "handmade/saleae/digital.csv": "saleae-csv",
    "handmade/saleae/analog_0.bin": "saleae",
    "handmade/saleae/digital_0.bin": "saleae",
    "handmade/scope/keysight.csv": "scope-csv",
    "handmade/scope/picoscope.csv": "scope-csv",
    "handmade/scope/rigol_ds1000z.csv": "scope-csv",
    "handmade/scope/siglent_new.csv": "scope-csv",
    "handmade/scope/siglent_old.csv": "scope-csv",
    "mlperf_inference/v2.0_NVIDIA_DGXA100_MaxQ_resnet50_Server": "mlperf-inference",
    "mlperf_inference/v2.0_NVIDIA_Orin_MaxQ_bert-99_SingleStream": "mlperf-inference",
    "mlperf_inference/v5.1_GATEOverflow_TRIGKEY_mobilenet128_offline/ranging/spl.txt": "mlperf-inference",
    "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic": "energyrunner",
    "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic/trace1-energy.bin": "energyrunner",
    "mlperf_tiny/v1.3_STM_NUCLEO-U575ZI-Q/kws/energy_results.json": "energyrunner-json",
}

IN_A_CHILD = {"jls"}
QUICK = {"jls": 50}

BUILT_HERE = sorted(SEEDS)


def options_of(name: str) -> ReadOptions:
    return ReadOptions(**READ_OPTIONS.get(name, {}))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def seeds() -> dict[str, bytes]:
    return {}


def seed_of(name: str, seeds: dict[str, bytes]) -> bytes:
    if name == "jls":
        pytest.importorskip("pyjls")
    if name not in seeds:
        seeds[name] = SEEDS[name]()
    return seeds[name]


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


@pytest.mark.parametrize("name", BUILT_HERE)
def test_a_seed_is_sniffed_as_its_own_and_read(name: str, seeds: dict[str, bytes], tmp_path: Path) -> None:
    body = seed_of(name, seeds)
    path = tmp_path / "seed.dat"  # a name that says nothing
    path.write_bytes(body)
    assert sniff(path).name == name
    digest = hashlib.sha256(body).hexdigest()
    recording = sniff(path).read(path, options_of(name))
    assert recording.format == name
    assert recording.traces
    assert [source.sha256 for source in recording.sources][:1] == [digest]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    for trace in recording.traces:
        assert all(0 <= bound <= trace.n for bound in trace.gaps.ravel().tolist())
        assert all(float(trace.power_w[a:b].sum()) == 0.0 for a, b in trace.gaps.tolist())


@pytest.mark.parametrize("name", BUILT_HERE)
def test_every_cut_of_a_seed_gives_a_recording_or_a_typed_error(
    name: str, seeds: dict[str, bytes], tmp_path: Path
) -> None:
    body = seed_of(name, seeds)
    found = reader(name)
    path = tmp_path / "cut"
    cuts = sorted({round(len(body) * k / 16) for k in range(16)})[: 5 if name in IN_A_CHILD else 16]
    for cut in cuts:
        path.write_bytes(body[:cut])
        try:
            outcome = found.read(path, options_of(name)).format
        except InputError as error:
            outcome = error.slug
        assert outcome
        assert outcome != "internal-fault"
        assert path.read_bytes() == body[:cut]


@pytest.mark.parametrize("name", BUILT_HERE)
def test_mutants_give_recordings_or_typed_errors(name: str, seeds: dict[str, bytes], tmp_path: Path) -> None:
    report = fuzz_reader(
        reader(name),
        seed_of(name, seeds),
        options_of(name),
        mutants=QUICK.get(name, 200),
        folder=tmp_path,
        draw=11,
    )
    assert not [why for _, why in report.failures]
    assert report.reached >= 0.3, report.outcomes
    assert report.largest_b <= 0


@pytest.mark.parametrize("name", sorted(VALUE_FIELDS))
def test_one_changed_value_changes_one_sample_or_is_said(name: str, seeds: dict[str, bytes], tmp_path: Path) -> None:
    body = seed_of(name, seeds)
    found = reader(name)
    path = tmp_path / "one"
    path.write_bytes(body)
    before = found.read(path, options_of(name))
    rng = random.Random(5)
    for _ in range(20):
        path.write_bytes(change_one_value(body, VALUE_FIELDS[name], rng))
        after = found.read(path, options_of(name))
        said = after.findings != before.findings
        differing = different_values(before, after)
        allowed = {1, 2} if name == "energytrace" else {1}  # a counter reading bounds two intervals
        assert said or differing in allowed, (differing, after.findings)


@pytest.mark.parametrize("relative", sorted(KNOWN))
def test_a_shared_recording_has_exactly_one_reader(relative: str) -> None:
    path = shared_file(*relative.split("/"))
    claims = [(score, found.name) for score, found in sniff_scores(path)]
    assert claims[0][1] == KNOWN[relative]
    assert all(score < claims[0][0] - 0.05 for score, _ in claims[1:])
    assert sniff(path).name == KNOWN[relative]


@pytest.mark.parametrize(
    "relative",
    [
        "facts/cells.json",
        "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic/trace1-timestamps.json",
        "mlperf_inference/v2.0_NVIDIA_Orin_MaxQ_bert-99_SingleStream/power/client.json",
        "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic/log.txt",
        "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic/results.txt",
    ],
)
def test_what_is_no_recording_has_no_reader(relative: str) -> None:
    path = shared_file(*relative.split("/"))
    with pytest.raises(FormatError) as caught:
        sniff(path)
    assert caught.value.slug == "format-unknown"


def test_every_shared_recording_of_an_instrument_is_listed_here() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared recordings are not here")
    rooms = ["energy_probe", "joulescope", "lpm01a", "monsoon", "powersensor3", "ppk2", "saleae", "scope"]
    there = {path.relative_to(SHARED).as_posix() for room in rooms for path in (SHARED / "handmade" / room).iterdir()}
    assert there <= set(KNOWN)


def test_two_readers_that_claim_alike_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "two"
    path.write_bytes(SEEDS["ppk2-csv"]())
    monkeypatch.setitem(READERS, "twin", READERS["ppk2-csv"])
    with pytest.raises(FormatError) as caught:
        sniff(path)
    assert caught.value.slug == "format-ambiguous"
    assert "ppk2-csv" in caught.value.message


def test_an_unknown_name_and_a_missing_path_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        reader("no-such-format")
    assert caught.value.slug == "format-name-unknown"
    with pytest.raises(InputError) as missing:
        sniff(tmp_path / "nothing")
    assert missing.value.slug == "recording-unreadable"
