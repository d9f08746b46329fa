"""How well the sampling kept its deadlines, from the stamps themselves."""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.segments import Capture
from joulemap.records.finding import Severity
from joulemap.records.live.capture_layout import EXTRA_TICK
from joulemap.trace.pauses import list_paused

__all__ = ["describe_sampling"]

_WARN: Final = 0.01


def describe_sampling(capture: Capture, log: FindingLog) -> dict[str, str]:
    """Returns rate, jitter and missed deadlines of the quickest stream, as text.

    Jitter is the 99th percentile of how far the distance of two scheduled readings is from the distance of their
    deadlines, s.

    Args:
        capture: gathered.
        log: takes ``deadlines_missed``.
    """
    at = min(range(len(capture.rows)), key=lambda k: capture.header.streams[k].period_s)
    period_s = capture.header.streams[at].period_s
    rows = capture.rows[at]
    scheduled = rows.tick != EXTRA_TICK
    stamp_ns, tick = rows.stamp_ns[scheduled], rows.tick[scheduled].astype(np.int64)
    facts = {"rate_hz": repr(capture.header.rate_hz)}
    if stamp_ns.size < 2:
        return facts
    base_s = 1.0 / capture.header.rate_hz
    every = max(1, round(period_s / base_s))
    deadlines = np.diff(tick) // every
    ahead = (deadlines > 0) & (np.diff(stamp_ns) > 0)  # a pause or a new process starts its ticks anew
    ahead &= ~list_paused(stamp_ns, np.array(capture.pauses, np.int64).reshape(-1, 2))
    distance_s = np.diff(stamp_ns)[ahead] * 1e-9
    steps = deadlines[ahead]
    if not steps.size:
        return facts
    missed = int((steps - 1).sum())
    late_s = np.abs(distance_s - steps * period_s)
    facts |= {
        "achieved_hz": repr(float(steps.size / distance_s.sum())),
        "jitter_p99_s": repr(float(np.percentile(late_s, 99.0))),
        "missed": str(missed),
        "reading_p99_s": repr(float(np.percentile(rows.took_ns, 99.0)) * 1e-9),
    }
    if missed:
        share = missed / (missed + steps.size)
        log.add(
            "deadlines_missed",
            f"{missed} of {missed + steps.size} readings came too late and were left out ({share:.2%}): the machine was"
            " busy",
            severity=Severity.WARNING if share > _WARN else Severity.INFO,
        )
    return facts
