"""The seam of every cross compiler. A toolchain knows a core, never a board."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from joulemap.records.firmware import FirmwareArtifact, FirmwareSource
from joulemap.records.target import CpuSpec

__all__ = ["Toolchain"]


class Toolchain(Protocol):
    """Builds images and host libraries, cached by content."""

    @property
    def name(self) -> str:
        """Registry name, for example ``zig``."""
        ...

    def describe(self) -> str:
        """Returns name and version, for example ``zig 0.17.1 (clang 22.1.8)``.

        Raises:
            SetupError: the toolchain is not installed; the hint is the install line.
        """
        ...

    def build(self, source: FirmwareSource, cpu: CpuSpec) -> FirmwareArtifact:
        """Returns the linked image; an identical second build is taken from the cache.

        Raises:
            BuildError: compile or link error, with the compiler's first lines.
            CapacityError: the image does not fit a region (mapped from the linker's overflow message).
        """
        ...

    def build_host_library(self, name: str, files: Mapping[str, str]) -> Path:
        """Returns the path of a shared library for this machine, built from C files, cached by content.

        Raises:
            BuildError: compile error.
        """
        ...
