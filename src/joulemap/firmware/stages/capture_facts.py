"""What is known of one capture before it is judged, and what the judgement is made of. Pure records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from joulemap.records.finding import Finding, Validity
from joulemap.records.power import FirmwarePhase, ObservationMode, PowerTerminalRecord

__all__ = ["BoardEnd", "CaptureFacts", "CaptureVerdict", "Cause", "Outcome"]


class Outcome(StrEnum):
    """Every way in which a capture ends without a headline; the values are the slugs of its decisive finding."""

    BOARD_LOST = "board_lost"
    CAPTURE_EMPTY = "capture_empty"
    INSTRUMENT_LOST = "instrument_lost"
    HARD_FAULT = "hard_fault"
    BROWN_OUT = "brown_out"
    TERMINAL_ERROR = "terminal_error"
    COUNT_MISMATCH = "count_mismatch"
    OUTPUT_DIFFERS = "output_differs"
    NO_READY = "no_ready"
    FIRMWARE_STUCK = "firmware_stuck"
    NOTHING_OBSERVED = "nothing_observed"
    NO_GATE_RISE = "no_gate_rise"
    NO_GATE_FALL = "no_gate_fall"
    THROTTLED = "throttled"
    COUNT_UNKNOWN = "count_unknown"
    GATE_DISAGREES = "gate_disagrees"
    SAMPLES_LOST = "samples_lost"


class BoardEnd(StrEnum):
    """How the board ended a capture."""

    PARKED = "parked"
    RUNNING = "running"
    HARD_FAULT = "hard_fault"
    BROWN_OUT = "brown_out"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why something could not be had, in the words of the error that said so.

    Args:
        slug: kebab-case anchor in ``docs/errors.md``.
        message: what.
        hint: what to do.
    """

    slug: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFacts:
    """Everything that the verdict of one capture may depend on.

    Args:
        requested_count: N of the plan.
        planned_s: N times the reference inference, s.
        tolerance_s: how far GATE may be from it, s.
        deadline_s: board time that was allowed, s.
        lockstep: READY had to be seen before GO was given.
        board: how the board ended.
        board_message: of a fault or a loss.
        registers: after a hard fault, where known.
        firmware_phase: of the phase word in RAM, where it could be read.
        ready_seen: READY rose within the boot allowance.
        rise_seen: GATE rose.
        fall_seen: GATE fell after that.
        gate_s: between the edges, s; None without both.
        meter: why the instrument delivered nothing; None when it did.
        lost_share: share of what the energy covers that the instrument lost, 0..1.
        terminal: the record; None without one.
        terminal_fault: why there is none; None when there is one.
        output_crc32: checksum that the record carried; None without one.
        expected_crc32: the oracle's; None without one.
        throttled_share: share of the time under a clock or thermal clamp, 0..1.
    """

    requested_count: int
    planned_s: float
    tolerance_s: float
    deadline_s: float
    lockstep: bool = True
    board: BoardEnd = BoardEnd.PARKED
    board_message: str = ""
    registers: Mapping[str, int] = field(default_factory=dict)
    firmware_phase: FirmwarePhase | None = None
    ready_seen: bool = True
    rise_seen: bool = True
    fall_seen: bool = True
    gate_s: float | None
    meter: Cause | None = None
    lost_share: float = 0.0
    terminal: PowerTerminalRecord | None
    terminal_fault: Cause | None = None
    output_crc32: int | None = None
    expected_crc32: int | None = None
    throttled_share: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "registers", MappingProxyType(dict(self.registers)))

    @property
    def off_reference_s(self) -> float:
        """GATE less N times the reference, s; 0 without a gate."""
        return 0.0 if self.gate_s is None else self.gate_s - self.planned_s

    @property
    def off_elapsed_s(self) -> float | None:
        """GATE less what the firmware counted, s; None when one of the two is missing."""
        if self.gate_s is None or self.terminal is None or self.terminal.elapsed_us is None:
            return None
        return self.gate_s - self.terminal.elapsed_us * 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureVerdict:
    """What a capture may claim.

    Args:
        mode: gated or free-form.
        integrity: valid, degraded or invalid.
        findings: why, the decisive one first.
        failure: the same for an error report; None for a valid capture.
        hard: nothing of the capture can be used, not even labelled.
        details: facts for the error report, JSON-serialisable.
    """

    mode: ObservationMode
    integrity: Validity
    findings: tuple[Finding, ...] = ()
    failure: Cause | None = None
    hard: bool = False
    details: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))
