"""What a run ran on, in words that hold no host name, user or path."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from joulemap import __version__
from joulemap.workflow.machine.survey import describe_machine

__all__ = ["describe_environment"]

_PACKAGES = ("numpy", "pyarrow", "numba", "ziglang", "unicorn", "pyelftools", "tflite-micro")


def describe_environment(packages: Sequence[str] = _PACKAGES, *, root: Path = Path("/")) -> dict[str, object]:
    """Returns interpreter, platform, processors, versions and the state of the machine.

    Null stands for a package that is not installed, and for what the machine does not tell.

    Args:
        packages: whose versions are told.
        root: folder that stands for the machine's ``/``.
    """
    return {
        "joulemap": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "byteorder": sys.byteorder,
        "processors": os.cpu_count(),
        "packages": {name: _version(name) for name in packages},
        "state": describe_machine(root),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
