"""The pipeline runner: stages in order, each a function from what is known to what is known next.

Knows nothing of what a stage does. It never retries: a retry would hide a build, a flash, a reset or a capture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from joulemap.records.progress import Phase
from joulemap.workflow.journal import RunJournal

__all__ = ["PipelineRunner", "Stage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of a pipeline.

    Args:
        name: snake_case name of the pipeline document.
        phase: where it belongs.
        run: takes the context that the stage before returned, returns the next one. Contexts are typed variants:
            a stage refuses one that its producer has not made.
    """

    name: str
    phase: Phase
    run: Callable[[Any], Any]


class PipelineRunner:
    """Runs stages strictly in order.

    Args:
        stages: in order; position and number of stages are counted from this list.
        journal: takes note of each stage, so that a failure can say how far the run came.
    """

    def __init__(self, stages: Sequence[Stage], *, journal: RunJournal) -> None:
        names = [stage.name for stage in stages]
        if len(set(names)) != len(names):
            raise ValueError(f"a stage may run once only, got {names}")
        self._stages = tuple(stages)
        self._journal = journal

    def run(self, context: Any) -> Any:
        """Returns the context after the last stage; an error passes on unchanged, the journal knows its stage."""
        for number, stage in enumerate(self._stages, start=1):
            self._journal.begin(stage.phase, stage.name, (number, len(self._stages)))
            context = stage.run(context)
            self._journal.end()
        return context
