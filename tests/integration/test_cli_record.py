"""``joulemap record`` and ``watch`` as a user calls them: figures, status, signals, streams, faults, leftovers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joulemap.meters.live.ground.waves import PowerWave, WaveShape
from joulemap.meters.live.kit import FakeTree, TreePlan
from program import call, leftovers

PROGRAM = [sys.executable, "-c", "from joulemap.cli.main import main; main()"]
METER = "simulated:mean_w=20,swing_w=10,shape=sine,period_s=0.4"
ROOT = Path(__file__).resolve().parents[2]
SOURCES = str(ROOT / "src")


def record(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "record", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=120)


def assert_within(energy: dict[str, Any], truth_j: float) -> None:
    """On a busy machine readings come late: by how much is what the interval that is printed must hold."""
    assert abs(energy["value"] - truth_j) <= energy["expanded"], (energy, truth_j)


def document_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return document


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
    ("command", "status"),
    [(["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -9 $$"], 137)],
)
def test_the_status_of_the_command_is_passed_on(command: list[str], status: int, tmp_path: Path) -> None:
    done = record("--meter", METER, "--repeats", "3", "--quiet", "-o", "r.jm", "--", *command, cwd=tmp_path)
    assert done.returncode == status
    assert "command_failed" in done.stderr
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


def test_a_command_that_prints_a_great_deal_reads_its_input_and_forks(tmp_path: Path) -> None:
    script = "cat; (sleep 0.1; echo forked) & head -c 50000000 /dev/zero; wait"
    started = time.monotonic()
    with (tmp_path / "in").open("w+") as stdin, (tmp_path / "out").open("w+b") as stdout:
        stdin.write("hello\n")
        stdin.seek(0)
        done = subprocess.run(
            [*PROGRAM, "record", "--meter", METER, "-o", "r.jm", "--", "sh", "-c", script],
            cwd=tmp_path, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0
        stdout.seek(0)
        body = stdout.read()
    assert body.startswith(b"hello\n")
    assert body.count(b"forked\n") == 1
    assert len(body) == 50_000_000 + 13
    assert time.monotonic() > started


def test_a_command_that_daemonises_is_not_waited_for_and_said(tmp_path: Path) -> None:
    script = "setsid sh -c 'echo $$ > pid; exec sleep 30' >/dev/null 2>&1 & while [ ! -s pid ]; do sleep 0.02; done"
    done = record("--meter", METER, "-o", "r.jm", "--", "sh", "-c", script, cwd=tmp_path)
    pid = int((tmp_path / "pid").read_text())
    try:
        assert done.returncode == 0
        assert "processes_left" in done.stderr
        os.kill(pid, 0)  # left alone
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on_and_the_measurement_is_kept(number: signal.Signals, tmp_path: Path) -> None:
    script = (
        "import signal, sys, time, pathlib\n"
        "def end(n, f): pathlib.Path('got').write_text(str(n)); sys.exit(7)\n"
        f"signal.signal({int(number)}, end)\npathlib.Path('ready').write_text('')\ntime.sleep(60)"
    )
    recorder = subprocess.Popen(
        [*PROGRAM, "record", "--meter", METER, "-o", "r.jm", "--", sys.executable, "-c", script],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (tmp_path / "ready").exists():
        assert recorder.poll() is None
        time.sleep(0.02)
    recorder.send_signal(number)
    _, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 7
    assert (tmp_path / "got").read_text() == str(int(number))
    assert "energy" in err
    assert (tmp_path / "r.jm" / "manifest.json").is_file()


def test_an_interrupt_at_rest_leaves_nothing(tmp_path: Path) -> None:
    recorder = subprocess.Popen(
        [*PROGRAM, "record", "--meter", METER, "--baseline", "60", "-o", "r.jm", "--", "touch", "ran"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not list(tmp_path.glob("r.jm.live/marks/*.names")):
        assert recorder.poll() is None
        time.sleep(0.02)
    recorder.send_signal(signal.SIGINT)
    _, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 130
    assert "interrupted" in err
    assert leftovers(tmp_path) == []


def test_an_interrupt_in_the_last_baseline_keeps_the_runs(tmp_path: Path) -> None:
    recorder = subprocess.Popen(
        [*PROGRAM, "record", "--meter", METER, "--baseline", "3", "-o", "r.jm", "--", "touch", "ran"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (tmp_path / "ran").exists():
        assert recorder.poll() is None
        time.sleep(0.02)
    time.sleep(0.5)
    recorder.send_signal(signal.SIGINT)
    _, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 130
    assert "interrupted after 1 of 1 runs; these are kept, without the baseline after them" in " ".join(err.split())
    assert leftovers(tmp_path) == ["r.jm", "ran"]
    document = json.loads((tmp_path / "r.jm" / "result.json").read_text())
    assert len(document["runs"]) == 1 if isinstance(document["runs"], list) else document["runs"] == 1
    assert "record_interrupted" in {finding["slug"] for finding in document["findings"]}


@pytest.mark.parametrize("what", ["watch", "measure"])
def test_nothing_stays_in_the_temporary_folder_of_a_program_that_is_killed(what: str, tmp_path: Path) -> None:
    block = "print('on', flush=True); time.sleep(60)"
    measure = f"import joulemap, time\nwith joulemap.measure(meters=[{METER!r}]):\n    {block}"
    watch = [*PROGRAM, "watch", "--meter", METER, "--interval", "0.1"]
    killed = subprocess.Popen(
        watch if what == "watch" else [sys.executable, "-c", measure],
        env={**os.environ, "TMPDIR": str(tmp_path)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert killed.stdout is not None
    assert killed.stdout.readline()
    assert len(leftovers(tmp_path)) == 1
    killed.kill()
    killed.communicate()
    until = time.monotonic() + 30
    while leftovers(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert leftovers(tmp_path) == []


def test_a_profile_that_is_killed_before_its_windows_leaves_no_temporary_folder(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the model is one of ONNX Runtime")
    pytest.importorskip("onnx", reason="the model is made with it")
    subprocess.run([sys.executable, ROOT / "examples" / "make_onnx.py", tmp_path], check=True)
    (temporary := tmp_path / "tmp").mkdir()
    model = ["attention.onnx", "--target", "host", "--batch", "1", "-o", "r.jm"]
    killed = subprocess.Popen(
        [*PROGRAM, "profile", *model, "--meter", METER],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not list(tmp_path.glob(".r.jm.*.partial")):  # the meter has been chosen then, and nothing has run
        assert killed.poll() is None
        time.sleep(0.005)
    killed.kill()
    killed.communicate()
    assert not list(temporary.glob("joulemap*"))  # ONNX Runtime leaves a file of its own there


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


def test_marks_for_which_the_disk_had_no_room_are_told(tmp_path: Path) -> None:
    """A limit on the size of a file stands for a full disk; the program goes on."""
    program = "import joulemap\nfor _ in range(3):\n    with joulemap.mark('x'): pass"
    environment = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1"}
    limited = ("sh", "-c", 'ulimit -f 1; exec "$@"', "sh", sys.executable, "-c", program)
    done = record("--meter", METER, "--json", "-o", "r.jm", "--", *limited, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    (told,) = [f["message"] for f in document_of(done)["findings"] if f["slug"] == "marks_lost"]
    assert "no room for any of its marks" in told


def test_a_killed_recording_is_saved_by_an_import(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo $$ > pid; exec sleep 60"]
    recorder = subprocess.Popen(
        [*PROGRAM, "record", "--meter", METER, "--rate", "100", "-o", "r.jm", "--", *command],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
        time.sleep(0.02)
    time.sleep(0.5)
    recorder.kill()
    recorder.wait()
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    time.sleep(1.2)  # the sampling process sees it and ends
    imported = call("import", tmp_path / "r.jm.live", "-o", tmp_path / "saved.jm", "--json")
    assert imported.code == 0
    assert "capture_unfinished" in {finding["slug"] for finding in imported.json["findings"]}
    mapped = call("map", tmp_path / "saved.jm", "--json")
    assert mapped.code == 0
    assert {row["key"] for row in mapped.json["rows"]} == {"run"}


def test_no_room_at_the_start_is_said_and_nothing_runs(tmp_path: Path) -> None:
    """A limit on the size of a file stands for a full disk."""
    arguments = ["record", "--meter", METER, "-o", "r.jm", "--", "touch", "ran"]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", *PROGRAM, *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert leftovers(tmp_path) == []


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


@pytest.mark.parametrize("freed", [True, False])
def test_a_disk_that_fills_costs_no_status_and_no_sample_while_memory_lasts(freed: bool, tmp_path: Path) -> None:
    fill = "head -c 99999999 /dev/zero > fill 2>/dev/null; sleep 1.2; " + ("rm fill; " if freed else "") + "exit 5"
    arguments = ["record", "--meter", METER, "--rate", "1000", "-o", "r.jm", "--", "sh", "-c", fill]
    small = 'mount -t tmpfs -o size=2200k none . && cd "$PWD" && "$@"; status=$?; ls -a; exit $status'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", small, "sh", *PROGRAM, *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if done.returncode in {1, 32} or "unshare" in done.stderr:
        pytest.skip("this system lets nobody mount a small file system")
    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr
    if freed:
        assert "capture_unwritable" in done.stderr
        assert "r.jm" in done.stdout.split()
    else:
        assert "output-unwritable" in done.stderr
        assert "r.jm.live" in done.stdout.split()
        assert "r.jm" not in done.stdout.split()


def test_a_watch_shows_every_domain(tmp_path: Path) -> None:
    once = call("watch", "--meter", METER, "--once", "--interval", "0.3")
    assert once.code == 0
    assert "simulated:rail" in once.out
    assert "W" in once.out
    lines = call("watch", "--meter", METER, "--seconds", "0.7", "--interval", "0.3", "--json").out.splitlines()
    assert len(lines) >= 2
    (domain,) = json.loads(lines[-1])["domains"]
    assert 5.0 < domain["power_w"] < 35.0
    assert domain["energy_j"] > json.loads(lines[0])["domains"][0]["energy_j"]
    assert leftovers(tmp_path) == []


def test_metrics_are_served_on_loopback(tmp_path: Path) -> None:
    exporter = subprocess.Popen(
        [*PROGRAM, "export-metrics", "--meter", METER, "--prometheus", "0"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert exporter.stderr is not None
        url = exporter.stderr.readline().split()[-1]
        assert url.startswith("http://127.0.0.1:")
        time.sleep(0.4)
        with urllib.request.urlopen(url, timeout=10) as answer:
            text = answer.read().decode()
        assert 'provenance="simulated"' in text
        assert "# TYPE hw_energy_joules_total counter" in text
        first = float(next(line for line in text.splitlines() if line.startswith("hw_power_watts{")).split()[-1])
        assert 5.0 < first < 35.0
    finally:
        exporter.send_signal(signal.SIGINT)
        exporter.communicate(timeout=30)
        assert exporter.returncode == 0


def test_exporting_to_nobody_is_refused() -> None:
    assert call("export-metrics", "--meter", METER).code == 2


def test_on_a_terminal_there_is_a_live_line_and_an_interrupt_comes_once(tmp_path: Path) -> None:
    script = (
        "import pathlib, signal, sys, time\nseen = []\n"
        "signal.signal(signal.SIGINT, lambda n, f: seen.append(n))\n"
        "pathlib.Path('ready').write_text('')\ntime.sleep(2.5)\n"
        "pathlib.Path('seen').write_text(str(len(seen)))\nsys.exit(9)"
    )
    (tmp_path / "p.py").write_text(script)
    main, terminal = os.openpty()
    attach = (
        "import fcntl, termios, os, sys; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    arguments = ["record", "--meter", METER, "-o", "r.jm", "--", sys.executable, "p.py"]
    recorder = subprocess.Popen(
        [sys.executable, "-c", attach, *PROGRAM, *arguments],
        cwd=tmp_path, stdin=terminal, stdout=terminal, stderr=terminal,
    )  # fmt: skip
    os.close(terminal)
    shown = bytearray()
    interrupted = False
    try:
        while True:
            shown += os.read(main, 4096)
            if not interrupted and (tmp_path / "ready").exists() and b"joulemap run" in shown:
                os.write(main, b"\x03")
                interrupted = True
    except OSError:
        pass  # the terminal is closed: all of its processes have ended
    os.close(main)
    assert recorder.wait(60) == 9
    assert (tmp_path / "seen").read_text() == "1"
    assert b"\r\x1b[Kjoulemap run" in shown
    assert b"energy" in shown
