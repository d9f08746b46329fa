"""Flags of import that a file may need: a zone and an origin for each, and what is refused before a file is read."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from joulemap.formats.base import ReadOptions
from joulemap.workflow.recordings.import_recording import import_recordings
from joulemap.workflow.recordings.import_request import ImportRequest
from joulemap.workflow.recordings.recording_bundle import open_recordings
from program import Called, call

POWER = "time,power [W]\n" + "".join(f"2026-01-02T03:04:{k:02d},{5 + k % 2}.0\n" for k in range(20))
MAP = ("--column", "time=time", "--column", "power=power [W]")


def called(*arguments: str, folder: Path) -> Called:
    with chdir(folder):
        return call(*arguments)


def imported(folder: Path, *flags: str, files: tuple[str, ...] = ("a.csv", "b.csv"), code: int = 0) -> dict[str, Any]:
    for name in files:
        (folder / name).write_text(POWER)
    done = called("import", *files, *MAP, *flags, "--force", "-o", "run.jm", "--json", folder=folder)
    assert done.code == code, done.err
    document: dict[str, Any] = json.loads(done.out) if done.out else {}
    return document


def test_each_file_may_have_a_zone_of_its_own(tmp_path: Path) -> None:
    found = imported(tmp_path, "--utc-offset=+02:00", "--utc-offset", "b.csv=-05:30")
    first, second = (recording["traces"][0] for recording in found["recordings"])
    assert first["clock"]["kind"] == second["clock"]["kind"] == "utc"
    assert second["start_ns"] - first["start_ns"] == round(7.5 * 3600e9)


def test_a_file_without_a_zone_stays_local_beside_one_that_has_it(tmp_path: Path) -> None:
    found = imported(tmp_path, "--utc-offset", "b.csv=+01:00")
    assert [recording["traces"][0]["clock"]["kind"] for recording in found["recordings"]] == ["local", "utc"]


@pytest.mark.parametrize(
    "flags",
    [
        ("--utc-offset", "c.csv=+01:00"),
        ("--utc-offset=+01:00", "--utc-offset=+02:00"),
        ("--utc-offset", "a.csv=soon"),
        ("--boundary", "moon"),
        ("--provenance", "true"),
        ("--provenance", "a.csv=true"),
        ("--provenance", "c.csv=simulated"),
        ("--unit", "power=parsec"),
        ("--format", "zorg"),
    ],
)
def test_a_value_that_no_flag_takes_is_a_usage_error(flags: tuple[str, ...], tmp_path: Path) -> None:
    imported(tmp_path, *flags, code=2)
    assert not (tmp_path / "run.jm").exists()


@pytest.mark.parametrize("rows", [("table", "--by", "moon"), ("map", "--rule", "moon"), ("map", "--split", "moon")])
def test_so_it_is_for_the_other_commands(rows: tuple[str, ...], tmp_path: Path) -> None:
    imported(tmp_path, files=("a.csv",))
    command = ("export", "run.jm", "--to", "csv", "-o", "o.csv", "--table") if rows[0] == "table" else ("map", "run.jm")
    assert called(*command, *rows[1:], folder=tmp_path).code == 2
    assert called("map", "run.jm", "--instrument", "moon", folder=tmp_path).code == 2
    assert called("export", "run.jm", "--to", "moon", "-o", "o", folder=tmp_path).code == 2


def test_a_table_that_the_user_calls_simulated_is_so_in_every_output(tmp_path: Path) -> None:
    found = imported(tmp_path, "--provenance", "simulated", files=("a.csv",))
    assert found["recordings"][0]["traces"][0]["provenance"] == "simulated"
    mapped = json.loads(called("map", "run.jm", "--json", folder=tmp_path).out)
    assert mapped["total_j"]["provenance"] == mapped["power_w"]["provenance"] == "simulated"
    (tmp_path / "w.csv").write_text("name,start_ns,end_ns\nx,1767323045000000000,1767323055000000000\n")
    both = called(
        "import", "a.csv", "w.csv", *MAP, "--utc-offset", "0", "--provenance", "a.csv=simulated", "--force", "-o",
        "run.jm", folder=tmp_path,
    )  # fmt: skip
    assert both.code == 0, both.err
    done = called("export", "run.jm", "--to", "csv", "-o", "o.csv", folder=tmp_path)
    assert done.code == 0, done.err
    assert "simulated" in (tmp_path / "o.csv").read_text()
    assert called("report", "run.jm", "--html", "o.html", folder=tmp_path).code == 0
    assert "simulated" in (tmp_path / "o.html").read_text()


def test_what_is_referred_to_is_lowered_whenever_it_is_read(tmp_path: Path) -> None:

    (tmp_path / "a.csv").write_text(POWER)
    options = ReadOptions(columns={"time": "time", "power": "power [W]"}, provenance="estimated")
    request = ImportRequest(paths=(tmp_path / "a.csv",), options=options, embed_limit_b=0)
    import_recordings(request, tmp_path / "run.jm")
    opened = open_recordings(tmp_path / "run.jm")
    assert not opened.entries[0].embedded
    for trace in (opened.load_trace("power"), opened.open_trace("power")):
        assert str(trace.channel.provenance) == "estimated"


def test_no_word_of_the_user_makes_a_figure_better_than_its_file_says(tmp_path: Path) -> None:
    first = imported(tmp_path, "--provenance", "measured", files=("a.csv",))
    assert first["recordings"][0]["traces"][0]["provenance"] == "measured_sampled"
    assert "provenance_not_raised" not in {finding["slug"] for finding in first["findings"]}
    (tmp_path / "p.txt").write_text(
        "*** Sampled system activity (Fri Jan  2 03:04:05 2026 +0000) (1000.00ms elapsed) ***\n\nCPU Power: 100 mW\n\n"
        "*** Sampled system activity (Fri Jan  2 03:04:06 2026 +0000) (1000.00ms elapsed) ***\n\nCPU Power: 120 mW\n"
    )
    done = called("import", "p.txt", "--provenance", "measured", "-o", "p.jm", "--json", folder=tmp_path)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["recordings"][0]["traces"][0]["provenance"] == "estimated"
    assert "provenance_not_raised" in {finding["slug"] for finding in found["findings"]}
