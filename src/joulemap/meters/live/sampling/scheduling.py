"""How soon the sampling process gets a processor: what the system grants without a privilege, and what is asked for.

Linux from 6.12 takes the length of the slice that a process wants. One that wants little of a processor at a time is
given it sooner when it wakes, at the same share as all others. Elsewhere nothing happens.

References:
    sched_setattr(2); Linux Documentation/scheduler/sched-eevdf.rst (sched_runtime of SCHED_OTHER is the slice);
    proc_pid_timerslack_ns(5).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from pathlib import Path
from typing import Final

from joulemap.meters.live.sampling.plan import Priority

__all__ = ["request_short_slice", "take_priority"]

_SLICE_NS: Final = 100_000
"""The shortest that Linux grants; a reading takes less."""
_NUMBERS: Final = {"x86_64": (314, 315), "aarch64": (274, 275)}
"""System calls sched_setattr and sched_getattr: not every C library has functions for them."""
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQII")
"""size, policy, flags, nice, priority, runtime, deadline, period, util_min, util_max."""
_RUNTIME: Final = 5
_FIFO: Final = 10
_NICE: Final = -10


def take_priority(asked: Priority) -> str:
    """Returns what the scheduler granted; a refusal is no failure, since jitter is recorded anyway."""
    with contextlib.suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1", "ascii")  # sleeps end when they are due; 50 us late by default
    if asked is Priority.REALTIME and hasattr(os, "sched_setscheduler"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_FIFO))
            return f"fifo {_FIFO}"
    granted = "normal"
    if asked is not Priority.NORMAL:
        with contextlib.suppress(OSError):
            granted = f"nice {os.nice(_NICE)}"
    request_short_slice()
    return granted


def request_short_slice() -> bool:
    """Asks for the shortest slice of this thread's processor; returns True when it was granted."""
    numbers = _NUMBERS.get(platform.machine())
    if numbers is None or not hasattr(os, "SCHED_OTHER"):
        return False
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    held = ctypes.create_string_buffer(_ATTRIBUTES.size)
    if syscall(numbers[1], 0, held, _ATTRIBUTES.size, 0):
        return False
    attributes = list(_ATTRIBUTES.unpack(held.raw))
    attributes[_RUNTIME] = _SLICE_NS
    wanted = ctypes.create_string_buffer(_ATTRIBUTES.pack(*attributes), _ATTRIBUTES.size)
    return bool(syscall(numbers[0], 0, wanted, 0) == 0)
