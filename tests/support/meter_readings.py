"""Meters read by hand: what one shows, and a clock that only a test moves."""

from __future__ import annotations

import numpy as np

from joulemap.meters.live.base import LiveMeter


def values(meter: LiveMeter) -> dict[str, float]:
    """What every domain shows, in its unit."""
    row = np.full(len(meter.domains), -1.0)
    meter.read(row)
    return {domain.name: float(row[at]) * domain.scale for at, domain in enumerate(meter.domains)}


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.ns = 10**12

    def __call__(self) -> int:
        return self.ns
