"""``joulemap record`` on disks that are full from the start, fill meanwhile, or take no marks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from program import PROGRAM, leftovers
from record_program import METER, SOURCES, document_of, record


def test_marks_for_which_the_disk_had_no_room_are_told(tmp_path: Path) -> None:
    """A limit on the size of a file stands for a full disk; the program goes on."""
    program = "import joulemap\nfor _ in range(3):\n    with joulemap.mark('x'): pass"
    environment = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1"}
    limited = ("sh", "-c", 'ulimit -f 1; exec "$@"', "sh", sys.executable, "-c", program)
    done = record("--meter", METER, "--json", "-o", "r.jm", "--", *limited, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    (told,) = [f["message"] for f in document_of(done)["findings"] if f["slug"] == "marks_lost"]
    assert "no room for any of its marks" in told


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


def may_mount() -> bool:
    """Whether a process may have a small file system of its own."""
    probe = ("unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/tmp")
    return (
        shutil.which("unshare") is not None and not subprocess.run(probe, capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not may_mount(), reason="this system lets nobody mount a small file system")
@pytest.mark.parametrize("freed", [True, False])
def test_a_disk_that_fills_costs_no_status_and_no_sample_while_memory_lasts(freed: bool, tmp_path: Path) -> None:
    fill = "head -c 99999999 /dev/zero > fill 2>/dev/null; sleep 1.2; " + ("rm fill; " if freed else "") + "exit 5"
    arguments = ["record", "--meter", METER, "--rate", "1000", "-o", "r.jm", "--", "sh", "-c", fill]
    small = 'mount -t tmpfs -o size=2200k none . && cd "$PWD" && "$@"; status=$?; ls -a; exit $status'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", small, "sh", *PROGRAM, *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr
    if freed:
        assert "capture_unwritable" in done.stderr
        assert "r.jm" in done.stdout.split()
    else:
        assert "output-unwritable" in done.stderr
        assert "r.jm.live" in done.stdout.split()
        assert "r.jm" not in done.stdout.split()
