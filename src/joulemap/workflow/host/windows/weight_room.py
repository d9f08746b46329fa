"""How much memory the weights of repeated graphs may take on this machine."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.host.plan import WeightRoom
from joulemap.runtimes.base import RuntimeSession
from joulemap.runtimes.graphs.repetition import spare_weights_b
from joulemap.workflow.machine.isolation import probe_isolation
from joulemap.workflow.machine.tree import MachineTree

__all__ = ["find_room"]

_FAST_B_PER_S = 1e10
"""A core reads about so much from the memory of a small machine, and two to ten times as much from its caches."""
_SHARE = 4
"""One part in so many of the memory."""


def find_room(session: RuntimeSession, durations_s: NDArray[np.float64]) -> WeightRoom:
    """Returns what the weights of repeated graphs may take of the memory that this process may use.

    Args:
        session: of the model.
        durations_s: (operators,) s; NaN where it is not known.
    """
    memory_b = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    facts = probe_isolation(MachineTree())
    memory_b += [fact.value for fact in facts if fact.key == "memory_limit" and isinstance(fact.value, int)]
    model = session.model
    operators_b = tuple(operator.weights_b for operator in model.operators)
    return WeightRoom(
        model_b=model.constants_b,
        operators_b=operators_b,
        spare_b=spare_weights_b(model.constants_b),
        all_b=min(memory_b) // _SHARE,
        fast=frozenset(
            k for k, (b, s) in enumerate(zip(operators_b, durations_s.tolist(), strict=True)) if b > _FAST_B_PER_S * s
        ),
        fast_b=spare_weights_b(model.constants_b, fast=True),
    )
