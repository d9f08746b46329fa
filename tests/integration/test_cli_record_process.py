"""A command under ``joulemap record``: its status, streams, signals, terminal and children."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from program import PROGRAM, call, leftovers
from record_program import METER, record


@pytest.mark.parametrize(
    ("command", "status"),
    [(["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -9 $$"], 137)],
)
def test_the_status_of_the_command_is_passed_on(command: list[str], status: int, tmp_path: Path) -> None:
    done = record("--meter", METER, "--repeats", "3", "--quiet", "-o", "r.jm", "--", *command, cwd=tmp_path)
    assert done.returncode == status
    assert "command_failed" in done.stderr
    assert leftovers(tmp_path) == ["r.jm"]
    mapped = call("map", tmp_path / "r.jm", "--json")
    assert "command_failed" in {finding["slug"] for finding in mapped.json["findings"]}


def test_the_memory_of_a_command_is_its_own_or_not_known(tmp_path: Path) -> None:
    """The system counts that of the program that starts it."""
    script = "import sys; held = bytearray(400_000_000); held[::4096] = b'x' * len(held[::4096])"
    told = []
    for number, command in enumerate((["true"], [sys.executable, "-c", script])):
        record("--meter", METER, "--json", "-o", f"{number}.jm", "--", *command, cwd=tmp_path)
        result = json.loads((tmp_path / f"{number}.jm" / "result.json").read_text("utf-8"))
        told.append(result["command"]["rusage"]["peak_rss_b"])
    assert told[0] is None
    assert 400_000_000 < told[1] < 500_000_000


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
