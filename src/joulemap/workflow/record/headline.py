"""Whether the headline that was asked for can be made of the meters that will be read, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.analysis.recorded.headline import SUM
from joulemap.errors import UsageError
from joulemap.formats.live.overlaps import list_overlaps
from joulemap.records.live.capture_header import CaptureHeader, CaptureStream
from joulemap.records.live.domain import DomainReading, MeterCandidate

__all__ = ["check_headline"]


def check_headline(asked: Sequence[str], meters: Sequence[MeterCandidate]) -> None:
    """Refuses a headline that cannot be.

    Args:
        asked: names of domains, or ``sum`` alone; empty for the rule.
        meters: that will be read.

    Raises:
        UsageError: ``sum`` beside names or a name twice (``flags-contradict``), no such domain (``domain-unknown``),
            or one inside another (``domains-overlap``).
    """
    if not asked or tuple(asked) == (SUM,):
        return
    if SUM in asked or len(set(asked)) < len(asked):
        raise UsageError(
            f"headline {', '.join(asked)}: a name twice, or {SUM} beside names",
            hint=f"name each domain once, or {SUM} alone",
            slug="flags-contradict",
        )
    header = _header_of(meters)
    known = [
        name
        for names, stream in zip(header.channels(), header.streams, strict=True)
        for name, domain in zip(names, stream.domains, strict=True)
        if domain.reading is not DomainReading.SIGNAL
    ]
    for name in asked:
        if name not in known:
            raise UsageError(
                f"headline {name}: no such domain is read", hint=f"one of: {', '.join(known)}", slug="domain-unknown"
            )
    for inner, outer in list_overlaps(header):
        if inner in asked and outer in asked:
            raise UsageError(
                f"{inner} is inside {outer}: they are never added", hint="name one of them", slug="domains-overlap"
            )


def _header_of(meters: Sequence[MeterCandidate]) -> CaptureHeader:
    streams = tuple(
        CaptureStream(meter=meter.name, driver=meter.address.driver, period_s=1.0, domains=meter.domains)
        for meter in meters
    )
    return CaptureHeader(session="", rate_hz=1.0, streams=streams)
