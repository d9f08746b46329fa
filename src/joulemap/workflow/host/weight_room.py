"""How much memory the weights of repeated graphs may take on this machine."""

from __future__ import annotations

import os

from joulemap.analysis.host.plan import WeightRoom
from joulemap.runtimes.base import RuntimeSession
from joulemap.runtimes.graphs.repetition import spare_weights_b
from joulemap.workflow.machine.isolation import probe_isolation
from joulemap.workflow.machine.tree import MachineTree

__all__ = ["find_room"]

_SHARE = 4
"""One part in so many of the memory."""


def find_room(session: RuntimeSession) -> WeightRoom:
    """Returns what the weights of repeated graphs may take of the memory that this process may use."""
    memory_b = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    facts = probe_isolation(MachineTree())
    memory_b += [fact.value for fact in facts if fact.key == "memory_limit" and isinstance(fact.value, int)]
    model = session.model
    return WeightRoom(
        model_b=model.constants_b,
        operators_b=tuple(operator.weights_b for operator in model.operators),
        spare_b=spare_weights_b(model.constants_b),
        all_b=min(memory_b) // _SHARE,
    )
