"""What a newcomer does first: help, the example recording of the README, and the step that each output names next."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from program import Called, call

EXAMPLE = Path(__file__).parents[2] / "examples" / "make_recording.py"
TRUTH_J = {
    "conv1": 40 * 0.060 * 2.4,
    "depthwise1": 40 * 0.025 * 1.5,
    "conv2": 40 * 0.080 * 2.7,
    "softmax": 40 * 0.004 * 1.1,
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Called]:
    folder = tmp_path_factory.mktemp("example")
    subprocess.run([sys.executable, str(EXAMPLE), str(folder)], check=True, timeout=60, capture_output=True)
    called = call("import", folder / "power.csv", folder / "profile.json", "-o", folder / "recording.jm")
    assert called.code == 0, called.err
    return folder / "recording.jm", called


@pytest.mark.parametrize("command", ["profile", "map", "report", "export", "record", "watch", "import"])
def test_help_shows_no_default_that_is_none(command: str) -> None:
    called = call(command, "--help")
    assert called.code == 0
    assert '[default: ""]' not in called.out
    assert "[default: 0]" not in called.out.split("-v ")[1].split("--quiet")[0]


def test_the_example_is_what_the_readme_says(bundle: tuple[Path, Called]) -> None:
    path, called = bundle
    assert called.out.splitlines()[-1] == f"next    joulemap map {path}"
    refused = call("map", path)
    assert refused.code == 5
    assert "--align correlate" in refused.err
    for flags in (("--align", "correlate"), ("--offset", "0.2")):
        document = call("map", path, *flags, "--json").json
        rows = {row["key"]: row for row in document["rows"]}
        for name, truth_j in TRUTH_J.items():
            energy = rows[name]["self_j"]
            assert abs(energy["value"] - truth_j) <= 1.5 * energy["expanded"], name
            assert energy["expanded"] < 0.003 * truth_j


def test_a_step_that_is_named_next_works(tmp_path: Path) -> None:
    log = tmp_path / "smi.csv"
    head = "timestamp, index, name, power.draw [W]\n"
    rows = [f"2026/11/29 10:00:0{k}.000, {card}, card, {100 + k}.00 W\n" for k in range(5) for card in (0, 1)]
    log.write_text(head + "".join(rows))
    called = call("import", log, "-o", tmp_path / "two.jm")
    words = shlex.split(called.out.splitlines()[-1].removeprefix("next"))
    assert words[:2] == ["joulemap", "map"]
    assert "--trace" in words
    assert call(*words[1:]).code == 0


def test_a_folder_of_folders_says_which_to_name(tmp_path: Path) -> None:
    (tmp_path / "runs" / "first").mkdir(parents=True)
    called = call("import", tmp_path / "runs", "-o", tmp_path / "run.jm")
    assert called.code == 6
    assert str(tmp_path / "runs" / "first") in called.err


def test_the_priority_is_written_as_the_page_says(tmp_path: Path) -> None:
    called = call(
        "record", "--priority", "nice", "--meter", "simulated", "-o", tmp_path / "run.jm", "--", "sleep", "0.2"
    )
    assert called.code == 0, called.err
    assert "[normal|nice|realtime]" in call("record", "--help").out
