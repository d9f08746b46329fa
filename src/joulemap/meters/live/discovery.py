"""What can be read here, and what cannot with the step that mends it; and the meters that a user names.

A meter is named by its candidate (``powercap``, ``nvml:0``), by its driver (every meter of that kind), or by driver and
options (``prometheus:url=http://192.0.2.7:9100/metrics``). This module looks; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from joulemap.errors import SetupError, UsageError
from joulemap.meters.live.registry import driver, driver_names
from joulemap.records.live.domain import MeterCandidate

__all__ = ["discover", "find_meters", "parse_meter_name"]


def discover(
    drivers: Iterable[str] | None = None, *, options: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[MeterCandidate, ...]:
    """Returns every candidate, usable or not, in the order of the drivers.

    Args:
        drivers: names of drivers; None for all. A driver that must be asked for (simulated, estimate, prometheus)
            offers nothing without options.
        options: per driver, as in an address: a root folder, an address.

    Raises:
        UsageError: there is no such driver or option.
    """
    given = options or {}
    found: list[MeterCandidate] = []
    for name in driver_names() if drivers is None else drivers:
        found += driver(name).discover_meters(given.get(name))
    return tuple(found)


def parse_meter_name(text: str) -> tuple[str, dict[str, str]]:
    """Returns the name and the options of what a user wrote: ``name`` or ``driver:key=value,key=value``.

    A comma that belongs to a value is written twice.

    Raises:
        UsageError: an option has no name (``meter-option``).
    """
    name, colon, rest = text.partition(":")
    if not colon or "=" not in rest:
        return text, {}
    options: dict[str, str] = {}
    for part in rest.replace(",,", "\0").split(","):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise UsageError(
                f"{text}: {part!r} is no option", hint=f"write {name}:key=value,key=value", slug="meter-option"
            )
        options[key.strip()] = value.replace("\0", ",")
    return name, options


def find_meters(
    names: Sequence[str] = (), *, options: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[MeterCandidate, ...]:
    """Returns the usable meters that the names mean, each once; with no name, every usable one that discovery finds.

    With no name, a second road to the same counters is left out: perf events beside powercap, the kernel's view of an
    AMD GPU or processor beside AMD SMI or powercap.

    Args:
        names: as users write them.
        options: per driver, for the meters that discovery finds.

    Raises:
        UsageError: a name means nothing (``meter-unknown``, ``meter-option``).
        SetupError: what was named cannot be read (``meter-unusable``), or there is nothing at all (``no-live-meter``).
    """
    if not names:
        candidates = discover(options=options)
        usable = _without_second_roads(tuple(candidate for candidate in candidates if candidate.usable))
        if not any(domain.boundary for candidate in usable for domain in candidate.domains):
            raise _nothing(candidates)  # signals alone are no power
        return usable
    chosen: dict[str, MeterCandidate] = {}
    for text in names:
        for candidate in _named(text, options or {}):
            chosen.setdefault(candidate.name, candidate)
    return tuple(chosen.values())


_SECOND_ROADS = {"perf_event": "powercap", "hwmon:amd_energy": "powercap", "hwmon:amdgpu": "amdsmi"}


def _without_second_roads(usable: tuple[MeterCandidate, ...]) -> tuple[MeterCandidate, ...]:
    drivers = {candidate.address.driver for candidate in usable}
    return tuple(
        candidate for candidate in usable if _SECOND_ROADS.get(candidate.name.partition("@")[0]) not in drivers
    )


def _named(text: str, options: Mapping[str, Mapping[str, str]]) -> tuple[MeterCandidate, ...]:
    name, own = parse_meter_name(text)
    kind = name.partition(":")[0]
    given = {**options.get(kind, {}), **own}
    found = driver(kind).discover_meters(given)
    wanted = found if name == kind else tuple(candidate for candidate in found if candidate.name == name)
    if not wanted:
        hint = f"write it like {driver(kind).EXAMPLE}" if driver(kind).EXAMPLE else "joulemap meters lists what is here"
        raise UsageError(f"no meter is called {text}", hint=hint, slug="meter-unknown")
    usable = tuple(candidate for candidate in wanted if candidate.usable)
    if not usable:
        first = wanted[0]
        raise SetupError(f"{first.name}: {first.problem}", hint=first.fix or _NO_FIX, slug="meter-unusable")
    return usable


_NO_FIX = "nothing mends it here; joulemap meters lists what can be read"


def _nothing(candidates: tuple[MeterCandidate, ...]) -> SetupError:
    lines = [f"  {candidate.name}: {candidate.problem}" for candidate in candidates if candidate.problem]
    fixes = [candidate.fix for candidate in candidates if candidate.fix]
    return SetupError(
        "\n".join(["no power meter can be read here:", *lines]),
        hint=fixes[0]
        if fixes
        else "record elsewhere, or name a meter: joulemap meters lists the kinds (--meter simulated to try)",
        slug="no-live-meter",
    )
