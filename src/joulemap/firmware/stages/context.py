"""The pipeline's context as a chain of typed variants: what a stage takes proves what has already happened.

Each variant adds whole records to the one before it; none of their fields is optional. :func:`advance` makes the next
one, :func:`require` refuses a stage that runs before its producer.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from joulemap.errors import PipelineError, PowerError
from joulemap.firmware.boards.base import Board, BoardSession, BoardStop
from joulemap.firmware.engines.base import PreparedModel
from joulemap.firmware.probes.base import Probe
from joulemap.firmware.stages.bench import Bench
from joulemap.firmware.stages.capture_facts import Cause
from joulemap.firmware.stages.observation import GateEdges
from joulemap.records.finding import Finding, Validity
from joulemap.records.firmware import DeploymentRecord, FirmwareArtifact, FirmwareSource
from joulemap.records.instrument import InstrumentSpec
from joulemap.records.power import FirmwarePhase, PowerResult, PowerRun, PowerRunPlan, PowerTerminalEnvelope
from joulemap.records.profile import ProfileRun
from joulemap.records.rail import BoardTruth
from joulemap.records.run import ProfileRequest
from joulemap.records.target import MemoryPlan, Target

__all__ = [
    "BoardPowered",
    "CaptureTruth",
    "EnginePrepared",
    "ModelAnalyzed",
    "PlatformResolved",
    "PowerBuilt",
    "PowerDeployed",
    "PowerDone",
    "PowerObserved",
    "PowerPlaced",
    "PowerPlanned",
    "PowerRendered",
    "Preflighted",
    "ProbeResolved",
    "ProfileBuilt",
    "ProfileDeployed",
    "ProfileDone",
    "ProfilePlaced",
    "ProfileRendered",
    "RawCapture",
    "Requested",
    "SetupDone",
    "SimulatedTruth",
    "TerminalStatement",
    "TerminalsCollected",
    "advance",
    "require",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaptureTruth:
    """The truth behind one capture of a virtual board; index as in :class:`PowerCapture`."""

    index: int
    truth: BoardTruth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedTruth:
    """The truth of a run, carried past every analysis to the bundle's ``truth/`` and to nothing else."""

    captures: tuple[CaptureTruth, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RawCapture:
    """What one repeat left, before anything is concluded from it.

    Args:
        index: repeat, counted from 1.
        ready_seen: READY rose within the boot allowance.
        stop: how the board ended; None when it was lost.
        edges: of the lines, as the instrument saw them; None without a recording.
        result: its energy; None when the instrument delivered nothing.
        failure: why there is no result, or how the board was lost; None otherwise.
        terminal: what the terminal transport delivered; None without a record.
        terminal_failure: why there is none; None with one, or when none was asked for.
        firmware_phase: of the phase word in RAM, read without a reset; None when it was not read.
        throttled_share: share of the time under a clamp, 0..1.
    """

    index: int
    ready_seen: bool
    stop: BoardStop | None
    edges: GateEdges | None
    result: PowerResult | None
    failure: PipelineError | None
    terminal: PowerTerminalEnvelope | None
    terminal_failure: PipelineError | None
    firmware_phase: FirmwarePhase | None
    throttled_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalStatement:
    """What the firmware said of one capture.

    Args:
        index: repeat, counted from 1.
        envelope: the record; None without one.
        absence: why there is none; None when there is one.
    """

    index: int
    envelope: PowerTerminalEnvelope | None
    absence: Cause | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requested:
    """A request and the bench that it is to run on."""

    request: ProfileRequest
    bench: Bench


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Preflighted(Requested):
    """Every name is known and nothing is missing; ``instrument`` is what a power phase would use."""

    board: Board
    instrument: InstrumentSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoardPowered(Preflighted):
    """The board is on."""

    session: BoardSession


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlatformResolved(BoardPowered):
    """The target is known: core, memory, clock, supply."""

    target: Target


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbeResolved(PlatformResolved):
    """The link to the board is known."""

    probe: Probe


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnginePrepared(ProbeResolved):
    """The model is C, with its input and the oracle's output."""

    prepared: PreparedModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelAnalyzed(EnginePrepared):
    """The model holds what the images rely on; ``findings`` are doubts about it."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetupDone(ModelAnalyzed):
    """The model has a place in every region."""

    memory: MemoryPlan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProfileRendered(SetupDone):
    """The profile image is source."""

    profile_source: FirmwareSource


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProfileBuilt(ProfileRendered):
    """The profile image is linked."""

    profile_firmware: FirmwareArtifact


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProfilePlaced(ProfileBuilt):
    """The linked profile image lies where the memory plan says."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProfileDeployed(ProfilePlaced):
    """The profile image is on the board."""

    profile_deployment: DeploymentRecord


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProfileDone(ProfileDeployed):
    """The profile phase as one record."""

    profile: ProfileRun


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerPlanned(ProfileDone):
    """N, deadline and tolerances are fixed."""

    power_plan: PowerRunPlan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerRendered(PowerPlanned):
    """The power image is source."""

    power_source: FirmwareSource


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerBuilt(PowerRendered):
    """The power image is linked."""

    power_firmware: FirmwareArtifact


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerPlaced(PowerBuilt):
    """The linked power image lies where the memory plan says."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerDeployed(PowerPlaced):
    """The power image is on the board."""

    power_deployment: DeploymentRecord


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerObserved(PowerDeployed):
    """Every repeat has run, or the phase ended early; ``truth`` is None on a real board."""

    raw_captures: tuple[RawCapture, ...]
    truth: SimulatedTruth | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TerminalsCollected(PowerObserved):
    """It is known for each capture what the firmware says of itself; nothing is judged yet."""

    terminals: tuple[TerminalStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerDone(TerminalsCollected):
    """The power phase as one record, with its verdict.

    Args:
        power: plan, firmware, deployment, captures and findings.
        power_validity: of the run: only a valid one has a headline.
        power_failure: what is raised after the bundle of a run without headline is written; None for a valid one.
    """

    power: PowerRun
    power_validity: Validity
    power_failure: PowerError | None


_Context = TypeVar("_Context", bound=Requested)


def advance(context: Requested, variant: type[_Context], **grown: Any) -> _Context:
    """Returns the next variant: everything that the context holds and what has been added."""
    held = {field.name: getattr(context, field.name) for field in fields(context)}
    return variant(**held, **grown)


def require(context: Requested, variant: type[_Context], stage: str) -> _Context:
    """Returns the context as the variant that a stage needs.

    Raises:
        PipelineError: the stage runs before its producer (``stage-order``).
    """
    if not isinstance(context, variant):
        raise PipelineError(
            f"{stage} needs {variant.__name__}, got {type(context).__name__}: a stage before it has not run",
            hint="run the stages in the order of docs/pipeline.md",
            slug="stage-order",
            phase="setup",
        )
    return context
