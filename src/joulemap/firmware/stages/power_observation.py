"""The power phase on the board: R captures of the one deployed image.

All repeats run inside the one stage ``capture_power_observation``, because the next reset wipes the RAM that the
terminal record lies in: it is fetched at the end of its own capture, after GATE, while the meter still records. The
stage ``collect_power_terminal`` then settles what the firmware said of each. So the stage list stays linear, each stage
runs once, and no reset is hidden.
"""

from __future__ import annotations

from dataclasses import replace

from joulemap.errors import PipelineError
from joulemap.estimate import Provenance
from joulemap.firmware.boards.base import BoardSession
from joulemap.firmware.stages.capture import LOST_SLUGS, CaptureTools, capture_repeat
from joulemap.firmware.stages.capture_facts import Cause
from joulemap.firmware.stages.context import (
    CaptureTruth,
    PowerDeployed,
    PowerObserved,
    RawCapture,
    Requested,
    SimulatedTruth,
    TerminalsCollected,
    TerminalStatement,
    advance,
    require,
)
from joulemap.firmware.stages.guard import check_deployment
from joulemap.firmware.stages.seeds import named_stream
from joulemap.records.fault import FaultPlan, FaultSlug
from joulemap.records.progress import Phase
from joulemap.records.rail import RailActivity
from joulemap.records.target import Line

__all__ = ["capture_power_observation", "collect_power_terminal"]

_ENDS_PHASE = LOST_SLUGS | {"instrument-lost"}


class _MeterWires:
    """The wires from a virtual board to the meter: rail and logic inputs, of which GATE's can be cut."""

    def __init__(self, session: BoardSession, faults: FaultPlan) -> None:
        self._session = session
        self._faults = faults
        self.repeat = 0

    def __call__(self) -> RailActivity:
        activity = self._session.rail()
        if not self._faults.active(FaultSlug.GATE_DISCONNECTED, self.repeat):
            return activity
        return replace(activity, edges=tuple(edge for edge in activity.edges if edge.name != Line.GATE))


def capture_power_observation(context: Requested) -> PowerObserved:
    """Captures the repeats: a bad one is kept and the run goes on; a lost board, probe or instrument ends the phase.

    Raises:
        BuildError: what was flashed is not the image of this run.
    """
    held = require(context, PowerDeployed, "capture_power_observation")
    check_deployment(held.power_deployment, held.power_firmware)
    request, bench, repeats = held.request, held.bench, held.power_plan.repeats
    wires = _MeterWires(held.session, request.faults)
    meter = bench.meter(held.instrument, wires, named_stream(request.seed, "instrument"), request.faults)
    bench.resources.callback(meter.close)
    tools = CaptureTools(context=held, meter=meter, transport=bench.terminal_transport(request.transport))
    raws: list[RawCapture] = []
    truths: list[CaptureTruth] = []
    for repeat in range(1, repeats + 1):
        wires.repeat = repeat
        raw, truth = capture_repeat(tools, repeat)
        raws.append(raw)
        if truth is not None:
            truths.append(truth)
        _tell_capture(held, raw)
        if any(e is not None and e.slug in _ENDS_PHASE for e in (raw.failure, raw.terminal_failure)):
            break
    _tell_gates(held, raws)
    simulated = held.target.provenance is Provenance.SIMULATED
    return advance(
        held,
        PowerObserved,
        raw_captures=tuple(raws),
        truth=SimulatedTruth(captures=tuple(truths)) if simulated else None,
    )


def _tell_capture(context: PowerDeployed, raw: RawCapture) -> None:
    window = raw.edges.window if raw.edges else None
    repeats = context.power_plan.repeats
    said = f"GATE {window.duration_s:.6f} s" if window else f"no GATE ({raw.failure or 'edge missing'})"
    context.bench.status(
        Phase.POWER,
        "capture_power_observation",
        f"capture {raw.index} of {repeats}: {said}",
        done=raw.index,
        total=repeats,
        unit="captures",
    )


def _tell_gates(context: PowerDeployed, raws: list[RawCapture]) -> None:
    gates = [raw.edges.window for raw in raws if raw.edges and raw.edges.window]
    count = context.power_plan.requested_count
    if gates:
        mean_s = sum(gate.duration_s for gate in gates) / len(gates)
        message = f"GATE observed in {len(gates)} of {len(raws)} captures, mean {mean_s:.6f} s for {count} inferences"
    else:
        mean_s = None
        message = f"GATE not observed in {len(raws)} captures: whole-trace statistics are the fallback"
    context.bench.checkpoint(
        Phase.POWER,
        "gate_observed" if gates else "gate_fallback",
        message,
        gates=len(gates),
        captures=len(raws),
        mean_gate_s=mean_s,
    )


def collect_power_terminal(context: Requested) -> TerminalsCollected:
    """Settles for each capture what the firmware said of itself, or why it said nothing."""
    held = require(context, PowerObserved, "collect_power_terminal")
    statements = tuple(
        TerminalStatement(index=raw.index, envelope=raw.terminal, absence=_absence(raw)) for raw in held.raw_captures
    )
    received = [s.envelope.record for s in statements if s.envelope is not None]
    said = ", ".join(sorted({f"{r.status} {r.completed_count}/{r.requested_count}" for r in received}))
    held.bench.checkpoint(
        Phase.POWER,
        "terminal_status_received",
        f"{len(received)} of {len(statements)} terminal records" + (f": {said}" if said else ""),
        received=len(received),
        captures=len(statements),
        absences=sorted({s.absence.slug for s in statements if s.absence}),
    )
    return advance(held, TerminalsCollected, terminals=statements)


def _absence(raw: RawCapture) -> Cause | None:
    if raw.terminal is not None:
        return None
    error: PipelineError | None = raw.terminal_failure or raw.failure
    if error is not None:
        return Cause(slug=error.slug, message=error.message, hint=error.hint)
    return Cause(slug="terminal-missing", message="the core did not reach the point where it reports")
