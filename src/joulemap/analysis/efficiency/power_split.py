"""Static and dynamic power from telemetry beside the trace, by least squares that allows no negative part.

With frequency and voltage ``P = P_s + a f V^2``; without voltage the slope is only *frequency-dependent*; with
utilisation ``P = P_idle + b u``.

References:
    METHODS 3 in docs/methods.md (static and dynamic). C. L. Lawson and R. J. Hanson, Solving Least Squares Problems
    (1974), chapter 23 (NNLS).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.autocorrelation import effective_count
from joulemap.analysis.intervals.uncertainty import Kind, Term, estimate
from joulemap.estimate import Boundary, Estimate, Provenance, Quantity, Unavailable

__all__ = ["PowerSplit", "solve_nonnegative", "split_power"]

_VARIED = 0.02
"""Relative range of the driver below which it says nothing."""
_MIN = 8

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSplit:
    """Power as a constant and a part that follows a driver.

    Args:
        static_w: what stays at a driver of 0, W.
        dynamic_w: mean of the rest, W.
        slope: W per unit of the driver.
        driver: ``f V^2``, ``f`` or ``utilisation``.
        label: ``dynamic``, ``frequency-dependent`` or ``load-dependent``: what the driver allows to say.
        explained: share of the power's variance.
    """

    static_w: Quantity
    dynamic_w: Quantity
    slope: float
    driver: str
    label: str
    explained: float

    def to_json(self) -> dict[str, object]:
        """Returns the split as JSON."""
        return {
            "static_w": self.static_w.to_json(),
            "dynamic_w": self.dynamic_w.to_json(),
            "slope_w": self.slope,
            "driver": self.driver,
            "label": self.label,
            "explained": self.explained,
        }


def solve_nonnegative(design: Floats, asked: Floats) -> Floats:
    """Returns x >= 0 that minimises |design x - asked|: Lawson and Hanson's active set.

    Args:
        design: (n, k), n >= k, few columns.
        asked: (n,).
    """
    width = design.shape[1]
    value, passive = np.zeros(width), np.zeros(width, np.bool_)
    tolerance = 1e-12 * float(np.abs(design.T @ asked).max(initial=0.0))
    for _ in range(3 * width + 3):
        gradient = design.T @ (asked - design @ value)
        gradient[passive] = -np.inf
        if passive.all() or float(gradient.max()) <= tolerance:
            return value
        passive[int(np.argmax(gradient))] = True
        while True:
            tried = np.zeros(width)
            tried[passive] = np.linalg.lstsq(design[:, passive], asked, rcond=None)[0]
            if not passive.any() or float(tried[passive].min()) > 0:
                break
            stop = passive & (tried <= 0)
            step = float(np.min(value[stop] / np.maximum(value[stop] - tried[stop], 1e-300)))
            value = value + step * (tried - value)
            passive &= value > tolerance
        value = tried
    return value


def split_power(
    power_w: Floats,
    *,
    frequency_hz: Floats | None = None,
    voltage_v: Floats | None = None,
    utilisation: Floats | None = None,
    provenance: Provenance = Provenance.MODELLED,
    boundary: Boundary | None = None,
) -> PowerSplit:
    """Returns the split of power by the best driver that is given; unavailable where it does not vary.

    Args:
        power_w: (n,) W, in order of time.
        frequency_hz: (n,) Hz of the same times.
        voltage_v: (n,) V of the same times; needs the frequency.
        utilisation: (n,) 0..1 of the same times.
        provenance: of the parts; a fit is modelled at best.
        boundary: of the power.

    Raises:
        ValueError: there is no driver.
    """
    if frequency_hz is not None and voltage_v is not None:
        drive, driver, label = frequency_hz * voltage_v**2, "f V^2", "dynamic"
    elif frequency_hz is not None:
        drive, driver, label = frequency_hz, "f", "frequency-dependent"
    elif utilisation is not None:
        drive, driver, label = utilisation, "utilisation", "load-dependent"
    else:
        raise ValueError("a split of power needs a frequency or a utilisation")
    top = float(np.abs(drive).max(initial=0.0))
    reason = "split_too_few" if power_w.size < _MIN else "driver_constant"
    if power_w.size < _MIN or not top > 0 or float(np.ptp(drive)) < _VARIED * top:
        nothing = Unavailable(reason=reason)
        return PowerSplit(
            static_w=nothing, dynamic_w=nothing, slope=math.nan, driver=driver, label=label, explained=0.0
        )
    design = np.column_stack([np.ones(power_w.size), drive / top])
    value = solve_nonnegative(design, power_w)
    residual = power_w - design @ value
    independent = max(effective_count(residual), 3.0)
    variance = float(residual @ residual) / power_w.size * power_w.size / max(independent - 2.0, 1.0)
    covariance = np.linalg.inv(design.T @ design) * variance
    mean = float(drive.mean()) / top

    def part(amount: float, std: float) -> Estimate:
        term = Term(name="fit", std=std, kind=Kind.A, dof=max(independent - 2.0, 1.0))
        return estimate(amount, (term,), provenance=provenance, boundary=boundary)

    total = float(np.var(power_w)) * power_w.size
    return PowerSplit(
        static_w=part(float(value[0]), math.sqrt(float(covariance[0, 0]))),
        dynamic_w=part(float(value[1]) * mean, math.sqrt(float(covariance[1, 1])) * mean),
        slope=float(value[1]) / top,
        driver=driver,
        label=label,
        explained=1.0 - float(residual @ residual) / total if total > 0 else 0.0,
    )
