"""Energy and power that an exporter offers to Prometheus, read from the exporter itself: an address that a user names.

Names say what a series is: joules or watts, with their prefix. What an exporter attributes to a process, a container
or a pod is its estimate, and is left out unless it is asked for by name. Rows that show one whole device several
times (the slices of a GPU) are one domain.

References:
    Prometheus text exposition format 0.0.4; FORMATS 4 (reports 15 to 20).
"""

from __future__ import annotations

import dataclasses
import math
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass

from joulemap.errors import UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.http_text import check_url, fetch_text, parse_exposition
from joulemap.meters.live.ground.options import check_options, machine_option, number_option
from joulemap.meters.live.ground.paced_meter import Answer, PacedMeter
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "build_meter", "discover_meters", "parse_exposition"]

SUMMARY = "energy and power of a Prometheus exporter (node_exporter, Kepler, Scaphandre, dcgm-exporter, Triton)"
EXAMPLE = "prometheus:url=http://192.0.2.7:9100/metrics"
_NAME = "prometheus"
_OPTIONS = ("url", "every_s", "timeout_s", "metric", "machine")
_UNIT = re.compile(r"_(micro|milli|kilo)?(joules|watts)(?:_total)?$")
_PREFIX = {"micro": 1e-6, "milli": 1e-3, "kilo": 1e3, None: 1.0}
_KNOWN = {
    "DCGM_FI_DEV_POWER_USAGE": ("watts", 1.0),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("joules", 1e-3),
    "nv_gpu_power_usage": ("watts", 1.0),
    "nv_energy_consumption": ("joules", 1.0),
}
_SHARES = re.compile(r"process|container|pod|vm_|_vm|_active_|_idle_|limit|capacity|threshold|_min_|_max_")
_UNIQUE = (
    "UUID",
    "gpu_uuid",
    "uuid",
    "gpu",
    "path",
    "zone",
    "socket_id",
    "package",
    "index",
    "chip",
    "sensor",
    "node_name",
)
_LARGEST_W = {Boundary.NODE: 20_000.0, Boundary.PACKAGE: 2_000.0, Boundary.RAIL: 2_000.0, Boundary.BOARD: 5_000.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One series of an exposition."""

    metric: str
    labels: Mapping[str, str]
    value: float


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the exporter that was named; nothing when none was.

    Raises:
        UsageError: an option is wrong or ``url`` is missing (``meter-option``).
    """
    if options is None:
        return ()
    return (build_meter(MeterAddress(driver=_NAME, options=options)).candidate(),)


def build_meter(address: MeterAddress) -> PacedMeter:
    """Returns the meter of one exporter.

    Args:
        address: ``url`` of the exporter; ``every_s`` between questions (1); ``timeout_s`` (5); ``metric``, a regular
            expression that a series' name must match: then also the exporter's estimates for processes are taken;
            ``machine`` that it tells of (default: the one that answers).

    Raises:
        UsageError: an option is wrong or ``url`` is missing (``meter-option``).
    """
    check_options(address, _OPTIONS)
    url = check_url(address, EXAMPLE)
    try:
        pattern = re.compile(address.options["metric"]) if "metric" in address.options else None
    except re.error as error:
        raise UsageError(
            f"meter {_NAME}: {error}", hint="metric is a regular expression", slug="meter-option"
        ) from error
    every_s = number_option(address, "every_s", 1.0, exclusive=True)
    timeout_s = number_option(address, "timeout_s", 5.0, exclusive=True)

    known: dict[str, LiveDomain] = {}

    def ask() -> Answer:
        found = _select(fetch_text(url, timeout_s=timeout_s, accept="text/plain"), pattern, every_s)
        if not known:  # what contains what is worked out once
            alone = {name: domain for name, (domain, _) in found.items()}
            known.update({name: _within(domain, alone) for name, domain in alone.items()})
        return {name: (known.get(name, domain), value) for name, (domain, value) in found.items()}

    split = urllib.parse.urlsplit(url)
    machine = machine_option(address, split.hostname or "")
    return PacedMeter(address, f"{_NAME}:{split.netloc or url}", ask, every_s=every_s, machine=machine)


def _select(text: str, pattern: re.Pattern[str] | None, every_s: float) -> dict[str, tuple[LiveDomain, float]]:
    rows = [_Row(metric=metric, labels=labels, value=value) for metric, labels, value in parse_exposition(text)]
    found: dict[str, tuple[LiveDomain, float]] = {}
    for row in rows:
        unit = _unit_of(row.metric)
        share = bool(_SHARES.search(row.metric))
        if unit is None or (share if pattern is None else not pattern.search(row.metric)):
            continue
        name = _name_of(row)
        if name in found or not math.isfinite(row.value):
            continue  # one value per device, however many slices show it
        found[name] = (_describe(name, row, unit, estimated=share, every_s=every_s), row.value)
    return found


def _unit_of(metric: str) -> tuple[str, float] | None:
    if metric in _KNOWN:
        return _KNOWN[metric]
    match = _UNIT.search(metric)
    return None if match is None else (match[2], _PREFIX[match[1]])


def _name_of(row: _Row) -> str:
    unique = [key for key in ("UUID", "gpu_uuid", "uuid") if key in row.labels][:1]
    keys = unique or [key for key in _UNIQUE if key in row.labels]
    if _SHARES.search(row.metric):
        keys = sorted(row.labels)
    parts = "/".join(row.labels[key] for key in keys if row.labels[key])
    return f"{row.metric}[{parts}]" if parts else row.metric


def _describe(name: str, row: _Row, unit: tuple[str, float], *, estimated: bool, every_s: float) -> LiveDomain:
    counter = unit[0] == "joules"
    measured = Provenance.MEASURED_COUNTER if counter else Provenance.MEASURED_SAMPLED
    boundary = _boundary_of(row)
    return LiveDomain(
        name=name,
        reading=DomainReading.ENERGY_COUNTER if counter else DomainReading.POWER,
        unit="J" if counter else "W",
        scale=unit[1],
        provenance=Provenance.ESTIMATED if estimated else measured,
        boundary=boundary,
        largest_w=_LARGEST_W[boundary],
        update_period_s=every_s,
        source=f"exporter, {row.metric}",
    )


def _boundary_of(row: _Row) -> Boundary:
    words = f"{row.metric} {row.labels.get('zone', '')} {row.labels.get('path', '')}".lower()
    if "gpu" in words or row.metric.startswith(("DCGM", "nv_")):
        return Boundary.BOARD
    if "psys" in words or "platform" in words or "host_" in words:
        return Boundary.NODE
    return Boundary.PACKAGE if "package" in words or "socket" in words else Boundary.RAIL


def _within(domain: LiveDomain, found: Mapping[str, LiveDomain]) -> LiveDomain:
    """Returns the domain inside everything that may contain it: exporters do not say what their zones share."""
    rank = {Boundary.RAIL: 0, Boundary.PACKAGE: 1, Boundary.NODE: 2}
    outer = []
    for name, other in found.items():
        if name == domain.name or domain.boundary is None or other.boundary is None:
            continue
        same_device = name.partition("[")[2] == domain.name.partition("[")[2] != ""
        twin = same_device and other.boundary is domain.boundary and other.reading is DomainReading.ENERGY_COUNTER
        power = domain.reading is DomainReading.POWER and other.reading is DomainReading.ENERGY_COUNTER
        wider = rank.get(other.boundary, -1) > rank.get(domain.boundary, 9)
        contains = wider and not ("dram" in domain.name and other.boundary is Boundary.PACKAGE)
        if contains or (twin and power):
            outer.append(name)
    return domain if not outer else _replace_inside(domain, tuple(outer))


def _replace_inside(domain: LiveDomain, inside: tuple[str, ...]) -> LiveDomain:
    return dataclasses.replace(domain, inside=inside)
