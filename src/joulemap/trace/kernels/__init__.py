"""Compiled loops: integrals of slices, bins for the eye, the sweep over nested slices; imported late, with numba.

Every kernel has a twin that runs without numba and gives the same figures.
"""

from joulemap.trace import sweep_steps
from joulemap.trace.kernels.bins import bin_uniform
from joulemap.trace.kernels.bounds import pack_bounds, unpack_bounds
from joulemap.trace.kernels.compiling import compiled
from joulemap.trace.kernels.integrals import integrate_edges, integrate_uniform

__all__ = [
    "accumulate_events",
    "advance_events",
    "bin_uniform",
    "integrate_edges",
    "integrate_uniform",
    "pack_bounds",
    "unpack_bounds",
]

advance_events = compiled(sweep_steps.advance_events)
accumulate_events = compiled(sweep_steps.accumulate_events)
