"""What sets the processor's clock: governor, energy preference, turbo."""

from __future__ import annotations

from joulemap.records.host.machine import FactState, MachineFact
from joulemap.workflow.machine.tree import MachineTree, unknown

__all__ = ["probe_cpu_power"]

_CPU = "sys/devices/system/cpu"
_ABSENT = "this system shows no cpufreq (a virtual machine, or a kernel without it): its host sets the clock"
_STEADY = frozenset({"performance"})
_MOVING = frozenset({"ondemand", "conservative", "schedutil", "powersave", "userspace", "interactive"})


def probe_cpu_power(tree: MachineTree) -> tuple[MachineFact, ...]:
    """Returns governor, driver, energy preference and turbo.

    References:
        Linux Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst.
    """
    return (_governor(tree), *_driver(tree), _preference(tree), _turbo(tree))


def _each(tree: MachineTree, name: str) -> list[str]:
    """Returns the distinct values of a file of all frequency policies."""
    paths = tree.glob(f"{_CPU}/cpufreq/policy*/{name}") or tree.glob(f"{_CPU}/cpu[0-9]*/cpufreq/{name}")
    values = [text for path in paths if (text := tree.read(path))]
    return sorted(set(values))


def _governor(tree: MachineTree) -> MachineFact:
    found = _each(tree, "scaling_governor")
    if not found:
        return unknown("cpu_governor", _ABSENT)
    value = ", ".join(found)
    if set(found) <= _STEADY:
        return MachineFact(
            key="cpu_governor", value=value, state=FactState.OK, detail="the clock is not lowered by load"
        )
    note = "the clock follows the load: windows of light and of heavy loads run at different clocks"
    return MachineFact(
        key="cpu_governor",
        value=value,
        state=FactState.DOUBTFUL,
        detail=note if set(found) <= _MOVING | _STEADY else f"{value} is not known here: {note}",
        fix="sudo cpupower frequency-set -g performance   (afterwards set it back: "
        f"sudo cpupower frequency-set -g {found[0]})",
    )


def _driver(tree: MachineTree) -> tuple[MachineFact, ...]:
    found = _each(tree, "scaling_driver")
    if not found:
        return ()
    detail = "what turns the governor into a clock"
    return (MachineFact(key="cpu_frequency_driver", value=", ".join(found), state=FactState.OK, detail=detail),)


def _preference(tree: MachineTree) -> MachineFact:
    found = _each(tree, "energy_performance_preference")
    if not found:
        return unknown("cpu_energy_preference", "the processor's driver offers none")
    return MachineFact(
        key="cpu_energy_preference",
        value=", ".join(found),
        state=FactState.OK if len(found) == 1 else FactState.DOUBTFUL,
        detail="the hardware's own lean between speed and energy; results hold for this setting",
    )


def _turbo(tree: MachineTree) -> MachineFact:
    off, boost = tree.number(f"{_CPU}/intel_pstate/no_turbo"), tree.number(f"{_CPU}/cpufreq/boost")
    if off is None and boost is None:
        return unknown("cpu_turbo", "the processor's driver does not say whether it boosts")
    on = off == 0 if off is not None else boost == 1
    path = f"/{_CPU}/intel_pstate/no_turbo" if off is not None else f"/{_CPU}/cpufreq/boost"
    if not on:
        return MachineFact(key="cpu_turbo", value="off", state=FactState.OK, detail="the clock stays below its boost")
    return MachineFact(
        key="cpu_turbo",
        value="on",
        state=FactState.DOUBTFUL,
        detail="the clock depends on temperature and on what the other cores do",
        fix=f"echo {1 if off is not None else 0} | sudo tee {path}   (afterwards set it back:"
        f" echo {0 if off is not None else 1} | sudo tee {path})",
    )
