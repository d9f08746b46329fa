"""The power run: plan, observation, terminal status, captures. Names are those of the pipeline document."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from joulemap.estimate import Provenance
from joulemap.records.finding import Finding, Validity
from joulemap.records.firmware import DeploymentRecord, FirmwareArtifact
from joulemap.records.instrument import MeterRecording

__all__ = [
    "FirmwarePhase",
    "GateWindow",
    "ObservationMode",
    "OnDevicePowerSummary",
    "PowerCapture",
    "PowerObservation",
    "PowerResult",
    "PowerRun",
    "PowerRunPlan",
    "PowerTerminalEnvelope",
    "PowerTerminalRecord",
    "TerminalStatus",
]


class FirmwarePhase(StrEnum):
    """States of the power image, in order; the firmware's phase word holds the position, counted from 1."""

    BOOT = "BOOT"
    MODEL_INIT = "MODEL_INIT"
    READY = "READY"
    WAIT_GO = "WAIT_GO"
    GATE_HIGH = "GATE_HIGH"
    RUN_FIXED_N = "RUN_FIXED_N"
    GATE_LOW = "GATE_LOW"
    DIAGNOSTIC_INIT = "DIAGNOSTIC_INIT"
    TERMINAL_REPORT = "TERMINAL_REPORT"
    PARK = "PARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRunPlan:
    """What a power run is about to do. Policy constants live in the planning stage, never in the firmware.

    Args:
        requested_count: N, inferences inside GATE.
        repeats: R, captures.
        reference_inference_us: clean latency of the profile run, µs.
        planned_runtime_s: N times the reference, s.
        boot_allowance_s: READY must be seen by then, s.
        fixed_margin_s: added to the deadline, s.
        execution_deadline_s: boot + 2 * planned runtime + margin, s of board time.
        gate_tolerance_s: how far GATE may be from N * reference, s.
        idle_window_s: idle time measured before GATE, s.
        tail_s: recorded after the terminal record, s.
        lockstep: host waits for READY and gives GO.
        expected_crc32: of the output by the oracle; None without one.
    """

    requested_count: int
    repeats: int
    reference_inference_us: float
    planned_runtime_s: float
    boot_allowance_s: float
    fixed_margin_s: float
    execution_deadline_s: float
    gate_tolerance_s: float
    idle_window_s: float
    tail_s: float
    lockstep: bool
    expected_crc32: int | None


class TerminalStatus(StrEnum):
    """What the power image says of itself."""

    OK = "ok"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTerminalRecord:
    """The one record that the power image prints after GATE is low.

    Args:
        version: of the wire protocol.
        status: ok or error.
        requested_count: N compiled into the image.
        completed_count: inferences finished.
        elapsed_us: GATE high to low by the firmware's own counter, µs; None when it has none.
        final_phase: state at which it ended.
        error_code: 0 when ok.
        gate_asserted: GATE was raised.
        gate_lowered: GATE was lowered.
    """

    version: int
    status: TerminalStatus
    requested_count: int
    completed_count: int
    elapsed_us: int | None
    final_phase: FirmwarePhase
    error_code: int
    gate_asserted: bool
    gate_lowered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDevicePowerSummary:
    """Energy as a monitor on the board accumulated it over the N inferences, in integer base units.

    Args:
        source: monitor name.
        energy_nj: nJ.
        charge_nc: nC.
        mean_voltage_uv: µV.
        duration_us: µs; agrees with the terminal record.
        count: inferences covered; agrees with the terminal record.
        overflow: an accumulator overflowed.
        calibration_id: identity of its calibration, empty for none.
        configuration_id: identity of its configuration, empty for none.
    """

    source: str
    energy_nj: int
    charge_nc: int
    mean_voltage_uv: int
    duration_us: int
    count: int
    overflow: bool
    calibration_id: str = ""
    configuration_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTerminalEnvelope:
    """What the terminal transport delivered.

    Args:
        record: the terminal record.
        output_crc32: checksum of the last output; None when not sent.
        on_device_summary: of a monitor on the board; None without one.
    """

    record: PowerTerminalRecord
    output_crc32: int | None = None
    on_device_summary: OnDevicePowerSummary | None = None


class ObservationMode(StrEnum):
    """Whether GATE bounds the energy, or the whole trace is all there is."""

    GPIO_GATED = "gpio_gated"
    FREE_FORM = "free_form"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateWindow:
    """A window on the instrument's clock.

    Args:
        rise_ns: ns, may be fractional: logic edges are known to a tick, the middle of it is taken.
        fall_ns: ns.
    """

    rise_ns: float
    fall_ns: float

    def __post_init__(self) -> None:
        if not self.fall_ns > self.rise_ns:
            raise ValueError(f"a gate must end after it starts, got {self.rise_ns}..{self.fall_ns} ns")

    @property
    def duration_s(self) -> float:
        """Length, s."""
        return (self.fall_ns - self.rise_ns) * 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerResult:
    """Energy of one capture by the instrument.

    Args:
        recording: what the instrument gave.
        gate: the GATE window; None in a free-form observation.
        idle: the idle window before GATE; None when there is none.
        energy_j: inside the gate, or of the whole trace when free-form, J.
        idle_power_w: mean of the idle window, W; None without one.
        duration_s: of what energy_j covers, s.
        peak_power_w: highest sample of what energy_j covers, W.
        lost_share: share of what energy_j covers that the instrument lost, 0..1.
        provenance: of the samples.
    """

    recording: MeterRecording
    gate: GateWindow | None
    idle: GateWindow | None
    energy_j: float
    idle_power_w: float | None
    duration_s: float
    peak_power_w: float
    lost_share: float
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerObservation:
    """What the host saw of one capture.

    Args:
        mode: gated or free-form.
        result: the energy; None when the instrument delivered nothing.
        gate_rise_observed: GATE went high.
        gate_fall_observed: GATE went low.
        deadline_s: board time that was allowed, s.
        integrity: valid, degraded or invalid, after reconciliation.
        findings: why.
    """

    mode: ObservationMode
    result: PowerResult | None
    gate_rise_observed: bool
    gate_fall_observed: bool
    deadline_s: float
    integrity: Validity
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerCapture:
    """One repeat: reset, READY, GO, GATE and terminal of the one deployed image."""

    index: int
    observation: PowerObservation
    terminal: PowerTerminalEnvelope | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerRun:
    """The power phase as one record.

    Args:
        plan: what was asked.
        firmware: the power image.
        deployment: what was flashed.
        captures: one per repeat, bad ones kept with their findings.
        findings: of the run as a whole, for example ``captures_dropped``.
    """

    plan: PowerRunPlan
    firmware: FirmwareArtifact
    deployment: DeploymentRecord
    captures: tuple[PowerCapture, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def valid_captures(self) -> tuple[PowerCapture, ...]:
        """Captures whose integrity is valid: the headline is made of these."""
        return tuple(c for c in self.captures if c.observation.integrity is Validity.VALID)
