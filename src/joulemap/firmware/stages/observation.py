"""What an instrument's recording says of one capture: the edges of GATE, the windows, the energy inside them. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from joulemap.errors import PowerError
from joulemap.records.firmware import ArtifactRole
from joulemap.records.instrument import MeterRecording
from joulemap.records.power import GateWindow, PowerResult
from joulemap.records.target import Line
from joulemap.trace import EdgeDirection
from joulemap.trace.integrate import integrate_energy, peak_power

__all__ = ["GateEdges", "find_gate_edges", "observe_power"]

_GUARD_SAMPLES = 2.0
_GUARD_S = 5e-4
_LEAST_IDLE_SAMPLES = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEdges:
    """When the instrument saw READY and GATE move, ns on its clock; None for an edge that it did not see.

    A logic edge is known to one tick of the input's sampling: the middle of that tick is taken.
    """

    ready_ns: float | None
    rise_ns: float | None
    fall_ns: float | None

    @property
    def window(self) -> GateWindow | None:
        """The gate, when both of its edges were seen."""
        if self.rise_ns is None or self.fall_ns is None:
            return None
        return GateWindow(rise_ns=self.rise_ns, fall_ns=self.fall_ns)


def find_gate_edges(recording: MeterRecording) -> GateEdges:
    """Returns the first rise of READY and of GATE, and the first fall of GATE after it."""
    half_tick_ns = 0.5e9 / recording.instrument.edge_rate_hz

    def first(line: Line, direction: EdgeDirection, after_ns: float) -> float | None:
        for edge in recording.edges:
            if edge.name == line and edge.direction is direction and edge.time_ns > after_ns:
                return edge.time_ns - half_tick_ns
        return None

    rise_ns = first(Line.GATE, EdgeDirection.RISE, -np.inf)
    return GateEdges(
        ready_ns=first(Line.READY, EdgeDirection.RISE, -np.inf),
        rise_ns=rise_ns,
        fall_ns=None if rise_ns is None else first(Line.GATE, EdgeDirection.FALL, rise_ns + half_tick_ns),
    )


def observe_power(recording: MeterRecording, edges: GateEdges, idle_window_s: float) -> PowerResult:
    """Returns the energy inside GATE, or of the whole trace when the gate is not known.

    Args:
        recording: of one capture.
        edges: of the same recording.
        idle_window_s: length of the idle time before GATE, s.

    Raises:
        PowerError: nothing of the window was recorded (``capture-empty``).
    """
    trace, gate = recording.trace, edges.window
    start_ns, end_ns = (gate.rise_ns, gate.fall_ns) if gate else (float(trace.start_ns), float(trace.end_ns))
    energy_j, covered_s = _integrate(recording, start_ns, end_ns)
    if not covered_s > 0:
        raise PowerError(
            "the instrument recorded nothing of the window that counts",
            hint="check that it was armed before the reset and that its link keeps up",
            slug="capture-empty",
            phase="power",
            artifact_role=ArtifactRole.POWER,
        )
    duration_s = (end_ns - start_ns) * 1e-9
    idle = _idle_window(recording, edges, idle_window_s) if gate else None
    return PowerResult(
        recording=recording,
        gate=gate,
        idle=idle,
        energy_j=energy_j,
        idle_power_w=_mean_power_w(recording, idle) if idle else None,
        duration_s=duration_s,
        peak_power_w=_peak_power_w(recording, start_ns, end_ns),
        lost_share=min(1.0, max(0.0, 1.0 - covered_s / duration_s)),
        provenance=trace.channel.provenance,
    )


def _integrate(recording: MeterRecording, start_ns: float, end_ns: float) -> tuple[float, float]:
    seen = integrate_energy(recording.trace, np.array([start_ns]), np.array([end_ns]))
    return float(seen.energy_j[0]), float(seen.covered_s[0])


def _idle_window(recording: MeterRecording, edges: GateEdges, idle_window_s: float) -> GateWindow | None:
    """Returns the idle time before GATE without a guard at either end; None when too little is left of it."""
    assert edges.rise_ns is not None  # only asked for with a gate
    sample_ns = 1e9 / recording.instrument.rate_hz
    guard_ns = max(_GUARD_SAMPLES * sample_ns, _GUARD_S * 1e9)
    start_ns = edges.rise_ns - idle_window_s * 1e9
    if edges.ready_ns is not None:
        start_ns = max(start_ns, edges.ready_ns)
    start_ns, end_ns = max(start_ns, float(recording.trace.start_ns)) + guard_ns, edges.rise_ns - guard_ns
    if end_ns - start_ns < _LEAST_IDLE_SAMPLES * sample_ns:
        return None
    return GateWindow(rise_ns=start_ns, fall_ns=end_ns)


def _mean_power_w(recording: MeterRecording, window: GateWindow) -> float | None:
    energy_j, covered_s = _integrate(recording, window.rise_ns, window.fall_ns)
    return energy_j / covered_s if covered_s > 0 else None


def _peak_power_w(recording: MeterRecording, start_ns: float, end_ns: float) -> float:
    """Returns the highest sample that lies wholly inside the window, else the highest that touches it, W."""
    step_ns = 1e9 / recording.instrument.rate_hz
    if end_ns - start_ns > 2 * step_ns:
        inside_w = peak_power(recording.trace, start_ns + step_ns, end_ns - step_ns)
        if math.isfinite(inside_w):
            return inside_w
    return peak_power(recording.trace, start_ns, end_ns)
