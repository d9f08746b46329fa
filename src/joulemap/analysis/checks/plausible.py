"""Powers that cannot be: below zero beyond noise, above the limit that the source states, beyond any supply.

References:
    docs/findings.md#impossible_power. Physical limits are round figures far above anything sold for a boundary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joulemap.analysis.sampling import TraceFacts
from joulemap.estimate import Boundary
from joulemap.records.finding import Finding, Severity
from joulemap.records.recording import Lane
from joulemap.trace.passes import list_parts, run_pass
from joulemap.trace.streamed import StreamedTrace, Trace

__all__ = ["find_impossible_power", "stated_limit_w"]

_NOISE = 6.0
_OVER = 1.5
"""Times the stated limit: boards exceed it for moments, by their regulation."""
_PHYSICAL_W = {
    Boundary.RAIL: 1e4,
    Boundary.SOC: 1e4,
    Boundary.PACKAGE: 1e4,
    Boundary.BOARD: 2e4,
    Boundary.NODE: 1e5,
    Boundary.WALL: 1e6,
    Boundary.FACILITY: 1e9,
}


def stated_limit_w(trace: Trace, lanes: Sequence[Lane]) -> float | None:
    """Returns the largest power limit that the source states for the trace's device, W; None when it states none."""
    limits = [
        float(np.nanmax(lane.value))
        for lane in lanes
        if lane.unit == "W"
        and lane.name.endswith("power limit")
        and trace.channel.name.startswith(lane.name.removesuffix("power limit").strip())
        and bool(np.isfinite(lane.value).any())
    ]
    return max(limits) if limits else None


def find_impossible_power(trace: Trace, facts: TraceFacts, limit_w: float | None) -> tuple[Finding, ...]:
    """Returns what cannot be among the samples of a trace, with the sample where it begins.

    Args:
        trace: power; lost samples are passed over.
        facts: of it.
        limit_w: stated by the source; None for none.
    """
    name = trace.channel.name
    physical_w = _PHYSICAL_W[trace.channel.boundary]
    cases = [
        ("below 0 W beyond its noise", -_NOISE * facts.noise_w, -1.0),
        (f"beyond {physical_w:g} W, more than a {trace.channel.boundary} can draw", physical_w, 1.0),
    ]
    if limit_w is not None and _OVER * limit_w < physical_w:
        cases.append(
            (f"beyond {_OVER:g} times the limit of {limit_w:g} W that the source states", _OVER * limit_w, 1.0)
        )
    findings = []
    for what, edge_w, side in cases:
        count, first, worst = _beyond(trace, edge_w, side)
        if count:
            message = f"{name}: {count} of {trace.n} samples are {what} (worst {worst:.6g} W); they are in every figure"
            span = f"sample {first}"
            findings.append(Finding(slug="impossible_power", severity=Severity.WARNING, message=message, span=span))
    return tuple(findings)


def _beyond(trace: Trace, edge_w: float, side: float) -> tuple[int, int, float]:
    count, first, worst = 0, -1, side * edge_w
    if isinstance(trace, StreamedTrace):
        found = run_pass(trace, ())  # its extremes are known: another pass only where something is wrong
        if max(side * found.low_w, side * found.high_w) <= side * edge_w:
            return 0, first, edge_w
    for at, power_w, seen in list_parts(trace):
        wrong = np.flatnonzero(seen & (side * power_w > side * edge_w))
        if wrong.size:
            first = at + int(wrong[0]) if first < 0 else first
            count += int(wrong.size)
            worst = max(worst, float((side * power_w[wrong]).max()))
    return count, first, side * worst
