"""Energy of single slices with what samples on their edges took given back.

References:
    docs/map.md, "What the samples can tell"; the identity is that of :mod:`joulemap.analysis.mapping.probe`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.trace import KernelKind
from joulemap.trace.passes import sum_slices
from joulemap.trace.streamed import Trace

__all__ = ["integrate_slices"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def integrate_slices(traces: Sequence[Trace], start_ns: Ints, end_ns: Ints, sample_s: float) -> tuple[Floats, Floats]:
    """Returns the energy of each slice, J, and the time of it that was seen, s.

    What the edges took is given back where two samples to both sides of the slice were seen, and of means alone:
    between points power is a straight line.

    Args:
        traces: summed.
        start_ns: (m,) ns.
        end_ns: (m,) ns.
        sample_s: what one sample stands for, s.
    """
    held = [sum_slices(trace, start_ns, end_ns) for trace in traces]
    energy_j = np.sum([part.energy_j for part in held], axis=0)
    covered_s = np.min([part.covered_s for part in held], axis=0)
    if any(trace.channel.kernel.kind is KernelKind.POINT for trace in traces):
        return energy_j, covered_s
    shifted = []
    whole = np.ones(energy_j.size, np.bool_)
    for samples in (1, -1, 2, -2):
        move = np.int64(round(samples * sample_s * 1e9))
        parts = [sum_slices(trace, start_ns + move, end_ns + move) for trace in traces]
        whole &= np.min([part.covered_s for part in parts], axis=0) >= covered_s - 1e-9
        shifted.append(np.sum([part.energy_j for part in parts], axis=0))
    lost_j = shifted[0] + shifted[1] - energy_j - 0.5 * (shifted[2] + shifted[3])
    return energy_j + np.where(whole, lost_j, 0.0), covered_s
