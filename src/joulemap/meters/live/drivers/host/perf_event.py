"""Energy counters of the processor through ``perf_event``: the power PMU. The same counters as powercap, 64 bits wide.

The kernel extends the counter of the register, so it never starts anew; scale and unit of an event come from sysfs.

References:
    Linux Documentation/ABI/testing/sysfs-bus-event_source-devices-events; arch/x86/events/rapl.c (events energy-cores,
    energy-pkg, energy-ram, energy-gpu, energy-psys; scale 2^-32 J).
"""

from __future__ import annotations

import errno
import math
import os
import re
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from joulemap.estimate import Boundary
from joulemap.meters.live.ground.cpu_facts import CpuFacts
from joulemap.meters.live.ground.file_meter import FileMeter, Source, Survey, answers
from joulemap.meters.live.ground.number_file import read_number, read_text
from joulemap.meters.live.ground.options import check_options
from joulemap.meters.live.ground.perf_syscall import open_perf_event
from joulemap.meters.live.ground.rapl import RAPL_LARGEST_W, RAPL_UPDATE_S, absence_of_rapl, rapl_provenance
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "build_meter", "discover_meters"]

SUMMARY = "energy counters of the processor (Linux perf_event: the power PMU)"
EXAMPLE = ""
_NAME = "perf_event"
_TWIN = "powercap"
_MOST_CPUS = 4096
_DOMAINS = {
    "energy-pkg": ("", Boundary.PACKAGE),
    "energy-cores": ("/core", Boundary.RAIL),
    "energy-gpu": ("/uncore", Boundary.RAIL),
    "energy-ram": ("/dram", Boundary.RAIL),
    "energy-psys": ("psys", Boundary.NODE),
}
_TERM = re.compile(r"^(\w+)=(0x[0-9a-f]+|\d+)$", re.IGNORECASE)
_BITS = re.compile(r"^config:(\d+)(?:-(\d+))?$")

Opener = Callable[[int, int, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """One event on one processor."""

    event: str
    kind: int
    config: int
    scale: float
    cpu: int
    package: int

    @property
    def name(self) -> str:
        suffix, boundary = _DOMAINS[self.event]
        return suffix if boundary is Boundary.NODE else f"package-{self.package}{suffix}"


class _Counter:
    """A perf counter: a source."""

    def __init__(self, event: _Event, opener: Opener) -> None:
        self._event = event
        self._opener = opener
        self._descriptor = -1

    @property
    def gone(self) -> bool:
        """True when it is not open."""
        return self._descriptor < 0

    def open(self) -> None:
        """Opens the counter.

        Raises:
            OSError: the kernel refuses it.
        """
        if self._descriptor < 0:
            self._descriptor = self._opener(self._event.kind, self._event.config, self._event.cpu)

    def read(self) -> float:
        """Returns the count; NaN when the kernel gives none (the processor was switched off)."""
        try:
            count: int = struct.unpack("=Q", os.read(self._descriptor, 8))[0]
        except (OSError, struct.error):
            self.close()
            return math.nan
        return float(count)

    def close(self) -> None:
        """Closes the counter; idempotent."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the one meter of this kind: all events of all packages.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    if options is None and sys.platform != "linux":
        return ()
    return (build_meter(MeterAddress(driver=_NAME, options=options or {})).candidate(),)


def build_meter(address: MeterAddress, opener: Opener = open_perf_event) -> FileMeter:
    """Returns the meter of every event that may be read, not yet opened.

    Args:
        address: option ``root`` is the sysfs root (default ``/sys``), ``proc`` the folder with ``cpuinfo``
            (default ``/proc``, and ``root/proc`` for another root: another machine's tree).
        opener: from type, config and processor to a descriptor.

    Raises:
        UsageError: there is another option (``meter-option``).
    """
    check_options(address, ("root", "proc"))
    root = Path(address.options.get("root", "/sys"))
    proc = Path(address.options.get("proc", "/proc" if root == Path("/sys") else root / "proc"))
    return FileMeter(address, _NAME, lambda: _look(root, proc, opener))


def _look(root: Path, proc: Path, opener: Opener) -> Survey:
    cpu = CpuFacts.read(proc)
    events = _list_events(root)
    if not events:
        problem, fix = absence_of_rapl(cpu, (), "rapl")
        return Survey(problem=problem, fix=fix)
    found: list[tuple[_Event, Source]] = []
    refused = 0
    for event in events:
        counter = _Counter(event, opener)
        try:
            if answers(counter):
                found.append((event, counter))
        except PermissionError as error:
            refused = error.errno or errno.EACCES
    if not found:
        if refused:
            level = read_text(proc / "sys" / "kernel" / "perf_event_paranoid") or "unknown"
            problem = f"the kernel lets only root count over all processes (perf_event_paranoid is {level})"
            return Survey(problem=problem, fix="sudo sysctl kernel.perf_event_paranoid=0   (until the next boot)")
        return Survey(problem="the kernel lists a power PMU but opens none of its events")
    events = [event for event, _ in found]
    return Survey(
        domains=tuple(_describe(event, events, cpu) for event in events),
        sources=tuple(counter for _, counter in found),
    )


def _list_events(root: Path) -> list[_Event]:
    device = root / "bus" / "event_source" / "devices" / "power"
    kind = read_number(device / "type")
    if kind is None:
        return []
    events = []
    for cpu in _list_cpus(read_text(device / "cpumask") or "0"):
        package = read_number(root / "devices" / "system" / "cpu" / f"cpu{cpu}" / "topology" / "physical_package_id")
        for name in _DOMAINS:
            text = read_text(device / "events" / name)
            scale = _scale(read_text(device / "events" / f"{name}.scale"))
            unit = read_text(device / "events" / f"{name}.unit")
            config = None if text is None else _config(device, text)
            if config is None or scale is None or (unit or "Joules") != "Joules":
                continue
            events.append(
                _Event(event=name, kind=int(kind), config=config, scale=scale, cpu=cpu, package=int(package or 0))
            )
    return events


def _list_cpus(text: str) -> list[int]:
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            cpus += range(int(first), min(int(last or first), int(first) + _MOST_CPUS) + 1)
    return cpus[:_MOST_CPUS]


def _scale(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value < math.inf else None


def _config(device: Path, text: str) -> int | None:
    config = 0
    for part in text.split(","):
        match = _TERM.match(part.strip())
        if match is None:
            return None
        place = _BITS.match(read_text(device / "format" / match[1]) or "config:0-7")
        if place is None:
            return None
        config |= int(match[2], 0) << int(place[1])
    return config


def _describe(event: _Event, events: list[_Event], cpu: CpuFacts) -> LiveDomain:
    _, boundary = _DOMAINS[event.event]
    provenance, source = rapl_provenance(cpu)
    names = {other.name for other in events}
    package = f"package-{event.package}"
    outer = [package] if event.name in {f"{package}/core", f"{package}/uncore"} else []
    outer += ["psys"] if boundary is not Boundary.NODE else []
    return LiveDomain(
        name=event.name,
        reading=DomainReading.ENERGY_COUNTER,
        unit="J",
        scale=event.scale,
        provenance=provenance,
        boundary=boundary,
        largest_w=RAPL_LARGEST_W[boundary],
        update_period_s=RAPL_UPDATE_S,
        inside=(*(name for name in outer if name in names), f"{_TWIN}:{event.name}"),
        source=f"{source}; perf event power/{event.event}/ on processor {event.cpu}",
    )
