"""``profile --target host``: one model, this machine, one bundle."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from joulemap import __version__
from joulemap.errors import PipelineError, PowerError
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.records.host.request import HostRequest
from joulemap.records.progress import Phase
from joulemap.runtimes.base import Runtime
from joulemap.workflow.host.account_stage import attribute_energy
from joulemap.workflow.host.context import Accounted, Ready, Started, grow
from joulemap.workflow.host.load_stages import load_model, time_operators
from joulemap.workflow.host.meter_access import MeterAccess
from joulemap.workflow.host.result import build_host_result
from joulemap.workflow.host.save import write_host_sections
from joulemap.workflow.host.services import open_services
from joulemap.workflow.host.windows.window_stages import measure_windows, plan_windows
from joulemap.workflow.journal import RunJournal
from joulemap.workflow.profile import ProfileOutcome
from joulemap.workflow.runner import PipelineRunner, Stage

__all__ = ["HostServices", "profile_host"]

HostServices = Callable[[HostRequest], tuple[Runtime, MeterAccess]]
"""Returns the runtime and the meter of a request, or refuses."""


def profile_host(
    request: HostRequest,
    output: Path,
    *,
    force: bool = False,
    journal: RunJournal | None = None,
    services: HostServices = open_services,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> ProfileOutcome:
    """Measures the model on this machine and returns what was written; a failed run leaves nothing behind.

    Args:
        request: what to run.
        output: the bundle to write.
        force: replace a bundle that is there.
        journal: takes checkpoints and stage times; a silent one when None.
        services: runtime and meter; those of this machine when not given.
        now: date and time of the bundle.

    Raises:
        UsageError: an unknown name, or a bundle that exists.
        SetupError: no meter can be read (``no-live-meter``), something is not installed, the output cannot be written.
        InputError: the model or its input is rejected.
        PowerError: nothing was recorded.
    """
    journal = journal or RunJournal()
    run_id = uuid.uuid4().hex
    runtime, access = services(request)
    with contextlib.ExitStack() as held:
        held.callback(access.close)
        writer = held.enter_context(
            BundleWriter(
                output,
                kind="profile",
                run_id=run_id,
                tool={"name": "joulemap", "version": __version__},
                created=now().isoformat(timespec="seconds"),
                force=force,
            )
        )
        report = _Report(writer=writer, run_id=run_id, name=output.name, journal=journal)
        started = Started(request=request, progress=journal)
        ready = grow(started, Ready, runtime=runtime, access=access)
        done = PipelineRunner(_stages(report), journal=journal).run(ready)
    assert isinstance(done, Accounted)  # what the last stage returns
    error = _failure(done)
    failure = None if error is None else journal.report_failure(error)
    document = build_host_result(done, run_id=run_id, checkpoints=journal.checkpoints, bundle=str(output))
    done.session.close()
    return ProfileOutcome(document=document, bundle=output, failure=failure)


def _stages(report: _Report) -> tuple[Stage, ...]:
    return (
        Stage(name="load_model", phase=Phase.SETUP, run=load_model),
        Stage(name="time_operators", phase=Phase.PROFILE, run=time_operators),
        Stage(name="plan_windows", phase=Phase.POWER, run=plan_windows),
        Stage(name="measure_windows", phase=Phase.POWER, run=measure_windows),
        Stage(name="attribute_energy", phase=Phase.REPORT, run=attribute_energy),
        Stage(name="generate_report", phase=Phase.REPORT, run=report.generate_report),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Report:
    writer: BundleWriter
    run_id: str
    name: str
    journal: RunJournal

    def generate_report(self, done: Accounted) -> Accounted:
        result = build_host_result(done, run_id=self.run_id, checkpoints=self.journal.checkpoints, bundle=self.name)
        write_host_sections(self.writer, done, result, timings=self.journal.timings, log=self.journal.lines)
        self.writer.commit(validity=str(done.validity))
        return done


def _failure(done: Accounted) -> PipelineError | None:
    if done.account is not None:
        return None
    message = next((f.message for f in reversed(done.findings) if f.slug == done.reason), done.reason)
    return PowerError(
        message,
        hint="see the findings; record longer windows (--window-s), or choose another meter (--meter)",
        slug=done.reason.replace("_", "-"),
        phase="report",
        details={"reason": done.reason},
    )
