"""Which domains of a capture contain which, so that no energy is counted twice; and whether two meters agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.ground.building import FindingLog
from joulemap.records.finding import Severity
from joulemap.records.live.capture_header import CaptureHeader, qualify
from joulemap.records.live.domain import DomainReading, LiveDomain
from joulemap.trace import EnergyTrace, integrate_between

__all__ = ["list_overlaps", "list_twins", "say_disagreements", "say_machines"]

_WHOLE: Final = (Boundary.NODE, Boundary.WALL, Boundary.FACILITY)
"""Boundaries that hold a whole machine, smallest first."""
_RETOLD: Final = frozenset({"prometheus"})
"""Drivers that tell again what meters of the machine have read; under names of their own."""
_DISAGREE: Final = 0.1
_STRENGTH: Final = {provenance: rank for rank, provenance in enumerate(Provenance)}


def list_overlaps(header: CaptureHeader) -> tuple[tuple[str, str], ...]:
    """Returns pairs of channels of which the second contains the first.

    Besides what meters declare: whatever holds a whole machine contains the parts of that machine, wall contains node,
    of two meters of the same thing one stands for both, and an exporter shows what the machine's own meters read.
    """
    domains = _list_domains(header)
    drivers = {stream.meter: stream.driver for stream in header.streams}
    names = {channel for channel, _, _ in domains}
    pairs = [
        (channel, outer)
        for channel, meter, domain in domains
        for inside in domain.inside
        if (outer := inside if inside in names else qualify(meter, inside)) in names and outer != channel
    ]
    for (first, own, a), (second, other, b) in combinations(domains, 2):
        if own == other or a.machine != b.machine:
            continue
        ranks = [_WHOLE.index(d.boundary) if d.boundary in _WHOLE else -1 for d in (a, b)]
        if ranks[0] != ranks[1]:
            pairs.append((first, second) if ranks[0] < ranks[1] else (second, first))
        elif a.boundary is b.boundary and (drivers[own] in _RETOLD) != (drivers[other] in _RETOLD):
            pairs.append((first, second) if drivers[own] in _RETOLD else (second, first))
    for kept, other_channel in list_twins(header):
        if (kept, other_channel) not in pairs and (other_channel, kept) not in pairs:  # what is declared comes first
            pairs.append((other_channel, kept))
    return tuple(dict.fromkeys(pairs))


def list_twins(header: CaptureHeader) -> tuple[tuple[str, str], ...]:
    """Returns pairs of channels of two meters that measure one thing; the stronger provenance first.

    A machine is one thing, whoever measures the whole of it: two meters of one driver too. Below that, two meters of
    one driver are two devices (two graphics cards), and two drivers mean one thing when they call it the same. What one
    meter shows as several domains (two batteries) is several things, and what is another machine's is another thing.
    """
    drivers = {stream.meter: stream.driver for stream in header.streams}
    pairs: list[tuple[str, str]] = []
    for (first, own, a), (second, other, b) in combinations(_list_domains(header), 2):
        if own == other or a.machine != b.machine or a.boundary is not b.boundary:
            continue
        if a.boundary in _WHOLE or (a.name == b.name and drivers[own] != drivers[other]):
            stronger = _STRENGTH[a.provenance] <= _STRENGTH[b.provenance]
            pairs.append((first, second) if stronger else (second, first))
    return tuple(pairs)


def say_machines(header: CaptureHeader, log: FindingLog) -> None:
    """Says which meters are taken to be another machine's, where this one was measured too: their power is added."""
    domains = _list_domains(header)
    if all(domain.machine for _, _, domain in domains):
        return
    machines: dict[str, list[str]] = {}
    for channel, _, domain in domains:
        if domain.machine and domain.boundary in _WHOLE:
            machines.setdefault(domain.machine, []).append(channel)
    for machine, channels in machines.items():
        log.add(
            "other_machine",
            f"{', '.join(channels)} is taken for the power of another machine, {machine}: it neither contains what was"
            " measured here nor is it compared with it; option machine=this says that it is this one's",
            severity=Severity.INFO,
        )


def say_disagreements(traces: Sequence[EnergyTrace], header: CaptureHeader, log: FindingLog) -> None:
    """Says where two meters of one thing differ by more than 10 % over the time that both saw.

    References:
        METHODS 1.2 (cross-check of two readings of one thing; flag above 10 %).
    """
    by_name = {trace.channel.name: trace for trace in traces}
    for first, second in list_twins(header):
        if first not in by_name or second not in by_name:
            continue
        pair = by_name[first], by_name[second]
        begin_ns = max(trace.start_ns for trace in pair)
        end_ns = min(trace.end_ns for trace in pair)
        if end_ns <= begin_ns:
            continue
        held = [integrate_between(trace, np.array([begin_ns, end_ns], np.int64)) for trace in pair]
        if any(float(part.covered_s[0]) <= 0 for part in held):
            continue
        means_w = [float(part.energy_j[0]) / float(part.covered_s[0]) for part in held]
        if abs(means_w[0] - means_w[1]) > _DISAGREE * max(abs(means_w[0]), abs(means_w[1])):
            log.add(
                "meters_disagree",
                f"{first} says {means_w[0]:.6g} W and {second} says {means_w[1]:.6g} W for one thing over one time",
            )


def _list_domains(header: CaptureHeader) -> list[tuple[str, str, LiveDomain]]:
    return [
        (qualify(stream.meter, domain.name), stream.meter, domain)
        for stream in header.streams
        for domain in stream.domains
        if domain.reading is not DomainReading.SIGNAL
    ]
