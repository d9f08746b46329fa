"""The program as a test calls it: in this process for speed, or as one of its own to be blocked or interrupted."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joulemap.cli.main import run

__all__ = ["PROGRAM", "Called", "call", "call_blocked", "leftovers"]

PROGRAM = [sys.executable, "-c", "from joulemap.cli.main import main; main()"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What one call of the program left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on stdout."""
        return json.loads(self.out)


def call(*arguments: str | Path) -> Called:
    """Runs the program in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return Called(code=code, out=out.getvalue(), err=err.getvalue())


def call_blocked(modules: tuple[str, ...], *arguments: str | Path) -> Called:
    """Runs the program in a process of its own in which the modules cannot be imported or found."""
    script = f"""
import sys
sys.modules.update(dict.fromkeys({modules!r}))  # None there: neither found nor imported
from joulemap.cli.main import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )
    return Called(code=done.returncode, out=done.stdout, err=done.stderr)


def leftovers(folder: Path) -> list[str]:
    """Returns what lies in a folder, hidden names included."""
    return sorted(entry.name for entry in folder.iterdir())
