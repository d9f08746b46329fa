"""Firmware as records: rendered source, built artefact, what was deployed where."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

__all__ = ["ArtifactRole", "DeploymentRecord", "FirmwareArtifact", "FirmwareSource"]


class ArtifactRole(StrEnum):
    """The two firmware products; never one image with modes."""

    PROFILE = "hpx_profiler"
    POWER = "hpx_profiler_power"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareSource:
    """A rendered source tree, not yet built.

    Args:
        role: which product.
        files: file name -> text; ``.c`` and ``.h`` and one ``.ld``.
        defines: preprocessor definitions, name -> value.
    """

    role: ArtifactRole
    files: Mapping[str, str]
    defines: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))
        object.__setattr__(self, "defines", MappingProxyType(dict(self.defines)))

    @property
    def sha256(self) -> str:
        """Digest over role, definitions and every file, in a fixed order."""
        digest = hashlib.sha256(self.role.encode())
        for table in (self.defines, self.files):
            for name in sorted(table):
                for part in (name, table[name]):
                    encoded = part.encode()
                    digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareArtifact:
    """A built image.

    Args:
        role: which product.
        elf: path of the ELF in the build cache.
        sha256: digest of the ELF.
        source_sha256: digest of the source that it was built from.
        sections: allocated section name -> bytes.
        symbols: function and object symbols, name -> (address, bytes).
        flash_b: bytes of flash used.
        ram_b: bytes of RAM used, stack included.
        toolchain: name and version, for example ``zig 0.17.1 (clang 22.1.8)``.
        command: compile and link command lines with paths of the machine taken out.
        reused: True when the build cache held it already.
    """

    role: ArtifactRole
    elf: Path
    sha256: str
    source_sha256: str
    sections: Mapping[str, int]
    symbols: Mapping[str, tuple[int, int]]
    flash_b: int
    ram_b: int
    toolchain: str
    command: tuple[str, ...]
    reused: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "sections", MappingProxyType(dict(self.sections)))
        object.__setattr__(self, "symbols", MappingProxyType(dict(self.symbols)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRecord:
    """What was flashed, where and when; never inferred from a path.

    Args:
        firmware: the artefact.
        target_id: identity of the target that took it.
        deployed_at: ISO 8601 UTC.
    """

    firmware: FirmwareArtifact
    target_id: str
    deployed_at: str
