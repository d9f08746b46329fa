"""Rules of supply rails on boards: which rail is the whole of a module, whatever chip or driver shows it.

References:
    FORMATS 3 (tegrastats) and 4 (reports 33, 34): VDD_IN and POM_5V_IN feed a Jetson module; VIN_SYS_5V0 of AGX Orin is
    only its 5 V part, so its rails are added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from joulemap.estimate import Boundary

__all__ = ["is_total", "rail_boundary", "rails_around", "unique_names"]

_TOTALS = frozenset({"VDD_IN", "POM_5V_IN"})
_TOTAL_WORD = re.compile(r"\btotal\b", re.IGNORECASE)


def is_total(label: str) -> bool:
    """True when a rail of that label contains the other rails."""
    return label in _TOTALS or bool(_TOTAL_WORD.search(label))


def rail_boundary(label: str) -> Boundary:
    """Returns what a rail feeds: the board for the whole of it."""
    return Boundary.BOARD if is_total(label) else Boundary.RAIL


def rails_around(label: str, labels: Iterable[str]) -> tuple[str, ...]:
    """Returns the labels of the rails that contain a rail."""
    return () if is_total(label) else tuple(other for other in labels if is_total(other))


def unique_names(labels: Sequence[str], places: Sequence[str]) -> list[str]:
    """Returns a name for each label, with its place where another has the same label (two rails called NC)."""
    return [
        label if labels.count(label) == 1 else f"{label}@{place}" for label, place in zip(labels, places, strict=True)
    ]
