"""What is true of every RAPL counter, by whichever road it is read. Must not know a driver.

References:
    Intel 64 and IA-32 Architectures SDM volume 3B, section 15.10 (RAPL interfaces: update about once per millisecond,
    32-bit counters). Schoene et al., "Energy Efficiency Aspects of the AMD Zen 2 Architecture", arXiv 2108.00808 (RAPL
    of Zen 2 is a model, not a measurement). Lipp et al., "PLATYPUS", CVE-2020-8694 (why it is for root only).
"""

from __future__ import annotations

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.cpu_facts import CpuFacts

__all__ = ["RAPL_DENIED", "RAPL_LARGEST_W", "RAPL_UPDATE_S", "absence_of_rapl", "rapl_boundary", "rapl_provenance"]

RAPL_UPDATE_S = 976e-6
"""How often the processor renews a counter, s."""

RAPL_DENIED = "readable by root only since Linux 5.10: fine energy readings leak what other programs compute (PLATYPUS)"

RAPL_LARGEST_W = {Boundary.NODE: 20_000.0, Boundary.PACKAGE: 2_000.0, Boundary.RAIL: 2_000.0}
"""A step beyond this is a jump of the counter, W: far above what such a part can draw."""

_MODELLED_INTEL = frozenset({0x2A, 0x2D, 0x3A, 0x3E})  # Sandy Bridge, Ivy Bridge and their servers
_FIRST_AMD_KERNEL = (5, 11)


def rapl_provenance(cpu: CpuFacts) -> tuple[Provenance, str]:
    """Returns how the counters of a processor come about, and the words for it."""
    if cpu.vendor == "AuthenticAMD":
        return Provenance.MODELLED, "AMD RAPL: modelled from activity on Zen 2 (arXiv 2108.00808)"
    if cpu.vendor == "GenuineIntel" and cpu.family == 6 and cpu.model in _MODELLED_INTEL:
        return Provenance.MODELLED, "Intel RAPL before Haswell: modelled from activity"
    return Provenance.MEASURED_COUNTER, "RAPL counter of the processor"


def rapl_boundary(label: str) -> Boundary:
    """Returns what a RAPL domain feeds, by the start of its label."""
    if label.startswith("package"):
        return Boundary.PACKAGE
    return Boundary.NODE if label.startswith(("psys", "platform")) else Boundary.RAIL


def absence_of_rapl(cpu: CpuFacts, kernel: tuple[int, ...], module: str) -> tuple[str, str]:
    """Returns why there is no counter of the processor, and the step that mends it; empty when nothing does.

    Args:
        cpu: of this machine.
        kernel: its version.
        module: kernel module that offers the counters.
    """
    if cpu.hypervisor:
        return "this is a virtual machine: the counters of the processor stay with its host", ""
    if cpu.vendor == "AuthenticAMD" and kernel and kernel < _FIRST_AMD_KERNEL:
        version = ".".join(map(str, kernel))
        return f"Linux {version} offers no counter of AMD processors", "install Linux 5.11 or newer"
    if cpu.vendor in {"GenuineIntel", "AuthenticAMD"}:
        return "the kernel offers no counter of the processor", f"sudo modprobe {module}"
    return "this processor has no such counter that Linux knows", ""
