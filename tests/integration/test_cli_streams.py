"""Standard streams that are closed, full or given up, and signals that end a run: no traceback, no loss."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from program import PROGRAM, leftovers
from small_models import write_small_model

FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model") / "small.tflite")


def flags(model: Path, folder: Path) -> list[str]:
    return ["profile", str(model), "-o", str(folder / "x.jm"), "--count", "10", "--repeats", "1"]


def shell(redirections: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirections}', "sh", *PROGRAM, *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("json_flag", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_closed_stream_does_not_end_a_run(closed: str, json_flag: list[str], model: Path, tmp_path: Path) -> None:
    done = shell(closed, [*flags(model, tmp_path), *json_flag])
    assert done.returncode == 0, done.stderr
    assert leftovers(tmp_path) == ["x.jm"]
    assert "Traceback" not in done.stderr
    if ">&-" not in closed.replace("2>&-", ""):
        assert not json_flag or json.loads(done.stdout)["validity"] == "valid"


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("json_flag", [[], ["--json"]], ids=["text", "json"])
def test_a_full_stdout_is_told_and_the_bundle_stays(json_flag: list[str], model: Path, tmp_path: Path) -> None:
    done = shell(">/dev/full", [*flags(model, tmp_path), *json_flag])
    assert done.returncode == 3
    assert "docs/errors.md#output-unwritable (exit 3)" in done.stderr
    assert "Traceback" not in done.stderr
    assert leftovers(tmp_path) == ["x.jm"]


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
def test_a_full_stderr_takes_nothing_from_the_result(model: Path, tmp_path: Path) -> None:
    done = shell("2>/dev/full", [*flags(model, tmp_path), "--json"])
    assert done.returncode == 0
    assert json.loads(done.stdout)["validity"] == "valid"


def test_a_reader_of_stderr_that_goes_away_does_not_end_the_run(model: Path, tmp_path: Path) -> None:
    with subprocess.Popen([*PROGRAM, *flags(model, tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stderr is not None
        run.stderr.readline()
        run.stderr.close()
        assert run.stdout is not None
        assert b"per inference" in run.stdout.read()
    assert run.returncode == 0
    assert leftovers(tmp_path) == ["x.jm"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_an_interrupt(number: signal.Signals, model: Path, tmp_path: Path) -> None:
    arguments = ["profile", str(model), "-o", str(tmp_path / "x.jm"), "--count", "200000"]
    with subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if "capture power observation" in line:
                break
        run.send_signal(number)
        rest = run.stderr.read()
    assert run.returncode == 130
    assert "interrupted" in rest
    assert "Traceback" not in rest
    assert leftovers(tmp_path) == []


def test_impatience_does_not_break_into_the_clean_up(model: Path, tmp_path: Path) -> None:
    arguments = ["profile", str(model), "-o", str(tmp_path / "x.jm"), "--count", "200000"]
    with subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if "capture power observation" in line:
                break
        while run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.send_signal(signal.SIGTERM)
        rest = run.stderr.read()
    assert (run.returncode, rest.splitlines()[-1]) == (130, "joulemap: interrupted; nothing was left behind")
    assert leftovers(tmp_path) == []


def test_a_signal_that_the_caller_ignores_stays_ignored(model: Path, tmp_path: Path) -> None:
    """As under nohup."""
    script = "trap '' HUP; \"$@\" & child=$!; sleep 1; kill -HUP $child; wait $child"
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *PROGRAM, *flags(model, tmp_path)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert leftovers(tmp_path) == ["x.jm"]


def test_an_interrupt_while_commands_load_is_told() -> None:
    """The signal arrives when click is looked for: before anything of the run exists."""
    script = """
import signal, sys
class Tripwire:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Tripwire())
from joulemap.cli.main import main
main()
"""
    done = subprocess.run([sys.executable, "-c", script, "boards"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "joulemap: interrupted; nothing was left behind\n")


def test_a_machine_without_room_is_no_fault_of_joulemap(model: Path, tmp_path: Path) -> None:
    limited = 'ulimit -n 10; exec "$@"'
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        ["/bin/sh", "-c", limited, "sh", *PROGRAM, *flags(model, tmp_path)],
        capture_output=True, text=True, check=False, timeout=60, env=environment,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "Too many open files" in done.stderr
    assert leftovers(tmp_path) == []
