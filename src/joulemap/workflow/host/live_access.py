"""The real meters of this machine as one recording session; refused with the fixes of discovery when there is none."""

from __future__ import annotations

import time

from joulemap.errors import SetupError
from joulemap.meters.live.discovery import find_meters
from joulemap.records.host.request import HostRequest
from joulemap.records.live.capture_header import qualify
from joulemap.records.live.domain import DomainReading
from joulemap.workflow.host.meter_access import MeterAccess
from joulemap.workflow.record.session import SampledSession

__all__ = ["open_live_access"]

_RATE_HZ = 100.0
"""A hundredth of a window of a second; a counter that is read more often costs more than it tells."""


def open_live_access(request: HostRequest) -> MeterAccess:
    """Returns the meters that the request names, else the first usable one; nothing is started yet.

    The first one alone: a battery that is read along would make every window as long as its slowest update.

    Raises:
        UsageError: a name means nothing (``meter-unknown``).
        SetupError: none can be read (``no-live-meter``), or a named one cannot (``meter-unusable``).
    """
    found = [
        meter
        for meter in find_meters(request.meters)
        if any(domain.reading is not DomainReading.SIGNAL for domain in meter.domains)
    ]
    if not found:
        raise SetupError(
            "none of the meters here tells power",
            hint="joulemap meters lists what each of them reads; name one with --meter",
            slug="no-live-meter",
        )
    if not request.meters:
        found = found[:1]
    domains = {
        qualify(meter.name, domain.name): domain
        for meter in found
        for domain in meter.domains
        if domain.reading is not DomainReading.SIGNAL
    }
    slowest_s = max((domain.update_period_s or 0.0 for domain in domains.values()), default=0.0)
    rate_hz = _RATE_HZ if slowest_s == 0 else min(_RATE_HZ, max(2.0 / slowest_s, 1.0))
    session = SampledSession(found, rate_hz=rate_hz, live=False)
    return MeterAccess(
        name=", ".join(meter.name for meter in found),
        session=session,
        domains=domains,
        rest=time.sleep,
        simulated=False,
        sample_period_s=1.0 / rate_hz,
        close=session.discard,
    )
