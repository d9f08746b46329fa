"""What a processor does beside its power: utilisation, clock, temperature, throttling, and the limits of its power.

References:
    proc(5), /proc/stat; Linux Documentation/admin-guide/pm/cpufreq.rst (scaling_cur_freq, kHz);
    Documentation/power/powercap/powercap.rst (constraint_X_name, constraint_X_power_limit_uw,
    constraint_X_time_window_us: everybody may read them);
    ABI/testing/sysfs-class-thermal (millidegrees Celsius); ABI/testing/sysfs-devices-system-cpu (thermal_throttle).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from joulemap.estimate import Provenance
from joulemap.meters.live.ground.cpu_load import CpuLoad
from joulemap.meters.live.ground.file_meter import FileMeter, Paced, Source, Survey, Transformed, answers
from joulemap.meters.live.ground.number_file import NumberFile, read_text
from joulemap.meters.live.ground.options import check_options
from joulemap.meters.live.ground.rapl import list_zones, name_zones, without_twins
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "build_meter", "discover_meters"]

SUMMARY = "utilisation, clock, temperature, throttling and power limits of the processor (signals, no power)"
EXAMPLE = ""
_NAME = "host"
_MOST_FILES = 8
_EVERY_S = 0.1
"""Sensors behind firmware take milliseconds to read, and the load is counted in ticks of 10 ms."""
_LIMIT_EVERY_S = 0.5
"""Reading a limit wakes a processor of its package."""
_CONSTRAINT = re.compile(r"constraint_(\d+)_power_limit_uw")
_THERMAL = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc_thermal", "CPU-therm", "cpu")


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the one meter of this kind.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    if options is None and sys.platform != "linux":
        return ()
    return (build_meter(MeterAddress(driver=_NAME, options=options or {})).candidate(),)


def build_meter(address: MeterAddress) -> FileMeter:
    """Returns the meter of the processor's signals, not yet opened.

    Args:
        address: option ``root`` is the sysfs root (default ``/sys``), ``proc`` the folder with ``stat``.

    Raises:
        UsageError: there is another option (``meter-option``).
    """
    check_options(address, ("root", "proc"))
    root, proc = Path(address.options.get("root", "/sys")), Path(address.options.get("proc", "/proc"))
    return FileMeter(address, _NAME, lambda: _look(root, proc))


def _look(root: Path, proc: Path) -> Survey:
    found: list[tuple[LiveDomain, Source]] = []
    load = CpuLoad(proc / "stat", every_s=_EVERY_S)
    if not load.absent:
        found.append((_signal("utilisation", "1", 1.0, "/proc/stat"), load))
    cpus = root / "devices" / "system" / "cpu"
    clocks = sorted(cpus.glob("cpufreq/policy*/scaling_cur_freq"))[:_MOST_FILES]
    temperatures = _thermal_files(root)
    throttles = sorted(cpus.glob("cpu*/thermal_throttle/package_throttle_count"))[:1]
    for name, unit, scale, paths, rule in (
        ("frequency", "Hz", 1e3, clocks, _mean),
        ("temperature", "degC", 1e-3, temperatures, _highest),
        ("throttle_count", "count", 1.0, throttles, _highest),
    ):
        source = Paced(Transformed(tuple(NumberFile(path) for path in paths), rule), _EVERY_S)
        if paths and _answers(source):
            found.append((_signal(name, unit, scale, str(paths[0].parent.name)), source))
    found += _limits(root)
    if not found:
        return Survey(problem=f"{proc}/stat cannot be read and {root} tells no clock or temperature")
    return Survey(domains=tuple(domain for domain, _ in found), sources=tuple(source for _, source in found))


def _limits(root: Path) -> list[tuple[LiveDomain, Source]]:
    """Returns the power limits of every zone and the times over which each holds as a mean.

    The memory-mapped interface limits a package on its own: its zone is no second look at the same limit.
    """
    zones = list_zones(root / "class" / "powercap")
    names = name_zones(without_twins(zones))
    found: list[tuple[LiveDomain, Source]] = []
    for zone in zones:
        numbers = [match[1] for file in zone.path.glob("constraint_*") if (match := _CONSTRAINT.fullmatch(file.name))]
        kinds = {number: read_text(zone.path / f"constraint_{number}_name") or number for number in sorted(numbers)}
        home = names.get(zone.path, f"{zone.label}@{zone.path.name}")
        for number, kind in kinds.items():
            name = f"{home}/power_limit_{kind}" + (f"_{number}" if list(kinds.values()).count(kind) > 1 else "")
            for label, unit, file in ((name, "W", "power_limit_uw"), (f"{name}_window", "s", "time_window_us")):
                source = Paced(NumberFile(zone.path / f"constraint_{number}_{file}"), _LIMIT_EVERY_S)
                if _answers(source):
                    domain = _signal(label, unit, 1e-6, zone.path.name, every_s=_LIMIT_EVERY_S)
                    found.append((domain, source))
    return found


def _answers(source: Source) -> bool:
    try:
        return answers(source)
    except PermissionError:
        return False


def _thermal_files(root: Path) -> list[Path]:
    zones = sorted((root / "class" / "thermal").glob("thermal_zone*"))
    own = [zone for zone in zones if (read_text(zone / "type") or "").startswith(_THERMAL)]
    return [zone / "temp" for zone in own[:_MOST_FILES]]


def _mean(*numbers: float) -> float:
    return sum(numbers) / len(numbers)


def _highest(*numbers: float) -> float:
    return max(numbers)


def _signal(name: str, unit: str, scale: float, source: str, *, every_s: float = _EVERY_S) -> LiveDomain:
    return LiveDomain(
        name=name,
        reading=DomainReading.SIGNAL,
        unit=unit,
        scale=scale,
        provenance=Provenance.MEASURED_SAMPLED,
        update_period_s=every_s,
        source=source,
    )
