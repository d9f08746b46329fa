"""``joulemap record`` as a program of its own, over a simulated meter of known power."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from program import PROGRAM

METER = "simulated:mean_w=20,swing_w=10,shape=sine,period_s=0.4"
SOURCES = str(Path(__file__).resolve().parents[2] / "src")


def record(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs it to its end."""
    command = [*PROGRAM, "record", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=120)


def assert_within(energy: dict[str, Any], truth_j: float) -> None:
    """On a busy machine readings come late: by how much is what the interval that is printed must hold."""
    assert abs(energy["value"] - truth_j) <= energy["expanded"], (energy, truth_j)


def document_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The document on stdout, behind what the command wrote there."""
    document: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return document
