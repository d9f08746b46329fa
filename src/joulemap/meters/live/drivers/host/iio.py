"""Power and energy of Industrial I/O devices: INA3221 of older Jetsons (in mW), INA2xx, PAC19xx.

References:
    Linux Documentation/ABI/testing/sysfs-bus-iio (power in mW, energy in J, after scale); FORMATS 3 (hwmon) and 4
    (report 36: driver ina3221x, rails nested under its own folder).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.file_meter import FileMeter, Survey, answers
from joulemap.meters.live.ground.number_file import NumberFile, read_text
from joulemap.meters.live.ground.options import check_options
from joulemap.meters.live.ground.rails import is_total, rail_boundary, unique_names
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "build_meter", "discover_meters"]

SUMMARY = "power of Industrial I/O devices (Linux iio: INA3221 of older Jetsons, INA2xx, PAC19xx)"
EXAMPLE = ""
_NAME = "iio"
_FILE = re.compile(r"^in_(power|energy)(\d*)_(input|raw)$")
_NESTED = (
    "bus/iio/devices/iio:device*",
    "bus/i2c/drivers/ina3221x/*/iio:device*",
    "bus/i2c/drivers/ina3221x/*/iio_device*",
)
_PER_UNIT = {"power": 1e-3, "energy": 1.0}
_LARGEST_W = 5_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rail:
    """One file of power or energy."""

    device: Path
    kind: str
    number: str
    label: str
    scale: float
    file: NumberFile

    @property
    def place(self) -> str:
        return f"{self.device.name}/{self.kind}{self.number}"


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the one meter of this kind, all its rails; nothing when the machine has no such device.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    candidate = build_meter(MeterAddress(driver=_NAME, options=options or {})).candidate()
    return (candidate,) if candidate.usable or candidate.fix or options is not None else ()


def build_meter(address: MeterAddress) -> FileMeter:
    """Returns the meter of every rail, not yet opened.

    Args:
        address: option ``root`` is the sysfs root (default ``/sys``).

    Raises:
        UsageError: there is another option (``meter-option``).
    """
    check_options(address, ("root",))
    root = Path(address.options.get("root", "/sys"))
    return FileMeter(address, _NAME, lambda: _look(root))


def _look(root: Path) -> Survey:
    rails: list[_Rail] = []
    denied = ""
    for rail in _list_rails(root):
        try:
            if answers(rail.file):
                rails.append(rail)
        except PermissionError:
            denied = str(rail.file.path)
    if not rails:
        if denied:
            return Survey(problem="its rails may be read by root only", fix=f"sudo chmod a+r {denied}")
        return Survey(problem="no Industrial I/O device of this machine has a channel of power")
    names = unique_names([rail.label for rail in rails], [rail.place for rail in rails])
    totals = tuple(name for rail, name in zip(rails, names, strict=True) if is_total(rail.label))
    domains = tuple(_describe(rail, name, totals) for rail, name in zip(rails, names, strict=True))
    return Survey(domains=domains, sources=tuple(rail.file for rail in rails))


def _list_rails(root: Path) -> Iterator[_Rail]:
    seen: set[Path] = set()
    for pattern in _NESTED:
        for device in sorted(root.glob(pattern)):
            if device.resolve() in seen:
                continue
            seen.add(device.resolve())
            yield from _rails_of(device)


def _rails_of(device: Path) -> Iterator[_Rail]:
    for path in sorted(device.glob("in_*")):
        match = _FILE.match(path.name)
        if match is None or (match[3] == "raw" and path.with_name(f"in_{match[1]}{match[2]}_input").exists()):
            continue
        scale = 1.0 if match[3] == "input" else _scale_of(device, match[1], match[2])
        label = read_text(device / f"rail_name_{match[2]}") or read_text(device / f"in_{match[1]}{match[2]}_label")
        yield _Rail(
            device=device,
            kind=match[1],
            number=match[2],
            label=label or f"{match[1]}{match[2]}",
            scale=scale * _PER_UNIT[match[1]],
            file=NumberFile(path),
        )


def _scale_of(device: Path, kind: str, number: str) -> float:
    for name in (f"in_{kind}{number}_scale", f"in_{kind}_scale"):
        text = read_text(device / name)
        try:
            value = float(text or "")
        except ValueError:
            continue
        if 0 < value < float("inf"):
            return value
    return 1.0


def _describe(rail: _Rail, name: str, totals: tuple[str, ...]) -> LiveDomain:
    energy = rail.kind == "energy"
    boundary = rail_boundary(rail.label)
    return LiveDomain(
        name=name,
        reading=DomainReading.ENERGY_COUNTER if energy else DomainReading.POWER,
        unit="J" if energy else "W",
        scale=rail.scale,
        provenance=Provenance.MEASURED_COUNTER if energy else Provenance.MEASURED_SAMPLED,
        boundary=boundary if boundary is Boundary.BOARD else Boundary.RAIL,
        largest_w=_LARGEST_W,
        inside=() if is_total(rail.label) else totals,
        source=f"iio {read_text(rail.device / 'name') or rail.device.name}, {rail.file.path.name}",
    )
