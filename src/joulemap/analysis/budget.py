"""Terms that every energy of a run shares: the instrument's declared limits, and what its repeats say.

Nothing here depends on how an energy was resolved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.intervals.rounding import rounding_std
from joulemap.analysis.intervals.uncertainty import Kind, Term, mean_term
from joulemap.records.instrument import ErrorDistribution, InstrumentSpec

__all__ = [
    "ASSUMED_REPEATABILITY",
    "instrument_terms",
    "lost_std_j",
    "repeat_terms",
    "resolution_terms",
    "shared_shift_std_s",
    "single_shift_std_s",
]

ASSUMED_REPEATABILITY = 0.01
"""Relative run-to-run std that stands in while a single capture says nothing of it."""


def instrument_terms(spec: InstrumentSpec, energy_j: float, duration_s: float) -> tuple[Term, ...]:
    """Returns gain, offset, clock and resolution of an energy, J; the same for every repeat, they never average out.

    Args:
        spec: declared limits.
        energy_j: J.
        duration_s: time over which the offset adds up, s.
    """
    rectangular = spec.distribution is ErrorDistribution.RECTANGULAR
    return (
        Term(name="gain", std=abs(energy_j) * spec.gain_std, rectangular=rectangular),
        Term(name="offset", std=duration_s * spec.offset_std_w, rectangular=rectangular),
        Term(name="clock", std=abs(energy_j) * spec.clock_std_ppm * 1e-6, rectangular=rectangular),
        *resolution_terms(spec, duration_s),
    )


def resolution_terms(spec: InstrumentSpec, duration_s: float) -> tuple[Term, ...]:
    """Returns what rounding to the quantum leaves of an energy after any averaging, J; none where noise hides it.

    Args:
        spec: declared limits.
        duration_s: time over which it adds up, s.
    """
    if not spec.quantum_w or spec.noise_std_w > spec.quantum_w:
        return ()
    return (Term(name="resolution", std=duration_s * rounding_std(spec.quantum_w, spec.noise_std_w)),)


def repeat_terms(values: NDArray[np.float64], *, single_std: float = 0.0) -> tuple[float, tuple[Term, ...]]:
    """Returns the mean over the captures and its terms.

    Two captures or more: type A. One: the assumed repeatability as type B, and the noise that repeats would show.

    Args:
        values: (captures,) of one quantity.
        single_std: standard uncertainty of one value from noise and edges, used for a single capture only.
    """
    if values.size > 1:
        mean, term = mean_term(values)
        return mean, (term,)
    value = float(values[0])
    assumed = Term(name="repeats", std=abs(value) * ASSUMED_REPEATABILITY, kind=Kind.B)
    return value, (assumed, Term(name="noise", std=single_std))


def shared_shift_std_s(spec: InstrumentSpec, boundary_std_s: float) -> float:
    """Returns the standard uncertainty of a shift that all captures share between schedule and samples, s."""
    return math.hypot(spec.edge_skew_std_s, boundary_std_s)


def single_shift_std_s(captures: Sequence[GatedCapture]) -> float:
    """Returns the standard uncertainty of the mean over the captures of what each start is off by on its own, s."""
    return math.sqrt(math.fsum(c.edge_std_s**2 for c in captures)) / len(captures)


def lost_std_j(capture: GatedCapture, lost_s: float, spread_w: float) -> float:
    """Returns what lost samples add to the uncertainty of an energy that was filled up from what was seen, J.

    A lost run is taken as an independent draw from the spread of the samples inside GATE.

    Args:
        capture: the capture.
        lost_s: lost time that the energy was filled up for, s.
        spread_w: standard deviation of the samples inside GATE, W.
    """
    runs = max(int(np.count_nonzero(_inside(capture))), 1)
    return lost_s * spread_w / math.sqrt(runs)


def _inside(capture: GatedCapture) -> NDArray[np.bool_]:
    gaps_s = capture.trace.gaps * capture.period_s
    return np.asarray((gaps_s[:, 1] > capture.rise_s) & (gaps_s[:, 0] < capture.fall_s), np.bool_)
