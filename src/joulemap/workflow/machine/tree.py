"""Small files of a system below a root folder; what cannot be read says why, and is never taken for empty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from joulemap.records.host.machine import FactState, MachineFact

__all__ = ["MachineTree", "unknown"]

_LIMIT_B = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTree:
    """The files of a machine.

    Args:
        root: folder that stands for ``/``.
    """

    root: Path = Path("/")

    def read(self, path: str) -> str | None:
        """Returns the text of a file without blanks around it; None when it is missing, no file or not readable."""
        try:
            with (self.root / path).open("rb") as file:
                return file.read(_LIMIT_B).decode("utf-8", "replace").strip()
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> int | None:
        """Returns a whole number; None when there is none."""
        text = self.read(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def glob(self, pattern: str) -> list[str]:
        """Returns the paths below the root that match, sorted."""
        try:
            return sorted(str(path.relative_to(self.root)) for path in self.root.glob(pattern))
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """Returns whether the path is there."""
        try:
            return (self.root / path).exists()
        except OSError:
            return False

    def is_denied(self, path: str) -> bool:
        """Returns whether a file is there and may not be read."""
        try:
            with (self.root / path).open("rb"):
                return False
        except PermissionError:
            return True
        except OSError:
            return False


def unknown(key: str, why: str, fix: str = "") -> MachineFact:
    """Returns a fact that could not be read."""
    return MachineFact(key=key, value=None, state=FactState.UNKNOWN, detail=why, fix=fix)
