"""The setup phase: names resolved, board on, model turned into C and given a place. Nothing is built yet."""

from __future__ import annotations

import math

from joulemap.errors import EngineError, SetupError, UsageError
from joulemap.estimate import Provenance
from joulemap.firmware.stages.context import (
    BoardPowered,
    EnginePrepared,
    ModelAnalyzed,
    PlatformResolved,
    Preflighted,
    ProbeResolved,
    Requested,
    SetupDone,
    advance,
    require,
)
from joulemap.firmware.stages.input_arrays import read_input_arrays
from joulemap.firmware.stages.placement import build_memory_plan
from joulemap.meters.registry import DEFAULT_INSTRUMENT
from joulemap.records.fault import FaultSlug
from joulemap.records.finding import Finding, Severity
from joulemap.records.model import ModelSummary
from joulemap.records.progress import Phase
from joulemap.records.run import ProfileRequest
from joulemap.records.target import Target

__all__ = [
    "MAX_COUNT",
    "MAX_REPEATS",
    "ON_DEVICE_INSTRUMENT",
    "analyze_model",
    "ensure_board_powered",
    "plan_memory",
    "preflight",
    "prepare_engine",
    "resolve_platform",
    "resolve_probe",
]

ON_DEVICE_INSTRUMENT = "ondevice"
"""A monitor on the board itself; known by name, refused at planning while no firmware feeds it."""
MAX_COUNT = 2**32 - 1
"""What the firmware can count to."""
MAX_REPEATS = 1000
"""Captures of one run: all of them are kept, and the interval of a mean shrinks no further that pays."""
_VIRTUAL_PROBE, _REAL_PROBE = "virtual", "jlink"


def preflight(context: Requested) -> Preflighted:
    """Checks every name of the request and that nothing is missing, before anything starts.

    Raises:
        UsageError: an unknown name, a transport that the target lacks, a fault or contrast on a real target.
        SetupError: an extra, a tool or the board is missing (the hint is the fix).
        InputError: the instrument's file is unreadable.
    """
    request, bench = context.request, context.bench
    board = bench.board(request.target)
    bench.engine(request.engine)
    toolchain = bench.toolchain(request.toolchain)
    bench.terminal_transport(request.transport)
    bench.profile_transport(request.transport)
    _check_request(request, board.target)
    name = DEFAULT_INSTRUMENT if request.instrument is None else request.instrument
    instrument = bench.instrument(DEFAULT_INSTRUMENT if name == ON_DEVICE_INSTRUMENT else name)
    bench.diagnostic(Phase.SETUP, "toolchain", toolchain.describe())
    return advance(context, Preflighted, board=board, instrument=instrument)


def _check_request(request: ProfileRequest, target: Target) -> None:
    if request.transport not in target.transports:
        raise UsageError(
            f"{target.name} has no transport {request.transport}",
            hint=f"one of: {', '.join(target.transports)}",
            slug="unknown-transport",
        )
    if not 1 <= request.repeats <= MAX_REPEATS or (request.count is not None and not 1 <= request.count <= MAX_COUNT):
        raise UsageError(
            f"{request.repeats} repeats of {request.count} inferences cannot be run",
            hint=f"repeats are 1 to {MAX_REPEATS}, a count is 1 to {MAX_COUNT}",
            slug="count-out-of-range",
        )
    if request.window_s is not None and not 0 < request.window_s < math.inf:
        raise UsageError(
            f"a gate of {request.window_s} s cannot be run",
            hint="give --window-s a finite number of seconds above 0",
            slug="count-out-of-range",
        )
    virtual = target.provenance is Provenance.SIMULATED
    if not virtual and (request.faults.faults or request.contrast):
        raise UsageError(
            f"{target.name} is no virtual target: faults and contrast cannot be planted",
            hint="use --target virtual-m33, or leave --fault and --contrast out",
            slug="virtual-only",
        )
    silent = [slug for slug in (FaultSlug.NO_READY, FaultSlug.NO_GO) if request.faults.active(slug)]
    if silent and not request.lockstep:
        raise UsageError(
            f"--no-lockstep and --fault {silent[0]} contradict each other: nobody waits for READY or gives GO",
            hint="leave one of them out",
            slug="flags-contradict",
        )
    if request.power and not virtual and request.instrument is None:
        raise SetupError(
            f"{target.name} needs an instrument to measure its power",
            hint="name one with --instrument, or run with --no-power",
            slug="no-meter",
        )


def ensure_board_powered(context: Requested) -> BoardPowered:
    """Opens the board; it is closed with the bench's resources, whatever happens.

    Raises:
        SetupError: an extra, a tool or the board is missing; the hint is the exact fix.
    """
    held = require(context, Preflighted, "ensure_board_powered")
    session = held.board.open()
    held.bench.resources.callback(session.close)
    return advance(held, BoardPowered, session=session)


def resolve_platform(context: Requested) -> PlatformResolved:
    """Fixes what the target is: core, memory, clock, supply."""
    held = require(context, BoardPowered, "resolve_platform")
    return advance(held, PlatformResolved, target=held.board.target)


def resolve_probe(context: Requested) -> ProbeResolved:
    """Attaches the target's probe.

    Raises:
        SetupError: this build has no driver for it.
    """
    held = require(context, PlatformResolved, "resolve_probe")
    target, model = held.target, held.request.model
    virtual = target.provenance is Provenance.SIMULATED
    probe = held.bench.probe(_VIRTUAL_PROBE if virtual else _REAL_PROBE, held.session)
    point = target.operating_point
    held.bench.checkpoint(
        Phase.SETUP,
        "platform_and_model_resolved",
        f"{target.name} ({target.cpu.core}, {point.core_hz / 1e6:g} MHz, {point.supply_v:g} V), model {model.name}",
        target=target.name,
        probe=probe.name,
        core_hz=point.core_hz,
        supply_v=point.supply_v,
        model=model.name,
    )
    return advance(held, ProbeResolved, probe=probe)


def prepare_engine(context: Requested) -> EnginePrepared:
    """Turns the model into C, with its input and the oracle's output.

    Raises:
        InputError: model or input file is missing, unreadable or of the wrong kind.
        EngineError: the model is corrupt, or beyond the engine; names op, index and tensor.
    """
    held = require(context, ProbeResolved, "prepare_engine")
    request = held.request
    inputs = None if request.input is None else read_input_arrays(request.input)
    prepared = held.bench.engine(request.engine).prepare(request.model, inputs=inputs, seed=request.seed)
    held.bench.checkpoint(
        Phase.SETUP,
        "engine_prepared",
        f"engine {request.engine}: {len(prepared.summary.layers)} layers, {prepared.summary.macs} MAC, "
        f"oracle {prepared.oracle or 'none'}",
        engine=request.engine,
        layers=len(prepared.summary.layers),
        macs=prepared.summary.macs,
        oracle=prepared.oracle,
    )
    return advance(held, EnginePrepared, prepared=prepared)


def analyze_model(context: Requested) -> ModelAnalyzed:
    """Checks what both images and the attribution rely on: layers in order, one symbol each, an oracle or a finding.

    Raises:
        EngineError: the engine's description contradicts itself (``model-inconsistent``).
    """
    held = require(context, EnginePrepared, "analyze_model")
    summary = held.prepared.summary
    _check_summary(summary)
    findings = []
    if held.prepared.reference_crc32 is None:
        message = "no oracle computed this model's output: a wrong output would not be noticed"
        findings.append(Finding(slug="output_unchecked", severity=Severity.WARNING, message=message))
    return advance(held, ModelAnalyzed, findings=tuple(findings))


def _check_summary(summary: ModelSummary) -> None:
    symbols = [layer.symbol for layer in summary.layers]
    if not symbols or len(set(symbols)) != len(symbols) or [x.index for x in summary.layers] != [*range(len(symbols))]:
        raise EngineError(
            f"model {summary.name}: {len(symbols)} layers with {len(set(symbols))} symbols; each needs one of its own",
            hint="a model needs at least one operator; the rest is a fault of the engine",
            slug="model-inconsistent",
            phase="setup",
        )


def plan_memory(context: Requested) -> SetupDone:
    """Gives the model its place, before anything is built.

    Raises:
        CapacityError: a region is too small: region, need_b, have_b.
    """
    held = require(context, ModelAnalyzed, "plan_memory")
    memory = build_memory_plan(held.prepared.summary, held.target)
    uses = ", ".join(f"{use.region.name} {use.need_b} of {use.region.size_b} B" for use in memory.uses)
    held.bench.checkpoint(
        Phase.SETUP,
        "memory_placement_resolved",
        f"{uses}, arena {memory.arena_b} B",
        arena_b=memory.arena_b,
        constants_b=memory.constants_b,
        **{f"{use.region.name}_need_b": use.need_b for use in memory.uses},
    )
    return advance(held, SetupDone, memory=memory)
