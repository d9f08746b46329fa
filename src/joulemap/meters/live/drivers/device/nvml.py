"""NVIDIA GPUs: energy counter, instant and average power, utilisation, clock, temperature, throttling, limit (NVML).

A device is one meter. Slices of it (MIG) have no meter of their own: what they draw is inside the whole device, which
is read once, whichever slice was named. A device without an energy counter (before Volta) gives power. From Ampere on
(except GA100) the plain power is the mean of the last second, so the instant field is preferred.

References:
    NVIDIA NVML API reference, nvmlDeviceGetPowerUsage, nvmlDeviceGetTotalEnergyConsumption,
    nvmlDeviceGetEnforcedPowerLimit (the lowest of all limits that hold, milliwatts), nvmlFieldValueEnums;
    FORMATS 4 (reports 19 to 26); METHODS 1.3.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.losses import lost_meter, refused_meter, try_meter
from joulemap.meters.live.ground.nvml_library import (
    FIELD_POWER_AVERAGE,
    FIELD_POWER_INSTANT,
    Nvml,
    NvmlError,
    NvmlLostError,
)
from joulemap.meters.live.ground.options import check_options, whole_option
from joulemap.meters.live.ground.pci import NVIDIA, has_display_device
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "NvmlMeter", "build_meter", "discover_meters"]

SUMMARY = "NVIDIA GPUs: energy counter, power, utilisation, clock, temperature, throttling, power limit (NVML)"
EXAMPLE = ""
_NAME = "nvml"
_LIBRARY = "libnvidia-ml.so.1"
_OPTIONS = ("library", "index", "uuid", "visible")
_AMPERE, _SM_CLOCK, _GPU_SENSOR = 7, 1, 0
_GA100 = ("A100", "A30", "A800")
_SLOWED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""Power cap, hardware slowdown, software and hardware thermal slowdown, power brake; idle is no throttling."""
_LARGEST_W = 5_000.0
_LIMIT_MARGIN = 4.0

Read = Callable[[], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A domain and how to read it."""

    domain: LiveDomain
    read: Read


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns one meter per whole device that is visible (CUDA_VISIBLE_DEVICES), or what keeps NVML from starting.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    given = dict(options or {})
    address = MeterAddress(driver=_NAME, options=given)
    build_meter(address)  # refuses options that make no sense
    path = given.get("library", _LIBRARY)
    try:
        library = Nvml(path)
    except OSError:
        if options is None and not has_display_device(NVIDIA):
            return ()  # no such device here
        problem = f"NVIDIA's management library ({path}) cannot be loaded"
        return (_unusable(address, problem, "install the NVIDIA driver (package nvidia-utils or libnvidia-compute)"),)
    except NvmlError as error:
        return (_unusable(address, f"NVML does not start: {error}", "sudo modprobe nvidia, or reboot after an update"),)
    try:
        indices = _visible(library, given)
    except NvmlError as error:
        return (_unusable(address, f"a device of CUDA_VISIBLE_DEVICES cannot be found: {error}", "nvidia-smi -L"),)
    finally:
        library.close()
    kept = {"library": given["library"]} if "library" in given else {}
    return tuple(_candidate({**kept, "index": str(index)}) for index in indices)


def build_meter(address: MeterAddress) -> NvmlMeter:
    """Returns the meter of one device, not yet opened.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    return NvmlMeter(address)


class NvmlMeter:
    """Reads one device.

    Args:
        address: ``index`` or ``uuid`` of the device (a slice means the device that holds it); ``library`` is the path
            of the shared library.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """

    def __init__(self, address: MeterAddress) -> None:
        check_options(address, _OPTIONS)
        self._address = address
        self._index = whole_option(address, "index", 0)
        self._uuid = address.options.get("uuid", "")
        self._library: Nvml | None = None
        self._readings: tuple[_Reading, ...] = ()
        self.name = f"{_NAME}:{self._uuid or self._index}"

    @property
    def address(self) -> MeterAddress:
        """What opens it again."""
        return self._address

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """What the device supports; empty before ``open``."""
        return tuple(reading.domain for reading in self._readings)

    def open(self) -> None:
        """Starts the library and finds the device; no effect when it is open.

        Raises:
            SetupError: there is no library, no device, or it gives no power (``meter-unusable``).
        """
        if self._library is not None:
            return
        path = self._address.options.get("library", _LIBRARY)
        try:
            library = Nvml(path)
        except (OSError, NvmlError) as error:
            raise refused_meter(self.name, f"NVML does not start ({error})", "install the NVIDIA driver") from error
        try:
            device = library.by_uuid(self._uuid) if self._uuid else library.by_index(self._index)
            readings = _list_readings(library, device)
        except NvmlError as error:
            library.close()
            raise refused_meter(
                self.name, f"the device cannot be opened ({error})", "nvidia-smi -L lists them"
            ) from error
        if not any(reading.domain.boundary for reading in readings):
            library.close()
            raise refused_meter(self.name, "the device gives neither energy nor power", "")
        self._library, self._readings = library, readings

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes one reading per domain.

        Raises:
            PowerError: the device fell off the bus (``meter-lost``).
        """
        try:
            for at, reading in enumerate(self._readings):
                value = reading.read()
                raw[at] = math.nan if value is None else value
        except NvmlLostError as error:
            raise lost_meter(self.name, f"the device is gone ({error})") from error

    def close(self) -> None:
        """Lets the library go; idempotent."""
        if self._library is not None:
            self._library.close()
            self._library = None


def _unusable(address: MeterAddress, problem: str, fix: str) -> MeterCandidate:
    return MeterCandidate(name=_NAME, address=address, problem=problem, fix=fix)


def _candidate(options: Mapping[str, str]) -> MeterCandidate:
    return try_meter(NvmlMeter(MeterAddress(driver=_NAME, options=options)))


def _visible(library: Nvml, options: Mapping[str, str]) -> list[int]:
    """Returns the indices of the whole devices that are meant, each once, in order."""
    count = library.count()
    if "index" in options:
        return [int(options["index"])]
    uuids = {library.text("nvmlDeviceGetUUID", library.by_index(index)): index for index in range(count)}
    if "uuid" in options:
        return [_index_of(library, options["uuid"], uuids)]
    text = options.get("visible", os.environ.get("CUDA_VISIBLE_DEVICES"))
    if text is None or not text.strip():
        return list(range(count))
    chosen: list[int] = []
    for part in (part.strip() for part in text.split(",")):
        if part == "-1":
            break  # CUDA hides this one and everything after it
        index = int(part) if part.isdecimal() else _index_of(library, part, uuids)
        if index >= count:
            break  # as CUDA does
        if index not in chosen:
            chosen.append(index)
    return chosen


def _index_of(library: Nvml, uuid: str, uuids: Mapping[str, int]) -> int:
    if uuid.startswith("MIG-GPU-"):  # MIG-GPU-<uuid of the device>/<instance>/<instance>, before driver 470
        uuid = uuid.removeprefix("MIG-").partition("/")[0]
    if uuid.startswith("MIG-"):
        return uuids[library.text("nvmlDeviceGetUUID", library.by_uuid(uuid))]
    matching = [index for known, index in uuids.items() if known.startswith(uuid)]  # CUDA takes a unique start
    if len(matching) != 1:
        raise NvmlError(6, f"{uuid} names {len(matching)} devices")
    return matching[0]


def _list_readings(library: Nvml, device: Any) -> tuple[_Reading, ...]:
    limits = library.limits_mw(device)
    largest_w = min(_LARGEST_W, _LIMIT_MARGIN * limits[1] * 1e-3) if limits and limits[1] else _LARGEST_W
    name = library.text("nvmlDeviceGetName", device) or "NVIDIA GPU"
    what = f"{name}, whole device" + (" with all its MIG slices" if library.sliced(device) else "")

    def energy_mj() -> float | None:
        return library.number("nvmlDeviceGetTotalEnergyConsumption", device, wide=True)

    def plain_mw() -> float | None:
        return library.number("nvmlDeviceGetPowerUsage", device)

    def instant_mw() -> float | None:
        return library.field(device, FIELD_POWER_INSTANT)

    def average_mw() -> float | None:
        return library.field(device, FIELD_POWER_AVERAGE)

    found: list[_Reading] = []

    def add(label: str, read: Read, window_s: float | None) -> None:
        if read() is None:
            return
        energy = label == "energy"
        domain = LiveDomain(
            name=label,
            reading=DomainReading.ENERGY_COUNTER if energy else DomainReading.POWER,
            unit="J" if energy else "W",
            scale=1e-3,
            provenance=_provenance(library, Provenance.MEASURED_COUNTER if energy else Provenance.MEASURED_SAMPLED),
            boundary=Boundary.BOARD,
            largest_w=largest_w,
            window_s=window_s,
            inside=(found[0].domain.name,) if found else (),
            source=f"NVML, {what}",
        )
        found.append(_Reading(domain=domain, read=read))

    add("energy", energy_mj, None)
    if instant_mw() is not None:
        add("power", instant_mw, None)
    else:
        add("power", plain_mw, _plain_window_s(library, device, name))
    add("power_average", average_mw, 1.0)
    return (*found, *_list_signals(library, device))


def _provenance(library: Nvml, measured: Provenance) -> Provenance:
    """Returns what kind of figure it is: nothing of the test kit's stand-in is measured."""
    return Provenance.SIMULATED if library.made_up else measured


def _plain_window_s(library: Nvml, device: Any, name: str) -> float | None:
    """Returns 1 s where plain power is the mean of the last second: Ampere and newer, except GA100."""
    architecture = library.number("nvmlDeviceGetArchitecture", device)
    ga100 = architecture == _AMPERE and any(word in _GA100 for word in name.replace("-", " ").split())
    return 1.0 if architecture is not None and _AMPERE <= architecture < 0xFFFF and not ga100 else None


def _list_signals(library: Nvml, device: Any) -> list[_Reading]:
    def reasons() -> int | None:
        return library.number("nvmlDeviceGetCurrentClocksThrottleReasons", device, wide=True)

    def share(part: int) -> float | None:
        rates = library.utilisation(device)
        return None if rates is None else rates[part] * 1e-2

    def throttled() -> float | None:
        mask = reasons()
        return None if mask is None else float(mask & _SLOWED != 0)

    kinds: tuple[tuple[str, str, float, Read], ...] = (
        ("utilisation", "1", 1.0, lambda: share(0)),
        ("memory_utilisation", "1", 1.0, lambda: share(1)),
        ("sm_clock", "Hz", 1e6, lambda: library.number("nvmlDeviceGetClockInfo", device, _SM_CLOCK)),
        ("temperature", "degC", 1.0, lambda: library.number("nvmlDeviceGetTemperature", device, _GPU_SENSOR)),
        ("power_limit", "W", 1e-3, lambda: library.number("nvmlDeviceGetEnforcedPowerLimit", device)),
        ("throttled", "1", 1.0, throttled),
        ("throttle_reasons", "bits", 1.0, reasons),
    )
    return [
        _Reading(
            domain=LiveDomain(
                name=label,
                reading=DomainReading.SIGNAL,
                unit=unit,
                scale=scale,
                provenance=_provenance(library, Provenance.MEASURED_SAMPLED),
                source="NVML",
            ),
            read=read,
        )
        for label, unit, scale, read in kinds
        if read() is not None
    ]
