"""The outcome table of the power phase: what was seen of a capture in, verdict out. Pure: no board, no meter, no clock.

A rule looks at the facts and either passes or decides. The order of :data:`RULES` is the precedence; the last rule
always decides. ``docs/pipeline.md`` shows the same table for people.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from joulemap.firmware.stages.capture_facts import BoardEnd, CaptureFacts, CaptureVerdict, Cause, Outcome
from joulemap.firmware.stages.policy import LOST_SHARE_LIMIT
from joulemap.firmware.wire.vocabulary import ERROR_CODES, FirmwareErrorCode
from joulemap.records.finding import Finding, Severity, Validity
from joulemap.records.power import ObservationMode, TerminalStatus

__all__ = ["RULES", "judge_capture", "judge_run"]


Rule = Callable[[CaptureFacts], CaptureVerdict | None]


def _refuse(
    facts: CaptureFacts,
    outcome: str,
    cause: Cause,
    *,
    hard: bool,
    integrity: Validity = Validity.INVALID,
    **details: object,
) -> CaptureVerdict:
    """Returns a verdict without headline: a finding named by the outcome, and an error in the same words."""
    gated = facts.rise_seen and facts.fall_seen
    severity = Severity.ERROR if integrity is Validity.INVALID else Severity.WARNING
    finding = Finding(slug=str(outcome), severity=severity, message=cause.message)
    if facts.firmware_phase is not None:
        details = {"firmware_phase": str(facts.firmware_phase), **details}
    return CaptureVerdict(
        mode=ObservationMode.GPIO_GATED if gated else ObservationMode.FREE_FORM,
        integrity=integrity,
        findings=(finding,),
        failure=cause,
        hard=hard,
        details=details,
    )


def _board_lost(facts: CaptureFacts) -> CaptureVerdict | None:
    if facts.board is not BoardEnd.LOST:
        return None
    cause = Cause(
        slug="board-lost",
        message=f"the board or its probe went away: {facts.board_message}",
        hint="check power and cable of board and probe, then run again",
    )
    return _refuse(facts, Outcome.BOARD_LOST, cause, hard=True)


def _no_samples(facts: CaptureFacts) -> CaptureVerdict | None:
    if facts.meter is None:
        return None
    return _refuse(facts, facts.meter.slug.replace("-", "_"), facts.meter, hard=True)


def _hard_fault(facts: CaptureFacts) -> CaptureVerdict | None:
    if facts.board is not BoardEnd.HARD_FAULT:
        return None
    cause = Cause(
        slug="hard-fault",
        message=f"the core faulted in phase {facts.firmware_phase or 'unknown'}: {facts.board_message}",
        hint="the registers are in the details (-vv); a stack or arena that is too small is the usual cause",
    )
    return _refuse(facts, Outcome.HARD_FAULT, cause, hard=True, registers=dict(facts.registers))


def _brown_out(facts: CaptureFacts) -> CaptureVerdict | None:
    if facts.board is not BoardEnd.BROWN_OUT:
        return None
    cause = Cause(
        slug="brown-out",
        message=f"the supply collapsed in phase {facts.firmware_phase or 'unknown'}",
        hint="raise the current limit of the supply or the voltage, then run again",
    )
    return _refuse(facts, Outcome.BROWN_OUT, cause, hard=True)


def _terminal_error(facts: CaptureFacts) -> CaptureVerdict | None:
    record = facts.terminal
    if record is None or record.status is not TerminalStatus.ERROR:
        return None
    known = next((code for code in FirmwareErrorCode if code == record.error_code), None)
    meaning, hint = ERROR_CODES[known] if known else ("the model's own code", "see the engine's list of codes")
    cause = Cause(
        slug="terminal-error",
        message=f"the firmware ended in phase {record.final_phase} with error {record.error_code} ({meaning}) "
        f"after {record.completed_count} of {record.requested_count} inferences",
        hint=hint,
    )
    return _refuse(
        facts,
        Outcome.TERMINAL_ERROR,
        cause,
        hard=False,
        firmware_phase=str(record.final_phase),
        error_code=record.error_code,
        completed_count=record.completed_count,
    )


def _counts(facts: CaptureFacts) -> CaptureVerdict | None:
    record = facts.terminal
    if record is None or record.requested_count == record.completed_count == facts.requested_count:
        return None
    cause = Cause(
        slug="count-mismatch",
        message=f"the plan asks for {facts.requested_count} inferences, the firmware was built for "
        f"{record.requested_count} and completed {record.completed_count}",
        hint="deploy the image of this plan again; joules per inference need a known count",
    )
    return _refuse(facts, Outcome.COUNT_MISMATCH, cause, hard=False, completed_count=record.completed_count)


def _output(facts: CaptureFacts) -> CaptureVerdict | None:
    if facts.terminal is None or facts.output_crc32 is None or facts.expected_crc32 in (None, facts.output_crc32):
        return None
    cause = Cause(
        slug="output-differs",
        message=f"the last output has checksum {facts.output_crc32:08x}, the oracle's is {facts.expected_crc32:08x}",
        hint="the firmware computes something else than the model: rebuild it, and check memory and clock",
    )
    return _refuse(facts, Outcome.OUTPUT_DIFFERS, cause, hard=False)


def _no_ready(facts: CaptureFacts) -> CaptureVerdict | None:
    if facts.ready_seen or not facts.lockstep or facts.terminal is not None:
        return None
    cause = Cause(
        slug="no-ready",
        message=f"READY did not rise within the boot allowance; the firmware's phase is "
        f"{facts.firmware_phase or 'unknown'}",
        hint="check the READY wire, or run with --no-lockstep when it is not connected",
    )
    return _refuse(facts, Outcome.NO_READY, cause, hard=True)


def _stuck(facts: CaptureFacts) -> CaptureVerdict | None:
    if facts.board is not BoardEnd.RUNNING or facts.terminal is not None or facts.fall_seen:
        return None
    cause = Cause(
        slug="firmware-stuck",
        message=f"the firmware was still in phase {facts.firmware_phase or 'unknown'} at the deadline of "
        f"{facts.deadline_s:.2f} s of board time",
        hint="the board has been reset; look at what that phase runs, or raise the boot allowance",
    )
    return _refuse(facts, Outcome.FIRMWARE_STUCK, cause, hard=True, deadline_s=facts.deadline_s)


def _missing_edge(facts: CaptureFacts) -> CaptureVerdict | None:
    if facts.rise_seen and facts.fall_seen:
        return None
    edge, slug, outcome = (
        ("fall", "no-gate-fall", Outcome.NO_GATE_FALL)
        if facts.rise_seen
        else ("rise", "no-gate-rise", Outcome.NO_GATE_RISE)
    )
    if facts.terminal is None:
        reason = facts.terminal_fault.message if facts.terminal_fault else "no terminal record"
        cause = Cause(
            slug="nothing-observed",
            message=f"GATE did not {edge} and nothing says that the firmware ran: {reason}",
            hint="check the GATE wire and the terminal transport",
        )
        return _refuse(facts, Outcome.NOTHING_OBSERVED, cause, hard=True)
    cause = Cause(
        slug=slug,
        message=f"GATE did not {edge} as the instrument saw it, though the firmware reports a complete run; "
        "whole-trace statistics only, no figure per inference",
        hint="check the GATE wire to the instrument's logic input and its threshold",
    )
    return _refuse(facts, outcome, cause, hard=False, integrity=Validity.DEGRADED)


def _throttled(facts: CaptureFacts) -> CaptureVerdict | None:
    if not facts.throttled_share > 0:
        return None
    cause = Cause(
        slug="throttled",
        message=f"the clock or temperature clamp was active for {facts.throttled_share:.1%} of the run",
        hint="let the board cool, or lower clock or load, and run again",
    )
    return _refuse(
        facts, Outcome.THROTTLED, cause, hard=False, integrity=Validity.DEGRADED, throttled_share=facts.throttled_share
    )


def _lossy(facts: CaptureFacts) -> CaptureVerdict | None:
    if facts.lost_share <= LOST_SHARE_LIMIT:
        return None
    cause = Cause(
        slug="samples-lost",
        message=f"the instrument lost {facts.lost_share:.2%} of the gate, {LOST_SHARE_LIMIT:.0%} is the limit",
        hint="use a shorter cable, another port or a lower sample rate",
    )
    return _refuse(
        facts, Outcome.SAMPLES_LOST, cause, hard=False, integrity=Validity.DEGRADED, lost_share=facts.lost_share
    )


def _without_terminal(facts: CaptureFacts) -> CaptureVerdict | None:
    """GATE is whole and no record came: the duration alone may prove the count."""
    if facts.terminal is not None:
        return None
    missing = facts.terminal_fault or Cause(slug="terminal-missing", message="no terminal record was received")
    finding = Finding(slug=missing.slug.replace("-", "_"), severity=Severity.WARNING, message=missing.message)
    half_inference_s = 0.5 * facts.planned_s / facts.requested_count
    if abs(facts.off_reference_s) > min(facts.tolerance_s, half_inference_s):
        cause = Cause(
            slug="count-unknown",
            message=f"no terminal record, and GATE is {facts.off_reference_s * 1e6:+.1f} µs off N times the "
            "reference: the number of inferences is not known",
            hint=missing.hint or "check the terminal transport",
        )
        verdict = _refuse(facts, Outcome.COUNT_UNKNOWN, cause, hard=False, integrity=Validity.DEGRADED)
        return replace(verdict, findings=(*verdict.findings, finding))
    inferred = Finding(
        slug="count_inferred",
        severity=Severity.WARNING,
        message=f"no terminal record; GATE agrees with {facts.requested_count} inferences within "
        f"{abs(facts.off_reference_s) * 1e6:.1f} µs, less than half of one",
    )
    lossy = _lossy(facts)
    if lossy is not None:  # the count is known, and too much of the gate was lost all the same
        return replace(lossy, findings=(*lossy.findings, inferred, finding))
    return CaptureVerdict(
        mode=ObservationMode.GPIO_GATED, integrity=Validity.VALID, findings=(inferred, finding, *_notes(facts))
    )


def _durations(facts: CaptureFacts) -> CaptureVerdict | None:
    """GATE against the firmware's own count of time, and against the plan."""
    off_elapsed_s = facts.off_elapsed_s
    with_reference = abs(facts.off_reference_s) <= facts.tolerance_s
    with_elapsed = off_elapsed_s is None or abs(off_elapsed_s) <= facts.tolerance_s
    if with_reference and with_elapsed:
        return None
    parts = []
    if not with_elapsed:
        assert off_elapsed_s is not None  # else it agrees
        parts.append(f"{off_elapsed_s * 1e6:+.1f} µs off what the firmware counted")
    if not with_reference:
        parts.append(f"{facts.off_reference_s * 1e6:+.1f} µs off N times the reference inference")
    cause = Cause(
        slug="gate-disagrees",
        message=f"GATE is {' and '.join(parts)}; {facts.tolerance_s * 1e6:.1f} µs are allowed",
        hint="a pulse that is too short points at the GATE wire, a reference that is off at another clock or image",
    )
    return _refuse(
        facts,
        Outcome.GATE_DISAGREES,
        cause,
        hard=True,
        gate_s=facts.gate_s,
        planned_s=facts.planned_s,
        off_elapsed_s=off_elapsed_s,
        off_reference_s=facts.off_reference_s,
    )


def _valid(facts: CaptureFacts) -> CaptureVerdict:
    return CaptureVerdict(mode=ObservationMode.GPIO_GATED, integrity=Validity.VALID, findings=_notes(facts))


def _notes(facts: CaptureFacts) -> tuple[Finding, ...]:
    """Findings of a capture that is valid all the same."""
    notes = []
    if facts.output_crc32 is None or facts.expected_crc32 is None:
        lack = "no oracle gave one" if facts.expected_crc32 is None else "the firmware sent none"
        message = f"the output's checksum was not compared: {lack}"
        notes.append(Finding(slug="output_unchecked", severity=Severity.WARNING, message=message))
    if facts.lost_share > 0:
        message = f"the instrument lost {facts.lost_share:.3%} of the gate; it is part of U"
        notes.append(Finding(slug="samples_lost", severity=Severity.WARNING, message=message))
    if facts.terminal is not None and facts.terminal.elapsed_us is None:
        message = "the firmware gave no elapsed time: one inference exceeds its counter"
        notes.append(Finding(slug="elapsed_unavailable", severity=Severity.INFO, message=message))
    return tuple(notes)


RULES: tuple[Rule, ...] = (
    _board_lost,
    _no_samples,
    _hard_fault,
    _brown_out,
    _terminal_error,
    _counts,
    _output,
    _no_ready,
    _stuck,
    _missing_edge,
    _throttled,
    _without_terminal,
    _durations,
    _lossy,
)
"""In order of precedence; what none of them decides is valid."""

_BESIDE: tuple[Rule, ...] = (_output, _throttled, _lossy)
"""What is a fault of its own, never the consequence of another one: it is told even where another rule decides."""


def judge_capture(facts: CaptureFacts) -> CaptureVerdict:
    """Returns the verdict of the first rule that decides, with the findings of every other fault beside it."""
    verdict = next((verdict for rule in RULES if (verdict := rule(facts)) is not None), None)
    if verdict is None:
        return _valid(facts)
    told = {finding.slug for finding in verdict.findings}
    ended = facts.terminal is not None and facts.terminal.status is TerminalStatus.ERROR  # no output to speak of
    rules = [rule for rule in _BESIDE if not (ended and rule is _output)]
    others = [other for rule in rules if (other := rule(facts)) is not None]
    beside = tuple(finding for other in others for finding in other.findings if finding.slug not in told)
    return replace(verdict, findings=(*verdict.findings, *beside))


def judge_run(integrities: Sequence[Validity], requested: int) -> tuple[Validity, tuple[Finding, ...]]:
    """Returns what R captures may claim together: valid when at least half of those requested are.

    Args:
        integrities: of the captures that were made, perhaps fewer than requested.
        requested: R.
    """
    valid = sum(integrity is Validity.VALID for integrity in integrities)
    if valid == requested:
        return Validity.VALID, ()
    enough = 2 * valid >= requested
    degraded_only = valid == 0 and bool(integrities) and all(i is Validity.DEGRADED for i in integrities)
    finding = Finding(
        slug="captures_dropped",
        severity=Severity.WARNING if enough else Severity.ERROR,
        message=f"{valid} of {requested} captures are valid"
        + ("" if enough else "; fewer than half carry no headline"),
    )
    if enough:
        return Validity.VALID, (finding,)
    return (Validity.DEGRADED if degraded_only else Validity.INVALID), (finding,)
