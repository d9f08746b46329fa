"""Ctrl-C in every stage: 130, the board's process gone, nothing that looks like a bundle, nothing left beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from program import leftovers
from small_models import write_small_model

STAGES = (
    "preflight", "ensure_board_powered", "resolve_platform", "resolve_probe", "prepare_engine", "analyze_model",
    "plan_memory", "render_profile_firmware", "build_profile_firmware", "verify_profile_placement",
    "deploy_profile_firmware", "capture_profile", "plan_power_run", "render_power_firmware", "build_power_firmware",
    "verify_power_placement", "deploy_power_firmware", "capture_power_observation", "collect_power_terminal",
    "reconcile_power_run", "attribute_energy", "generate_report",
)  # fmt: skip

# The program with a stderr that raises SIGINT when it is handed the line of one stage: the interrupt arrives at a
# known place, without a race and without touching the program.
TRIPWIRE = """
import io, signal, sys
class Tripwire(io.TextIOBase):
    def __init__(self, stream, word):
        self.stream, self.word = stream, word
    encoding = "utf-8"
    def write(self, text):
        self.stream.write(text)
        if self.word in text:
            self.word = "never again"
            signal.raise_signal(signal.SIGINT)
        return len(text)
    def flush(self):
        self.stream.flush()
word = sys.argv.pop(1)
sys.stderr = Tripwire(sys.stderr, word)
from joulemap.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model") / "small.tflite")


def living(mark: str) -> list[int]:
    """Returns the processes whose environment holds the mark: children inherit it, whatever session they open."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                carries = mark.encode() in (entry / "environ").read_bytes()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if carries:
                found.append(int(entry.name))
    return found


@pytest.fixture
def mark() -> str:
    return f"joulemap-test-{uuid.uuid4().hex}"


def started(arguments: list[str], mark: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "JOULEMAP_TEST_MARK": mark},
    )


def assert_nothing_is_left(mark: str, folder: Path) -> None:
    deadline_s = time.monotonic() + 5
    while living(mark) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert living(mark) == []
    assert leftovers(folder) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for orphans in /proc")
@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_in_this_stage_leaves_nothing(stage: str, model: Path, tmp_path: Path, mark: str) -> None:
    word = stage.replace("_", " ")
    flags = ["-o", str(tmp_path / "x.jm"), "--count", "20", "--repeats", "2"]
    process = started(["-c", TRIPWIRE, word, "profile", str(model), *flags], mark)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert word in err
    assert err.rstrip().endswith("joulemap: interrupted; nothing was left behind")
    assert "Traceback" not in err
    assert out == ""
    assert_nothing_is_left(mark, tmp_path)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for orphans in /proc")
def test_an_interrupt_while_the_board_runs_leaves_nothing(model: Path, tmp_path: Path, mark: str) -> None:
    """Ctrl-C goes to the whole group of the terminal, in the middle of a gate that takes many seconds."""
    script = "from joulemap.cli.main import main; main()"
    flags = ["-o", str(tmp_path / "x.jm"), "--count", "200000"]
    process = started(["-c", script, "profile", str(model), *flags], mark)
    assert process.stderr is not None
    for line in process.stderr:
        if "capture power observation" in line:
            break
    time.sleep(0.3)
    assert len(living(mark)) >= 2  # the program and its board
    os.killpg(process.pid, signal.SIGINT)
    out, rest = process.communicate(timeout=30)
    assert process.returncode == 130, rest
    assert "Traceback" not in rest
    assert out == ""
    assert_nothing_is_left(mark, tmp_path)
