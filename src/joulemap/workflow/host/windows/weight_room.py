"""How much memory the weights of repeated graphs may take on this machine."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.host.plan import WeightRoom
from joulemap.runtimes.base import RuntimeSession
from joulemap.runtimes.graphs.repetition import Caches, read_caches, spare_weights_b
from joulemap.workflow.machine.isolation import probe_isolation
from joulemap.workflow.machine.tree import MachineTree

__all__ = ["find_room"]

_FAST_B_PER_S = 1e10
"""A core reads about so much from the memory of a small machine, and two to ten times as much from its caches."""
_CACHE_B_PER_S = 5e10
"""More than this per second comes from caches.

A copy of an operator that reads weights so fast changes what they hold: it costs 0.7 to 2.4 times as much as the
operator does (dense layers of 4 KiB to 4 MiB, `benchmarks/bench_in_place.py`), and nothing says which.
"""
_LEAST_CACHED = 0.05
"""Operators with less of the time among them are repeated all the same: times so short may be wrong, too."""
_SHARE = 4
"""One part in so many of the memory."""


def find_room(session: RuntimeSession, durations_s: NDArray[np.float64], *, caches: Caches | None = None) -> WeightRoom:
    """Returns what the weights of repeated graphs may take of the memory that this process may use.

    Args:
        session: of the model.
        durations_s: (operators,) s; NaN where it is not known.
        caches: None to ask this machine.
    """
    caches = read_caches() if caches is None else caches
    memory_b = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    facts = probe_isolation(MachineTree())
    memory_b += [fact.value for fact in facts if fact.key == "memory_limit" and isinstance(fact.value, int)]
    model = session.model
    operators_b = tuple(operator.weights_b for operator in model.operators)

    def faster(b_per_s: float) -> frozenset[int]:
        pairs = enumerate(zip(operators_b, durations_s.tolist(), strict=True))
        return frozenset(k for k, (own_b, own_s) in pairs if own_b > b_per_s * own_s)

    cached = faster(_CACHE_B_PER_S) if model.constants_b <= caches.whole_b else frozenset()
    if durations_s[sorted(cached)].sum() < _LEAST_CACHED * np.nansum(durations_s):
        cached = frozenset()
    return WeightRoom(
        model_b=model.constants_b,
        operators_b=operators_b,
        spare_b=spare_weights_b(model.constants_b, caches),
        all_b=min(memory_b) // _SHARE,
        fast=faster(_FAST_B_PER_S),
        fast_b=spare_weights_b(model.constants_b, caches, fast=True),
        cached=cached,
        read_b=tuple(max(operator.bytes - operator.weights_b, 0) // 2 for operator in model.operators),  # and writes
    )
