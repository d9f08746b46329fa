"""Where the machine's power comes from and in which mode it runs."""

from __future__ import annotations

import re

from joulemap.records.host.machine import FactState, MachineFact
from joulemap.workflow.machine.tree import MachineTree, unknown

__all__ = ["probe_supply"]

_SUPPLY = "sys/class/power_supply"
_MAINS = frozenset({"Mains", "USB", "Wireless"})


def probe_supply(tree: MachineTree) -> tuple[MachineFact, ...]:
    """Returns power source and power mode.

    References:
        Linux Documentation/ABI/testing/{sysfs-class-power,sysfs-platform_profile}; NVIDIA Jetson developer guide,
        nvpmodel (the file of the mode in force).
    """
    return (_source(tree), _mode(tree))


def _source(tree: MachineTree) -> MachineFact:
    supplies = {path.rsplit("/", 1)[-1]: tree.read(f"{path}/type") for path in tree.glob(f"{_SUPPLY}/*")}
    mains = [name for name, kind in supplies.items() if kind in _MAINS]
    batteries = [name for name, kind in supplies.items() if kind == "Battery" and not _is_accessory(tree, name)]
    online = [tree.number(f"{_SUPPLY}/{name}/online") for name in mains]
    if any(value == 1 for value in online):
        return MachineFact(key="power_source", value="mains", state=FactState.OK, detail="the machine runs from mains")
    states = [tree.read(f"{_SUPPLY}/{name}/status") for name in batteries]
    if "Discharging" in states:
        return MachineFact(
            key="power_source",
            value="battery",
            state=FactState.DOUBTFUL,
            detail="the machine runs from its battery: most systems then lower clocks and brightness on their own",
            fix="plug it in, unless the battery is the meter",
        )
    if not batteries and not mains:
        return unknown("power_source", "the system lists no supply: a desktop, a server or a virtual machine")
    return unknown("power_source", "the supplies do not say which of them feeds the machine")


def _is_accessory(tree: MachineTree, name: str) -> bool:
    """Returns whether a battery is that of a mouse or a headset."""
    return tree.read(f"{_SUPPLY}/{name}/scope") == "Device"


def _mode(tree: MachineTree) -> MachineFact:
    profile = tree.read("sys/firmware/acpi/platform_profile")
    if profile:
        detail = "the firmware's mode; results hold for it alone"
        quiet = profile in {"low-power", "quiet", "cool"}
        return MachineFact(
            key="power_mode",
            value=profile,
            state=FactState.DOUBTFUL if quiet else FactState.OK,
            detail=f"{detail}: this one caps power" if quiet else detail,
            fix="powerprofilesctl set balanced" if quiet else "",
        )
    status = tree.read("var/lib/nvpmodel/status") or ""
    mode = re.search(r"pmode:(\d+)", status)
    if mode:
        detail = f"Jetson power mode {int(mode[1])}; results hold for it alone (sudo nvpmodel -q names it)"
        return MachineFact(key="power_mode", value=f"nvpmodel {int(mode[1])}", state=FactState.OK, detail=detail)
    return unknown("power_mode", "no power mode is offered by firmware or board")
