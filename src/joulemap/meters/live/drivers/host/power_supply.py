"""The battery of this machine: what it gives while it feeds the machine (Linux power_supply class).

Power is positive while the battery discharges. On the mains it says nothing about what the machine takes, so there is
no reading then. Drivers disagree about the sign of a current; the status decides.

References:
    Linux Documentation/ABI/testing/sysfs-class-power (voltage uV, current uA, power uW, energy uWh, charge uAh).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.file_meter import FileMeter, Source, Survey
from joulemap.meters.live.ground.number_file import NumberFile, read_text
from joulemap.meters.live.ground.options import check_options
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "Battery", "build_meter", "discover_meters"]

SUMMARY = "what the battery gives while it feeds the machine (Linux power_supply)"
EXAMPLE = ""
_NAME = "power_supply"
_FEEDS = "Discharging"
_LARGEST_W = 1_000.0


class Battery:
    """Power of one battery: a source.

    Args:
        folder: of the battery.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        direct = folder / "power_now"
        if direct.exists():
            self._files: tuple[NumberFile, ...] = (NumberFile(direct),)
            self.scale = 1e-6
        else:
            self._files = (NumberFile(folder / "voltage_now"), NumberFile(folder / "current_now"))
            self.scale = 1e-12

    @property
    def gone(self) -> bool:
        """True when the battery was taken out."""
        return any(file.gone for file in self._files)

    def open(self) -> None:
        """Opens its files.

        Raises:
            OSError: one of them is not there or not permitted.
        """
        for file in self._files:
            file.open()

    def read(self) -> float:
        """Returns microwatts, or microvolts times microamperes; NaN unless the battery feeds the machine."""
        product = math.prod(file.read() for file in self._files)
        return abs(product) if read_text(self.folder / "status") == _FEEDS else math.nan

    def close(self) -> None:
        """Closes its files."""
        for file in self._files:
            file.close()


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the one meter of this kind, all batteries; nothing when the machine has none.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    meter = build_meter(MeterAddress(driver=_NAME, options=options or {}))
    root = Path((options or {}).get("root", "/sys"))
    return (meter.candidate(),) if _list_batteries(root) or options is not None else ()


def build_meter(address: MeterAddress) -> FileMeter:
    """Returns the meter of every battery that feeds this machine, not yet opened.

    Args:
        address: option ``root`` is the sysfs root (default ``/sys``).

    Raises:
        UsageError: there is another option (``meter-option``).
    """
    check_options(address, ("root",))
    root = Path(address.options.get("root", "/sys"))
    return FileMeter(address, _NAME, lambda: _look(root))


def _list_batteries(root: Path) -> list[Path]:
    found = []
    for folder in sorted((root / "class" / "power_supply").glob("*")):
        if read_text(folder / "type") != "Battery" or read_text(folder / "present") == "0":
            continue
        if read_text(folder / "scope") != "Device":  # the battery of a mouse or a headset
            found.append(folder)
    return found


def _look(root: Path) -> Survey:
    batteries = _list_batteries(root)
    if not batteries:
        return Survey(problem="this machine has no battery")
    domains: list[LiveDomain] = []
    sources: list[Source] = []
    unreadable = []
    for folder in batteries:
        battery = Battery(folder)
        try:
            battery.open()
        except OSError:
            unreadable.append(folder.name)
            continue
        finally:
            battery.close()
        domains.append(_describe(battery))
        sources.append(battery)
        signals = _signals(folder)
        domains += [domain for domain, _ in signals]
        sources += [file for _, file in signals]
    if not domains:
        return Survey(problem=f"{', '.join(unreadable)} tells neither power nor current")
    if not any(read_text(folder / "status") == _FEEDS for folder in batteries):
        return Survey(
            problem="no battery feeds the machine now: it runs from the mains", fix="unplug the mains adapter"
        )
    return Survey(domains=tuple(domains), sources=tuple(sources))


def _describe(battery: Battery) -> LiveDomain:
    return LiveDomain(
        name=battery.folder.name,
        reading=DomainReading.POWER,
        unit="W",
        scale=battery.scale,
        provenance=Provenance.MEASURED_SAMPLED,
        boundary=Boundary.NODE,
        largest_w=_LARGEST_W,
        source=f"fuel gauge of {battery.folder.name}",
    )


def _signals(folder: Path) -> list[tuple[LiveDomain, NumberFile]]:
    kinds = {
        "energy_now": ("J", 3600e-6),
        "charge_now": ("C", 3600e-6),
        "voltage_now": ("V", 1e-6),
        "capacity": ("1", 1e-2),
    }
    return [
        (
            LiveDomain(
                name=f"{folder.name}/{file}",
                reading=DomainReading.SIGNAL,
                unit=unit,
                scale=scale,
                provenance=Provenance.MEASURED_SAMPLED,
                source=f"fuel gauge of {folder.name}",
            ),
            NumberFile(folder / file),
        )
        for file, (unit, scale) in kinds.items()
        if (folder / file).exists()
    ]
