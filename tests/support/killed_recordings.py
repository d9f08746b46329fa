"""Recordings in processes of their own, one of which is killed at a random moment; and what must be left of them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.capture import CaptureReader
from joulemap.formats.live.segments import read_capture
from joulemap.formats.registry import load_trace
from joulemap.records.live.capture_layout import BlockKind, decode_blocks
from joulemap.workflow.recordings.recording_bundle import open_recordings

__all__ = ["VICTIMS", "KilledRun", "kill_one", "sampler_pids"]

VICTIMS = ("sampler", "parent", "child")
_METER = "simulated:mean_w=20,swing_w=5,shape=sine,period_s=0.7"
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledRun:
    """What was left.

    Args:
        victim: who was killed.
        lost_s: time between the last sample before the kill and the kill, s.
        status: of the recording process.
        orphans: sampling processes that outlived their recording.
        findings: slugs of what was read again.
    """

    victim: str
    lost_s: float
    status: int
    orphans: tuple[int, ...]
    findings: tuple[str, ...]


def sampler_pids(capture: Path) -> list[int]:
    """Process ids of every sampling process that wrote to a capture."""
    blocks = decode_blocks(capture.read_bytes())
    return [int(json.loads(block.payload)["facts"]["pid"]) for block in blocks if block.kind == BlockKind.HEADER]


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _wait(what: str, condition: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.01)


def kill_one(folder: Path, victim: str, rng: random.Random) -> KilledRun:
    """Starts a recording, kills one of its processes after a random while, and reads what is left."""
    output, pid_file = folder / "run.jm", folder / "pid"
    command = f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 60"
    recorder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from joulemap.cli.main import main; main()",
            *("record", "--meter", _METER, "--rate", "200", "--quiet", "-o", str(output), "--", "sh", "-c", command),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    capture = folder / "run.jm.live" / "capture.jmc"
    child = 0
    try:
        _wait("the command did not start", pid_file.is_file)
        child = int(pid_file.read_text())
        time.sleep(rng.uniform(0.0, 1.2))
        pids = {"parent": recorder.pid, "child": child, "sampler": sampler_pids(capture)[-1]}
        killed_ns = time.monotonic_ns()
        os.kill(pids[victim], signal.SIGKILL)
        if victim == "sampler":
            _wait("no second sampler", lambda: len(sampler_pids(capture)) > 1)
            time.sleep(0.3)
            os.kill(child, signal.SIGTERM)
        samplers = sampler_pids(capture)
        recorder.wait(_PATIENCE_S)
        until = time.monotonic() + 5.0
        while any(_alive(pid) for pid in samplers) and time.monotonic() < until:
            time.sleep(0.02)
        stamps, findings = _read(output, capture, killed_ns)
        before = stamps[stamps <= killed_ns]
        return KilledRun(
            victim=victim,
            lost_s=(killed_ns - int(before[-1])) * 1e-9,
            status=recorder.returncode,
            orphans=tuple(pid for pid in samplers if _alive(pid)),
            findings=findings,
        )
    finally:
        for pid in (child, recorder.pid):
            if pid and _alive(pid):
                os.kill(pid, signal.SIGKILL)
        recorder.wait()


def _read(output: Path, capture: Path, killed_ns: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Returns the instants of samples, ns, and the findings: of the bundle when there is one, else of the capture."""
    if output.is_dir():
        recordings = open_recordings(output)
        (entry,) = recordings.entries
        trace = load_trace(recordings.bundle, entry.traces[0].name)[0]
        assert trace.edges_ns is not None
        assert trace.end_ns > killed_ns  # it went on
        return np.asarray(trace.edges_ns), tuple(finding.slug for finding in entry.findings)
    recording = CaptureReader().read(capture.parent, ReadOptions())
    rows = read_capture(capture, FindingLog()).rows[0]
    assert recording.traces
    return rows.stamp_ns, tuple(finding.slug for finding in recording.findings)
