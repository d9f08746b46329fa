"""Every probe, in the order in which people read them, and the part of it that goes into a bundle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from joulemap.records.host.machine import MachineFact
from joulemap.workflow.machine.clocks import probe_clocks
from joulemap.workflow.machine.cpu_power import probe_cpu_power
from joulemap.workflow.machine.heat import probe_heat
from joulemap.workflow.machine.isolation import probe_isolation
from joulemap.workflow.machine.permissions import probe_permissions
from joulemap.workflow.machine.supply import probe_supply
from joulemap.workflow.machine.tree import MachineTree

__all__ = ["describe_machine", "survey_machine"]

_PROBES: tuple[Callable[[MachineTree], tuple[MachineFact, ...]], ...] = (
    probe_clocks,
    probe_cpu_power,
    probe_supply,
    probe_heat,
    probe_isolation,
    probe_permissions,
)


def survey_machine(root: Path = Path("/")) -> tuple[MachineFact, ...]:
    """Returns every fact.

    Args:
        root: folder that stands for the machine's ``/``.
    """
    tree = MachineTree(root=root)
    return tuple(fact for probe in _PROBES for fact in probe(tree))


def describe_machine(root: Path = Path("/")) -> dict[str, object]:
    """Returns value by key, null for what is unknown: what a bundle keeps of the machine it was made on."""
    return {fact.key: fact.value for fact in survey_machine(root)}
