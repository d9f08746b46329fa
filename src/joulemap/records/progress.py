"""What a run says while it works: one typed value for passing status and for durable checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

__all__ = ["Phase", "ProgressSink", "ProgressUpdate"]


class Phase(StrEnum):
    """The four phases of a pipeline run, in order."""

    SETUP = "setup"
    PROFILE = "profile"
    POWER = "power"
    REPORT = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressUpdate:
    """Status or checkpoint. Units in ``details`` are real ones (iterations, bytes, passes, seconds).

    Args:
        phase: where the run is.
        name: stage or checkpoint name in snake_case.
        message: one line for a person, without markup.
        details: facts, JSON-serialisable.
        min_verbosity: 0 shown always, 1 with -v, 2 with -vv.
        checkpoint: True for a durable milestone, False for passing status.
        position: (k, n): the k-th of n stages, counted from 1; None when it is no stage status.
        eta_s: seconds left, only from known work or measured time; None otherwise.
    """

    phase: Phase
    name: str
    message: str
    details: Mapping[str, object] = field(default_factory=dict)
    min_verbosity: int = 0
    checkpoint: bool = False
    position: tuple[int, int] | None = None
    eta_s: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))


ProgressSink = Callable[[ProgressUpdate], None]
