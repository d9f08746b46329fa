"""The mark of a tree that a test kit wrote: what is read there is simulated and never measured."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_made_up", "mark_made_up"]

_MARK = "class/joulemap-kit"


def is_made_up(root: Path) -> bool:
    """True when the tree bears the mark."""
    return (root / _MARK).exists()


def mark_made_up(root: Path) -> None:
    """Marks a tree.

    Raises:
        OSError: the folder cannot be written.
    """
    mark = root / _MARK
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text("written by joulemap.meters.live.kit: nothing in this tree is measured\n", "ascii")
