"""AMD GPUs through AMD SMI: energy counter, socket power, activity, temperature, power limit.

A card with two dies (MI250) is read at its first die, whose figures are those of the whole card; the second die gives
nothing, which is missing and not 0.

References:
    ROCm amdsmi: amdsmi_get_energy_count (counts of counter_resolution microjoules), amdsmi_get_power_info,
    amdsmi_power_cap_info_t (power_cap in microwatts on Linux);
    FORMATS 4 (reports 28, 29).
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.losses import lost_meter, refused_meter, try_meter
from joulemap.meters.live.ground.options import check_options, whole_option
from joulemap.meters.live.ground.pci import AMD, has_display_device
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "AmdSmiMeter", "build_meter", "discover_meters", "list_candidates"]

SUMMARY = "AMD GPUs: energy counter, socket power, activity, temperature, power limit (AMD SMI)"
EXAMPLE = ""
_NAME = "amdsmi"
_INSTALL = "install ROCm's amd-smi with its Python binding (package amd-smi-lib)"
_LARGEST_W = 5_000.0
_POWERS = ("current_socket_power", "socket_power", "average_socket_power")
_MOST_W = 1e5  # 65535 and larger stand for "not available"
_NOT_AVAILABLE = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})

Read = Callable[[], float]


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns one meter per GPU, or what keeps AMD SMI from starting; nothing on a machine without such a GPU.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    address = MeterAddress(driver=_NAME, options=options or {})
    build_meter(address)  # refuses options that make no sense
    if options is None and not has_display_device(AMD):
        return ()  # no such device here
    try:
        library = _load()
    except (ImportError, OSError, KeyError):  # the binding looks for its library in its own ways
        problem = "AMD SMI's Python binding cannot be loaded"
        return (MeterCandidate(name=_NAME, address=address, problem=problem, fix=_INSTALL),)
    return list_candidates(library, options)


def list_candidates(library: Any, options: Mapping[str, str] | None = None) -> tuple[MeterCandidate, ...]:
    """Returns one meter per GPU of a library that was loaded."""
    try:
        library.amdsmi_init()
        count = len(library.amdsmi_get_processor_handles())
    except library.AmdSmiException as error:
        address = MeterAddress(driver=_NAME, options=options or {})
        return (MeterCandidate(name=_NAME, address=address, problem=f"AMD SMI does not start: {error}", fix=_INSTALL),)
    wanted = (options or {}).get("index")
    indices = range(count) if wanted is None else [int(wanted)]
    meters = (AmdSmiMeter(MeterAddress(driver=_NAME, options={"index": str(index)}), library) for index in indices)
    found = tuple(try_meter(meter) for meter in meters)
    library.amdsmi_shut_down()
    return found


def build_meter(address: MeterAddress) -> AmdSmiMeter:
    """Returns the meter of one GPU, not yet opened.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    return AmdSmiMeter(address)


def _load() -> Any:
    with contextlib.redirect_stdout(io.StringIO()):  # it says there what it misses, in the midst of our result
        import amdsmi  # noqa: PLC0415  loads ROCm's library

    return amdsmi


class AmdSmiMeter:
    """Reads one GPU.

    Args:
        address: ``index`` of the GPU.
        library: the binding; None to load it when the meter is opened.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """

    def __init__(self, address: MeterAddress, library: Any = None) -> None:
        check_options(address, ("index",))
        self._address = address
        self._index = whole_option(address, "index", 0)
        self._library = library
        self._reads: list[Read] = []
        self._domains: tuple[LiveDomain, ...] = ()
        self.name = f"{_NAME}:{self._index}"

    @property
    def address(self) -> MeterAddress:
        """What opens it again."""
        return self._address

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """What the GPU supports; empty before ``open``."""
        return self._domains

    def open(self) -> None:
        """Starts the library and finds the GPU; no effect when it is open.

        Raises:
            SetupError: there is no binding, no GPU, or it gives no power (``meter-unusable``).
        """
        if self._reads:
            return
        if self._library is None:
            try:
                self._library = _load()
            except (ImportError, OSError, KeyError) as error:
                raise refused_meter(self.name, f"AMD SMI cannot be loaded ({error})", _INSTALL) from error
        try:
            self._library.amdsmi_init()
            handles = self._library.amdsmi_get_processor_handles()
        except self._library.AmdSmiException as error:
            raise refused_meter(self.name, f"AMD SMI does not start ({error})", _INSTALL) from error
        if self._index >= len(handles):
            raise refused_meter(self.name, f"there are {len(handles)} AMD GPUs", "amd-smi list")
        self._find(handles)

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes one reading per domain.

        Raises:
            PowerError: the GPU answers nothing any more (``meter-lost``).
        """
        for at, read in enumerate(self._reads):
            raw[at] = read()
        if np.isnan(raw[: len(self._reads)]).all():
            raise lost_meter(self.name, "the GPU answers nothing any more")

    def close(self) -> None:
        """Lets the library go; idempotent."""
        if self._reads:
            self._reads = []
            self._library.amdsmi_shut_down()

    def _find(self, handles: list[Any]) -> None:
        handle = handles[self._index]
        domains: list[LiveDomain] = []
        reads: list[Read] = []
        for domain, read in self._list_readings(handle):
            if not math.isnan(read()):
                inside = (domains[0].name,) if domains and domain.boundary is not None else ()
                domains.append(_within(domain, inside))
                reads.append(read)
        if not any(domain.boundary is not None for domain in domains):
            self._library.amdsmi_shut_down()
            if self._index % 2 and self._pairs(handle):
                raise refused_meter(
                    self.name,
                    f"is the second die of a card; {_NAME}:{self._index - 1} reads both",
                    f"--meter {_NAME}:{self._index - 1}",
                )
            raise refused_meter(self.name, "the GPU gives neither energy nor power", "")
        self._domains, self._reads = tuple(domains), reads

    def _pairs(self, handle: Any) -> bool:
        name = str(self._call("amdsmi_get_gpu_asic_info", handle).get("market_name", ""))
        return "MI250" in name or "MI210" not in name  # a die without a meter beside one with it

    def _call(self, function: str, *arguments: Any) -> Mapping[str, Any]:
        try:
            answer = getattr(self._library, function)(*arguments)
        except (self._library.AmdSmiException, AttributeError):
            return {}
        return answer if isinstance(answer, Mapping) else {"value": answer}

    def _list_readings(self, handle: Any) -> list[tuple[LiveDomain, Read]]:
        count = self._call("amdsmi_get_energy_count", handle)
        resolution_uj = _number(count.get("counter_resolution"))

        def energy() -> float:
            now = self._call("amdsmi_get_energy_count", handle)
            counts = _number(now.get("energy_accumulator", now.get("power")))
            return counts if counts > 0 else math.nan  # the second die of a card counts nothing

        def power() -> float:
            now = self._call("amdsmi_get_power_info", handle)
            values = (_number(now.get(key)) for key in _POWERS)
            return next((value for value in values if 0 < value < _MOST_W), math.nan)

        def activity() -> float:
            return _number(self._call("amdsmi_get_gpu_activity", handle).get("gfx_activity"))

        def power_limit() -> float:
            cap = _number(self._call("amdsmi_get_power_cap_info", handle).get("power_cap"))
            watts = cap if cap < _MOST_W else cap * 1e-6  # microwatts but for a host of virtual machines
            return watts if watts > 0 else math.nan

        def temperature() -> float:
            kinds, metrics = self._library.AmdSmiTemperatureType, self._library.AmdSmiTemperatureMetric
            return _number(self._call("amdsmi_get_temp_metric", handle, kinds.JUNCTION, metrics.CURRENT).get("value"))

        scale = resolution_uj * 1e-6 if resolution_uj > 0 else 1e-6
        readings: list[tuple[LiveDomain, Read]] = [
            (_power_domain("energy", DomainReading.ENERGY_COUNTER, scale), energy),
            (_power_domain("power", DomainReading.POWER, 1.0), power),
            (_signal("utilisation", "1", 1e-2), activity),
            (_signal("power_limit", "W", 1.0), power_limit),
        ]
        if hasattr(self._library, "AmdSmiTemperatureType"):
            readings.append((_signal("temperature", "degC", 1.0), temperature))
        return readings if resolution_uj > 0 else readings[1:]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value in _NOT_AVAILABLE:
        return math.nan  # also the text N/A
    return float(value)


def _power_domain(name: str, reading: DomainReading, scale: float) -> LiveDomain:
    energy = reading is DomainReading.ENERGY_COUNTER
    return LiveDomain(
        name=name,
        reading=reading,
        unit="J" if energy else "W",
        scale=scale,
        provenance=Provenance.MEASURED_COUNTER if energy else Provenance.MEASURED_SAMPLED,
        boundary=Boundary.PACKAGE,
        largest_w=_LARGEST_W,
        source="AMD SMI, whole card",
    )


def _within(domain: LiveDomain, inside: tuple[str, ...]) -> LiveDomain:
    return dataclasses.replace(domain, inside=inside)


def _signal(name: str, unit: str, scale: float) -> LiveDomain:
    return LiveDomain(
        name=name,
        reading=DomainReading.SIGNAL,
        unit=unit,
        scale=scale,
        provenance=Provenance.MEASURED_SAMPLED,
        source="AMD SMI",
    )
