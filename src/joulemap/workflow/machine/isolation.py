"""What stands between a program and the machine: a hypervisor, a container, limits of a control group, neighbours."""

from __future__ import annotations

import re

from joulemap.records.host.machine import FactState, MachineFact
from joulemap.workflow.machine.tree import MachineTree, unknown

__all__ = ["probe_isolation"]

_CONTAINERS = ("docker", "kubepods", "containerd", "libpod", "lxc", "garden")
_HYPERVISORS = ("KVM", "QEMU", "VMware", "VirtualBox", "Xen", "Microsoft", "Amazon EC2", "Google", "Parallels", "Apple")


def probe_isolation(tree: MachineTree) -> tuple[MachineFact, ...]:
    """Returns virtual machine, container, limits and load.

    References:
        Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max, memory.max, cpuset.cpus.effective); x86 CPUID leaf 1,
        bit 31 (the flag ``hypervisor``).
    """
    return (_machine(tree), _container(tree), _quota(tree), _cpus(tree), _memory(tree), _load(tree))


def _machine(tree: MachineTree) -> MachineFact:
    cpuinfo = tree.read("proc/cpuinfo")
    vendor = " ".join(
        text for name in ("sys_vendor", "product_name") if (text := tree.read(f"sys/class/dmi/id/{name}"))
    )
    kind = next((name for name in _HYPERVISORS if name.lower() in vendor.lower()), "")
    flagged = cpuinfo is not None and re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE) is not None
    if flagged or (tree.read("sys/hypervisor/type") or "") == "xen":
        return MachineFact(
            key="virtual_machine",
            value=kind or "yes",
            state=FactState.DOUBTFUL,
            detail="a virtual machine: counters of energy stay with its host, and neighbours share the processor",
            fix="measure on the machine itself, or read a meter outside it",
        )
    if cpuinfo is None:
        return unknown("virtual_machine", "the processor's flags cannot be read")
    return MachineFact(key="virtual_machine", value="no", state=FactState.OK, detail="no hypervisor is announced")


def _container(tree: MachineTree) -> MachineFact:
    own = tree.read("proc/1/cgroup")
    marked = tree.exists(".dockerenv") or tree.exists("run/.containerenv")
    kind = next((name for name in _CONTAINERS if own and name in own), "docker" if marked else "")
    if kind or marked:
        return MachineFact(
            key="container",
            value=kind or "yes",
            state=FactState.DOUBTFUL,
            detail="a container: /sys may be hidden or read-only, and limits of its own hold",
            fix="pass what is needed through, for example docker run -v /sys/class/powercap:/sys/class/powercap:ro",
        )
    if own is None:
        return unknown("container", "the first process's control group cannot be read")
    return MachineFact(key="container", value="no", state=FactState.OK, detail="no sign of one")


def _own_groups(tree: MachineTree) -> tuple[str | None, dict[str, str]]:
    """Returns the folder of our control group (version 2), and folders by controller (version 1)."""
    text = tree.read("proc/self/cgroup")
    second: str | None = None
    first: dict[str, str] = {}
    for line in (text or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            second = path.strip("/")
        for name in controllers.split(","):
            if name:
                first[name] = path.strip("/")
    return second, first


def _limit_text(tree: MachineTree, second: str, controller: str, first: str) -> str | None:
    """Returns the text of a limit: of our group, or of the root of the hierarchy that we see."""
    unified, by_controller = _own_groups(tree)
    candidates = [] if unified is None else [f"sys/fs/cgroup/{unified}/{second}"]
    candidates.append(f"sys/fs/cgroup/{second}")
    if controller in by_controller:
        candidates.append(f"sys/fs/cgroup/{controller}/{by_controller[controller]}/{first}")
    candidates.append(f"sys/fs/cgroup/{controller}/{first}")
    return next((text for path in candidates if (text := tree.read(path.replace("//", "/")))), None)


def _quota(tree: MachineTree) -> MachineFact:
    text = _limit_text(tree, "cpu.max", "cpu", "cpu.cfs_quota_us")
    if text is None:
        return unknown("cpu_quota", "no control group tells a limit of processor time")
    parts = text.split()
    period_text = parts[1] if len(parts) > 1 else _limit_text(tree, "cpu.max", "cpu", "cpu.cfs_period_us")
    if parts[0] in {"max", "-1"}:
        return MachineFact(key="cpu_quota", value="none", state=FactState.OK, detail="no limit of processor time")
    try:
        cores = int(parts[0]) / int(period_text or "100000")
    except (ValueError, ZeroDivisionError):
        return unknown("cpu_quota", "the limit of processor time is no number")
    return MachineFact(
        key="cpu_quota",
        value=round(cores, 3),
        state=FactState.BAD,
        detail=f"{cores:g} processors' time at most: what needs more is stopped within each period",
        fix="start the container or service without a limit of processor time (--cpus), or with fewer --threads",
    )


def _cpus(tree: MachineTree) -> MachineFact:
    text = _limit_text(tree, "cpuset.cpus.effective", "cpuset", "cpuset.cpus")
    online = tree.read("sys/devices/system/cpu/online")
    if text is None:
        return unknown("cpu_set", "no control group tells which processors may be used")
    detail = "the processors that may be used"
    fewer = online is not None and text != online
    return MachineFact(
        key="cpu_set",
        value=text,
        state=FactState.DOUBTFUL if fewer else FactState.OK,
        detail=f"{detail}: not all of {online}" if fewer else detail,
    )


def _memory(tree: MachineTree) -> MachineFact:
    text = _limit_text(tree, "memory.max", "memory", "memory.limit_in_bytes")
    if text is None:
        return unknown("memory_limit", "no control group tells a limit of memory")
    if text == "max" or not text.isdecimal() or int(text) >= 1 << 60:
        return MachineFact(key="memory_limit", value="none", state=FactState.OK, detail="no limit of memory")
    mib = int(text) // 2**20
    return MachineFact(key="memory_limit", value=int(text), state=FactState.OK, detail=f"{mib} MiB at most")


def _load(tree: MachineTree) -> MachineFact:
    text = tree.read("proc/loadavg")
    online = tree.read("proc/cpuinfo") or ""
    processors = len(re.findall(r"^processor\s*:", online, re.MULTILINE)) or 1
    try:
        busy = float((text or "").split()[0])
    except (IndexError, ValueError):
        return unknown("load", "the load of the machine cannot be read")
    share = busy / processors
    if share < 0.25:
        detail = "hardly anything else runs"
        return MachineFact(key="load", value=busy, state=FactState.OK, detail=detail)
    return MachineFact(
        key="load",
        value=busy,
        state=FactState.DOUBTFUL,
        detail=f"{busy:g} processes want {processors} processors: windows scatter, and their energy is in the counters",
        fix="end what else runs",
    )
