"""What a machine is like as far as a measurement on it is concerned: each fact with what it means, or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["FactState", "MachineFact"]


class FactState(StrEnum):
    """What a fact means for a measurement."""

    OK = "ok"
    DOUBTFUL = "doubtful"  # figures are right and scatter more, or hold for this setting alone
    BAD = "bad"  # figures would be wrong
    UNKNOWN = "unknown"  # it could not be read: never taken for ok


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFact:
    """One fact.

    Args:
        key: snake_case, for example ``cpu_governor``.
        value: as the system has it, without names of hosts, users or their paths; None when it is unknown.
        state: what it means.
        detail: in words.
        fix: what to do, safe to paste; empty when there is nothing or none is needed.
    """

    key: str
    value: str | int | float | bool | None
    state: FactState
    detail: str
    fix: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) != (self.state is FactState.UNKNOWN):
            raise ValueError(f"fact {self.key}: what has no value is unknown, and what is unknown has none")
