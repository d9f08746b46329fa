"""The last stage of the power phase: what each capture may claim, and what they may claim together."""

from __future__ import annotations

from collections.abc import Mapping

from joulemap.errors import PowerError
from joulemap.firmware.boards.base import StopReason
from joulemap.firmware.stages.capture import LOST_SLUGS
from joulemap.firmware.stages.capture_facts import BoardEnd, CaptureFacts, CaptureVerdict, Cause
from joulemap.firmware.stages.context import (
    PowerDone,
    RawCapture,
    Requested,
    TerminalsCollected,
    TerminalStatement,
    advance,
    require,
)
from joulemap.firmware.stages.outcomes import judge_capture, judge_run
from joulemap.records.finding import Validity
from joulemap.records.firmware import ArtifactRole
from joulemap.records.power import PowerCapture, PowerObservation, PowerRun, PowerRunPlan

__all__ = ["reconcile_power_run"]

_ENDS = {
    StopReason.EDGE: BoardEnd.PARKED,
    StopReason.IDLE: BoardEnd.PARKED,
    StopReason.DEADLINE: BoardEnd.RUNNING,
    StopReason.HARD_FAULT: BoardEnd.HARD_FAULT,
    StopReason.BROWN_OUT: BoardEnd.BROWN_OUT,
}


def reconcile_power_run(context: Requested) -> PowerDone:
    """Judges the captures and the run. It raises nothing: a run without headline still becomes a bundle.

    ``power_failure`` of the result is what the caller raises once that bundle is written.
    """
    held = require(context, TerminalsCollected, "reconcile_power_run")
    plan = held.power_plan
    verdicts: list[CaptureVerdict] = []
    captures: list[PowerCapture] = []
    for raw, statement in zip(held.raw_captures, held.terminals, strict=True):
        verdict = judge_capture(_facts(raw, statement, plan))
        verdicts.append(verdict)
        captures.append(_build_capture(raw, statement, verdict, plan))
    validity, findings = judge_run([verdict.integrity for verdict in verdicts], plan.repeats)
    run = PowerRun(
        plan=plan,
        firmware=held.power_firmware,
        deployment=held.power_deployment,
        captures=tuple(captures),
        findings=findings,
    )
    failure = None if validity is Validity.VALID else _build_failure(verdicts, held.raw_captures, plan)
    return advance(held, PowerDone, power=run, power_validity=validity, power_failure=failure)


def _facts(raw: RawCapture, statement: TerminalStatement, plan: PowerRunPlan) -> CaptureFacts:
    failure, edges = raw.failure, raw.edges
    lost = failure is not None and failure.slug in LOST_SLUGS
    meter = None
    if failure is not None and not lost:
        meter = Cause(slug=failure.slug, message=failure.message, hint=failure.hint)
    window = edges.window if edges else None
    board = BoardEnd.LOST if lost or raw.stop is None else _ENDS[raw.stop.reason]
    message = failure.message if lost and failure else (raw.stop.message if raw.stop else "")
    envelope = statement.envelope
    return CaptureFacts(
        requested_count=plan.requested_count,
        planned_s=plan.planned_runtime_s,
        tolerance_s=plan.gate_tolerance_s,
        deadline_s=plan.execution_deadline_s,
        lockstep=plan.lockstep,
        board=board,
        board_message=message,
        registers=raw.stop.registers if raw.stop else {},
        firmware_phase=raw.firmware_phase,
        ready_seen=raw.ready_seen,
        rise_seen=edges is not None and edges.rise_ns is not None,
        fall_seen=edges is not None and edges.fall_ns is not None,
        gate_s=window.duration_s if window else None,
        meter=meter,
        lost_share=raw.result.lost_share if raw.result else 0.0,
        terminal=envelope.record if envelope else None,
        terminal_fault=statement.absence,
        output_crc32=envelope.output_crc32 if envelope else None,
        expected_crc32=plan.expected_crc32,
        throttled_share=raw.throttled_share,
    )


def _build_capture(
    raw: RawCapture, statement: TerminalStatement, verdict: CaptureVerdict, plan: PowerRunPlan
) -> PowerCapture:
    slugs = {finding.slug for finding in verdict.findings}
    recorded = raw.result.recording.findings if raw.result else ()
    observation = PowerObservation(
        mode=verdict.mode,
        result=raw.result,
        gate_rise_observed=raw.edges is not None and raw.edges.rise_ns is not None,
        gate_fall_observed=raw.edges is not None and raw.edges.fall_ns is not None,
        deadline_s=plan.execution_deadline_s,
        integrity=verdict.integrity,
        findings=(*verdict.findings, *(finding for finding in recorded if finding.slug not in slugs)),
    )
    return PowerCapture(index=raw.index, observation=observation, terminal=statement.envelope)


def _build_failure(verdicts: list[CaptureVerdict], raws: tuple[RawCapture, ...], plan: PowerRunPlan) -> PowerError:
    """Returns the error of the first capture without headline, or of what ended the phase when the rest is missing."""
    valid = sum(verdict.integrity is Validity.VALID for verdict in verdicts)
    counts = {"valid_captures": valid, "requested_captures": plan.repeats}
    for raw, verdict in zip(raws, verdicts, strict=True):
        if verdict.failure is not None:
            where = f"capture {raw.index} of {plan.repeats}: " if plan.repeats > 1 else ""
            return _error(
                verdict.failure, where, {**verdict.details, "hard": verdict.hard, "capture": raw.index, **counts}
            )
    last = raws[-1]
    loss = last.failure or last.terminal_failure
    early = Cause(
        slug="captures-dropped",
        message=f"the phase ended after capture {last.index} of {plan.repeats}: {loss or 'no reason is known'}",
        hint=loss.hint if loss else "",
    )
    return _error(early, "", {"capture": last.index, **counts})


def _error(cause: Cause, where: str, details: Mapping[str, object]) -> PowerError:
    return PowerError(
        where + cause.message,
        hint=cause.hint,
        slug=cause.slug,
        phase="power",
        artifact_role=ArtifactRole.POWER,
        details=details,
    )
