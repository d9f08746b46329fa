"""Builds the stand-in for NVIDIA's management library with the compiler of the extra ``virtual``, for tests."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.resources import as_file, files
from pathlib import Path

from joulemap.errors import SetupError

__all__ = ["NVML_STUB_VARIABLE", "build_nvml_stub", "write_nvml_devices"]

NVML_STUB_VARIABLE = "JOULEMAP_NVML_STUB"
"""Environment variable that names the file of devices; the library reads it."""


def build_nvml_stub(folder: Path, *, marked: bool = True) -> Path:
    """Returns the shared library, compiled into the folder.

    Args:
        folder: is there.
        marked: it bears a mark by which what is read from it is labelled simulated; without one it passes for the
            maker's own, which only a test of the labels should want.

    Raises:
        SetupError: there is no compiler (``missing-extra``), or it failed (``kit-failed``).
    """
    if importlib.util.find_spec("ziglang") is None:
        raise SetupError("ziglang is not installed", hint="pip install 'joulemap[virtual]'", slug="missing-extra")
    target = folder / "libnvidia-ml.so.1"
    with as_file(files("joulemap.meters.live.kit") / "nvml_stub.c") as source:
        mark = () if marked else ("-DJOULEMAP_UNMARKED",)
        command = [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            "-shared",
            "-fPIC",
            "-O1",
            *mark,
            "-o",
            str(target),
            str(source),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(
            f"the stand-in for NVML does not compile: {done.stderr.strip()[-300:]}",
            hint="is the folder writable?",
            slug="kit-failed",
        )
    return target


def write_nvml_devices(path: Path, devices: Iterable[Mapping[str, object]]) -> None:
    """Writes the file of devices: one line each; a list of values repeats its key (slices of one device)."""
    lines = []
    for device in devices:
        words = []
        for key, value in device.items():
            many = value if isinstance(value, (list, tuple)) else [value]
            words += [f"{key}={str(one).replace(' ', '_')}" for one in many]
        lines.append(" ".join(words) + "\n")
    path.write_text("".join(lines), "ascii")
