"""Meters read live, without a capture: what every domain shows now, and its energy since the watch began."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from joulemap.meters.live.discovery import find_meters
from joulemap.records.live.domain import DomainReading
from joulemap.workflow.record.live_power import DomainNow, LivePower
from joulemap.workflow.record.session import SampledSession

__all__ = ["Watch", "describe_domains"]


class Watch:
    """Reads meters until it is left; a context manager.

    Args:
        meters: names; empty for every usable one.
        rate_hz: readings per second.

    Raises:
        SetupError: no meter can be read.
        UsageError: no such meter.
    """

    def __init__(self, meters: Sequence[str] = (), *, rate_hz: float = 10.0) -> None:
        self._session = SampledSession(find_meters(meters), rate_hz=rate_hz, capture=False)
        self._live: LivePower | None = None
        self._lock = threading.Lock()
        self._began_s = 0.0

    def __enter__(self) -> Self:
        self._session.start()
        self._live = LivePower(self._session.header)
        self._began_s = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.__exit__()

    @property
    def elapsed_s(self) -> float:
        """Since the watch began, s."""
        return time.monotonic() - self._began_s

    def refresh(self) -> tuple[DomainNow, ...]:
        """Returns every domain as it is now; several threads may ask."""
        assert self._live is not None  # set on entry
        with self._lock:
            return self._live.refresh(self._session.ring)


def describe_domains(domains: Sequence[DomainNow]) -> list[dict[str, object]]:
    """Returns domains as JSON: null for what is not known, or no longer."""
    return [
        {
            "name": domain.name,
            "reading": str(domain.domain.reading),
            "boundary": None if domain.domain.boundary is None else str(domain.domain.boundary),
            "provenance": str(domain.domain.provenance),
            **_figures(domain),
            "age_s": domain.stale_s if domain.known else None,
        }
        for domain in domains
    ]


def _figures(domain: DomainNow) -> dict[str, object]:
    value = domain.power_w if domain.known and not domain.stale else None
    if domain.domain.reading is DomainReading.SIGNAL:
        return {"value": value, "unit": domain.domain.unit}
    return {"power_w": value, "energy_j": domain.energy_j if domain.known else None, "lost_s": domain.lost_s}
