"""Clocks that are set, and a machine that sleeps, for programs that a test starts: the C library's clocks shifted."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["SteppedClocks"]

_SOURCE = Path(__file__).with_name("stepped_clocks.c")
_STEPS = struct.Struct("<3q")
_STEP_PROGRAM = """
import struct, sys, time
path, at_ns, utc_ns, boot_ns, rest_s = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
time.sleep(max(0, at_ns - time.monotonic_ns()) * 1e-9)
with open(path, "r+b", buffering=0) as file:
    file.write(struct.pack("<2q", utc_ns, boot_ns))
time.sleep(rest_s)
"""


@dataclass(frozen=True)
class SteppedClocks:
    """The shim and its steps; what runs with ``environment`` sees the shifted clocks."""

    library: Path
    steps: Path

    @classmethod
    def build(cls, folder: Path) -> SteppedClocks:
        """Compiles the shim; skips where there is no compiler, or no such way to put it in between."""
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None or sys.platform != "linux":
            pytest.skip("no C compiler of the system, or no LD_PRELOAD: the clocks cannot be shifted")
        library, steps = folder / "stepped_clocks.so", folder / "steps"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE], check=True)
        steps.write_bytes(bytes(_STEPS.size))
        return cls(library, steps)

    @property
    def environment(self) -> dict[str, str]:
        """Of a program whose clocks are shifted; what it starts inherits them."""
        return {**os.environ, "LD_PRELOAD": str(self.library), "JOULEMAP_STEPPED_CLOCKS": str(self.steps)}

    def command(self, *, at_ns: int, utc_ns: int, boot_ns: int, rest_s: float) -> list[str]:
        """A command that steps the clocks at an instant of the monotonic clock, or at once, and then rests."""
        numbers = map(str, (at_ns, utc_ns, boot_ns, rest_s))
        return [sys.executable, "-c", _STEP_PROGRAM, str(self.steps), *numbers]

    @property
    def asked(self) -> int:
        """How often a program asked for a clock while it was shifted."""
        return int(_STEPS.unpack(self.steps.read_bytes())[2])
