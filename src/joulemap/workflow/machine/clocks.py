"""The clock that stamps come from."""

from __future__ import annotations

from joulemap.records.host.machine import FactState, MachineFact
from joulemap.workflow.machine.tree import MachineTree, unknown

__all__ = ["probe_clocks"]

_SOURCE = "sys/devices/system/clocksource/clocksource0"
_QUICK = frozenset({"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen", "riscv_clocksource"})


def probe_clocks(tree: MachineTree) -> tuple[MachineFact, ...]:
    """Returns the kernel's clock source: one that a program reads without a system call is quick.

    References:
        Linux Documentation/timers/timekeeping.rst; arch/x86/kernel/tsc.c (tsc marked unstable falls back to hpet).
    """
    source = tree.read(f"{_SOURCE}/current_clocksource")
    if not source:
        return (unknown("clock_source", "the kernel does not say which clock it uses"),)
    if source in _QUICK:
        return (
            MachineFact(key="clock_source", value=source, state=FactState.OK, detail=f"{source}: read in tens of ns"),
        )
    offered = (tree.read(f"{_SOURCE}/available_clocksource") or "").split()
    better = next((name for name in offered if name in _QUICK), "")
    return (
        MachineFact(
            key="clock_source",
            value=source,
            state=FactState.DOUBTFUL,
            detail=f"{source} takes about a microsecond to read: short inferences look longer",
            fix=f"echo {better} | sudo tee /{_SOURCE}/current_clocksource" if better else "",
        ),
    )
