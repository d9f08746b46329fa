"""Lines of a text recording."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["join_lines"]


def join_lines(head: str, rows: Iterable[str], end: str = "\n") -> bytes:
    """Returns a head (none when empty) and rows, each with its line end, as bytes."""
    return (end.join(([head] if head else []) + list(rows)) + end).encode()
