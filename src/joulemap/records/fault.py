"""Faults on demand: the slugs of ``--fault SLUG[@K]`` and which repeats they hit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Fault", "FaultPlan", "FaultSlug"]


class FaultSlug(StrEnum):
    """Every fault that a virtual target can be asked for."""

    NO_READY = "no_ready"
    NO_GO = "no_go"
    NO_GATE_RISE = "no_gate_rise"
    NO_GATE_FALL = "no_gate_fall"
    SHORT_PULSE = "short_pulse"
    GATE_DISCONNECTED = "gate_disconnected"
    INIT_ERROR = "init_error"
    INFER_ERROR = "infer_error"
    STUCK_LOOP = "stuck_loop"
    HARD_FAULT = "hard_fault"
    PROFILE_TRUNCATED = "profile_truncated"
    PROFILE_CORRUPT = "profile_corrupt"
    COUNTER_OVERFLOW = "counter_overflow"
    TERMINAL_MISSING = "terminal_missing"
    TERMINAL_TRUNCATED = "terminal_truncated"
    TERMINAL_VERSION = "terminal_version"
    TERMINAL_COUNTS = "terminal_counts"
    TERMINAL_LATE = "terminal_late"
    CAPTURE_EMPTY = "capture_empty"
    CAPTURE_LOSSY = "capture_lossy"
    INSTRUMENT_LOST = "instrument_lost"
    PROBE_LOST = "probe_lost"
    TRANSPORT_ON = "transport_on"
    NO_DIAGNOSTICS = "no_diagnostics"
    OUTPUT_WRONG = "output_wrong"
    BROWN_OUT = "brown_out"
    THROTTLE = "throttle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault.

    Args:
        slug: which.
        repeat: the repeat that it hits, counted from 1; None for every repeat.
    """

    slug: FaultSlug
    repeat: int | None = None

    def __post_init__(self) -> None:
        if self.repeat is not None and self.repeat < 1:
            raise ValueError(f"fault {self.slug}: repeats are counted from 1, got {self.repeat}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """All faults of a run."""

    faults: tuple[Fault, ...] = ()

    def active(self, slug: FaultSlug, repeat: int | None = None) -> bool:
        """True when the fault hits the repeat (counted from 1); repeat None asks for the run as a whole."""
        return any(f.slug is slug and (f.repeat is None or repeat is None or f.repeat == repeat) for f in self.faults)
