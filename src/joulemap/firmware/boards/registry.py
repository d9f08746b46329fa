"""The boards that a run can name with ``--target``. The one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable

from joulemap.errors import UsageError
from joulemap.firmware.boards.base import Board
from joulemap.firmware.boards.virtual_m33.board import VirtualM33Board

__all__ = ["board", "board_names"]

_BOARDS: dict[str, Callable[[], Board]] = {"virtual-m33": VirtualM33Board}


def board_names() -> tuple[str, ...]:
    """Returns the names that :func:`board` knows."""
    return tuple(_BOARDS)


def board(name: str) -> Board:
    """Returns the board of that name.

    Raises:
        UsageError: there is none (``unknown-target``).
    """
    if name not in _BOARDS:
        raise UsageError(
            f"no target named {name}",
            hint=f"one of: {', '.join(_BOARDS)}; host for this machine",
            slug="unknown-target",
        )
    return _BOARDS[name]()
