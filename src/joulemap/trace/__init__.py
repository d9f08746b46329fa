"""The waist: clocks, channels, markers, timelines and energy traces, and the exact arithmetic over them.

Everything that measures ends here and everything that explains starts here. It must not know a file format, a
driver, a process, a screen or the time of day.
"""

from joulemap.trace.channel import Channel, KernelKind, SensorKernel
from joulemap.trace.clock import Clock, ClockKind
from joulemap.trace.integrate import (
    IntegratedEnergy,
    cumulative_energy_j,
    integrate_offsets,
    mean_power,
    peak_power,
)
from joulemap.trace.marker import EdgeDirection, Marker
from joulemap.trace.passes import sum_between as integrate_between
from joulemap.trace.passes import sum_slices as integrate_energy
from joulemap.trace.streamed import StreamedTrace, Trace
from joulemap.trace.timeline import Slice, Timeline
from joulemap.trace.trace import EnergyTrace

__all__ = [
    "Channel",
    "Clock",
    "ClockKind",
    "EdgeDirection",
    "EnergyTrace",
    "IntegratedEnergy",
    "KernelKind",
    "Marker",
    "SensorKernel",
    "Slice",
    "StreamedTrace",
    "Timeline",
    "Trace",
    "cumulative_energy_j",
    "integrate_between",
    "integrate_energy",
    "integrate_offsets",
    "mean_power",
    "peak_power",
]
