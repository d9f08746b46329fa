"""The header of a capture: which meters were sampled, what they declared, and how the sampling was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from joulemap.estimate import Boundary, Provenance
from joulemap.records.live.domain import DomainReading, LiveDomain

__all__ = ["SCHEMA", "VERSION", "CaptureHeader", "CaptureStream", "qualify"]

SCHEMA: Final = "joulemap.capture"
VERSION: Final = 1


def qualify(meter: str, domain: str) -> str:
    """Returns the name of a domain that is unique in a capture: ``powercap:package-0``."""
    return f"{meter}:{domain}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureStream:
    """One meter of a capture.

    Args:
        meter: name under which it was asked for; unique in the capture.
        driver: registry name.
        period_s: between two readings, s.
        domains: in the order of the raw columns.
    """

    meter: str
    driver: str
    period_s: float
    domains: tuple[LiveDomain, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureHeader:
    """What a sampling process says before its first sample.

    Args:
        session: id of the recording.
        rate_hz: as asked for.
        streams: meters.
        priority: what the scheduler granted: ``normal``, ``nice -10``, ``fifo 10``.
        facts: further facts as text (process id, version).
    """

    session: str
    rate_hz: float
    streams: tuple[CaptureStream, ...]
    priority: str = "normal"
    facts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", MappingProxyType(dict(self.facts)))

    def channels(self) -> tuple[tuple[str, ...], ...]:
        """Returns the names of the domains of each stream, unique in the capture."""
        return tuple(tuple(qualify(stream.meter, d.name) for d in stream.domains) for stream in self.streams)

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {
            "schema": SCHEMA,
            "schema_version": VERSION,
            "session": self.session,
            "rate_hz": self.rate_hz,
            "priority": self.priority,
            "facts": dict(self.facts),
            "streams": [
                {
                    "meter": stream.meter,
                    "driver": stream.driver,
                    "period_s": stream.period_s,
                    "domains": [_describe(domain) for domain in stream.domains],
                }
                for stream in self.streams
            ],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> CaptureHeader:
        """Returns the header of a JSON form; fields that it does not know are left alone.

        Raises:
            ValueError: a field is missing or means nothing, or the schema is newer.
        """
        try:
            if document["schema"] != SCHEMA or int(document["schema_version"]) > VERSION:
                raise ValueError(f"not {SCHEMA} of version {VERSION} or older")
            return cls(
                session=str(document["session"]),
                rate_hz=float(document["rate_hz"]),
                priority=str(document["priority"]),
                facts={str(key): str(value) for key, value in document["facts"].items()},
                streams=tuple(
                    CaptureStream(
                        meter=str(stream["meter"]),
                        driver=str(stream["driver"]),
                        period_s=float(stream["period_s"]),
                        domains=tuple(_parse(domain) for domain in stream["domains"]),
                    )
                    for stream in document["streams"]
                ),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a capture header lacks or breaks {error}") from error


def _describe(domain: LiveDomain) -> dict[str, Any]:
    return {
        "name": domain.name,
        "reading": str(domain.reading),
        "unit": domain.unit,
        "scale": domain.scale,
        "provenance": str(domain.provenance),
        "boundary": None if domain.boundary is None else str(domain.boundary),
        "modulus": domain.modulus,
        "largest_w": domain.largest_w,
        "update_period_s": domain.update_period_s,
        "window_s": domain.window_s,
        "latency_s": domain.latency_s,
        "gain_std": domain.gain_std,
        "inside": list(domain.inside),
        "source": domain.source,
        "machine": domain.machine,
    }


def _parse(document: Mapping[str, Any]) -> LiveDomain:
    return LiveDomain(
        name=str(document["name"]),
        reading=DomainReading(document["reading"]),
        unit=str(document["unit"]),
        scale=float(document["scale"]),
        provenance=Provenance(document["provenance"]),
        boundary=None if document["boundary"] is None else Boundary(document["boundary"]),
        modulus=_number(document["modulus"]),
        largest_w=_number(document["largest_w"]),
        update_period_s=_number(document["update_period_s"]),
        window_s=_number(document["window_s"]),
        latency_s=float(document["latency_s"]),
        gain_std=_number(document["gain_std"]),
        inside=tuple(str(name) for name in document["inside"]),
        source=str(document["source"]),
        machine=str(document.get("machine", "")),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
