"""A profile run as records, made by hand: three layers, a gap, five captures. For tests that need no board."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from joulemap.estimate import Boundary, Estimate, Provenance, Unavailable
from joulemap.records.energy import BudgetLine, EnergyAccount, EnergyGroup, GapEnergy, LayerEnergy, Resolution
from joulemap.records.finding import Finding, Severity, Validity
from joulemap.records.firmware import ArtifactRole, DeploymentRecord, FirmwareArtifact
from joulemap.records.instrument import ErrorDistribution, InstrumentSpec, MeterRecording
from joulemap.records.model import Layer, ModelSummary, TensorSpec
from joulemap.records.power import (
    FirmwarePhase,
    GateWindow,
    ObservationMode,
    PowerCapture,
    PowerObservation,
    PowerResult,
    PowerRun,
    PowerRunPlan,
    PowerTerminalEnvelope,
    PowerTerminalRecord,
    TerminalStatus,
)
from joulemap.records.profile import PmuResult, ProfileRun
from joulemap.records.progress import Phase, ProgressUpdate
from joulemap.records.target import CpuSpec, MemoryPlan, MemoryRegion, OperatingPoint, RegionUse, Target
from joulemap.trace import Channel, Clock, ClockKind, EdgeDirection, EnergyTrace, KernelKind, Marker, SensorKernel
from joulemap.workflow.result import ProfileFacts

CORE_HZ = 100e6
COUNT = 10
HEAD_CYCLES = 2_000
LAYER_CYCLES = (1_200_000, 350_000, 48_000)
CLEAN_CYCLES = HEAD_CYCLES + sum(LAYER_CYCLES) + 6
PERIOD_S = CLEAN_CYCLES / CORE_HZ
TOTAL_J = 448.3e-6
LAYER_J = (342.1e-6, 92.7e-6, 11.9e-6)
OPS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
MACS = (320_000, 72_000, 4_096)


def estimate(value: float, relative_std: float = 7e-4, **changes: Any) -> Estimate:
    """Returns a simulated estimate on the rail."""
    fields: dict[str, Any] = {"provenance": Provenance.SIMULATED, "boundary": Boundary.RAIL, "dof": 21.0, "k": 2.08}
    return Estimate(value=value, std=value * relative_std, **{**fields, **changes})


def target() -> Target:
    """Returns the virtual board's description."""
    return Target(
        name="virtual-m33",
        description="emulated Cortex-M33",
        cpu=CpuSpec(core="cortex-m33", features=frozenset({"dsp"})),
        regions=(flash(), ram()),
        operating_point=OperatingPoint(core_hz=CORE_HZ, supply_v=1.8),
        boundary=Boundary.RAIL,
        provenance=Provenance.SIMULATED,
        counter_source="virtual_pmu",
        transports=("rtt",),
        requires=("virtual",),
    )


def flash() -> MemoryRegion:
    """Returns 2 MiB of flash."""
    return MemoryRegion(name="flash", origin=0, size_b=2 << 20)


def ram() -> MemoryRegion:
    """Returns 512 KiB of RAM."""
    return MemoryRegion(name="ram", origin=0x20000000, size_b=512 << 10)


def model() -> ModelSummary:
    """Returns a model of three layers."""
    tensor = TensorSpec(name="in", dtype="int8", shape=(1, 49, 10, 1), scale=0.5, zero_point=83, size_b=490)
    layers = tuple(
        Layer(index=k, op=op, name=f"model/{op.lower()}", symbol=f"hpx_layer_{k:03d}", macs=macs, bytes=4096 * (k + 1))
        for k, (op, macs) in enumerate(zip(OPS, MACS, strict=True))
    )
    return ModelSummary(
        name="three",
        sha256="ab" * 32,
        size_b=53_000,
        engine="aot",
        layers=layers,
        inputs=(tensor,),
        outputs=(replace(tensor, name="out", shape=(1, 12), size_b=12),),
        arena_b=22_016,
        constants_b=51_200,
    )


def artifact(role: ArtifactRole) -> FirmwareArtifact:
    """Returns an image that exists on paper only."""
    return FirmwareArtifact(
        role=role,
        elf=Path("/nowhere/image.elf"),
        sha256="cd" * 32,
        source_sha256="ef" * 32,
        sections={".text": 60_000, ".bss": 30_000},
        symbols={},
        flash_b=71_234,
        ram_b=33_333,
        toolchain="zig 0.17.1",
        command=("zig cc -O2",),
    )


def deployment(role: ArtifactRole) -> DeploymentRecord:
    """Returns what was flashed."""
    return DeploymentRecord(firmware=artifact(role), target_id="virtual-m33#0", deployed_at="2026-01-01T00:00:00Z")


def profile_run() -> ProfileRun:
    """Returns the profile phase."""
    cycles = np.tile(np.array(LAYER_CYCLES, np.int64), (5, 1))
    result = PmuResult(
        core_hz=CORE_HZ,
        counter_source="virtual_pmu",
        clean_cycles=np.full(5, CLEAN_CYCLES, np.int64),
        instrumented_cycles=np.full(5, CLEAN_CYCLES + 60, np.int64),
        head_cycles=np.full(5, HEAD_CYCLES, np.int64),
        layer_cycles=cycles,
        mark_cycles=17,
        layer_instructions=np.array([900_000, 260_000, 36_000], np.int64),
        output_crc32=0xDEADBEEF,
    )
    role = ArtifactRole.PROFILE
    return ProfileRun(firmware=artifact(role), deployment=deployment(role), result=result)


def instrument() -> InstrumentSpec:
    """Returns a slow, exact meter."""
    return InstrumentSpec(
        name="virtual-shunt",
        rate_hz=10e3,
        gain_std=5e-4,
        offset_std_w=1e-6,
        noise_std_w=2e-5,
        quantum_w=0.0,
        clock_std_ppm=10.0,
        edge_rate_hz=1e6,
        edge_skew_std_s=0.0,
        distribution=ErrorDistribution.NORMAL,
        provenance=Provenance.SIMULATED,
        source="test",
    )


def power_result() -> PowerResult:
    """Returns one gated capture of N inferences at constant power."""
    gate_s = COUNT * PERIOD_S
    gate = GateWindow(rise_ns=50e6, fall_ns=50e6 + gate_s * 1e9)
    kernel = SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1e-4)
    trace = EnergyTrace(
        clock=Clock(name="instrument", kind=ClockKind.SAMPLE_INDEX),
        channel=Channel(name="rail", boundary=Boundary.RAIL, provenance=Provenance.SIMULATED, kernel=kernel),
        power_w=np.full(2600, TOTAL_J / PERIOD_S, np.float32),
        start_ns=0,
        period_s=1e-4,
    )
    edges = (
        Marker(time_ns=round(gate.rise_ns), name="gate", direction=EdgeDirection.RISE),
        Marker(time_ns=round(gate.fall_ns), name="gate", direction=EdgeDirection.FALL),
    )
    return PowerResult(
        recording=MeterRecording(instrument=instrument(), trace=trace, edges=edges),
        gate=gate,
        idle=GateWindow(rise_ns=0.0, fall_ns=49e6),
        energy_j=TOTAL_J * COUNT,
        idle_power_w=4.2e-3,
        duration_s=gate.duration_s,
        peak_power_w=0.031,
        lost_share=0.0,
        provenance=Provenance.SIMULATED,
    )


def terminal() -> PowerTerminalEnvelope:
    """Returns a terminal record that agrees with the plan."""
    record = PowerTerminalRecord(
        version=1,
        status=TerminalStatus.OK,
        requested_count=COUNT,
        completed_count=COUNT,
        elapsed_us=round(COUNT * PERIOD_S * 1e6),
        final_phase=FirmwarePhase.TERMINAL_REPORT,
        error_code=0,
        gate_asserted=True,
        gate_lowered=True,
    )
    return PowerTerminalEnvelope(record=record, output_crc32=0xDEADBEEF)


def capture(index: int, integrity: Validity = Validity.VALID, findings: tuple[Finding, ...] = ()) -> PowerCapture:
    """Returns one repeat."""
    observation = PowerObservation(
        mode=ObservationMode.GPIO_GATED,
        result=power_result(),
        gate_rise_observed=True,
        gate_fall_observed=True,
        deadline_s=9.0,
        integrity=integrity,
        findings=findings,
    )
    return PowerCapture(index=index, observation=observation, terminal=terminal())


def power_run(captures: tuple[PowerCapture, ...] | None = None) -> PowerRun:
    """Returns the power phase of five repeats."""
    plan = PowerRunPlan(
        requested_count=COUNT,
        repeats=5,
        reference_inference_us=PERIOD_S * 1e6,
        planned_runtime_s=COUNT * PERIOD_S,
        boot_allowance_s=5.0,
        fixed_margin_s=2.0,
        execution_deadline_s=9.0,
        gate_tolerance_s=1e-3,
        idle_window_s=0.05,
        tail_s=5e-3,
        lockstep=True,
        expected_crc32=0xDEADBEEF,
    )
    role = ArtifactRole.POWER
    taken = captures if captures is not None else tuple(capture(k) for k in range(1, 6))
    return PowerRun(plan=plan, firmware=artifact(role), deployment=deployment(role), captures=taken)


def account(*, grouped: bool = False) -> EnergyAccount:
    """Returns the analysis of the run; ``grouped``: the last two layers and the gap are known as a sum only."""
    total = estimate(TOTAL_J)
    energies = [
        LayerEnergy(
            index=k,
            duration_s=LAYER_CYCLES[k] / CORE_HZ,
            energy_j=estimate(energy_j, 1e-3),
            share=energy_j / TOTAL_J,
            group=None,
            resolution=Resolution.OVERLAP,
        )
        for k, energy_j in enumerate(LAYER_J)
    ]
    gap_j = TOTAL_J - sum(LAYER_J)
    gap = GapEnergy(duration_s=HEAD_CYCLES / CORE_HZ, energy_j=estimate(gap_j, 0.05))
    groups: tuple[EnergyGroup, ...] = ()
    if grouped:
        missing = Unavailable(reason="layer_unidentifiable")
        for k in (1, 2):
            energies[k] = replace(
                energies[k], energy_j=missing, share=None, group="g1", resolution=Resolution.LEAST_SQUARES
            )
        summed = estimate(sum(LAYER_J[1:]) + gap_j, 4e-3)
        duration_s = (sum(LAYER_CYCLES[1:]) + HEAD_CYCLES) / CORE_HZ
        groups = (EnergyGroup(id="g1", layers=(1, 2), contains_gap=True, duration_s=duration_s, energy_j=summed),)
        gap = replace(gap, energy_j=missing)
    return EnergyAccount(
        energy_per_inference_j=total,
        energy_above_idle_per_inference_j=estimate(TOTAL_J - 4.2e-3 * PERIOD_S),
        inferences_per_j=total.reciprocal(),
        ops_per_j=total.reciprocal().scaled(2 * sum(MACS)),
        average_power_w=estimate(TOTAL_J / PERIOD_S),
        peak_power_w=estimate(0.031, 2e-3),
        peak_bandwidth_hz=5e3,
        latency_s=estimate(PERIOD_S, 1e-5, provenance=Provenance.MODELLED, boundary=None),
        idle_power_w=estimate(4.2e-3, 1e-3),
        layers=tuple(energies),
        groups=groups,
        gap=gap,
        budget=(BudgetLine(name="gain", kind="B", std_j=TOTAL_J * 5e-4, dof=float("inf")),),
    )


def facts(**changes: Any) -> ProfileFacts:
    """Returns the facts of a valid run, with changes."""
    made = ProfileFacts(
        run_id="0" * 32,
        target=target(),
        model=model(),
        memory=MemoryPlan(
            uses=(RegionUse(region=flash(), need_b=71_000), RegionUse(region=ram(), need_b=33_000)),
            arena_b=22_016,
            constants_b=51_200,
        ),
        profile=profile_run(),
        power=power_run(),
        account=account(),
        validity=Validity.VALID,
        reason="",
        findings=(),
        checkpoints=(
            ProgressUpdate(
                phase=Phase.SETUP,
                name="model_resolved",
                message="model resolved",
                details={"layers": 3},
                checkpoint=True,
            ),
        ),
        oracle="tflite-micro",
        oracle_crc32=0xDEADBEEF,
        trace_statistics=None,
    )
    return replace(made, **changes)


def degraded_facts() -> ProfileFacts:
    """Returns the facts of a run whose GATE fall was never seen."""
    finding = Finding(slug="gate_no_fall", severity=Severity.ERROR, message="GATE rose and was not seen to fall")
    captures = tuple(capture(k, Validity.DEGRADED, (finding,)) for k in range(1, 6))
    statistics = {
        "label": "whole trace, not one inference",
        "duration_s": 0.26,
        "energy_j": estimate(7.3e-3).to_json(),
        "average_power_w": estimate(0.028).to_json(),
    }
    return facts(
        power=power_run(captures),
        account=None,
        validity=Validity.DEGRADED,
        reason="gate_no_fall",
        findings=(finding,),
        trace_statistics=statistics,
    )


def profile_only_facts() -> ProfileFacts:
    """Returns the facts of a run without power."""
    return facts(power=None, account=None)
