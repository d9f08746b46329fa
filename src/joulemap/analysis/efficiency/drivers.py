"""Which telemetry lanes may drive the power of a trace, and both at the same times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.efficiency.power_split import PowerSplit, split_power
from joulemap.records.recording import Lane
from joulemap.trace.passes import sum_between
from joulemap.trace.streamed import Trace

__all__ = ["split_trace"]

Floats = NDArray[np.float64]


def split_trace(trace: Trace, lanes: Sequence[Lane]) -> PowerSplit | None:
    """Returns static and dynamic power of a trace by the lanes of its device; None when none fits.

    A lane fits when it is on the trace's clock and named after its device, or is the only one of its kind.

    Args:
        trace: power.
        lanes: of the recording.
    """
    own = [lane for lane in lanes if lane.clock == trace.clock and lane.time_ns.size > 2]
    frequency = _pick(own, trace, "clock", "Hz")
    utilisation = _pick(own, trace, "utilisation", "1")
    leader = frequency or utilisation
    if leader is None:
        return None
    voltage = _pick(own, trace, "voltage", "V") if frequency is not None else None
    time_ns = np.unique(leader.time_ns)
    held = sum_between(trace, time_ns)
    length_s = np.diff(time_ns) * 1e-9
    drive = {
        key: _at(lane, time_ns[1:])
        for key, lane in (("frequency_hz", frequency), ("voltage_v", voltage), ("utilisation", utilisation))
        if lane is not None
    }
    seen = held.covered_s >= 0.999 * length_s
    for value in drive.values():
        seen &= np.isfinite(value)
    power_w = (held.energy_j / length_s)[seen]
    given = {key: value[seen] for key, value in drive.items()}
    return split_power(
        power_w,
        frequency_hz=given.get("frequency_hz"),
        voltage_v=given.get("voltage_v"),
        utilisation=given.get("utilisation"),
        boundary=trace.channel.boundary,
    )


def _pick(lanes: Sequence[Lane], trace: Trace, what: str, unit: str) -> Lane | None:
    fit = [lane for lane in lanes if lane.unit == unit and lane.name.endswith(what)]
    device = trace.channel.name.split(" ")[0]
    named = [lane for lane in fit if lane.name.split(" ")[0] == device]
    if named:
        return named[0]
    return fit[0] if len(fit) == 1 else None


def _at(lane: Lane, at_ns: NDArray[np.int64]) -> Floats:
    """Returns the lane's last value at or before each instant."""
    place = np.searchsorted(lane.time_ns, at_ns, side="right") - 1
    return np.asarray(np.where(place >= 0, lane.value[np.maximum(place, 0)], np.nan), np.float64)
