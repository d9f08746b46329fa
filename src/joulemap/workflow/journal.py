"""What a run leaves in memory while it works: checkpoints, times of stages, and how far it came when it failed.

A journal is itself a progress sink: it keeps what is durable and hands everything on. Knows no stage and no screen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from joulemap.errors import JoulemapError, PipelineError
from joulemap.records.failure import FailureReport
from joulemap.records.progress import Phase, ProgressSink, ProgressUpdate

__all__ = ["RunJournal", "StageTiming"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTiming:
    """How long one stage took on the wall, s."""

    phase: Phase
    stage: str
    duration_s: float


class RunJournal:
    """Keeps checkpoints and stage times, fills in position and ETA, and hands every update on.

    Args:
        sink: takes the updates afterwards; None for none.
        clock: monotonic seconds; injected by tests.
    """

    def __init__(self, sink: ProgressSink | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._sink = sink
        self._clock = clock
        self._started_s = clock()
        self._stage_started_s = self._started_s
        self._stage: tuple[Phase, str, tuple[int, int]] | None = None
        self._checkpoints: list[ProgressUpdate] = []
        self._timings: list[StageTiming] = []
        self._lines: list[str] = []

    @property
    def checkpoints(self) -> tuple[ProgressUpdate, ...]:
        """Durable milestones so far, in order."""
        return tuple(self._checkpoints)

    @property
    def timings(self) -> tuple[StageTiming, ...]:
        """Stages that ended well so far, in order."""
        return tuple(self._timings)

    @property
    def lines(self) -> tuple[str, ...]:
        """What was said, one line per update, with seconds since the start."""
        return tuple(self._lines)

    def __call__(self, update: ProgressUpdate) -> None:
        """Takes an update of a stage."""
        if self._stage is not None and update.position is None:
            update = replace(update, position=self._stage[2])
        if update.eta_s is None:
            update = replace(update, eta_s=self._eta_s(update.details))
        if update.checkpoint:
            self._checkpoints.append(update)
        mark = "*" if update.checkpoint else " "
        elapsed_s = self._clock() - self._started_s
        self._lines.append(f"{elapsed_s:9.3f} s {mark} {update.phase:<7} {update.name}: {update.message}")
        if self._sink is not None:
            self._sink(update)

    def begin(self, phase: Phase, stage: str, position: tuple[int, int]) -> None:
        """Notes that a stage starts."""
        self._stage = (phase, stage, position)
        self._stage_started_s = self._clock()
        self(ProgressUpdate(phase=phase, name=stage, message=stage.replace("_", " "), position=position))

    def end(self) -> None:
        """Notes that the running stage ended well."""
        assert self._stage is not None  # begin comes first
        phase, stage, position = self._stage
        duration_s = self._clock() - self._stage_started_s
        self._timings.append(StageTiming(phase=phase, stage=stage, duration_s=duration_s))
        self(
            ProgressUpdate(
                phase=phase,
                name=stage,
                message=f"{stage} took {duration_s:.3f} s",
                details={"duration_s": duration_s},
                min_verbosity=1,
                position=position,
            )
        )
        self._stage = None

    def report_failure(self, error: JoulemapError) -> FailureReport:
        """Returns the error as a report: with the stage that ran and what had been completed before it."""
        details: Mapping[str, object] = {}
        phase, role = "", None
        if isinstance(error, PipelineError):
            phase, role, details = error.phase, error.artifact_role, error.details
        firmware_phase = details.get("firmware_phase")
        return FailureReport(
            slug=error.slug,
            message=error.message,
            hint=error.hint,
            exit_code=error.exit_code,
            phase=phase or (str(self._stage[0]) if self._stage else ""),
            stage=self._stage[1] if self._stage else "",
            completed=tuple(timing.stage for timing in self._timings),
            artifact_role=role,
            last_checkpoint=self._checkpoints[-1].message if self._checkpoints else None,
            firmware_phase=None if firmware_phase is None else str(firmware_phase),
            details=details,
        )

    def _eta_s(self, details: Mapping[str, object]) -> float | None:
        """Seconds left in this stage by the work done so far; None unless ``details`` say done and total."""
        done, total = details.get("done"), details.get("total")
        if not (isinstance(done, int | float) and isinstance(total, int | float) and 0 < done <= total):
            return None
        return (self._clock() - self._stage_started_s) * (total - done) / done
