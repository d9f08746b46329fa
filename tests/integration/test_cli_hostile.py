"""Inputs and outputs that nobody means: what is read stays whole, and what is no number is refused."""

from __future__ import annotations

import math
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from joulemap.formats.base import ReadOptions
from joulemap.workflow.recordings.import_recording import ImportRequest, import_recordings
from program import Called, call, leftovers

POWER_W = 5.0
COLUMNS = ("--column", "time=time (s)", "--column", "power=power (W)", "--unit", "time=s", "--unit", "power=W")


def power_file(folder: Path, text: str = "5", count: int = 1001) -> Path:
    path = folder / "power.csv"
    path.write_text("time (s),power (W)\n" + "".join(f"{k / 100},{text}\n" for k in range(count)))
    return path


def slice_file(folder: Path, name: str = "conv") -> Path:
    path = folder / "slices.jsonl"
    path.write_text(f'{{"start_ns": 1000000000, "end_ns": 3000000000, "name": "{name}"}}\n' * 1)
    return path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    made = tmp_path / "run.jm"
    called = call("import", power_file(tmp_path), slice_file(tmp_path), *COLUMNS, "-o", made)
    assert called.code == 0, called.err
    return made


def told(called: Called, code: int, slug: str) -> None:
    assert called.code == code, called.err
    assert f"docs/errors.md#{slug} (exit {code})" in called.err


def written(bundle: Path, output: Path) -> list[Called]:
    return [
        call("report", bundle, "--offset", "0", "--html", output, "--force"),
        call("report", bundle, "--offset", "0", "--markdown", output, "--force"),
        call("export", bundle, "--offset", "0", "--to", "csv", "-o", output, "--force"),
        call("export", bundle, "--offset", "0", "--to", "csv", "--table", "-o", output, "--force"),
    ]


@pytest.mark.parametrize("part", ["manifest.json", "result.json", "new.csv"])
def test_no_output_goes_into_the_bundle_that_is_read(bundle: Path, part: str) -> None:
    before = {file: file.read_bytes() for file in bundle.rglob("*") if file.is_file()}
    for called in written(bundle, bundle / part):
        told(called, 2, "output-exists")
    assert {file: file.read_bytes() for file in bundle.rglob("*") if file.is_file()} == before


def test_a_pipe_is_never_replaced_by_an_output(bundle: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for called in written(bundle, pipe):
        told(called, 2, "output-exists")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_recording_that_is_referred_to_is_never_replaced(tmp_path: Path) -> None:
    power = power_file(tmp_path)
    options = ReadOptions(columns={"time": "time (s)", "power": "power (W)"}, units={"time": "s", "power": "W"})
    made = tmp_path / "run.jm"
    import_recordings(ImportRequest(paths=(power, slice_file(tmp_path)), options=options, embed_limit_b=1), made)
    before = power.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(power)
    for called in (*written(made, power), *written(made, link)):
        told(called, 2, "output-exists")
    assert power.read_bytes() == before


def test_page_and_markdown_are_two_files(bundle: Path, tmp_path: Path) -> None:
    other = f"{tmp_path}/./page"
    told(
        call("report", bundle, "--offset", "0", "--html", tmp_path / "page", "--markdown", other), 2, "flags-contradict"
    )
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize("flags", [(), ("--format", "csv")])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, flags: tuple[str, ...]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    told(call("import", pipe, *flags, *COLUMNS, "-o", tmp_path / "run.jm"), 6, "recording-unreadable")
    assert leftovers(tmp_path) == ["pipe"]


def test_a_recording_is_imported_once(tmp_path: Path) -> None:
    power = power_file(tmp_path)
    again = tmp_path / "again.csv"
    again.symlink_to(power)
    told(call("import", power, again, *COLUMNS, "-o", tmp_path / "run.jm"), 2, "flags-contradict")


@pytest.mark.parametrize("flag", ["--column", "--unit"])
def test_a_role_that_no_reader_knows_is_refused(tmp_path: Path, flag: str) -> None:
    called = call("import", power_file(tmp_path), *COLUMNS, flag, "tiem=s", "-o", tmp_path / "run.jm")
    told(called, 2, "flag-form")
    assert "power, time" in called.err


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400"])
def test_flags_that_are_no_number_are_usage(bundle: Path, tmp_path: Path, value: str) -> None:
    power = tmp_path / "power.csv"
    for called in (
        call("import", power, *COLUMNS, "--voltage", value, "-o", tmp_path / "new.jm"),
        call("import", power, *COLUMNS, "--rate", value, "-o", tmp_path / "new.jm"),
        call("map", bundle, f"--offset={value}"),
        call("export", bundle, f"--offset={value}", "--to", "csv", "-o", tmp_path / "new.csv"),
    ):
        assert called.code == 2, called.err
    assert call("map", bundle, "--offset=1e30").code == 2


def test_half_a_surrogate_in_a_name_is_shown_as_its_escape(tmp_path: Path) -> None:
    made = tmp_path / "run.jm"
    assert call("import", power_file(tmp_path), slice_file(tmp_path, "a\\ud800b"), *COLUMNS, "-o", made).code == 0
    called = call("map", made, "--offset", "0", "--json")
    row = called.json["rows"][0]
    assert row["key"] == "a\\ud800b"
    assert row["energy_j"]["value"] == pytest.approx(2.0 * POWER_W, rel=1e-12)
    for called in written(made, tmp_path / "out"):
        assert called.code == 0, called.err


def test_a_name_without_end_does_not_fill_the_terminal(tmp_path: Path) -> None:
    made = tmp_path / "run.jm"
    assert call("import", power_file(tmp_path), slice_file(tmp_path, "n" * 50_000), *COLUMNS, "-o", made).code == 0
    called = call("map", made, "--offset", "0")
    assert called.code == 0
    assert max(map(len, called.out.splitlines())) < 200
    refused = call("map", made, "--offset", "0", "--per", "nope")
    assert refused.code == 6
    assert max(map(len, refused.err.splitlines())) <= 2000


def test_what_the_pattern_of_repetitions_does_not_find_is_said_as_it_was_given(bundle: Path) -> None:
    called = call("map", bundle, "--offset", "0", "--in-place", "{layer} x{k}")
    told(called, 6, "no-such-slices")
    assert "'{layer} x{k}'" in called.err


def test_a_duty_cycle_of_one_unit_has_the_reason_of_its_unit(bundle: Path) -> None:
    called = call("map", bundle, "--offset", "0", "--per", "conv", "--duty", "10s", "--json")
    assert called.json["metrics"]["duty_average_w"]["reason"] == "single_unit"


def test_a_working_folder_that_is_gone_is_an_environment_error(tmp_path: Path) -> None:
    power = power_file(tmp_path)
    script = (
        "import os, sys, tempfile; gone = tempfile.mkdtemp(dir=sys.argv[1]); os.chdir(gone); os.rmdir(gone);"
        "from joulemap.cli.main import run; sys.exit(run(['import', sys.argv[2], *sys.argv[3:], '-o', 'run.jm']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path, power, *COLUMNS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "the current folder was removed" in done.stderr


def two_powers(folder: Path, text: str) -> Path:
    """A bundle of 1001 samples of that text at 100 Hz and two seconds of work."""
    made = folder / "run.jm"
    called = call("import", power_file(folder, text), slice_file(folder), *COLUMNS, "-o", made)
    assert called.code == 0, called.err
    return made


def test_a_trace_that_is_all_lost_has_no_number_anywhere(tmp_path: Path) -> None:
    made = two_powers(tmp_path, "nan")
    document = call("map", made, "--offset", "0", "--json").json
    assert document["validity"] == "degraded"
    for key in ("total_j", "idle_j", "power_w"):
        assert document[key] == {"value": None, "provenance": "unavailable", "reason": "samples_lost"}
    assert document["rows"][0]["energy_j"]["value"] is None
    assert " J" not in call("map", made, "--offset", "0").out
    output = tmp_path / "out"
    assert call("export", made, "--offset", "0", "--to", "csv", "-o", output).code == 0
    assert output.read_text().splitlines()[1] == "1000000000,3000000000,conv,,,,,,refused,unavailable,table/monotonic"


@pytest.mark.parametrize("text", ["1e300", "-1.7e308", "1e16"])
def test_power_beyond_belief_is_a_gap(tmp_path: Path, text: str) -> None:
    power = power_file(tmp_path)
    lines = power.read_text().splitlines()
    lines[51] = f"0.5,{text}"
    power.write_text("\n".join(lines) + "\n")
    made = tmp_path / "run.jm"
    assert call("import", power, slice_file(tmp_path), *COLUMNS, "-o", made).code == 0
    document = call("map", made, "--offset", "0", "--json").json
    assert document["total_j"]["value"] == pytest.approx(1000 * 0.01 * POWER_W, rel=1e-12)
    lost = next(f for f in document["findings"] if f["slug"] == "samples_lost")
    assert "1 of 1001 samples" in lost["message"]
    assert lost["span"] == "sample 50"


def test_power_of_nothing_is_zero_in_every_form(tmp_path: Path) -> None:
    made = two_powers(tmp_path, "0")
    called = call("map", made, "--offset", "0", "--json")
    assert not called.err
    assert called.json["rows"][0]["energy_j"]["value"] == 0.0
    for called in written(made, tmp_path / "out"):
        assert called.code == 0, called.err
    output = tmp_path / "out.csv"
    assert call("export", made, "--offset", "0", "--to", "csv", "-o", output).code == 0
    assert (
        output.read_text().splitlines()[1]
        == "1000000000,3000000000,conv,,,0.0,0.0,,overlap,measured_sampled,table/monotonic"
    )


def test_samples_that_show_no_noise_have_the_interval_of_their_last_digit(tmp_path: Path) -> None:
    made = two_powers(tmp_path, "5")
    document = call("map", made, "--offset", "0", "--json").json
    assert document["total_j"]["value"] == pytest.approx(1001 * 0.01 * POWER_W, rel=1e-12)
    assert "noise_not_seen" not in {f["slug"] for f in document["findings"]}
    assert document["total_j"]["std"] == pytest.approx(1001 * 0.01 / math.sqrt(12), rel=1e-3)  # a watt, rounded
    known = call("map", made, "--offset", "0", "--instrument", "hlw8012", "--json").json
    assert "noise_not_seen" not in {f["slug"] for f in known["findings"]}
    assert known["total_j"]["std"] > document["total_j"]["std"]


def test_two_samples_have_an_interval(tmp_path: Path) -> None:
    power = tmp_path / "power.csv"
    power.write_text("time (s),power (W)\n0,5\n1,6\n")
    made = tmp_path / "run.jm"
    assert call("import", power, *COLUMNS, "-o", made).code == 0
    total = call("map", made, "--json").json["total_j"]
    assert total["value"] == pytest.approx(11.0, rel=1e-12)
    assert total["std"] >= 1.0 - 1e-12  # noise of 1 W / sqrt 2 in each of two samples of 1 s


@pytest.mark.parametrize("to", ["perfetto", "chrome", "csv", "parquet"])
@pytest.mark.parametrize("flags", [(), ("--table",)])
def test_what_was_simulated_says_so_in_every_export(tmp_path: Path, to: str, flags: tuple[str, ...]) -> None:
    made, output = tmp_path / "run.jm", tmp_path / "out"
    meter = "simulated:mean_w=20,name=rail"
    assert call("record", "--meter", meter, "--rate", "100", "-o", made, "--", "sleep", "0.2").code == 0
    called = call("export", made, "--to", to, *flags, "-o", output)
    if flags and to in ("perfetto", "chrome"):
        assert called.code == 2
        return
    assert called.code == 0, called.err
    if to == "parquet":
        words = set(pq.read_table(output)["provenance"].to_pylist())
        assert "simulated" in words
        assert not [word for word in words if word.startswith("measured")]
    else:
        text = output.read_bytes().decode("utf-8", "replace")
        assert "simulated" in text.replace("simulated:rail", "").replace("simulated-rail", "")
        assert "measured" not in text


def test_an_interrupt_while_sampling_starts_leaves_nothing(tmp_path: Path) -> None:
    script = "import sys; from joulemap.cli.main import main; main()"
    arguments = ("record", "--meter", "simulated:mean_w=20", "-o", "run.jm", "--", "sleep", "60")
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], cwd=tmp_path, stderr=subprocess.PIPE)
    capture = tmp_path / "run.jm.live" / "capture.jmc"
    deadline_s = time.monotonic() + 60
    while not capture.exists() and time.monotonic() < deadline_s:
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    if process.returncode == 130:  # else the command ran already, and its recording is whole
        assert b"nothing was left behind" in err
        assert leftovers(tmp_path) == []
    else:
        assert leftovers(tmp_path) == ["run.jm"]
