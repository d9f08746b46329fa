"""Energy counters of the processor in Linux powercap: Intel and AMD RAPL, package, core, uncore, dram, psys.

Zones are known by their path, since every memory zone is called ``dram``. A package holds its cores and its uncore but
not its memory; psys holds the packages and their memory. The memory-mapped twin of a package is the same counter.

References:
    Linux Documentation/power/powercap/powercap.rst; FORMATS 3 (powercap) and 4 (reports 1 to 14).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from joulemap.meters.live.ground.cpu_facts import CpuFacts
from joulemap.meters.live.ground.file_meter import FileMeter, Source, Survey, answers
from joulemap.meters.live.ground.number_file import NumberFile, read_number
from joulemap.meters.live.ground.options import check_options
from joulemap.meters.live.ground.rapl import (
    RAPL_DENIED,
    RAPL_LARGEST_W,
    RAPL_UPDATE_S,
    ZONE_NAME,
    Zone,
    absence_of_rapl,
    list_zones,
    name_zones,
    rapl_boundary,
    rapl_provenance,
    without_twins,
)
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "build_meter", "discover_meters"]

SUMMARY = "energy counters of the processor (Linux powercap: Intel and AMD RAPL)"
EXAMPLE = ""
_NAME = "powercap"
_MICROJOULE_J = 1e-6
_COUNTS = 2**32
_LIMIT_MARGIN = 4.0
_UNHIDE = "record on the host, or run the container with --security-opt systempaths=unconfined"


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the one meter of this kind: all zones of the machine.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    if options is None and sys.platform != "linux":
        return ()
    return (build_meter(MeterAddress(driver=_NAME, options=options or {})).candidate(),)


def build_meter(address: MeterAddress) -> FileMeter:
    """Returns the meter of every zone that may be read, not yet opened.

    Args:
        address: option ``root`` is the sysfs root (default ``/sys``), ``proc`` the folder with ``cpuinfo``
            (default ``/proc``, and ``root/proc`` for another root: another machine's tree).

    Raises:
        UsageError: there is another option (``meter-option``).
    """
    check_options(address, ("root", "proc"))
    root = Path(address.options.get("root", "/sys"))
    proc = Path(address.options.get("proc", "/proc" if root == Path("/sys") else root / "proc"))
    return FileMeter(address, _NAME, lambda: _look(root / "class" / "powercap", proc))


def _look(folder: Path, proc: Path) -> Survey:
    cpu = CpuFacts.read(proc)
    zones = without_twins(list_zones(folder))
    if not zones and _has_hidden_zones(folder):
        return Survey(problem="the counters of the processor are hidden, as containers do by default", fix=_UNHIDE)
    if not zones:
        problem, fix = absence_of_rapl(cpu, _kernel(), "intel_rapl_msr")
        return Survey(problem=problem, fix=fix)
    names = name_zones(zones)
    domains: list[LiveDomain] = []
    sources: list[Source] = []
    denied = False
    for zone in zones:
        counter = NumberFile(zone.path / "energy_uj")
        try:
            if answers(counter):  # a counter that answers with text or an error is none
                domains.append(_describe(zone, zones, names, cpu))
                sources.append(counter)
        except PermissionError:
            denied = True
    if domains:
        return Survey(domains=tuple(domains), sources=tuple(sources))
    if denied:
        fix = f"sudo chmod a+r {folder}/*/energy_uj   (until the next boot)"
        return Survey(problem=f"the counters are {RAPL_DENIED}", fix=fix)
    return Survey(problem=f"the counters in {folder} give no number")


def _describe(zone: Zone, zones: list[Zone], names: Mapping[Path, str], cpu: CpuFacts) -> LiveDomain:
    provenance, source = rapl_provenance(cpu)
    boundary = rapl_boundary(zone.label)
    limit_w = _limit_w(zone, zones)
    bound_w = RAPL_LARGEST_W[boundary]
    return LiveDomain(
        name=names[zone.path],
        reading=DomainReading.ENERGY_COUNTER,
        unit="J",
        scale=_MICROJOULE_J,
        provenance=provenance,
        boundary=boundary,
        modulus=_modulus(zone),
        largest_w=bound_w if limit_w is None else min(bound_w, _LIMIT_MARGIN * limit_w),
        update_period_s=RAPL_UPDATE_S,
        inside=tuple(names[outer.path] for outer in zones if _contains(outer, zone)),
        source=f"{source}; {zone.path.name}",
    )


def _has_hidden_zones(folder: Path) -> bool:
    """True when zones are named whose files are not there, or may not be seen."""
    try:
        return any(ZONE_NAME.match(entry.name) for entry in folder.iterdir())
    except PermissionError:
        return True
    except OSError:
        return False


def _contains(outer: Zone, inner: Zone) -> bool:
    if outer is inner:
        return False
    if outer.label.startswith("psys"):
        return not inner.label.startswith("psys")
    below = inner.id.startswith(outer.id + ":") and inner.kind == outer.kind
    return below and not inner.label.startswith("dram")  # a package holds its cores, not its memory


def _modulus(zone: Zone) -> float | None:
    # the register holds 32 bits of one energy unit, and the range is its highest value: one unit short of the modulus
    largest = read_number(zone.path / "max_energy_range_uj")
    return None if not largest or largest <= 0 else largest * _COUNTS / (_COUNTS - 1)


def _limit_w(zone: Zone, zones: list[Zone]) -> float | None:
    """Returns the highest power limit that the firmware states for the zone or the package that it belongs to, W."""
    homes = [zone, *(outer for outer in zones if outer.kind == zone.kind and zone.id.startswith(outer.id + ":"))]
    stated = [
        number * 1e-6
        for home in homes
        for pattern in ("constraint_*_max_power_uw", "constraint_*_power_limit_uw")
        for file in home.path.glob(pattern)
        if (number := read_number(file)) is not None and number > 0
    ]
    return max(stated, default=None)


def _kernel() -> tuple[int, ...]:
    match = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(match[1]), int(match[2])) if match else ()
