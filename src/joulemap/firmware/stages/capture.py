"""One capture of the power image: reset, READY, idle window, GO, GATE, terminal record. Touches board and meter.

It concludes nothing: it returns what was there. A capture that ends badly is a :class:`RawCapture` like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

from joulemap.errors import PipelineError
from joulemap.firmware.boards.base import BoardSession, BoardStop, ResetOptions, StopReason
from joulemap.firmware.stages import policy
from joulemap.firmware.stages.context import CaptureTruth, PowerDeployed, RawCapture
from joulemap.firmware.stages.observation import GateEdges, find_gate_edges, observe_power
from joulemap.firmware.stages.probe_access import read_phase, unplug_probe
from joulemap.firmware.stages.seeds import contrast_factors, run_factor
from joulemap.firmware.stages.sources import fault_select
from joulemap.firmware.transports.base import LinkContext, PowerTerminalTransport
from joulemap.meters.base import PowerMeter
from joulemap.records.fault import FaultSlug
from joulemap.records.firmware import ArtifactRole
from joulemap.records.power import FirmwarePhase, PowerResult, PowerTerminalEnvelope
from joulemap.records.target import Line

__all__ = ["KEPT_SLUGS", "LOST_SLUGS", "CaptureTools", "capture_repeat", "run_to_edge"]

_SETTLE_S = 0.01
"""The board's own limit lies this much after the plan's deadline, so that a core that sleeps there is told from one
that is still running."""
LOST_SLUGS = frozenset({"board-lost", "board-watchdog", "probe-lost"})
"""Errors after which the board cannot be reached any more."""
KEPT_SLUGS = LOST_SLUGS | {"instrument-lost", "capture-empty"}
"""Errors that make a capture a bad one; any other ends the run."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaptureTools:
    """What every repeat of a run shares.

    Args:
        context: the deployed image and its plan.
        meter: armed anew for each repeat.
        transport: of the terminal record.
    """

    context: PowerDeployed
    meter: PowerMeter
    transport: PowerTerminalTransport

    @property
    def session(self) -> BoardSession:
        """The board."""
        return self.context.session

    def active(self, slug: FaultSlug, repeat: int) -> bool:
        """True when the planted fault hits the repeat."""
        return self.context.request.faults.active(slug, repeat)

    def link(self, since_ns: int = 0) -> LinkContext:
        """Returns the way to the running image."""
        context = self.context
        return LinkContext(
            session=context.session,
            memory=context.probe,
            symbols=context.power_firmware.symbols,
            ram=context.target.region("ram"),
            since_ns=since_ns,
        )


@dataclass(slots=True)
class _Seen:
    """What has been seen of a capture so far; it grows while the capture runs and may stop growing at any call."""

    ready: bool = False
    fall: bool = False
    stop: BoardStop | None = None
    edges: GateEdges | None = None
    result: PowerResult | None = None
    terminal: PowerTerminalEnvelope | None = None
    terminal_failure: PipelineError | None = None
    phase: FirmwarePhase | None = None
    failure: PipelineError | None = None


def run_to_edge(session: BoardSession, line: Line | None, limit_ns: int) -> BoardStop:
    """Runs to an edge of the line, sleeping times passed through, at the latest to the limit when the core sleeps then.

    Args:
        session: the board.
        line: wanted; None runs to the limit.
        limit_ns: board time, ns.
    """
    until = frozenset() if line is None else frozenset({line})
    while True:
        stop = session.run(until=until)
        if stop.reason is not StopReason.IDLE or stop.time_ns >= limit_ns:
            return stop
        session.advance((limit_ns - stop.time_ns) * 1e-9)


def capture_repeat(tools: CaptureTools, repeat: int) -> tuple[RawCapture, CaptureTruth | None]:
    """Returns what one repeat left, and on a virtual board the truth behind it.

    Args:
        tools: shared by all repeats.
        repeat: counted from 1.

    Raises:
        PowerError: the board refuses the run as such, for example a window that is too long.
    """
    seen = _Seen()
    truth: CaptureTruth | None = None
    try:
        tools.meter.arm(repeat=repeat)  # before reset: nothing of the capture is missed
        _reset(tools, repeat)
        _run_gate(tools, repeat, seen)
        _collect_terminal(tools, seen)
        recording = tools.meter.collect()
        truth = CaptureTruth(index=repeat, truth=tools.session.truth())
        seen.edges = find_gate_edges(recording)
        seen.result = observe_power(recording, seen.edges, tools.context.power_plan.idle_window_s)
    except PipelineError as error:
        if error.slug not in KEPT_SLUGS:
            raise  # nothing about this capture: the next one would end the same way
        seen.failure = error
    lost = seen.failure is not None and seen.failure.slug in LOST_SLUGS
    if seen.phase is None and seen.terminal is None and not lost:
        seen.phase = read_phase(tools.context.probe, tools.context.power_firmware)
    raw = RawCapture(
        index=repeat,
        ready_seen=seen.ready,
        stop=None if lost else seen.stop,
        edges=seen.edges,
        result=seen.result,
        failure=seen.failure,
        terminal=seen.terminal,
        terminal_failure=seen.terminal_failure,
        firmware_phase=seen.phase,
        throttled_share=0.0 if lost else tools.session.throttled_share(),
    )
    if seen.stop is not None and seen.stop.reason is StopReason.DEADLINE and not lost:
        tools.context.probe.reset(ResetOptions(deadline_s=_SETTLE_S))  # a firmware that is stuck does not stay so
    return raw, truth


def _reset(tools: CaptureTools, repeat: int) -> None:
    context, plan = tools.context, tools.context.power_plan
    request = context.request
    in_gate_s = plan.idle_window_s + plan.planned_runtime_s / 2
    context.probe.reset(
        ResetOptions(
            deadline_s=plan.execution_deadline_s + _SETTLE_S,
            record_rail=True,
            run_factor=run_factor(request.seed, repeat),
            layer_factors=contrast_factors(request.seed, len(context.prepared.summary.layers))
            if request.contrast
            else (),
            fault_select=fault_select(request.faults, ArtifactRole.POWER, repeat),
            fault_argument=plan.requested_count // 2,
            brown_out_at_s=in_gate_s if tools.active(FaultSlug.BROWN_OUT, repeat) else None,
            throttle_at_s=in_gate_s if tools.active(FaultSlug.THROTTLE, repeat) else None,
        )
    )
    tools.transport.arm(tools.link())
    if tools.active(FaultSlug.PROBE_LOST, repeat):
        unplug_probe(context.probe)


def _run_gate(tools: CaptureTools, repeat: int, seen: _Seen) -> None:
    """Runs from reset to the fall of GATE, or to where the run ended without one."""
    session, plan = tools.session, tools.context.power_plan
    deadline_ns = round(plan.execution_deadline_s * 1e9)
    if plan.lockstep:
        boot_ns = round(plan.boot_allowance_s * 1e9)
        stop = seen.stop = run_to_edge(session, Line.READY, boot_ns)
        seen.ready = stop.reason is StopReason.EDGE and stop.time_ns <= boot_ns
        if not seen.ready:
            return
        session.advance(plan.idle_window_s)
        if not tools.active(FaultSlug.NO_GO, repeat):
            session.set_line(Line.GO, level=True)
    gate = None if tools.active(FaultSlug.GATE_DISCONNECTED, repeat) else Line.GATE
    stop = seen.stop = run_to_edge(session, gate, deadline_ns)
    if stop.reason is StopReason.EDGE and stop.level:
        stop = seen.stop = run_to_edge(session, gate, deadline_ns)
    seen.fall = stop.reason is StopReason.EDGE


def _collect_terminal(tools: CaptureTools, seen: _Seen) -> None:
    """Takes the terminal record of a board that can still give one, and lets the recording run its tail.

    Without a fall of GATE the core sleeps at the deadline: what lies in its buffer then is on time. A board that has
    not said READY is asked for a record only when its phase word says that it has ended.
    """
    assert seen.stop is not None  # the gate was waited for
    if seen.stop.reason not in (StopReason.EDGE, StopReason.IDLE):
        return
    if tools.context.power_plan.lockstep and not seen.ready:
        seen.phase = read_phase(tools.context.probe, tools.context.power_firmware)
        if seen.phase is not FirmwarePhase.PARK:
            return
    try:
        seen.terminal = tools.transport.collect(tools.link(since_ns=seen.stop.time_ns), policy.TERMINAL_TIMEOUT_S)
    except PipelineError as error:
        if error.slug in LOST_SLUGS - {"probe-lost"}:
            raise
        seen.terminal_failure = error  # of the record or of the probe: the gate that was seen is still good
    if seen.fall:
        tools.session.advance(tools.context.power_plan.tail_s)
        seen.stop = tools.session.run()
