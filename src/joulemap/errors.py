"""The error tree: one class per way a reader should react, each with an exit code and a slug.

Every error carries a *slug*, which is an anchor in ``docs/errors.md`` (cause and cure), and a *hint*, the one thing
to do next. Doubtful data is no error: it is a ``Finding`` that rides with a record. This module knows nothing of
measurement, files or the screen.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

__all__ = [
    "BuildError",
    "CapacityError",
    "CaptureError",
    "EngineError",
    "FirmwareError",
    "FormatError",
    "InputError",
    "JoulemapError",
    "NotComparableError",
    "PipelineError",
    "PowerError",
    "ReportError",
    "SetupError",
    "UsageError",
]


class JoulemapError(Exception):
    """A failure with a slug, a hint and an exit code; raised itself it means a fault of joulemap (exit 70).

    Args:
        message: what failed and where, in one or two sentences.
        hint: the one thing to do next; empty when there is none.
        slug: kebab-case anchor in ``docs/errors.md``.
    """

    exit_code: ClassVar[int] = 70
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "", slug: str = "internal-fault") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.slug = slug


class UsageError(JoulemapError):
    """A flag, a name or a combination that the command does not have (exit 2)."""

    exit_code = 2


class SetupError(JoulemapError):
    """The environment lacks something: an extra, a tool, a board, a permission, a writable folder (exit 3)."""

    exit_code = 3


class NotComparableError(JoulemapError):
    """Two results that must not be compared, for a stated reason (exit 5)."""

    exit_code = 5


class InputError(JoulemapError):
    """An input that is missing, unreadable or of the wrong kind (exit 6)."""

    exit_code = 6


class FormatError(InputError):
    """A file whose content breaks its own format; the message names file and line or offset (exit 6)."""


class PipelineError(JoulemapError):
    """A failure inside the firmware pipeline, with its phase and the artefact that was active.

    Args:
        message: what failed.
        hint: the immediate corrective step.
        slug: anchor in ``docs/errors.md``.
        phase: ``setup``, ``profile``, ``power`` or ``report``.
        artifact_role: ``hpx_profiler`` or ``hpx_profiler_power`` when one was active.
        details: further facts (firmware phase, fault registers, seconds), JSON-serialisable.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        slug: str,
        phase: str,
        artifact_role: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, slug=slug)
        self.phase = phase
        self.artifact_role = artifact_role
        self.details: Mapping[str, object] = MappingProxyType(dict(details or {}))


class EngineError(PipelineError):
    """The model cannot be taken by the engine; names op, index and tensor (exit 6)."""

    exit_code = 6


class CapacityError(PipelineError):
    """The model or image does not fit a memory region; details hold region, need_b and have_b (exit 6)."""

    exit_code = 6


class FirmwareError(PipelineError):
    """Rendering a firmware source failed (exit 7)."""

    exit_code = 7


class BuildError(PipelineError):
    """A compiler, linker or deployment failed (exit 7)."""

    exit_code = 7


class CaptureError(PipelineError):
    """The profile stream is unusable: truncated, corrupt, or its link was lost (exit 4)."""

    exit_code = 4


class PowerError(PipelineError):
    """The power observation or its reconciliation failed (exit 4)."""

    exit_code = 4


class ReportError(PipelineError):
    """An output could not be produced or written (exit 3)."""

    exit_code = 3
