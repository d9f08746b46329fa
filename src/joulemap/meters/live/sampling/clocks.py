"""The clocks of the machine, read together, so that steps of the calendar and sleep are seen afterwards.

References:
    clock_gettime(2) of Linux (CLOCK_BOOTTIME counts while the machine is suspended); clock_gettime(3) of macOS (there
    CLOCK_MONOTONIC does, and Python's monotonic clock, mach_absolute_time, does not).
"""

from __future__ import annotations

import sys
import time

from joulemap.records.live.capture_layout import ClockReading

__all__ = ["read_clocks"]

_BOOT: int | None = getattr(time, "CLOCK_MONOTONIC" if sys.platform == "darwin" else "CLOCK_BOOTTIME", None)


def read_clocks(attempts: int = 3) -> ClockReading:
    """Returns one reading of the clocks: the tightest of a few, so that a preemption in between does not count."""
    best: ClockReading | None = None
    for _ in range(attempts):
        before_ns = time.monotonic_ns()
        utc_ns = time.time_ns()
        boot_ns = -1 if _BOOT is None else time.clock_gettime_ns(_BOOT)
        after_ns = time.monotonic_ns()
        width_ns = after_ns - before_ns
        if best is None or width_ns < best.width_ns:
            middle_ns = before_ns + width_ns // 2
            best = ClockReading(monotonic_ns=middle_ns, utc_ns=utc_ns, boot_ns=boot_ns, width_ns=width_ns)
    assert best is not None  # there is at least one attempt
    return best
