"""Instants that something outside the power stream put there: an edge, a sync pulse, a user's mark."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["EdgeDirection", "Marker"]


class EdgeDirection(StrEnum):
    """Which way a line went; NONE for a mark that is no edge."""

    RISE = "rise"
    FALL = "fall"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A named instant on the clock of the record that holds it.

    Args:
        time_ns: instant, integer ns.
        name: line or mark name, for example ``gate``.
        direction: of an edge.
    """

    time_ns: int
    name: str
    direction: EdgeDirection = EdgeDirection.NONE
