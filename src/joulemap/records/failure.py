"""What is told of a run that ended without a headline: how far it came, what was active, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["FailureReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """A failure in the words of the pipeline document.

    Args:
        slug: anchor in ``docs/errors.md``, or a finding's in ``docs/findings.md``.
        message: what failed.
        hint: the one thing to do next; empty when there is none.
        exit_code: what the program ends with.
        phase: setup, profile, power or report; empty outside the pipeline.
        stage: the stage that was running; empty outside the pipeline.
        completed: stages that had ended well, in order.
        artifact_role: the firmware product that was active; None when none was.
        last_checkpoint: message of the last durable checkpoint of the host; None before the first.
        firmware_phase: the last phase that the firmware reported or that its RAM held; None when unknown.
        details: further facts, JSON-serialisable.
    """

    slug: str
    message: str
    hint: str
    exit_code: int
    phase: str = ""
    stage: str = ""
    completed: tuple[str, ...] = ()
    artifact_role: str | None = None
    last_checkpoint: str | None = None
    firmware_phase: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def to_json(self) -> dict[str, object]:
        """Returns the ``error`` member of a failure document."""
        return {
            "slug": self.slug,
            "message": self.message,
            "hint": self.hint or None,
            "exit_code": self.exit_code,
            "phase": self.phase or None,
            "stage": self.stage or None,
            "completed": list(self.completed),
            "artifact_role": self.artifact_role,
            "last_checkpoint": self.last_checkpoint,
            "firmware_phase": self.firmware_phase,
            "details": dict(self.details),
        }
