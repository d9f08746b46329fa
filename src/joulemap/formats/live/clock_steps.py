"""What the clocks of a capture tell: steps of the calendar, and sleep of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.ground.building import FindingLog
from joulemap.records.finding import Severity
from joulemap.records.live.capture_layout import ClockReading
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, ClockKind, Marker

__all__ = ["calendar_marks", "say_clock_steps", "utc_facts"]

_STEP_NS: Final = 10_000_000
_SLEW: Final = 5e-4  # the largest rate at which NTP turns the clock, adjtimex(2)
_SLEPT_NS: Final = 50_000_000
_MARKS: Final = 64


def say_clock_steps(clocks: Sequence[ClockReading], log: FindingLog) -> NDArray[np.int64]:
    """Returns the stretches of which each holds a sleep of the machine, (k, 2) ns on the monotonic clock, in order.

    That clock stood still, so nothing says where in its stretch the sleep was.

    Args:
        clocks: in order of time.
        log: takes ``clock_stepped`` and ``machine_slept``.
    """
    slept: list[tuple[int, int]] = []
    for before, after in pairwise(clocks):
        span_ns = after.monotonic_ns - before.monotonic_ns
        width_ns = before.width_ns + after.width_ns
        asleep_ns = 0
        if before.boot_ns >= 0 and after.boot_ns >= 0:
            asleep_ns = (after.boot_ns - before.boot_ns) - span_ns
        if asleep_ns > _SLEPT_NS + width_ns:
            slept.append((before.monotonic_ns, after.monotonic_ns))
            log.add(
                "machine_slept",
                f"the machine slept for {asleep_ns * 1e-9:.4g} s: no duration holds that time, no energy what was drawn"
                f" in it; the {span_ns * 1e-9:.4g} s around it are a gap",
                f"{before.monotonic_ns} ns",
            )
        turned_ns = (after.utc_ns - before.utc_ns) - span_ns - max(asleep_ns, 0)
        if abs(turned_ns) > _STEP_NS + width_ns + _SLEW * span_ns:
            log.add(
                "clock_stepped",
                f"the calendar was set {'forward' if turned_ns > 0 else 'back'} by {abs(turned_ns) * 1e-9:.4g} s; "
                "no figure depends on it",
                f"{before.monotonic_ns} ns",
                Severity.INFO,
            )
    return np.array(slept, np.int64).reshape(-1, 2)


def calendar_marks(clocks: Sequence[ClockReading], monotonic: Clock, *, stepped: bool) -> tuple[MarkerTrack, ...]:
    """Returns the calendar and the monotonic clock, marked at the same instants: what relates the recording to UTC.

    Args:
        clocks: in order of time.
        monotonic: of the recording.
        stepped: the calendar was set meanwhile: then no one relation holds.
    """
    if stepped or not clocks:
        return ()
    chosen = clocks[:: max(1, len(clocks) // _MARKS)]
    calendar = Clock(name="calendar", kind=ClockKind.UTC)
    pairs = ((calendar, [c.utc_ns for c in chosen]), (monotonic, [c.monotonic_ns for c in chosen]))
    return tuple(
        MarkerTrack(
            name=clock.name,
            clock=clock,
            markers=tuple(Marker(time_ns=at, name=f"reading {k}") for k, at in enumerate(instants_ns)),
        )
        for clock, instants_ns in pairs
    )


def utc_facts(clocks: Sequence[ClockReading]) -> dict[str, str]:
    """Returns when the recording began, and UTC less monotonic time there, as text; empty without a reading."""
    if not clocks:
        return {}
    first = clocks[0]
    try:
        began = datetime.fromtimestamp(first.utc_ns // 1_000_000_000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return {}
    return {"began": began, "utc_less_monotonic_ns": str(first.utc_ns - first.monotonic_ns)}
