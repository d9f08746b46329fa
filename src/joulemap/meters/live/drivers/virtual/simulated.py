"""A meter of a power function that is known exactly; it measures nothing, and says so.

For trying out a recording on any machine, and for tests of what comes after the meter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.options import check_options, choose_option, number_option
from joulemap.meters.live.ground.waves import PowerWave, WaveShape
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "SimulatedLiveMeter", "build_meter", "discover_meters", "wave_of"]

SUMMARY = "a known power function on the monotonic clock (simulated, never measured)"
EXAMPLE = "simulated:mean_w=20,swing_w=10,period_s=0.5,shape=square"
_NAME = "simulated"
_OPTIONS = ("mean_w", "swing_w", "period_s", "shape", "reading", "update_s", "modulus_j", "name")
_MICROJOULE_J = 1e-6
_LIMIT_MARGIN = 4.0


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the meter that was asked for; nothing when nobody asked.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    if options is None:
        return ()
    meter = build_meter(MeterAddress(driver=_NAME, options=options))
    name = options.get("name", _NAME)
    return (MeterCandidate(name=name, address=meter.address, domains=meter.domains),)


def build_meter(address: MeterAddress) -> SimulatedLiveMeter:
    """Returns the meter.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    return SimulatedLiveMeter(address)


def wave_of(address: MeterAddress) -> PowerWave:
    """Returns the power function of an address: the truth that its readings come from.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    shape = choose_option(address, "shape", tuple(WaveShape))
    try:
        return PowerWave(
            mean_w=number_option(address, "mean_w", 10.0),
            swing_w=number_option(address, "swing_w", 0.0),
            period_s=number_option(address, "period_s", 1.0, exclusive=True),
            shape=WaveShape(shape),
        )
    except ValueError as error:
        raise UsageError(f"meter {_NAME}: {error}", hint="power is never negative", slug="meter-option") from error


class SimulatedLiveMeter:
    """Reads the power function, as a counter of microjoules or as the mean power since the value was last renewed.

    Args:
        address: ``mean_w``, ``swing_w``, ``period_s`` and ``shape`` (constant, sine, square) of the function;
            ``reading`` (counter or power); ``update_s`` between renewals, 0 for every read; ``modulus_j`` of the
            counter; ``name`` of the meter.
        now_ns: the clock, ns.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """

    def __init__(self, address: MeterAddress, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        check_options(address, _OPTIONS)
        self._address = address
        self._now_ns = now_ns
        self.wave = wave_of(address)
        self._counter = choose_option(address, "reading", ("counter", "power")) == "counter"
        self._update_ns = round(number_option(address, "update_s", 0.0) * 1e9)
        self._modulus = number_option(address, "modulus_j", 2**32 * _MICROJOULE_J, exclusive=True) / _MICROJOULE_J
        self._before_ns = 0
        self._domains = (self._describe(),)

    @property
    def address(self) -> MeterAddress:
        """What opens it again."""
        return self._address

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """One domain, ``rail``."""
        return self._domains

    def open(self) -> None:
        """Starts the first interval of a power reading."""
        self._before_ns = self._stamp_ns()

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes the counter, microjoules, or the power, W."""
        now_ns = self._stamp_ns()
        if self._counter:
            raw[0] = float(int(self.wave.energy_j(0, now_ns) / _MICROJOULE_J) % int(self._modulus))
        elif self._update_ns:
            raw[0] = self.wave.mean_power_w(now_ns - self._update_ns, now_ns)
        else:
            raw[0] = self.wave.mean_power_w(self._before_ns, now_ns)
            self._before_ns = now_ns

    def close(self) -> None:
        """Holds nothing; idempotent."""

    def _stamp_ns(self) -> int:
        now_ns = self._now_ns()
        return now_ns - now_ns % self._update_ns if self._update_ns else now_ns

    def _describe(self) -> LiveDomain:
        update_s = self._update_ns * 1e-9 or None
        return LiveDomain(
            name="rail",
            reading=DomainReading.ENERGY_COUNTER if self._counter else DomainReading.POWER,
            unit="J" if self._counter else "W",
            scale=_MICROJOULE_J if self._counter else 1.0,
            provenance=Provenance.SIMULATED,
            boundary=Boundary.RAIL,
            modulus=float(int(self._modulus)) if self._counter else None,
            largest_w=_LIMIT_MARGIN * (self.wave.mean_w + self.wave.swing_w) or None,
            update_period_s=update_s,
            window_s=None if self._counter else update_s,
            gain_std=0.0,
            source="declared power function",
        )
