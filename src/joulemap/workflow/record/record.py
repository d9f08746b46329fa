"""``record``: meters, baseline, runs, baseline; the command's status is told whatever becomes of the measurement."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from joulemap.errors import JoulemapError, UsageError
from joulemap.meters.live.discovery import find_meters
from joulemap.meters.live.marking.sink import MarkSink
from joulemap.records.finding import Finding, Severity
from joulemap.records.live.domain import DomainReading, MeterCandidate
from joulemap.records.live.mark_layout import FOLDER_VARIABLE
from joulemap.workflow.record.command import CommandEnd, list_survivors, run_command
from joulemap.workflow.record.headline import check_headline
from joulemap.workflow.record.live_power import LivePower
from joulemap.workflow.record.request import LiveLine, Recorded, RecordRequest
from joulemap.workflow.record.save import RecordBundle
from joulemap.workflow.record.server import ServerCounts
from joulemap.workflow.record.session import SampledSession

__all__ = ["RecordOutcome", "default_output", "live_folder", "record"]

_INTERRUPTED: Final = 130
_TICK_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOutcome:
    """What came of a recording.

    Args:
        status: of the command; of the first run that failed.
        document: as ``--json`` shows it; None when nothing could be measured or saved.
        failure: why; None when all went well.
    """

    status: int
    document: dict[str, object] | None
    failure: JoulemapError | None = None


def live_folder(output: Path) -> Path:
    """Returns where the capture of a bundle lies while it is recorded, and stays when the recording is killed."""
    return output.with_name(f"{output.name}.live")


def record(request: RecordRequest, show: Callable[[LiveLine], None]) -> RecordOutcome:
    """Records the command and writes the bundle.

    Args:
        request: what is asked for.
        show: told what is going on, about twice a second, from this thread.

    Raises:
        SetupError: no meter can be read, the server does not tell its counters, or the output cannot be written;
            nothing has run then.
        UsageError: no such program, meter, domain or option, or the output exists; nothing has run then.
    """
    candidates = find_meters(request.meters)
    _require_power(candidates)
    check_headline(request.headline, candidates)
    _require_program(request.command[0])
    with (
        _watch_server(request) as server,
        RecordBundle(request) as bundle,
        SampledSession(
            candidates, rate_hz=request.rate_hz, folder=live_folder(request.output), priority=request.priority
        ) as session,
    ):
        try:
            session.start()
            runs = _Runs(request, session, show, server)
            runs.go()
        except (KeyboardInterrupt, JoulemapError):
            session.discard()  # what an interrupt or a command that never ran leaves is no recording
            raise
        status = runs.status
        try:
            recorded = Recorded(
                recording=session.stop(),
                ends=tuple(runs.ends),
                plain=tuple(runs.plain),
                baselines=tuple(runs.baselines),
                findings=tuple(runs.findings),
                headline=request.headline,
                server=request.server,
                units=server.units() if server is not None else (),
            )
            document = bundle.write(recorded, session)
        except KeyboardInterrupt:
            session.discard()  # the call says that nothing was left behind
            raise
        except JoulemapError as error:
            if error.slug == "nothing-recorded":
                session.discard()  # there is nothing to save in it
            return RecordOutcome(status=status, document=None, failure=error)
        if not request.keep:
            session.discard()
    return RecordOutcome(status=status, document=document)


def _watch_server(request: RecordRequest) -> AbstractContextManager[ServerCounts | None]:
    return ServerCounts(request.server, request.counted) if request.server else nullcontext()


def _require_program(name: str) -> None:
    """Refuses a command that cannot run, before anything is measured.

    Raises:
        UsageError: there is none (``command-not-found``), or it is no program (``command-not-runnable``).
    """
    if shutil.which(name) is not None:
        return
    if Path(name).exists() and os.sep in name:
        raise UsageError(
            f"{name}: is not a program that can be run",
            hint="check its permissions and that it is a program",
            slug="command-not-runnable",
        )
    raise UsageError(f"{name}: there is no such program", hint="check the command after --", slug="command-not-found")


def _require_power(candidates: tuple[MeterCandidate, ...]) -> None:
    """Refuses meters of which none gives power.

    Raises:
        UsageError: as said (``no-power``).
    """
    if any(domain.reading is not DomainReading.SIGNAL for meter in candidates for domain in meter.domains):
        return
    names = ", ".join(candidate.name for candidate in candidates)
    raise UsageError(
        f"{names}: no power among what is read", hint="name a meter of power with --meter", slug="meter-without-power"
    )


@dataclass(slots=True)
class _Runs:
    """The runs of a recording, as they go."""

    request: RecordRequest
    session: SampledSession
    show: Callable[[LiveLine], None]
    server: ServerCounts | None = None
    ends: list[CommandEnd] = field(default_factory=list)
    plain: list[CommandEnd] = field(default_factory=list)
    baselines: list[tuple[int, int]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    status: int = 0

    def go(self) -> None:
        """Runs the baseline, every run, and the baseline again."""
        sink = self.session.open_marks("run")
        live = LivePower(self.session.header)
        try:
            if self.request.baseline_s > 0:
                self._rest(sink, live)
            for number in range(1, self.request.repeats + 1):
                if not self._run_pair(number, sink, live):
                    break
            if self.request.baseline_s > 0:
                self._rest(sink, live)
        except KeyboardInterrupt:
            if not self.ends:
                raise
            self._break_off()
        finally:
            sink.close()
        if self.server is not None:
            self.server.close_runs()
            self.findings += self.server.findings
        left = list_survivors(FOLDER_VARIABLE, str(self.session.marks_folder))
        if left:
            message = (
                f"{len(left)} processes that the command started still run; what they draw after its end is in no"
                " figure, and the baseline after it is not at rest"
            )
            self.findings.append(Finding(slug="processes_left", severity=Severity.WARNING, message=message))

    def _break_off(self) -> None:
        """Notes that an interrupt came between the runs: those that have ended are kept."""
        self.status = self.status or _INTERRUPTED
        message = f"interrupted after {len(self.ends)} of {self.request.repeats} runs; these are kept"
        if self.request.baseline_s > 0 and len(self.baselines) < 2:
            message += ", without the baseline after them"
        self.findings.append(Finding(slug="record_interrupted", severity=Severity.WARNING, message=message))

    def _rest(self, sink: MarkSink, live: LivePower) -> None:
        self.session.read_now()
        begin_ns = time.monotonic_ns()
        end = sink.open_stretch("baseline", "baseline", begin_ns)
        until_ns = begin_ns + round(self.request.baseline_s * 1e9)
        try:
            while (left_s := (until_ns - time.monotonic_ns()) * 1e-9) > 0:
                time.sleep(min(left_s, _TICK_S))
                self._tell("baseline", 0, (time.monotonic_ns() - begin_ns) * 1e-9, live)
        finally:
            end_ns = time.monotonic_ns()
            end(end_ns)
        self.session.read_now()
        self.baselines.append((begin_ns, end_ns))

    def _run_pair(self, number: int, sink: MarkSink, live: LivePower) -> bool:
        """Runs the command once, or twice when the overhead is asked for; returns False when it failed."""
        ways = [True]
        if self.request.overhead:
            ways = [True, False] if number % 2 else [False, True]  # ABBA: a drift touches both alike
        for sampled in ways:
            if not sampled:
                self.session.pause()
            try:
                end = self._run(number, sink if sampled else None, live)
            finally:
                if not sampled:
                    self.session.resume()
            (self.ends if sampled else self.plain).append(end)
            if end.status:
                self.status = end.status
                message = f"run {number} of {self.request.repeats} ended with status {end.status}; it was the last"
                self.findings.append(Finding(slug="command_failed", severity=Severity.WARNING, message=message))
                return False
        return True

    def _run(self, number: int, sink: MarkSink | None, live: LivePower) -> CommandEnd:
        counting = self.server if sink is not None else None
        if counting is not None:
            counting.begin_run()
        self.session.read_now()
        close: list[Callable[[int], None]] = []
        began_ns = time.monotonic_ns()

        def started(_pid: int) -> None:
            if sink is not None:
                close.append(sink.open_stretch("run", "run", began_ns))

        environment = {FOLDER_VARIABLE: str(self.session.marks_folder)} if sink is not None else {}
        end = run_command(
            self.request.command,
            environment=environment,
            tick=lambda elapsed_s: self._tell("run", number, elapsed_s, live),
            tick_s=_TICK_S,
            started=started,
        )
        self.session.read_now()
        if counting is not None:
            counting.end_run(number)
        for finish in close:
            finish(end.end_ns)
        return end

    def _tell(self, phase: str, number: int, elapsed_s: float, live: LivePower) -> None:
        domains = [d for d in live.refresh(self.session.ring) if d.domain.reading is not DomainReading.SIGNAL]
        self.show(
            LiveLine(
                phase=phase,
                run=number,
                runs=self.request.repeats,
                elapsed_s=elapsed_s,
                power_w={domain.name: domain.power_w for domain in domains},
                energy_j={domain.name: domain.energy_j for domain in domains},
            )
        )


def default_output(command: tuple[str, ...], utc: time.struct_time) -> Path:
    """Returns the bundle's name when none was given: the command's name and the time."""
    name = "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in os.path.basename(command[0]))  # noqa: PTH119
    return Path(f"{name or 'command'}-{time.strftime('%Y%m%dT%H%M%SZ', utc)}.jm")
