"""``joulemap record`` as a user calls it: its figures, its rows, and what it refuses."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joulemap.meters.live.ground.waves import PowerWave, WaveShape
from joulemap.meters.live.kit import FakeTree, TreePlan
from program import call, leftovers
from record_program import METER, SOURCES, assert_within, document_of, record


def test_a_command_is_measured_and_its_bundle_opens_everywhere(tmp_path: Path) -> None:
    done = record(
        *("--meter", METER, "--rate", "50", "--repeats", "3", "--baseline", "0.4", "--json", "-o", "r.jm", "--"),
        *("sh", "-c", "echo out; echo err >&2; sleep 0.4"),
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("out\nout\nout\n{")
    assert done.stderr.count("err\n") == 3
    document = json.loads(done.stdout.partition("{")[1] + done.stdout.partition("{")[2])
    assert document["schema"] == "joulemap.record"
    assert document["validity"] == "valid"
    energy, duration = document["energy_j"], document["duration_s"]
    assert energy["provenance"] == "simulated"
    assert energy["boundary"] == "rail"
    wave = PowerWave(mean_w=20.0, swing_w=10.0, period_s=0.4, shape=WaveShape.SINE)
    assert_within(energy, float(np.mean([wave.energy_j(run["start_ns"], run["end_ns"]) for run in document["runs"]])))
    assert duration["value"] == pytest.approx(np.mean([run["duration_s"] for run in document["runs"]]))
    assert energy["dof"] is not None
    above = document["energy_above_idle_j"]
    assert abs(above["value"]) <= above["expanded"] + 0.1 * energy["value"]  # of a rest that is no whole wave
    assert [domain["name"] for domain in document["domains"]] == ["simulated:rail"]
    assert len(document["runs"]) == 3
    assert document["command"] == {"argv": ["sh", "-c", "echo out; echo err >&2; sleep 0.4"], "status": 0,
                                   "rusage": document["command"]["rusage"]}  # fmt: skip
    assert document["sampler"]["rate_hz"] == 50.0
    assert leftovers(tmp_path) == ["r.jm"]
    mapped = call("map", tmp_path / "r.jm", "--json")
    assert mapped.code == 0
    rows = {row["key"]: row for row in mapped.json["rows"]}
    assert set(rows) == {"run", "baseline"}
    assert rows["run"]["energy_j"]["value"] == pytest.approx(3 * energy["value"], rel=0.01)
    assert call("export", tmp_path / "r.jm", "--to", "perfetto", "-o", tmp_path / "r.pftrace").code == 0
    assert call("report", tmp_path / "r.jm", "--html", tmp_path / "r.html").code == 0
    assert "simulated-rail" in (tmp_path / "r.html").read_text()


def test_energy_of_every_run_is_the_truth_of_a_fake_tree_with_wraps(tmp_path: Path) -> None:
    wave = PowerWave(mean_w=60.0, swing_w=30.0, period_s=0.3, shape=WaveShape.SQUARE)
    plan = TreePlan(wave=wave, range_uj=200_000_000)  # it wraps every 3.3 s
    with FakeTree(plan) as tree:
        done = record(
            *("--meter", f"powercap:root={tree.root},proc={tree.root}", "--rate", "100", "--repeats", "2", "--json"),
            *("-o", "r.jm", "--", "sleep", "2"),
            cwd=tmp_path,
        )
        document = document_of(done)
        said = [finding["slug"] for finding in document["findings"]]
        assert "counter_wrapped" in said
        for domain in document["domains"]:
            name, energy = domain["name"].removeprefix("powercap:"), domain["energy_j"]
            known = [run for run in document["runs"] if run["energy_j"][domain["name"]] is not None]
            if len(known) < 2:  # tree or sampler were held up for the 0.55 s in which a counter may pass its end twice
                assert "counter_lost" in said
            if not known:
                assert energy["value"] is None
                continue
            truths_j = [tree.energy_j(name, run["start_ns"], run["end_ns"]) for run in known]
            assert_within(energy, float(np.mean(truths_j)))
            assert energy["expanded"] < 0.5 * energy["value"]
        assert done.returncode == 0 or "counter_lost" in said, done.stderr
    overlaps = {d["name"]: d["overlaps"] for d in document["domains"]}
    assert any(overlaps.values())


def test_the_headline_is_the_package_or_what_was_asked_for(tmp_path: Path) -> None:
    with FakeTree(TreePlan(wave=PowerWave(mean_w=60.0))) as tree:
        meter = ("--meter", f"powercap:root={tree.root},proc={tree.root}")

        def headline(*flags: str) -> dict[str, Any]:
            done = record(*meter, *flags, "--json", "--force", "-o", "r.jm", "--", "sleep", "0.6", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            return document_of(done)

        alone = headline()
        assert alone["energy_of"] == ["powercap:package-0"]
        assert alone["energy_j"]["boundary"] == "package"
        assert alone["headline"]["left_out"] == ["powercap:package-0/dram"]
        assert "domains_chosen" in {finding["slug"] for finding in alone["findings"]}
        assert call("map", tmp_path / "r.jm", "--json").json["traces"] == ["powercap-package-0"]
        whole = headline("--headline", "sum")
        assert whole["energy_of"] == ["powercap:package-0", "powercap:package-0/dram"]
        assert "boundary" not in whole["energy_j"]
        assert whole["headline"]["boundary"] == "package + rail"
        each = {domain["name"]: domain["energy_j"]["value"] for domain in whole["domains"]}
        assert whole["energy_j"]["value"] == pytest.approx(each["powercap:package-0"] + each["powercap:package-0/dram"])
        assert headline("--headline", "powercap:package-0/core")["energy_j"]["boundary"] == "rail"
        for flags, word in (
            (("powercap:package-0", "powercap:package-0/core"), "domains-overlap"),
            (("powercap:package-9",), "domain-unknown"),
            (("sum", "powercap:package-0"), "flags-contradict"),
        ):
            named = [part for name in flags for part in ("--headline", name)]
            refused = record(*meter, *named, "-o", "n.jm", "--", "touch", "ran", cwd=tmp_path)
            assert refused.returncode == 2
            assert word in refused.stderr
    assert leftovers(tmp_path) == ["r.jm"]


@pytest.mark.parametrize(
    ("arguments", "code", "slug"),
    [
        (["--meter", METER, "--", "no-such-program"], 127, "command-not-found"),
        (["--meter", METER, "--", "./plain"], 126, "command-not-runnable"),
        (["--meter", "nonsense", "--", "true"], 2, "meter-unknown"),
        (["--meter", "powercap:root=/nowhere,proc=/nowhere", "--", "true"], 3, "meter-unusable"),
    ],
)
def test_what_cannot_begin_is_refused_before_anything_runs(
    arguments: list[str], code: int, slug: str, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("no program")
    done = record("--json", "-o", "r.jm", *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert document_of(done)["error"]["slug"] == slug
    assert leftovers(tmp_path) == ["plain"]


def test_a_measurement_that_fails_after_a_command_that_did_not_is_told_by_the_status(tmp_path: Path) -> None:
    done = record("--meter", "simulated:mean_w=0", "--json", "-o", "r.jm", "--", "sleep", "0.2", cwd=tmp_path)
    assert done.returncode == 4
    document = document_of(done)
    assert document["error"]["slug"] == "nothing-recorded"
    assert "shows" in document["error"]["message"]
    assert leftovers(tmp_path) == []
    short = record("--meter", "simulated:update_s=1", "--json", "-o", "r.jm", "--", "sleep", "0.1", cwd=tmp_path)
    assert short.returncode == 4
    assert document_of(short)["energy_j"] == {
        "value": None, "provenance": "unavailable", "reason": "too_short_for_samples",
    }  # fmt: skip
    assert leftovers(tmp_path) == ["r.jm"]


def test_an_existing_bundle_or_capture_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "r.jm.live").mkdir()
    done = record("--meter", METER, "-o", "r.jm", "--", "touch", "ran", cwd=tmp_path)
    assert done.returncode == 2
    assert "capture-exists" in done.stderr
    assert leftovers(tmp_path) == ["r.jm.live"]
    (tmp_path / "r.jm.live").rmdir()
    assert record("--meter", METER, "-o", "r.jm", "--", "sleep", "0.5", cwd=tmp_path).returncode == 0
    again = record("--meter", METER, "-o", "r.jm", "--", "touch", "ran", cwd=tmp_path)
    assert again.returncode == 2
    assert leftovers(tmp_path) == ["r.jm"]


def test_overhead_is_told_with_its_interval(tmp_path: Path) -> None:
    done = record(
        *("--meter", METER, "--repeats", "3", "--measure-overhead", "--json", "-o", "r.jm", "--", "sleep", "0.2"),
        cwd=tmp_path,
    )
    overhead = document_of(done)["overhead"]
    assert overhead["pairs"] == 3
    change = overhead["duration_rel"]
    assert abs(change["value"]) < 1.0
    assert change["expanded"] > 0
    assert "simulated:rail" in overhead["energy_rel"]


def test_pauses_of_the_sampling_are_told_once_and_are_no_fault(tmp_path: Path) -> None:
    """The counter passes its end in every pause, and a limit is declared that would let it do so six times."""
    meter = "simulated:mean_w=65,swing_w=30,period_s=0.5,shape=square,modulus_j=60"
    done = record(
        *("--meter", meter, "--baseline", "0.5", "--repeats", "3", "--measure-overhead", "--json", "-o", "r.jm"),
        *("--", "sleep", "1"),
        cwd=tmp_path,
    )
    document = document_of(done)
    assert done.returncode == 0, done.stderr
    told = [f for f in document["findings"] if f["slug"] == "sampling_paused"]
    assert [f["severity"] for f in told] == ["info"]
    assert "paused 3 times" in told[0]["message"]
    faults = {"counter_lost", "time_gap", "samples_lost", "run_samples_lost", "meter_frozen"}
    assert not faults & {f["slug"] for f in document["findings"]}
    assert document["overhead"]["energy_rel"]["simulated:rail"]["value"] is not None
    mapped = call("map", tmp_path / "r.jm", "--json").json
    assert not faults & {f["slug"] for f in mapped["findings"]}
    assert [f["slug"] for f in mapped["findings"]].count("sampling_paused") == 1
    runs_s = sum(run["duration_s"] for run in document["runs"])
    counted_s = mapped["total_j"]["value"] / mapped["power_w"]["value"]
    assert counted_s < mapped["duration_s"] - 0.9 * runs_s  # the runs without sampling are in no figure


def test_a_slow_power_sensor_has_shown_a_run_before_sampling_pauses(tmp_path: Path) -> None:
    meter = "simulated:mean_w=20,swing_w=3,period_s=3,shape=sine,reading=power,update_s=0.4"
    done = record(
        *("--meter", meter, "--rate", "50", "--repeats", "3", "--measure-overhead", "--json", "-o", "r.jm"),
        *("--", "sleep", "2"),
        cwd=tmp_path,
    )
    document = document_of(done)
    assert done.returncode == 0, done.stderr
    assert "run_samples_lost" not in {finding["slug"] for finding in document["findings"]}
    wave = PowerWave(mean_w=20.0, swing_w=3.0, period_s=3.0, shape=WaveShape.SINE)
    truths_j = [wave.energy_j(run["start_ns"], run["end_ns"]) for run in document["runs"]]
    assert_within(document["energy_j"], float(np.mean(truths_j)))


def test_marks_of_the_command_and_its_children_are_rows_of_the_map(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "import joulemap, subprocess, sys, time\n"
        "for _ in range(4):\n"
        "    with joulemap.mark('work'):\n        time.sleep(0.1)\n"
        "    with joulemap.mark('rest'):\n        time.sleep(0.05)\n"
        "subprocess.run([sys.executable, '-c', 'import joulemap, time\\n"
        'with joulemap.mark("child"): time.sleep(0.1)\'])\n'
    )
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    done = record(
        *("--meter", METER, "--rate", "100", "-o", "r.jm", "--", sys.executable, "p.py"), cwd=tmp_path, env=environment
    )
    assert done.returncode == 0
    mapped = call("map", tmp_path / "r.jm", "--by", "name", "--json").json
    rows = {row["key"]: row for row in mapped["rows"]}
    assert {key: row["count"] for key, row in rows.items()} == {"work": 4, "rest": 4, "child": 1}
    assert rows["work"]["energy_j"]["value"] > rows["rest"]["energy_j"]["value"] > 0
    assert mapped["clocks"][0]["method"] == "same"


def test_a_kept_capture_is_mapped_with_spans_that_say_utc(tmp_path: Path) -> None:
    done = record(
        *("--meter", METER, "--rate", "100", "--keep-capture", "-o", "r.jm", "--"),
        *("sh", "-c", "date +%s%N > begin; sleep 0.8; date +%s%N > end"),
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert "r.jm.live" in leftovers(tmp_path)
    begin, end = (int((tmp_path / name).read_text()) for name in ("begin", "end"))
    (tmp_path / "spans.csv").write_text(f"start_ns,end_ns,name\n{begin},{end},request\n")
    imported = call(
        *("import", tmp_path / "r.jm.live", tmp_path / "spans.csv", "-o", tmp_path / "both.jm", "--json"),
        *("--utc-offset", "+00:00"),
    )
    assert imported.code == 0, imported.err
    mapped = call("map", tmp_path / "both.jm", "--timeline", "spans", "--json")
    assert mapped.code == 0, mapped.err
    rows = {row["key"]: row for row in mapped.json["rows"]}
    assert rows["request"]["duration_s"] == pytest.approx((end - begin) * 1e-9, rel=1e-3)
    assert 10.0 < rows["request"]["energy_j"]["value"] / rows["request"]["duration_s"] < 30.0
    assert mapped.json["clocks"][0]["method"] == "utc"
