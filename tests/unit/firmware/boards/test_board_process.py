"""The worker is a process: it is ended, never waited for, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from board_bench import build_firmware, build_network, open_session
from joulemap.errors import PowerError
from joulemap.firmware.boards.base import ResetOptions
from joulemap.firmware.boards.virtual_m33.board import VirtualM33Board

SPIN = 'int main(void) { for (;;) __asm volatile("nop"); }'
LONG = ResetOptions(deadline_s=1e5)
SHARED_MEMORY = Path("/dev/shm")


def _gone(pid: int, *, within_s: float = 10.0) -> bool:
    """True once no process has that id (a zombie counts as gone)."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def _shared_memory() -> set[str]:
    return {entry.name for entry in SHARED_MEMORY.iterdir()} if SHARED_MEMORY.exists() else set()


def test_a_killed_worker_is_a_lost_board_and_leaves_nothing() -> None:
    before = _shared_memory()
    with open_session(build_firmware(SPIN)) as session:
        session.reset(ResetOptions(deadline_s=1.0, record_rail=True))
        os.kill(session.worker_pid, signal.SIGKILL)
        with pytest.raises(PowerError) as caught:
            session.run()
        assert caught.value.slug == "board-lost"
        assert _gone(session.worker_pid)
        with pytest.raises(PowerError) as again:
            session.advance(1.0)
        assert again.value.slug == "board-lost"
    assert _shared_memory() <= before


def test_a_worker_killed_in_the_middle_of_a_run_is_a_lost_board() -> None:
    with open_session(build_firmware(SPIN)) as session:
        session.reset(LONG)
        timer = threading.Timer(0.3, os.kill, (session.worker_pid, signal.SIGKILL))
        timer.start()
        with pytest.raises(PowerError) as caught:
            session.run()
        timer.join()
        assert caught.value.slug == "board-lost"


def test_the_watchdog_ends_a_worker_that_does_not_answer() -> None:
    session = VirtualM33Board(wall_limit_s=0.5).open()
    session.flash(build_firmware(SPIN).elf, layer_symbols=())
    session.reset(LONG)
    with pytest.raises(PowerError) as caught:
        session.run()
    assert caught.value.slug == "board-watchdog"
    assert caught.value.details["operation"] == "run"
    assert _gone(session.worker_pid)
    session.close()


def test_closing_ends_the_worker_and_may_be_repeated() -> None:
    session = VirtualM33Board().open()
    pid = session.worker_pid
    session.close()
    session.close()
    assert _gone(pid)


def test_a_forgotten_session_ends_its_worker() -> None:
    session = VirtualM33Board().open()
    pid = session.worker_pid
    del session
    assert _gone(pid)


def _child(body: str) -> subprocess.Popen[str]:
    """Starts a Python process that opens a board, prints the worker's id and goes on with ``body``."""
    program = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from joulemap.firmware.boards.base import ResetOptions
        from joulemap.firmware.boards.virtual_m33.board import VirtualM33Board
        session = VirtualM33Board().open()
        session.flash(Path(sys.argv[1]), layer_symbols=())
        session.reset(ResetOptions(deadline_s=1e5))
        print(session.worker_pid, flush=True)
        """
    )
    source = Path(__file__).parents[4] / "src"
    return subprocess.Popen(
        [sys.executable, "-c", program + body, str(build_firmware(SPIN).elf)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source)},
        start_new_session=True,
    )


def test_the_worker_ends_when_its_parent_is_killed_in_the_middle_of_a_run() -> None:
    before = _shared_memory()
    with _child("session.run()") as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        time.sleep(0.3)
        parent.kill()
        parent.wait()
        assert _gone(worker)
    assert _shared_memory() <= before


def test_ctrl_c_is_the_parents_affair_and_ends_the_worker_with_it() -> None:
    body = textwrap.dedent(
        """
        try:
            session.run()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            print(os.path.exists(f"/proc/{session.worker_pid}"), flush=True)
        """
    )
    with _child(body) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        os.kill(worker, signal.SIGINT)  # the worker takes no notice
        time.sleep(0.3)
        os.killpg(parent.pid, signal.SIGINT)
        output, _ = parent.communicate(timeout=20)
        assert output.split() == ["interrupted", "False"]
        assert _gone(worker)


def test_the_worker_imports_nothing_of_joulemap() -> None:
    worker = Path(VirtualM33Board.__init__.__code__.co_filename).with_name("worker.py")
    text = worker.read_text()
    assert "SPDX-License-Identifier: BSD-3-Clause" in text
    assert worker.with_name("LICENSE.worker").exists()
    lines = [line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert not [name for name in lines if name.startswith("joulemap")]
    assert {name.split(".")[0] for name in lines} - set(sys.stdlib_module_names) == {"unicorn"}


@pytest.mark.parametrize("closed", [(0,), (0, 1), (0, 1, 2)], ids=str)
def test_a_parent_without_standard_streams_has_a_board_too(closed: tuple[int, ...], tmp_path: Path) -> None:
    """The numbers of closed streams are given to the next files; in the worker they are its own streams."""
    body = f"""
import os, sys
from pathlib import Path
for descriptor in {closed}:
    os.close(descriptor)
from joulemap.firmware.boards.base import ResetOptions
from joulemap.firmware.boards.virtual_m33.board import VirtualM33Board
session = VirtualM33Board().open()
session.flash(Path(sys.argv[1]), layer_symbols=())
session.reset(ResetOptions(deadline_s=0.01, record_rail=True))
session.run()
Path(sys.argv[2]).write_text(str(session.rail().energy_fj.size))
session.close()
os._exit(0)
"""
    written = tmp_path / "rows"
    subprocess.run([sys.executable, "-c", body, str(build_firmware(SPIN).elf), str(written)], check=True, timeout=60)
    assert int(written.read_text()) >= 9999


@pytest.mark.parametrize("encoding", ["utf-16", "ascii", "cp037"])
def test_the_environments_encoding_is_not_that_of_the_link(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    with open_session(build_firmware(SPIN)) as session:
        session.reset(ResetOptions(deadline_s=0.01))
        assert session.run().time_ns >= 10_000_000


def test_a_machine_without_room_is_said_so() -> None:
    body = """
import os, resource, signal, sys
from pathlib import Path
from joulemap.errors import SetupError
from joulemap.firmware.boards.base import ResetOptions
from joulemap.firmware.boards.virtual_m33.board import VirtualM33Board
session = VirtualM33Board().open()
session.flash(Path(sys.argv[1]), layer_symbols=())
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.prlimit(session.worker_pid, resource.RLIMIT_FSIZE, (100, 100))
try:
    session.reset(ResetOptions(deadline_s=1.0, record_rail=True))
except SetupError as error:
    print(error.slug)
session.close()
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), 4096))
held = [os.dup(0)]
try:
    VirtualM33Board().open()
except SetupError as error:
    print(error.slug)
except OSError as error:  # the build cache is read first, and it may want the last descriptor
    print("machine-exhausted" if error.errno == 24 else error)
"""
    done = subprocess.run(
        [sys.executable, "-c", body, str(build_firmware(SPIN).elf)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["machine-exhausted"] * 2, done.stderr


def test_two_boards_run_side_by_side() -> None:
    with open_session(build_network()) as first, open_session(build_network()) as second:
        for session in (first, second):
            session.reset(ResetOptions(deadline_s=1.0, record_rail=True))
        assert first.run().time_ns == second.run().time_ns
        first.advance(1e-3)
        assert first.rail().energy_fj.size > second.rail().energy_fj.size
        assert first.target_id != second.target_id
