"""The seam of every board: lines, time, memory and, on virtual boards, the rail and the truth behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from joulemap.records.rail import BoardTruth, RailActivity
from joulemap.records.target import Line, Target

__all__ = ["Board", "BoardSession", "BoardStop", "ResetOptions", "StopReason"]


class StopReason(StrEnum):
    """Why a board stopped running."""

    EDGE = "edge"
    IDLE = "idle"
    DEADLINE = "deadline"
    HARD_FAULT = "hard_fault"
    BROWN_OUT = "brown_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardStop:
    """Where and why the board stopped.

    Args:
        reason: an edge on a wanted line, a core that sleeps with nothing to wake it, the deadline, a fault.
        time_ns: board time, ns.
        line: the line of the edge; None otherwise.
        level: its new level; None otherwise.
        registers: core registers and fault cause after a hard fault, by name.
        message: of a fault, for a person.
    """

    reason: StopReason
    time_ns: int
    line: Line | None = None
    level: bool | None = None
    registers: Mapping[str, int] = field(default_factory=dict)
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOptions:
    """How a virtual board starts.

    Args:
        deadline_s: board time after which it stops, s.
        record_rail: keep energy rows.
        run_factor: factor on the rail's power in this run (run-to-run variation), > 0.
        layer_factors: factor on each layer's power (``--contrast``); empty for none.
        fault_select: word that a firmware built with fault hooks reads from the board; 0 for none.
        fault_argument: its argument.
        brown_out_at_s: the supply collapses at this board time; None for never.
        throttle_at_s: the clock is clamped from this board time on; None for never.
    """

    deadline_s: float
    record_rail: bool = False
    run_factor: float = 1.0
    layer_factors: Sequence[float] = ()
    fault_select: int = 0
    fault_argument: int = 0
    brown_out_at_s: float | None = None
    throttle_at_s: float | None = None


class BoardSession(Protocol):
    """One powered board. Any call may raise ``PowerError`` or ``BuildError``, slug ``board-lost``, when it is gone."""

    @property
    def target_id(self) -> str:
        """Identity of this very board."""
        ...

    def flash(self, elf: Path, *, layer_symbols: Sequence[str]) -> None:
        """Programs the image; ``layer_symbols`` lets a virtual board keep truth and counts per layer.

        Raises:
            BuildError: the image does not fit or has no entry.
        """
        ...

    def reset(self, options: ResetOptions) -> None:
        """Resets the core to the start of the image; time, lines, rail and counts start anew."""
        ...

    def run(self, *, until: frozenset[Line] = frozenset()) -> BoardStop:
        """Runs to an edge on a wanted line, an idle core, the deadline or a fault."""
        ...

    def advance(self, duration_s: float) -> None:
        """Lets board time pass while the core sleeps, at most to its own wake-up time."""
        ...

    def set_line(self, line: Line, level: bool) -> None:
        """Drives a host line (GO)."""
        ...

    def read_memory(self, address: int, size_b: int) -> bytes:
        """Returns memory without disturbing the core (an attach without reset)."""
        ...

    def write_memory(self, address: int, content: bytes) -> None:
        """Writes RAM without resetting the core."""
        ...

    def layer_instructions(self) -> tuple[int, ...] | None:
        """Returns instructions issued per layer entry, rounded; None when the board cannot count them."""
        ...

    def throttled_share(self) -> float:
        """Returns the share of the time since reset that a clock or thermal clamp was active, 0..1."""
        ...

    def rail(self) -> RailActivity:
        """Returns what left the rail since reset, the run factor included."""
        ...

    def truth(self) -> BoardTruth:
        """Returns the true energies since reset at run factor 1."""
        ...

    def close(self) -> None:
        """Ends the board's process; idempotent."""
        ...


class Board(Protocol):
    """A kind of board that a target names."""

    @property
    def target(self) -> Target:
        """What the board is."""
        ...

    def diagnose(self) -> list[tuple[str, str]]:
        """Returns what keeps the board from running: (problem, exact fix); empty when it can run."""
        ...

    def open(self) -> BoardSession:
        """Returns a powered session.

        Raises:
            SetupError: an extra, a tool or the board is missing; the hint is the exact fix.
        """
        ...
