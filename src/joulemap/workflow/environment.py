"""What a run ran on, in words that hold no host name, user or path."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata

from joulemap import __version__

__all__ = ["describe_environment"]

_PACKAGES = ("numpy", "pyarrow", "numba", "ziglang", "unicorn", "pyelftools", "tflite-micro")


def describe_environment(packages: Sequence[str] = _PACKAGES) -> dict[str, object]:
    """Returns interpreter, platform, number of processors and versions; null for a package that is not installed."""
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
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
