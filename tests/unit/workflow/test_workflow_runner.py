"""The runner: order, position, times, checkpoints, and what is told when a stage fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from joulemap.errors import PowerError, SetupError
from joulemap.records.progress import Phase, ProgressUpdate
from joulemap.workflow.journal import RunJournal
from joulemap.workflow.runner import PipelineRunner, Stage


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def stage(name: str, run: Callable[[list[str]], list[str]], phase: Phase = Phase.SETUP) -> Stage:
    return Stage(name=name, phase=phase, run=run)


def appending(name: str) -> Callable[[list[str]], list[str]]:
    return lambda context: [*context, name]


def test_stages_run_in_order_and_hand_the_context_on() -> None:
    journal = RunJournal()
    result = PipelineRunner([stage(n, appending(n)) for n in ("a", "b", "c")], journal=journal).run([])
    assert result == ["a", "b", "c"]
    assert [timing.stage for timing in journal.timings] == ["a", "b", "c"]


def test_position_counts_the_stages_of_this_list() -> None:
    seen: list[ProgressUpdate] = []
    for n in (2, 3):
        seen.clear()
        PipelineRunner([stage(f"s{k}", appending("x")) for k in range(n)], journal=RunJournal(seen.append)).run([])
        assert {u.position for u in seen} == {(k, n) for k in range(1, n + 1)}


def test_a_stage_may_not_stand_twice_in_the_list() -> None:
    with pytest.raises(ValueError, match="once only"):
        PipelineRunner([stage("a", appending("a"))] * 2, journal=RunJournal())


def test_stage_times_come_from_the_injected_clock() -> None:
    clock = Clock()

    def slow(context: list[str]) -> list[str]:
        clock.now_s += 2.5
        return context

    journal = RunJournal(clock=clock)
    PipelineRunner([stage("fast", appending("x")), stage("slow", slow, Phase.PROFILE)], journal=journal).run([])
    assert [(t.phase, t.duration_s) for t in journal.timings] == [(Phase.SETUP, 0.0), (Phase.PROFILE, 2.5)]


def test_updates_of_a_stage_carry_its_position_and_an_eta_by_measured_time() -> None:
    clock, seen = Clock(), list[ProgressUpdate]()
    journal = RunJournal(seen.append, clock=clock)

    def work(context: list[str]) -> list[str]:
        clock.now_s += 4.0
        journal(ProgressUpdate(phase=Phase.POWER, name="w", message="2 of 5", details={"done": 2, "total": 5}))
        journal(ProgressUpdate(phase=Phase.POWER, name="w", message="unknown work"))
        return context

    PipelineRunner([stage("w", work, Phase.POWER)], journal=journal).run([])
    counted, uncounted = seen[1], seen[2]
    assert counted.position == uncounted.position == (1, 1)
    assert counted.eta_s == pytest.approx(6.0)  # 4 s for 2 of 5: 3 more take 6 s
    assert uncounted.eta_s is None


def test_a_failure_passes_on_unchanged_and_the_journal_knows_where() -> None:
    journal = RunJournal()
    planted = PowerError(
        "no READY",
        hint="check the READY wire",
        slug="no-ready",
        phase="power",
        artifact_role="hpx_profiler_power",
        details={"firmware_phase": "MODEL_INIT"},
    )

    def checkpointing(context: list[str]) -> list[str]:
        journal(ProgressUpdate(phase=Phase.PROFILE, name="built", message="profile firmware built", checkpoint=True))
        return context

    def failing(_context: list[str]) -> list[str]:
        raise planted

    stages = [
        stage("one", checkpointing, Phase.PROFILE),
        stage("two", failing, Phase.POWER),
        stage("three", appending("x")),
    ]
    with pytest.raises(PowerError) as caught:
        PipelineRunner(stages, journal=journal).run([])
    assert caught.value is planted
    report = journal.report_failure(planted)
    assert (report.phase, report.stage, report.completed) == ("power", "two", ("one",))
    assert report.last_checkpoint == "profile firmware built"
    assert (report.artifact_role, report.firmware_phase, report.exit_code) == ("hpx_profiler_power", "MODEL_INIT", 4)


def test_an_error_outside_the_pipeline_gets_the_phase_of_its_stage() -> None:
    journal = RunJournal()
    error = SetupError("no board", hint="plug it in", slug="board-missing")

    def failing(_context: list[str]) -> list[str]:
        raise error

    with pytest.raises(SetupError):
        PipelineRunner([stage("preflight", failing)], journal=journal).run([])
    assert journal.report_failure(error).phase == "setup"


def test_the_log_holds_a_line_per_update_with_checkpoints_marked() -> None:
    clock = Clock()
    journal = RunJournal(clock=clock)
    clock.now_s += 1.25
    journal(ProgressUpdate(phase=Phase.SETUP, name="x", message="resolved", checkpoint=True))
    assert journal.lines == ("    1.250 s * setup   x: resolved",)
