"""Names of the drivers of live meters. The only module of this room that names a driver; loads one when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol, cast

from joulemap.errors import UsageError
from joulemap.meters.live.base import LiveMeter
from joulemap.records.live.domain import MeterAddress, MeterCandidate

__all__ = ["LiveDriver", "driver", "driver_names", "open_meter"]


class LiveDriver(Protocol):
    """What the module of a driver offers."""

    SUMMARY: str
    """What it reads, in one line."""
    EXAMPLE: str
    """How a meter is named that only exists when it is asked for; empty for one that discovery finds by itself."""

    def discover_meters(self, options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
        """Returns every meter of this kind, also those that cannot be read, with the step that mends it.

        Args:
            options: as in an address; None when nobody asked for this kind: then a meter that only exists when it is
                asked for is not offered.

        Raises:
            UsageError: an option is wrong (``meter-option``).
        """
        ...

    def build_meter(self, address: MeterAddress) -> LiveMeter:
        """Returns the meter of an address, not yet opened.

        Raises:
            UsageError: an option is wrong (``meter-option``).
        """
        ...


_DRIVERS: Mapping[str, str] = {
    "powercap": "joulemap.meters.live.drivers.host.powercap",
    "perf_event": "joulemap.meters.live.drivers.host.perf_event",
    "hwmon": "joulemap.meters.live.drivers.host.hwmon",
    "iio": "joulemap.meters.live.drivers.host.iio",
    "power_supply": "joulemap.meters.live.drivers.host.power_supply",
    "host": "joulemap.meters.live.drivers.host.signals",
    "powermetrics": "joulemap.meters.live.drivers.host.powermetrics",
    "nvml": "joulemap.meters.live.drivers.device.nvml",
    "amdsmi": "joulemap.meters.live.drivers.device.amdsmi",
    "android": "joulemap.meters.live.drivers.device.android",
    "ipmi": "joulemap.meters.live.drivers.remote.ipmi",
    "redfish": "joulemap.meters.live.drivers.remote.redfish",
    "prometheus": "joulemap.meters.live.drivers.remote.prometheus",
    "scpi": "joulemap.meters.live.drivers.device.scpi",
    "replay": "joulemap.meters.live.drivers.virtual.replay",
    "estimate": "joulemap.meters.live.drivers.virtual.estimate",
    "simulated": "joulemap.meters.live.drivers.virtual.simulated",
}


def driver_names() -> tuple[str, ...]:
    """Returns the names that :func:`driver` knows, in the order in which discovery asks them."""
    return tuple(_DRIVERS)


def driver(name: str) -> LiveDriver:
    """Returns the driver of a name.

    Raises:
        UsageError: there is none (``meter-unknown``).
    """
    if name not in _DRIVERS:
        raise UsageError(
            f"no meter is called {name}",
            hint=f"joulemap meters lists what is here; drivers: {', '.join(_DRIVERS)}",
            slug="meter-unknown",
        )
    return cast("LiveDriver", importlib.import_module(_DRIVERS[name]))


def open_meter(address: MeterAddress) -> LiveMeter:
    """Returns the meter of an address, opened in this process; opening it again has no effect.

    Raises:
        UsageError: there is no such driver or option (``meter-unknown``, ``meter-option``).
        SetupError: it is not there or not permitted; the hint is the exact fix.
    """
    meter = driver(address.driver).build_meter(address)
    meter.open()
    return meter
