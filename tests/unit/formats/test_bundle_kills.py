"""Bundles whose writer was killed look like the old one, the new one, or nothing."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bundle_bench import list_names, open_writer, write
from joulemap.errors import UsageError
from joulemap.formats.bundle import MANIFEST, read_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write(tmp_path / "RUN.jm")


_WRITER = """
import sys, time
from pathlib import Path
from joulemap.formats.bundle_writer import BundleWriter
target, run_id = Path(sys.argv[1]), sys.argv[2]
print("go", flush=True)
while True:
    with BundleWriter(target, kind="profile", run_id=run_id, tool={}, created="", force=True) as writer:
        for k in range(20):
            writer.write_bytes(f"firmware/{k}.elf", bytes(20000), media_type="x", schema="")
        writer.commit(validity="valid")
"""


def test_a_killed_writer_leaves_the_old_bundle_or_the_new_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    target = write(tmp_path / "RUN.jm", run_id="old")
    for round_ in range(12):
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(target), f"new-{round_}"], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(float(rng.uniform(0, 0.03)))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        got = read_bundle(target)  # whole, whichever it is
        assert got.run_id == "old" or got.run_id.startswith("new-")
        visible = [name for name in list_names(tmp_path) if not name.startswith(".")]
        assert visible == ["RUN.jm"]
    write(target, force=True, run_id="last")
    assert list_names(tmp_path) == ["RUN.jm"]  # what the killed ones left was swept


def test_a_killed_first_writer_leaves_nothing_that_looks_like_a_bundle(tmp_path: Path) -> None:
    program = _WRITER.replace("writer.commit", "time.sleep(60); writer.commit")
    target = tmp_path / "RUN.jm"
    writer = subprocess.Popen([sys.executable, "-c", program, str(target), "x"], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    while not list(tmp_path.rglob("19.elf")):
        time.sleep(0.01)
    assert not target.exists()
    living = write(tmp_path / "RUN.jm")  # another writer of the same target leaves the living one's folder alone
    assert list(tmp_path.rglob("19.elf"))
    shutil.rmtree(living)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    assert not list(tmp_path.rglob(MANIFEST))
    with open_writer(target):
        assert not list(tmp_path.rglob("19.elf"))
    assert list_names(tmp_path) == []


def test_a_bundle_that_was_set_aside_comes_back(bundle: Path) -> None:
    # where the file system cannot exchange two folders in one step, a kill can strike between two renames
    partial = bundle.parent / ".RUN.jm.abc.partial"
    partial.mkdir()
    (partial / "lock").touch()
    bundle.rename(partial / "replaced")
    with pytest.raises(UsageError):
        write(bundle, run_id="run-2")
    assert read_bundle(bundle).run_id == "run-1"
    assert list_names(bundle.parent) == ["RUN.jm"]
