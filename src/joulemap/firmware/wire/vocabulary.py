"""The one registry of the wire protocol: version, markers, keys, phases, error codes and fault bits.

``joulemap.firmware.wire.generate`` renders the C header and the reference page from it and nothing else does, so that
the two sides cannot drift apart. It must not know a transport, a board or a stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from joulemap.records.fault import FaultSlug
from joulemap.records.firmware import ArtifactRole
from joulemap.records.power import FirmwarePhase

__all__ = [
    "ERROR_CODES",
    "EXTENSION_PREFIX",
    "FAULT_BITS",
    "MARKERS",
    "MONITOR_KEYS",
    "PHASE_NUMBERS",
    "POWER_BEGIN",
    "POWER_END",
    "POWER_KEYS",
    "PROFILE_END",
    "PROFILE_FAULTS",
    "PROFILE_KEYS",
    "PROFILE_START",
    "PROTOCOL_VERSION",
    "VERSION_FIELD",
    "FirmwareErrorCode",
    "KeyGroup",
    "ValueKind",
    "WireKey",
    "phase_of",
]

PROTOCOL_VERSION = 1
VERSION_FIELD = "VERSION"
PROFILE_START = "HPX_START"
PROFILE_END = "HPX_END"
POWER_BEGIN = "HPX_POWER_BEGIN"
POWER_END = "HPX_POWER_END"
EXTENSION_PREFIX = "X_"


class ValueKind(StrEnum):
    """How the text after ``=`` is read."""

    U32 = "u32"
    U64 = "u64"
    FLAG = "flag"
    WORD = "word"


class KeyGroup(StrEnum):
    """Keys that appear together or not at all; CORE stands for no such bond."""

    CORE = "core"
    MEASUREMENT = "measurement"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireKey:
    """One ``KEY=value`` line.

    Args:
        name: upper case; the C macro is ``HPX_KEY_`` and the name.
        kind: how the value is read; all numbers are decimal.
        unit: base unit, empty for none.
        meaning: one line for the reference page.
        required: the record is rejected without it.
        group: all keys of a group but its optional ones, or none.
        indices: names of the indices in ``KEY.i.j=value``; empty for a plain key.
    """

    name: str
    kind: ValueKind
    unit: str
    meaning: str
    required: bool = True
    group: KeyGroup = KeyGroup.CORE
    indices: tuple[str, ...] = ()


PROFILE_KEYS: tuple[WireKey, ...] = (
    WireKey(name="CORE_HZ", kind=ValueKind.U32, unit="Hz", meaning="core clock that every cycle count refers to"),
    WireKey(name="LAYERS", kind=ValueKind.U32, unit="", meaning="layers of the model in the image"),
    WireKey(name="WARMUP_PASSES", kind=ValueKind.U32, unit="", meaning="inferences run before any is timed"),
    WireKey(name="CLEAN_PASSES", kind=ValueKind.U32, unit="", meaning="inferences timed as a whole"),
    WireKey(name="INSTRUMENTED_PASSES", kind=ValueKind.U32, unit="", meaning="inferences with a mark after each layer"),
    WireKey(name="INIT_CODE", kind=ValueKind.U32, unit="", meaning="0, or why the model could not be initialised"),
    WireKey(
        name="MARK_CYCLES",
        kind=ValueKind.U32,
        unit="cycles",
        meaning="an empty layer between two marks, its own return in",
    ),
    WireKey(
        name="HEAD_MARK_CYCLES",
        kind=ValueKind.U32,
        unit="cycles",
        meaning="an empty input load between two marks, its own return in",
    ),
    WireKey(
        name="RETURN_CYCLES",
        kind=ValueKind.U32,
        unit="cycles",
        meaning="the return of an empty layer, by a second empty layer",
    ),
    WireKey(
        name="CLEAN_CYCLES",
        kind=ValueKind.U32,
        unit="cycles",
        meaning="one inference without instrumentation, modulo 2^32",
        indices=("pass",),
    ),
    WireKey(
        name="INSTRUMENTED_CYCLES",
        kind=ValueKind.U32,
        unit="cycles",
        meaning="one inference with marks, modulo 2^32",
        indices=("pass",),
    ),
    WireKey(
        name="HEAD_CYCLES",
        kind=ValueKind.U32,
        unit="cycles",
        meaning="input load up to the first layer, its mark in, modulo 2^32",
        indices=("pass",),
    ),
    WireKey(
        name="LAYER_CYCLES",
        kind=ValueKind.U32,
        unit="cycles",
        meaning="one layer, its mark in, modulo 2^32",
        indices=("pass", "layer"),
    ),
    WireKey(
        name="OVERFLOW",
        kind=ValueKind.FLAG,
        unit="",
        meaning="the parts of the pass add up to more than the counter holds",
        indices=("pass",),
    ),
    WireKey(name="OUTPUT_CRC32", kind=ValueKind.U32, unit="", meaning="CRC-32 of the last output", required=False),
    WireKey(
        name="STREAM_CRC32", kind=ValueKind.U32, unit="", meaning="CRC-32 of every byte before this line; the last key"
    ),
)
"""Lines between HPX_START and HPX_END, as ``hpx_profiler`` prints them."""

POWER_KEYS: tuple[WireKey, ...] = (
    WireKey(name="STATUS", kind=ValueKind.WORD, unit="", meaning="ok or error"),
    WireKey(name="REQUESTED_COUNT", kind=ValueKind.U32, unit="", meaning="N compiled into the image"),
    WireKey(name="COMPLETED_COUNT", kind=ValueKind.U32, unit="", meaning="inferences finished inside GATE"),
    WireKey(
        name="ELAPSED_US",
        kind=ValueKind.U64,
        unit="µs",
        meaning="GATE high to low by the cycle counter; absent when one inference exceeds the counter",
        required=False,
    ),
    WireKey(name="FINAL_PHASE", kind=ValueKind.U32, unit="", meaning="phase in which the run ended (see Phases)"),
    WireKey(name="ERROR_CODE", kind=ValueKind.U32, unit="", meaning="0, or why the run ended (see Error codes)"),
    WireKey(name="GATE_ASSERTED", kind=ValueKind.FLAG, unit="", meaning="GATE was raised"),
    WireKey(name="GATE_LOWERED", kind=ValueKind.FLAG, unit="", meaning="GATE was lowered after it had been raised"),
    WireKey(
        name="OUTPUT_CRC32",
        kind=ValueKind.U32,
        unit="",
        meaning="CRC-32 of the last output; absent when no inference finished",
        required=False,
    ),
    WireKey(
        name="RECORD_CRC32", kind=ValueKind.U32, unit="", meaning="CRC-32 of every byte before this line; the last key"
    ),
)
"""Lines of the terminal record, as ``hpx_profiler_power`` prints them after GATE is low."""

_MEASUREMENT = KeyGroup.MEASUREMENT
MONITOR_KEYS: tuple[WireKey, ...] = (
    WireKey(
        name="MONITOR_SOURCE",
        kind=ValueKind.WORD,
        unit="",
        meaning="the monitor on the board",
        required=False,
        group=_MEASUREMENT,
    ),
    WireKey(
        name="MONITOR_ENERGY_NJ",
        kind=ValueKind.U64,
        unit="nJ",
        meaning="energy over the N inferences",
        required=False,
        group=_MEASUREMENT,
    ),
    WireKey(
        name="MONITOR_CHARGE_NC",
        kind=ValueKind.U64,
        unit="nC",
        meaning="charge over the N inferences",
        required=False,
        group=_MEASUREMENT,
    ),
    WireKey(
        name="MONITOR_MEAN_VOLTAGE_UV",
        kind=ValueKind.U64,
        unit="µV",
        meaning="mean supply voltage",
        required=False,
        group=_MEASUREMENT,
    ),
    WireKey(
        name="MONITOR_DURATION_US",
        kind=ValueKind.U64,
        unit="µs",
        meaning="time covered; agrees with ELAPSED_US",
        required=False,
        group=_MEASUREMENT,
    ),
    WireKey(
        name="MONITOR_COUNT",
        kind=ValueKind.U32,
        unit="",
        meaning="inferences covered; agrees with COMPLETED_COUNT",
        required=False,
        group=_MEASUREMENT,
    ),
    WireKey(
        name="MONITOR_OVERFLOW",
        kind=ValueKind.FLAG,
        unit="",
        meaning="an accumulator overflowed",
        required=False,
        group=_MEASUREMENT,
    ),
    WireKey(
        name="MONITOR_CALIBRATION_ID",
        kind=ValueKind.WORD,
        unit="",
        meaning="identity of its calibration",
        required=False,
    ),
    WireKey(
        name="MONITOR_CONFIGURATION_ID",
        kind=ValueKind.WORD,
        unit="",
        meaning="identity of its configuration",
        required=False,
    ),
)
"""Optional lines of the terminal record: what a monitor on the board accumulated, all or none."""

PHASE_NUMBERS: dict[FirmwarePhase, int] = {phase: number for number, phase in enumerate(FirmwarePhase, start=1)}
"""Value of the phase word ``hpx_phase``; 0 means that the image has not reached BOOT."""


class FirmwareErrorCode(IntEnum):
    """Error codes of the firmware. 1 to 255 are the model's own, as ``hpx_model_init`` returned them."""

    NONE = 0
    PLANTED_INIT = 255
    NO_GO = 256
    INFERENCE = 257


ERROR_CODES: dict[FirmwareErrorCode, tuple[str, str]] = {
    FirmwareErrorCode.NONE: ("the run completed", ""),
    FirmwareErrorCode.PLANTED_INIT: (
        "the planted fault init_error refused the model",
        "run without --fault init_error",
    ),
    FirmwareErrorCode.NO_GO: (
        "no GO before the firmware's own timeout",
        "check the GO wire and that the host saw READY, or run with --no-lockstep",
    ),
    FirmwareErrorCode.INFERENCE: ("an inference failed", "run joulemap profile --no-power and compare the outputs"),
}
"""What each code means and what to do next."""


def phase_of(number: int) -> FirmwarePhase | None:
    """Returns the phase of a phase word; None for 0 and for a number that no phase has."""
    return next((phase for phase, value in PHASE_NUMBERS.items() if value == number), None)


FAULT_BITS: dict[FaultSlug, int] = {
    FaultSlug.NO_READY: 0,
    FaultSlug.NO_GATE_RISE: 1,
    FaultSlug.NO_GATE_FALL: 2,
    FaultSlug.SHORT_PULSE: 3,
    FaultSlug.INIT_ERROR: 4,
    FaultSlug.INFER_ERROR: 5,
    FaultSlug.STUCK_LOOP: 6,
    FaultSlug.HARD_FAULT: 7,
    FaultSlug.PROFILE_TRUNCATED: 8,
    FaultSlug.PROFILE_CORRUPT: 9,
    FaultSlug.COUNTER_OVERFLOW: 10,
    FaultSlug.TERMINAL_MISSING: 11,
    FaultSlug.TERMINAL_TRUNCATED: 12,
    FaultSlug.TERMINAL_VERSION: 13,
    FaultSlug.TERMINAL_COUNTS: 14,
    FaultSlug.TERMINAL_LATE: 15,
    FaultSlug.TRANSPORT_ON: 16,
    FaultSlug.NO_DIAGNOSTICS: 17,
    FaultSlug.OUTPUT_WRONG: 18,
}
"""Bit of FAULT_SELECT that an image built with HPX_FAULTS=1 obeys; FAULT_ARGUMENT is the inference that it hits."""

PROFILE_FAULTS = frozenset({FaultSlug.PROFILE_TRUNCATED, FaultSlug.PROFILE_CORRUPT, FaultSlug.COUNTER_OVERFLOW})
"""Faults of the profile image; every other bit belongs to the power image."""

MARKERS: dict[ArtifactRole, tuple[str, str]] = {
    ArtifactRole.PROFILE: (PROFILE_START, PROFILE_END),
    ArtifactRole.POWER: (POWER_BEGIN, POWER_END),
}
"""First and last line of what each image prints."""
