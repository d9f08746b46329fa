"""What is true of every RAPL counter, by whichever road it is read, and the zones of powercap. Must not know a driver.

References:
    Intel 64 and IA-32 Architectures SDM volume 3B, section 15.10 (RAPL interfaces: update about once per millisecond,
    32-bit counters). Schoene et al., "Energy Efficiency Aspects of the AMD Zen 2 Architecture", arXiv 2108.00808 (RAPL
    of Zen 2 is a model, not a measurement). Lipp et al., "PLATYPUS", CVE-2020-8694 (why it is for root only). Linux
    Documentation/power/powercap/powercap.rst (zones).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.cpu_facts import CpuFacts
from joulemap.meters.live.ground.number_file import read_text

__all__ = [
    "RAPL_DENIED",
    "RAPL_LARGEST_W",
    "RAPL_UPDATE_S",
    "ZONE_NAME",
    "Zone",
    "absence_of_rapl",
    "list_zones",
    "name_zones",
    "rapl_boundary",
    "rapl_provenance",
    "without_twins",
]

RAPL_UPDATE_S = 976e-6
"""How often the processor renews a counter, s."""

RAPL_DENIED = "readable by root only since Linux 5.10: fine energy readings leak what other programs compute (PLATYPUS)"

RAPL_LARGEST_W = {Boundary.NODE: 20_000.0, Boundary.PACKAGE: 2_000.0, Boundary.RAIL: 2_000.0}
"""A step beyond this is a jump of the counter, W: far above what such a part can draw."""

ZONE_NAME = re.compile(r"^([a-z][a-z0-9-]*)((?::[0-9a-f]+)+)$")
"""Control type and id of the folder of a powercap zone; ids look like hexadecimal numbers."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A zone folder: its control type, its id (``:0:1``) and its label."""

    kind: str
    id: str
    label: str
    path: Path

    @property
    def parent(self) -> str:
        """Id of the zone that holds it; empty for a zone of the top."""
        return self.id.rpartition(":")[0]


def list_zones(folder: Path) -> list[Zone]:
    """Returns the zones below ``class/powercap``, in order of their ids.

    The class folder lists every zone flat; a copied tree may hold only the nested folders.
    """
    found: dict[tuple[str, tuple[int, ...]], Zone] = {}
    pending = [folder]
    while pending:
        try:
            entries = sorted(pending.pop().iterdir())
        except OSError:
            continue
        for entry in entries:
            match = ZONE_NAME.match(entry.name)
            if match is None:
                if entry.name.startswith("intel-rapl") and not entry.is_symlink() and entry.is_dir():
                    pending.append(entry)  # the control type
                continue
            key = match[1], tuple(int(part, 16) for part in match[2][1:].split(":"))
            if key in found or not (entry / "energy_uj").exists():
                continue
            label = read_text(entry / "name") or entry.name
            found[key] = Zone(kind=match[1], id=match[2], label=label, path=entry)
            pending.append(entry)
    return [found[key] for key in sorted(found)]


def without_twins(zones: list[Zone]) -> list[Zone]:
    """Returns zones without those by which the memory-mapped interface shows the package of the registers once more."""
    own = {zone.label for zone in zones if zone.kind == "intel-rapl"}
    return [zone for zone in zones if zone.kind == "intel-rapl" or zone.label not in own]


def name_zones(zones: list[Zone]) -> dict[Path, str]:
    """Returns names that are unique: labels along the path, ``package-0/dram``, by the folder of each zone."""
    labels = {(zone.kind, zone.id): zone.label for zone in zones}
    paths = {}
    for zone in zones:
        parts = [zone.label]
        parent = zone.parent
        while parent:
            parts.append(labels.get((zone.kind, parent), parent[1:]))
            parent = parent.rpartition(":")[0]
        paths[zone.path] = "/".join(reversed(parts))
    seen = list(paths.values())
    return {path: name if seen.count(name) == 1 else f"{name}@{path.name}" for path, name in paths.items()}
