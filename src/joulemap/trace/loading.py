"""Compiled steps had before they are wanted: numba is imported and every step is run once, on nothing.

Loading takes half a second of one processor, in which another thread may read a file.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from joulemap.estimate import Boundary, Provenance
from joulemap.trace.channel import Channel, KernelKind, SensorKernel
from joulemap.trace.clock import Clock, ClockKind
from joulemap.trace.integrate import takes_compiled
from joulemap.trace.passes import NUMBA_PAYS
from joulemap.trace.sweep import GroupedSlices, sweep_lost_time
from joulemap.trace.trace import EnergyTrace

__all__ = ["load_steps"]

_TURN_S = 1e-4
"""For how long one thread keeps the interpreter's lock from another one."""


def load_steps(samples: int) -> None:
    """Loads what a pass over so many samples with a sweep will use, where it will be compiled.

    Args:
        samples: of the trace; about as many is enough.
    """
    if takes_compiled("auto", samples, 0, pays=NUMBA_PAYS):
        with _lasting():
            _run_steps()


@contextmanager
def _lasting() -> Iterator[None]:
    """Suits the interpreter to a long import beside a thread that reads; puts everything back.

    What an import makes lives as long as the program, so nobody looks for garbage in it: a fifth of the time. And a
    reader that lets go of the lock at every array would wait 5 ms each time to have it again: half of the time.
    """
    collects, turn_s = gc.isenabled(), sys.getswitchinterval()
    gc.disable()
    sys.setswitchinterval(min(turn_s, _TURN_S))
    try:
        yield
    finally:
        sys.setswitchinterval(turn_s)
        if collects:
            gc.freeze()
            gc.enable()


def _run_steps() -> None:
    from joulemap.trace import kernels  # noqa: PLC0415  imports numba, only when the work pays for it

    watts, room, index = np.zeros(1, np.float32), np.zeros(1), np.zeros(1, np.int64)
    kernels.multiply_samples(watts, watts, 1.0, 0.0, 1.0, room)
    kernels.fill_between(room, 0, 1.0, index, np.zeros(1), 0, np.zeros(1, np.int64), np.zeros(3), np.zeros(1))
    kernel = SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1.0)
    trace = EnergyTrace(
        clock=Clock(name="nothing", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1.0),
        channel=Channel(name="nothing", boundary=Boundary.RAIL, provenance=Provenance.SIMULATED, kernel=kernel),
        power_w=room,
        start_ns=0,
        period_s=1.0,
    )
    start_ns, group = np.zeros(1, np.int64), np.zeros(1, np.int32)
    start_ns.setflags(write=False)  # as a timeline's are: numba takes that for a type of its own
    group.setflags(write=False)
    nothing = GroupedSlices(start_ns=start_ns, end_ns=start_ns, group=group, groups=1, track=group, tracks=1)
    sweep_lost_time(trace, np.empty((0, 2), np.int64), nothing, backend="numba")
