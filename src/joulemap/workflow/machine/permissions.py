"""What this user may read and do, and how to be allowed more without being root."""

from __future__ import annotations

import os
from collections.abc import Callable

from joulemap.records.host.machine import FactState, MachineFact
from joulemap.workflow.machine.tree import MachineTree, unknown

__all__ = ["RAPL_RULE", "WHY_ROOT_ONLY", "probe_permissions"]

WHY_ROOT_ONLY = (
    "Linux 5.10 made RAPL's counters readable by root alone: at 1 kHz they leak what other programs compute"
    " (PLATYPUS, CVE-2020-8694)"
)
RAPL_RULE = (
    "sudo groupadd -f powercap && sudo usermod -aG powercap $USER && "
    'echo \'SUBSYSTEM=="powercap", ACTION=="add", RUN+="/bin/chgrp -R powercap /sys%p", '
    'RUN+="/bin/chmod -R g+r /sys%p"\' | sudo tee /etc/udev/rules.d/70-powercap.rules && '
    "sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=powercap --action=add"
    "   (then log in again)"
)
_POWERCAP = "sys/class/powercap"
_NICE = 23  # CAP_SYS_NICE, linux/capability.h
_PERFMON = 38  # CAP_PERFMON


def probe_permissions(
    tree: MachineTree, *, realtime: Callable[[], int | None] | None = None
) -> tuple[MachineFact, ...]:
    """Returns what may be read of RAPL and perf events, and whether real-time priority may be taken.

    Args:
        tree: files of the machine.
        realtime: returns the highest real-time priority that the user may take, None when it is not known; the limit
            of this process when not given.

    References:
        M. Lipp et al., PLATYPUS (IEEE S&P 2021); Linux commit 949dd0104c49; capabilities(7), perf_event_open(2).
    """
    return (_rapl(tree), _perf(tree), _priority(tree, realtime or _realtime_limit))


def _rapl(tree: MachineTree) -> MachineFact:
    counters = tree.glob(f"{_POWERCAP}/*:*/energy_uj")
    if not counters:
        return unknown("rapl_access", "the system shows no RAPL counter")
    if any(tree.read(path) is not None for path in counters):
        return MachineFact(
            key="rapl_access", value="readable", state=FactState.OK, detail="RAPL's counters can be read"
        )
    return MachineFact(key="rapl_access", value="denied", state=FactState.BAD, detail=WHY_ROOT_ONLY, fix=RAPL_RULE)


def _capabilities(tree: MachineTree) -> int | None:
    for line in (tree.read("proc/self/status") or "").splitlines():
        if line.startswith("CapEff:"):
            try:
                return int(line.partition(":")[2], 16)
            except ValueError:
                return None
    return None


def _perf(tree: MachineTree) -> MachineFact:
    paranoid = tree.number("proc/sys/kernel/perf_event_paranoid")
    capable = _capabilities(tree)
    if capable is not None and capable >> _PERFMON & 1:
        return MachineFact(key="perf_access", value="allowed", state=FactState.OK, detail="CAP_PERFMON is held")
    if paranoid is None:
        return unknown("perf_access", "the system does not say who may count events")
    if paranoid <= 0:
        detail = f"perf_event_paranoid is {paranoid}: events of the whole machine may be counted"
        return MachineFact(key="perf_access", value="allowed", state=FactState.OK, detail=detail)
    return MachineFact(
        key="perf_access",
        value="denied",
        state=FactState.DOUBTFUL,
        detail=f"perf_event_paranoid is {paranoid}: the power events of the whole machine are for CAP_PERFMON alone",
        fix="sudo setcap cap_perfmon=ep $(readlink -f $(command -v python3))   (for whoever runs that interpreter;"
        " take it back with setcap -r)",
    )


def _priority(tree: MachineTree, realtime: Callable[[], int | None]) -> MachineFact:
    capable = _capabilities(tree)
    limit = realtime()
    if (capable is not None and capable >> _NICE & 1) or (limit is not None and limit > 0):
        detail = "the sampling process may run before everything else"
        return MachineFact(key="realtime_priority", value="allowed", state=FactState.OK, detail=detail)
    if capable is None and limit is None:
        return unknown("realtime_priority", "neither capabilities nor limits can be read")
    return MachineFact(
        key="realtime_priority",
        value="denied",
        state=FactState.DOUBTFUL,
        detail="the sampling process waits like any other when the machine is busy",
        fix="echo '@power - rtprio 20' | sudo tee /etc/security/limits.d/power.conf && sudo groupadd -f power"
        " && sudo usermod -aG power $USER   (then log in again)",
    )


def _realtime_limit() -> int | None:
    try:
        import resource  # noqa: PLC0415  not on every system
    except ImportError:
        return None
    number = getattr(resource, "RLIMIT_RTPRIO", None)
    if number is None or os.name != "posix":
        return None
    limit = resource.getrlimit(number)[1]
    return 99 if limit == resource.RLIM_INFINITY else int(limit)
