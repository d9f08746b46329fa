"""``profile``: one model, one target, one bundle. What joins the rooms, from the request to the saved result."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from joulemap import __version__
from joulemap.firmware.stages.bench import Bench
from joulemap.firmware.stages.context import Requested
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.records.failure import FailureReport
from joulemap.records.progress import ProgressSink
from joulemap.records.run import ProfileRequest
from joulemap.workflow.journal import RunJournal
from joulemap.workflow.report_stages import Report
from joulemap.workflow.result import build_result
from joulemap.workflow.runner import PipelineRunner
from joulemap.workflow.stage_list import plan_stages

__all__ = ["ProfileOutcome", "profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOutcome:
    """A run that wrote a bundle.

    Args:
        document: the result, as ``--json`` shows it.
        bundle: where the bundle lies.
        failure: why there is no headline; None for a run that has one.
    """

    document: dict[str, object]
    bundle: Path
    failure: FailureReport | None

    @property
    def exit_code(self) -> int:
        """0, or the failure's."""
        return 0 if self.failure is None else self.failure.exit_code


def profile(
    request: ProfileRequest,
    output: Path,
    *,
    force: bool = False,
    journal: RunJournal | None = None,
    make_bench: Callable[[ProgressSink], Bench] | None = None,
) -> ProfileOutcome:
    """Runs the whole pipeline and returns what it wrote; an interrupted or failed run leaves nothing behind.

    Args:
        request: what to run.
        output: the bundle to write.
        force: replace a bundle that is there.
        journal: takes checkpoints and stage times; a silent one when None.
        make_bench: the services of the run, given its progress sink; None for the shipped ones.

    Raises:
        UsageError: unknown name, or a bundle that exists.
        SetupError: something is missing, or the output cannot be written.
        InputError, EngineError, CapacityError: the model is rejected.
        PipelineError: a stage failed and nothing may be claimed at all.
    """
    journal = journal or RunJournal()
    bench = make_bench(journal) if make_bench else Bench(progress=journal)
    run_id = uuid.uuid4().hex
    writer = BundleWriter(
        output,
        kind="profile",
        run_id=run_id,
        tool={"name": "joulemap", "version": __version__},
        created=bench.now().isoformat(timespec="seconds"),
        force=force,
    )
    with bench.resources, writer:
        report = Report(writer=writer, run_id=run_id, name=output.name, journal=journal)
        stages = plan_stages(report, power=request.power)
        done = PipelineRunner(stages, journal=journal).run(Requested(request=request, bench=bench))
    failure = None if done.failure is None else journal.report_failure(done.failure)
    return ProfileOutcome(document=build_result(done.facts, bundle=str(output)), bundle=output, failure=failure)
