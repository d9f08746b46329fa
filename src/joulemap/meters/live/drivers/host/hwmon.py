"""Power and energy of chips in Linux hwmon: INA2xx, INA3221 (every Jetson), amdgpu, amd_energy, power supplies.

A chip is one meter. A channel that is switched off or answers with an error is left out. INA3221 has no power file:
voltage times current of one label or index is the power. Other chips pair a current with a voltage only by label, since
the index says nothing there (MAX20730: in1 is the input, curr1 the output).

References:
    Linux Documentation/hwmon/sysfs-interface.rst (in mV, curr mA, power uW, energy uJ), hwmon/ina3221.rst,
    hwmon/amd_energy.rst, hwmon/acpi_power_meter.rst (``measures`` names devices); FORMATS 3 (hwmon) and 4
    (reports 33 to 37).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.file_meter import FileMeter, Product, Source, Survey, Transformed, answers
from joulemap.meters.live.ground.number_file import NumberFile, read_number, read_text
from joulemap.meters.live.ground.options import check_options
from joulemap.meters.live.ground.rails import is_total, rail_boundary, unique_names
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "build_meter", "discover_meters"]

SUMMARY = "power and energy of monitoring chips (Linux hwmon: INA2xx, INA3221 of a Jetson, amdgpu, power supplies)"
EXAMPLE = ""
_NAME = "hwmon"
_CHANNEL = re.compile(r"^(power|energy|curr)(\d+)_(input|average)$")
_MICRO = 1e-6
_MOST_GPUS = 8
_ACPI_METER = "power_meter"
_LARGEST_W = {Boundary.NODE: 20_000.0, Boundary.BOARD: 5_000.0, Boundary.PACKAGE: 5_000.0, Boundary.RAIL: 5_000.0}
_NESTED = ("class/hwmon/*", "bus/i2c/drivers/ina3221/*/hwmon/hwmon*", "bus/i2c/drivers/ina3221x/*/hwmon/hwmon*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chip:
    """A chip: folder of its files, driver name, and where it sits (``1-0040``)."""

    folder: Path
    name: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Channel:
    """One thing to read: its label, its index on the chip, its files."""

    label: str
    place: str
    reading: DomainReading
    source: Source


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns one meter per chip that has a power or energy channel.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    given = dict(options or {})
    root = Path(given.get("root", "/sys"))
    found = []
    for chip in _list_chips(root) if "chip" not in given else [None]:
        own = given if chip is None else {**given, "chip": chip.place}
        candidate = build_meter(MeterAddress(driver=_NAME, options=own)).candidate()
        if chip is None or candidate.usable or candidate.fix:
            found.append(candidate)
    return tuple(found)


def build_meter(address: MeterAddress) -> FileMeter:
    """Returns the meter of one chip, not yet opened.

    Args:
        address: option ``root`` is the sysfs root (default ``/sys``), ``chip`` where it sits (default: the first).

    Raises:
        UsageError: there is another option (``meter-option``).
    """
    check_options(address, ("root", "chip"))
    root = Path(address.options.get("root", "/sys"))
    place = address.options.get("chip", "")
    chips = _list_chips(root)
    wanted = next((chip for chip in chips if place in {"", chip.place}), None)
    name = f"{_NAME}:{place or 'chip'}" if wanted is None else _meter_name(wanted, chips)
    return FileMeter(address, name, lambda: _look(root, place))


def _look(root: Path, place: str) -> Survey:
    chips = _list_chips(root)
    chip = next((chip for chip in chips if place in {"", chip.place}), None)
    if chip is None:
        return Survey(problem=f"no monitoring chip sits at {place or 'all'}", fix="load its kernel module")
    channels: list[_Channel] = []
    denied = ""
    for channel in _list_channels(chip):
        try:
            if answers(channel.source):
                channels.append(channel)
        except PermissionError as error:
            denied = str(error.filename or chip.folder)
    if not channels:
        if denied:
            return Survey(problem="its channels may be read by root only", fix=f"sudo chmod a+r {denied}")
        return Survey(problem=f"{chip.name} at {chip.place} has no channel of power or energy that answers")
    labels = unique_names([channel.label for channel in channels], [channel.place for channel in channels])
    totals = _foreign_totals(chip, chips)
    domains = tuple(_describe(chip, channels, labels, at, totals=totals) for at in range(len(channels)))
    return Survey(domains=domains, sources=tuple(channel.source for channel in channels))


def _list_chips(root: Path) -> list[_Chip]:
    chips: dict[Path, _Chip] = {}
    batteries = {folder.name for folder in root.glob("class/power_supply/*")}
    for pattern in _NESTED:
        for folder in sorted(root.glob(pattern)):
            nested = folder / "device" if (folder / "device" / "name").is_file() else folder
            files = folder if (folder / "name").is_file() or nested is folder else nested  # files of very old drivers
            name = read_text(files / "name") or folder.name
            if folder.resolve() in chips or name in batteries:
                continue  # a battery is read where batteries are
            device = folder / "device"
            place = device.resolve().name if device.exists() else _place_of(folder)
            if any(chip.place == place for chip in chips.values()):
                place = f"{place}/{folder.name}"
            chips[folder.resolve()] = _Chip(folder=files, name=name, place=place)
    return list(chips.values())


def _place_of(folder: Path) -> str:
    return folder.parents[1].name if folder.parent.name == "hwmon" and "drivers" in folder.parts else folder.name


def _meter_name(chip: _Chip, chips: list[_Chip]) -> str:
    same = sum(other.name == chip.name for other in chips)
    return f"{_NAME}:{chip.name}" if same == 1 else f"{_NAME}:{chip.name}@{chip.place}"


def _list_channels(chip: _Chip) -> Iterator[_Channel]:
    found: dict[tuple[str, int], str] = {}
    for path in sorted(chip.folder.glob("*[0-9]_*")):
        match = _CHANNEL.match(path.name)
        if match is None or (match[1] == "curr" and match[3] == "average"):
            continue
        if read_text(chip.folder / f"{match[1]}{match[2]}_enable") == "0":
            continue
        key = match[1], int(match[2])
        if found.get(key) != "input":  # an instant reading before an average of an unknown window
            found[key] = match[3]
    powers = {number for kind, number in found if kind == "power"}
    for (kind, number), form in sorted(found.items()):
        place = f"{kind}{number}"
        if kind == "curr":
            voltage = None if number in powers else _voltage_of(chip, number)
            if voltage is not None:
                source = Product(NumberFile(voltage), NumberFile(chip.folder / f"curr{number}_input"))
                yield _channel(chip, "curr", number, source, voltage=voltage)
            continue
        file = NumberFile(chip.folder / f"{place}_{form}")
        source_of: Source = file
        current = chip.folder / f"curr{number}_input"
        if kind == "power" and chip.name.startswith("ina2") and current.exists():
            source_of = Transformed((file, NumberFile(current)), _signed)  # its power register has no sign
        yield _channel(chip, kind, number, source_of)


def _signed(power: float, current: float) -> float:
    return -power if current < 0 else power


def _voltage_of(chip: _Chip, number: int) -> Path | None:
    label = read_text(chip.folder / f"curr{number}_label")
    candidates = [chip.folder / f"in{number}_input"] if chip.name.startswith("ina") else []
    if label:
        candidates = [
            path.with_name(path.name.replace("_label", "_input"))
            for path in sorted(chip.folder.glob("in*_label"))
            if read_text(path) == label
        ] or candidates
    for path in candidates:
        enabled = read_text(path.with_name(path.name.replace("_input", "_enable")))
        if path.exists() and enabled != "0":
            return path
    return None


def _channel(chip: _Chip, kind: str, number: int, source: Source, *, voltage: Path | None = None) -> _Channel:
    label = read_text(chip.folder / f"{kind}{number}_label")
    if not label and voltage is not None:
        label = read_text(voltage.with_name(voltage.name.replace("_input", "_label")))
    if not label and kind == "power":
        label = read_text(chip.folder / f"in{number}_label")
    place = f"{kind}{number}"
    reading = DomainReading.ENERGY_COUNTER if kind == "energy" else DomainReading.POWER
    return _Channel(label=label or place, place=place, reading=reading, source=source)


def _foreign_totals(chip: _Chip, chips: list[_Chip]) -> tuple[str, ...]:
    """Returns the total rails on other chips of a board that contain the rails of this one."""
    if not chip.name.startswith("ina3221"):
        return ()
    names = []
    for other in chips:
        if other.place == chip.place or not other.name.startswith("ina3221"):
            continue
        labels = [channel.label for channel in _list_channels(other)]
        names += [f"{_meter_name(other, chips)}:{label}" for label in labels if is_total(label)]
    return tuple(names)


def _describe(
    chip: _Chip, channels: list[_Channel], names: list[str], at: int, *, totals: tuple[str, ...]
) -> LiveDomain:
    channel = channels[at]
    energy = channel.reading is DomainReading.ENERGY_COUNTER
    boundary = _boundary_of(chip, channel)
    interval_ms = read_number(chip.folder / "update_interval")
    period_s = interval_ms * 1e-3 if interval_ms and interval_ms > 0 else None
    return LiveDomain(
        name=names[at],
        reading=channel.reading,
        unit="J" if energy else "W",
        scale=_MICRO,
        provenance=Provenance.MEASURED_COUNTER if energy else Provenance.MEASURED_SAMPLED,
        boundary=boundary,
        largest_w=_LARGEST_W[boundary],
        update_period_s=period_s,
        window_s=_window_s(chip, channel, period_s),
        inside=(
            *_around(chip, channels, names, at),
            *(() if is_total(channel.label) else totals),
            *_second_roads(chip, channel),
        ),
        source=f"hwmon {chip.name} at {chip.place}, {channel.place}",
    )


def _second_roads(chip: _Chip, channel: _Channel) -> tuple[str, ...]:
    """Returns domains of other meters that show the same counter; all GPUs, since which is which is not known here."""
    if chip.name == "amdgpu":
        return tuple(f"amdsmi:{index}:{name}" for index in range(_MOST_GPUS) for name in ("energy", "power"))
    if chip.name == "amd_energy" and channel.label.startswith("Esocket"):
        return (f"powercap:package-{channel.label.removeprefix('Esocket')}",)
    return ()


def _boundary_of(chip: _Chip, channel: _Channel) -> Boundary:
    if chip.name == _ACPI_METER and _measures_all(chip):
        return Boundary.NODE
    return Boundary.PACKAGE if _is_package(chip, channel) else rail_boundary(channel.label)


def _measures_all(chip: _Chip) -> bool:
    """True unless the firmware names the devices that its power meter measures, and the machine is none of them."""
    named = [entry.name for folder in (chip.folder, chip.folder / "device") for entry in folder.glob("measures/*")]
    return not named or any(name.startswith("LNXSY") for name in named)


def _is_package(chip: _Chip, channel: _Channel) -> bool:
    return channel.label.startswith(("Esocket", "PPT")) or (chip.name == "amdgpu" and channel.place == "power1")


def _window_s(chip: _Chip, channel: _Channel, period_s: float | None) -> float | None:
    if channel.reading is DomainReading.ENERGY_COUNTER:
        return None
    stated_ms = read_number(chip.folder / f"{channel.place}_average_interval")
    if stated_ms and stated_ms > 0 and not (chip.folder / f"{channel.place}_input").exists():
        return stated_ms * 1e-3
    return period_s if chip.name.startswith("ina") else None  # these average all the time between two renewals


def _around(chip: _Chip, channels: list[_Channel], names: list[str], at: int) -> tuple[str, ...]:
    own = channels[at]
    around = []
    for other, name in zip(channels, names, strict=True):
        if other is own:
            continue
        total = is_total(other.label) and not is_total(own.label)
        core = own.label.startswith("Ecore") and other.label.startswith("Esocket")
        twin = own.reading is DomainReading.POWER and other.place == own.place.replace("power", "energy")
        same_chip = chip.name == "amdgpu" and other.place == "power1" and own.place.startswith("power")
        if total or core or twin or same_chip:
            around.append(name)
    return tuple(around)
