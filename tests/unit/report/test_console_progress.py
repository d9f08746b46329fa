"""The console sink: what is shown at which verbosity, and where."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from joulemap.records.failure import FailureReport
from joulemap.records.progress import Phase, ProgressUpdate
from joulemap.report.console.failure import render_failure
from joulemap.report.console.progress import HpxConsole
from joulemap.report.console.style import Style

STAGE = ProgressUpdate(
    phase=Phase.PROFILE, name="capture_profile", message="pass 3 of 5", position=(12, 22), eta_s=75.0
)
CHECKPOINT = ProgressUpdate(phase=Phase.PROFILE, name="built", message="profile firmware built", checkpoint=True)
TIMING = ProgressUpdate(phase=Phase.PROFILE, name="x", message="x took 0.3 s", min_verbosity=1)
DIAGNOSTIC = ProgressUpdate(phase=Phase.PROFILE, name="x", message="edge at 12 ns", min_verbosity=2)


def shown(verbosity: int, *updates: ProgressUpdate, unicode: bool = True, **options: Any) -> str:
    stream = io.StringIO()
    with HpxConsole(stream, style=Style(color=False, unicode=unicode), verbosity=verbosity, **options) as console:
        for update in updates:
            console(update)
    return stream.getvalue()


def test_a_stage_shows_position_phase_message_and_eta() -> None:
    assert shown(0, STAGE) == "[12/22] profile pass 3 of 5, 1 min 15 s left\n"


def test_an_unknown_rest_shows_no_eta() -> None:
    assert shown(0, ProgressUpdate(phase=Phase.SETUP, name="p", message="p", position=(1, 9))) == "[ 1/9] setup   p\n"


@pytest.mark.parametrize(("verbosity", "lines"), [(0, 1), (1, 3), (2, 4)])
def test_verbosity_adds_checkpoints_and_times_then_diagnostics(verbosity: int, lines: int) -> None:
    assert len(shown(verbosity, STAGE, CHECKPOINT, TIMING, DIAGNOSTIC).splitlines()) == lines


def test_the_profile_result_is_shown_before_the_power_run_whatever_the_verbosity() -> None:
    result = replace(CHECKPOINT, name="counter_capture_complete", message="13 layers, clean latency 154.9 ms")
    assert shown(0, result) == "✓ 13 layers, clean latency 154.9 ms\n"


def test_the_same_status_is_not_said_twice_in_a_pipe() -> None:
    assert len(shown(0, STAGE, STAGE).splitlines()) == 1


def test_ascii_marks_checkpoints_with_a_star() -> None:
    assert shown(1, CHECKPOINT, unicode=False) == "* profile firmware built\n"
    assert shown(1, CHECKPOINT) == "✓ profile firmware built\n"


def test_a_message_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in shown(0, ProgressUpdate(phase=Phase.SETUP, name="p", message="\x1b[2Jgone"))


def test_a_live_block_shows_the_status_and_leaves_nothing_behind() -> None:
    text = shown(1, STAGE, CHECKPOINT, live=True)
    assert "pass 3 of 5" in text
    assert "✓ profile firmware built" in text
    assert text.rstrip().endswith("\x1b[2K")  # the block is erased when the run ends


def test_a_failure_says_what_where_how_far_and_what_next() -> None:
    report = FailureReport(
        slug="no-ready",
        message="READY did not rise",
        hint="check the wire",
        exit_code=4,
        phase="power",
        stage="capture_power_observation",
        completed=("preflight", "plan_power_run"),
        artifact_role="hpx_profiler_power",
        last_checkpoint="power firmware deployed",
        firmware_phase="MODEL_INIT",
    )
    text = render_failure(report)
    for part in (
        "joulemap: READY did not rise",
        "power / capture_power_observation",
        "2 stages, last plan_power_run",
        "hpx_profiler_power",
        "power firmware deployed",
        "MODEL_INIT",
        "check the wire",
        "docs/errors.md#no-ready (exit 4)",
    ):
        assert part in text


def test_a_failure_outside_a_run_says_only_what_it_knows() -> None:
    text = render_failure(FailureReport(slug="usage", message="no", hint="", exit_code=2))
    assert text == "joulemap: no\n  more        docs/errors.md#usage (exit 2)\n"
