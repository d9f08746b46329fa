"""What was marked into a folder, as slices."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.capture import MONOTONIC
from joulemap.formats.live.mark_tracks import place_marks
from joulemap.formats.live.marks import read_marks
from joulemap.trace import Slice


def slices(folder: Path, log: FindingLog | None = None) -> list[Slice]:
    """Every mark of a folder as a slice."""
    used = log or FindingLog()
    placed = place_marks(read_marks(folder, used), time.monotonic_ns(), used)
    return list(placed.timeline(MONOTONIC, np.ones(placed.start_ns.size, np.bool_)))


def by_name(folder: Path) -> dict[str, list[Slice]]:
    """The slices of a folder by their names."""
    found: dict[str, list[Slice]] = {}
    for piece in slices(folder):
        found.setdefault(piece.name, []).append(piece)
    return found
