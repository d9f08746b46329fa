"""Boards with a known truth and no emulator: rails laid out from a layer schedule, and runs of simulated captures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.drivers.simulated import SimulatedMeter
from joulemap.meters.rail_integral import RailIntegral
from joulemap.records.fault import FaultPlan
from joulemap.records.finding import Validity
from joulemap.records.firmware import ArtifactRole, DeploymentRecord, FirmwareArtifact
from joulemap.records.instrument import InstrumentSpec, MeterRecording
from joulemap.records.model import Layer
from joulemap.records.power import (
    GateWindow,
    ObservationMode,
    PowerCapture,
    PowerObservation,
    PowerResult,
    PowerRun,
    PowerRunPlan,
)
from joulemap.records.profile import PmuResult
from joulemap.records.rail import RailActivity
from joulemap.trace import EdgeDirection, Marker

CORE_HZ = 100e6
IDLE_S = 0.05
IDLE_W = 0.6e-3
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Board:
    """What one capture of a board looks like at run factor 1, and the truth of it per inference.

    A real board's capture fits in here as well: rows and edges from the board, profile from the profile image.
    """

    name: str
    rail: RailActivity
    profile: PmuResult
    count: int
    layer_j: Array
    gap_j: float
    rail_factor: float = 1.0  # run factor that the rail's rows carry already

    @property
    def total_j(self) -> float:
        """True energy of one inference, J."""
        return float(self.layer_j.sum()) + self.gap_j

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Model layers without a model."""
        return tuple(
            Layer(index=k, op="CONV_2D", name=f"t{k}", symbol=f"hpx_layer_{k:03}", macs=1000, bytes=100)
            for k in range(self.layer_j.size)
        )

    @property
    def inference_s(self) -> float:
        """Length of one inference inside GATE on the board's clock, s."""
        rise, fall = (edge.time_ns for edge in self.rail.edges if edge.name == "gate")
        return (fall - rise) * 1e-9 / self.count

    @property
    def mean_w(self) -> float:
        """Mean power inside GATE, W."""
        return self.total_j / self.inference_s


def build_board(
    name: str,
    layer_s: Sequence[float],
    *,
    count: int,
    seed: int = 1,
    contrast: bool = True,
    head_s: float = 2.3e-6,
    loop_s: float = 0.13e-6,
    ripple: float = 0.0,
) -> Board:
    """Returns a board whose layers take the given times, with powers drawn log-uniform from 0.5 to 2 times 2 mW.

    Args:
        name: of the board.
        layer_s: duration of each layer, s; rounded to whole cycles.
        count: inferences inside GATE.
        seed: of the powers.
        contrast: draw powers; else all layers have 2 mW.
        head_s: input load before the first layer, s.
        loop_s: loop time after each layer, s.
        ripple: relative power by which the first fifth of each layer exceeds the rest.
    """
    rng = np.random.default_rng(seed)
    cycles = np.round(np.asarray(layer_s) * CORE_HZ).astype(np.int64)
    head, loop = round(head_s * CORE_HZ), round(loop_s * CORE_HZ)
    power_w = 2e-3 * (np.exp(rng.uniform(np.log(0.5), np.log(2.0), cycles.size)) if contrast else np.ones(cycles.size))
    gap_w = 1.7e-3
    durations, powers = [head], [gap_w]
    for layer, own_w in zip(cycles, power_w, strict=True):
        first = int(layer) // 5
        durations += [first, int(layer) - first, loop]
        powers += [own_w * (1 + ripple), own_w, gap_w]
    inference = np.array(durations, np.int64)
    before = np.array([0.002, 0.0013])
    segment = np.concatenate(
        [
            np.round(np.array([*before, IDLE_S]) * CORE_HZ).astype(np.int64),
            np.tile(inference, count),
            np.round(np.array([0.0015, 0.008]) * CORE_HZ).astype(np.int64),
        ]
    )
    watts = np.concatenate([[3e-3, 2.2e-3, IDLE_W], np.tile(powers, count), [4e-3, 0.4e-3]])
    ready, rise = segment[:2].sum(), segment[:3].sum()
    fall = rise + inference.sum() * count
    energy_fj = np.array(durations) / CORE_HZ * np.array(powers)
    layer_j = energy_fj[1::3] + energy_fj[2::3]
    clean = int(inference.sum())
    return Board(
        name=name,
        rail=RailActivity(row_s=1e-6, energy_fj=_rows(segment, watts), edges=_edges(int(ready), int(rise), int(fall))),
        profile=PmuResult(
            core_hz=CORE_HZ,
            counter_source="virtual_pmu",
            clean_cycles=np.full(5, clean),
            instrumented_cycles=np.full(5, clean + 17 * cycles.size),
            head_cycles=np.full(5, head),
            layer_cycles=np.tile(cycles, (5, 1)),
            mark_cycles=17,
            layer_instructions=None,
            output_crc32=None,
        ),
        count=count,
        layer_j=np.asarray(layer_j, np.float64),
        gap_j=float(energy_fj.sum() - layer_j.sum()),
    )


def kws(*, count: int = 10, seed: int = 1, ripple: float = 0.0, contrast: bool = True) -> Board:
    """Returns a board with the layer times of a keyword spotter: 13 layers, 230 ms, one of 0.1 us."""
    layer_s = (
        55e-3,
        15.3e-3,
        29.1e-3,
        15.3e-3,
        28.9e-3,
        15.3e-3,
        28.9e-3,
        15.3e-3,
        26.6e-3,
        267e-6,
        1e-7,
        69e-6,
        84e-6,
    )
    return build_board("kws", layer_s, count=count, seed=seed, ripple=ripple, contrast=contrast)


def ad01(*, count: int = 116, seed: int = 2, ripple: float = 0.0, contrast: bool = True) -> Board:
    """Returns a board with the layer times of an anomaly detector: 10 layers, 17.4 ms."""
    layer_s = (4.9e-3, 1.06e-3, 1.06e-3, 1.06e-3, 69e-6, 109e-6, 1.06e-3, 1.06e-3, 1.06e-3, 5.9e-3)
    return build_board("ad01", layer_s, count=count, seed=seed, ripple=ripple, contrast=contrast)


def measure(
    board: Board,
    spec: InstrumentSpec,
    *,
    seed: int,
    repeats: int = 5,
    run_std: float = 0.002,
    integral: RailIntegral | None = None,
    faults: FaultPlan | None = None,
) -> PowerRun:
    """Returns a power run of the board: a new instrument, a new run factor for each repeat.

    Args:
        board: the board.
        spec: of the instrument.
        seed: of everything that is drawn.
        repeats: R.
        run_std: run-to-run variation of the board, 1 sd.
        integral: of the board's rail, built here when None.
        faults: planted faults of the instrument.
    """
    integral = integral or RailIntegral.build(board.rail)
    meter = SimulatedMeter(spec, lambda: board.rail, np.random.SeedSequence([seed, 7]), faults)
    factors = 1 + run_std * np.random.default_rng([seed, 11]).standard_normal(repeats)
    captures = []
    for repeat in range(1, repeats + 1):
        meter.arm(repeat=repeat)
        recording = (
            meter.record(integral, scale=float(factors[repeat - 1]) / board.rail_factor)
            if faults is None
            else meter.collect()
        )
        captures.append(PowerCapture(index=repeat - 1, observation=observe(recording), terminal=None))
    return PowerRun(plan=plan(board, repeats), firmware=_artifact(), deployment=_deployment(), captures=tuple(captures))


def observe(recording: MeterRecording, integrity: Validity = Validity.VALID) -> PowerObservation:
    """Returns the observation of a recording: the window between the gate edges, half a tick taken off."""
    half_tick_ns = 0.5e9 / recording.instrument.edge_rate_hz
    at = {(edge.name, edge.direction): edge.time_ns - half_tick_ns for edge in recording.edges}
    rise, fall = at["gate", EdgeDirection.RISE], at["gate", EdgeDirection.FALL]
    ready = at["ready", EdgeDirection.RISE]
    trace = recording.trace
    result = PowerResult(
        recording=recording,
        gate=GateWindow(rise_ns=rise, fall_ns=fall),
        idle=GateWindow(rise_ns=ready, fall_ns=rise) if rise > ready else None,
        energy_j=0.0,  # the analysis integrates for itself
        idle_power_w=None,
        duration_s=(fall - rise) * 1e-9,
        peak_power_w=0.0,
        lost_share=trace.lost_samples / trace.n,
        provenance=trace.channel.provenance,
    )
    return PowerObservation(
        mode=ObservationMode.GPIO_GATED,
        result=result,
        gate_rise_observed=True,
        gate_fall_observed=True,
        deadline_s=20.0,
        integrity=integrity,
    )


def plan(board: Board, repeats: int) -> PowerRunPlan:
    """Returns the plan of a run of the board."""
    reference_us = board.profile.clean_latency_s * 1e6
    return PowerRunPlan(
        requested_count=board.count,
        repeats=repeats,
        reference_inference_us=reference_us,
        planned_runtime_s=board.count * reference_us * 1e-6,
        boot_allowance_s=5.0,
        fixed_margin_s=2.0,
        execution_deadline_s=20.0,
        gate_tolerance_s=0.01,
        idle_window_s=IDLE_S,
        tail_s=0.005,
        lockstep=True,
        expected_crc32=None,
    )


def with_captures(run: PowerRun, captures: Sequence[PowerCapture]) -> PowerRun:
    """Returns the run with other captures."""
    return replace(run, captures=tuple(captures))


def time_split(board: Board, total_j: float) -> Array:
    """Returns what splitting a total by time gives each layer, J: the thing to be better than."""
    duration_s = board.profile.layer_duration_s
    return np.asarray(total_j * duration_s / board.profile.clean_latency_s, np.float64)


def _rows(segment: NDArray[np.int64], watts: Array) -> NDArray[np.uint32]:
    """Returns whole femtojoules per microsecond of a power that is constant within each segment of cycles."""
    at = np.concatenate([[0], np.cumsum(segment)])
    energy_fj = np.concatenate([[0.0], np.cumsum(segment * watts)]) * (1e15 / CORE_HZ)
    cycles_per_row = round(CORE_HZ * 1e-6)
    bounds = np.arange(0, at[-1] // cycles_per_row + 1) * cycles_per_row
    whole_fj: NDArray[np.int64] = np.rint(np.interp(bounds, at, energy_fj)).astype(np.int64)
    return np.asarray(np.diff(whole_fj), np.uint32)


def _edges(ready: int, rise: int, fall: int) -> tuple[Marker, ...]:
    def instant(cycles: int) -> int:
        return round(cycles * 1e9 / CORE_HZ)

    return (
        Marker(time_ns=instant(ready), name="ready", direction=EdgeDirection.RISE),
        Marker(time_ns=instant(rise), name="gate", direction=EdgeDirection.RISE),
        Marker(time_ns=instant(fall), name="gate", direction=EdgeDirection.FALL),
    )


def _artifact() -> FirmwareArtifact:
    return FirmwareArtifact(
        role=ArtifactRole.POWER,
        elf=Path("synthetic.elf"),
        sha256="0" * 64,
        source_sha256="0" * 64,
        sections={},
        symbols={},
        flash_b=0,
        ram_b=0,
        toolchain="none",
        command=(),
    )


def _deployment() -> DeploymentRecord:
    return DeploymentRecord(firmware=_artifact(), target_id="synthetic", deployed_at="2000-01-01T00:00:00Z")


BOUNDARY = Boundary.RAIL
PROVENANCE = Provenance.SIMULATED
