"""Power of an Apple computer from ``powermetrics``: Apple silicon (an estimate), Intel (package counter).

The command prints the mean of each interval. Its energies are added up here to one counter per domain, so that a slow
command is never read twice and never in part: energy is spread over the interval that it belongs to. Combined is CPU,
GPU and neural engine together, not the package.

References:
    powermetrics(1); FORMATS 3 (powermetrics) and 4 (reports 59, 60).
"""

from __future__ import annotations

import math
import os
import plistlib
import shlex
import sys
import threading
from collections.abc import Mapping
from typing import Any, TypeGuard
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import SetupError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.command_stream import CommandStream
from joulemap.meters.live.ground.losses import lost_meter, refused_meter
from joulemap.meters.live.ground.options import check_options, whole_option
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "PowermetricsMeter", "build_meter", "discover_meters"]

SUMMARY = "power of an Apple computer: CPU, GPU, neural engine, package (macOS powermetrics)"
EXAMPLE = ""
_NAME = "powermetrics"
_OPTIONS = ("command", "interval_ms", "patience_ms")
_ENERGY_MJ = {
    "package_energy": "Package",
    "cpu_energy": "CPU",
    "gpu_energy": "GPU",
    "ane_energy": "ANE",
    "dram_energy": "DRAM",
}
_POWER_MW = {"combined_power": "Combined", "cpu_power": "CPU", "gpu_power": "GPU", "ane_power": "ANE"}
_END = b"</plist>"
"""Ends a property list; waiting for the zero byte of the next one would cost an interval."""
_PARTS = ("CPU", "GPU", "ANE")
_LARGEST_W = 2_000.0
_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, expat.ExpatError, plistlib.InvalidFileException)


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the meter on macOS, or of a command that was named; nothing elsewhere.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    address = MeterAddress(driver=_NAME, options=options or {})
    meter = build_meter(address)
    if "command" not in address.options and sys.platform != "darwin":
        if options is None:
            return ()
        problem = "powermetrics exists on macOS only"
        return (MeterCandidate(name=_NAME, address=address, problem=problem),)
    return (meter.candidate(),)


def build_meter(address: MeterAddress) -> PowermetricsMeter:
    """Returns the meter, not yet opened.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    return PowermetricsMeter(address)


class PowermetricsMeter:
    """Reads what powermetrics prints.

    Args:
        address: ``interval_ms`` of the command (200; it takes no less than about 100), ``patience_ms`` for its first
            sample (10000), ``command`` that stands for it.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """

    def __init__(self, address: MeterAddress) -> None:
        check_options(address, _OPTIONS)
        self._address = address
        self._interval_ms = whole_option(address, "interval_ms", 200)
        self._patience_s = whole_option(address, "patience_ms", 10_000) * 1e-3
        self._stream: CommandStream | None = None
        self._lock = threading.Lock()
        self._energy_mj: dict[str, float] = {}
        self._estimated = True
        self._domains: tuple[LiveDomain, ...] = ()

    @property
    def address(self) -> MeterAddress:
        """What opens it again."""
        return self._address

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """What the first sample held; empty before ``open``."""
        return self._domains

    def candidate(self) -> MeterCandidate:
        """Returns what discovery says, after one sample where this user may take one."""
        if "command" not in self._address.options and os.geteuid() != 0:
            problem, fix = (
                "powermetrics runs for root only",
                "sudo joulemap record ...   (macOS grants it no other way)",
            )
            return MeterCandidate(name=_NAME, address=self._address, problem=problem, fix=fix)
        try:
            self.open()
        except SetupError as error:
            problem = error.message.removeprefix(f"{_NAME}: ")
            return MeterCandidate(name=_NAME, address=self._address, problem=problem, fix=error.hint)
        self.close()
        return MeterCandidate(name=_NAME, address=self._address, domains=self._domains)

    def open(self) -> None:
        """Starts the command and waits for its first sample; no effect when it runs.

        Raises:
            SetupError: it cannot be started, prints nothing, or gives no power (``meter-unusable``).
        """
        if self._stream is not None:
            return
        own = f"powermetrics --samplers cpu_power,gpu_power -i {self._interval_ms} -f plist"
        stream = CommandStream(shlex.split(self._address.options.get("command", own)), _END, self.take)
        try:
            answered = stream.start(self._patience_s)
        except OSError as error:
            raise refused_meter(_NAME, f"the command cannot be started ({error.strerror})", "") from error
        with self._lock:
            names = tuple(self._energy_mj)
        if not answered or not names:
            stream.stop()
            problem = "it printed no power" if answered else "it printed no sample in time"
            raise refused_meter(_NAME, problem, "run sudo powermetrics by itself; virtual machines have no power there")
        self._stream = stream
        self._domains = tuple(self._describe(name, names) for name in names)

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes the energies so far, millijoules.

        Raises:
            PowerError: the command ended (``meter-lost``).
        """
        if self._stream is None or self._stream.ended:
            raise lost_meter(_NAME, "the command ended")
        with self._lock:
            for at, domain in enumerate(self._domains):
                raw[at] = self._energy_mj[domain.name]

    def close(self) -> None:
        """Ends the command; idempotent."""
        if self._stream is not None:
            self._stream.stop()
            self._stream = None

    def take(self, piece: bytes) -> bool:
        """Adds the energies of one property list, without its end tag; False for what is none."""
        try:
            text = piece.rpartition(b"\0")[2].strip()  # a zero byte stands before every list but the first
            document = plistlib.loads(text + _END, fmt=plistlib.FMT_XML)
            elapsed_s = float(document["elapsed_ns"]) * 1e-9
            processor = document["processor"]
            energies = _energies_mj(processor, elapsed_s)
        except _DAMAGE:
            return False
        with self._lock:
            self._estimated = "package_joules" not in processor
            for name, energy_mj in energies.items():
                self._energy_mj[name] = self._energy_mj.get(name, 0.0) + energy_mj
        return True

    def _describe(self, name: str, names: tuple[str, ...]) -> LiveDomain:
        whole = "Package" if "Package" in names else "Combined"
        inside = (whole,) if whole in names and name != whole and (whole == "Package" or name in _PARTS) else ()
        own = Boundary.PACKAGE if not self._estimated else Boundary.SOC
        return LiveDomain(
            name=name,
            reading=DomainReading.ENERGY_COUNTER,
            unit="J",
            scale=1e-3,
            provenance=Provenance.ESTIMATED if self._estimated else Provenance.MEASURED_COUNTER,
            boundary=own if name in {"Package", "Combined"} else Boundary.RAIL,
            largest_w=_LARGEST_W,
            update_period_s=max(self._interval_ms, 1) * 1e-3,
            inside=inside,
            source="powermetrics: an estimate of the system" if self._estimated else "powermetrics, package counter",
        )


def _energies_mj(processor: Mapping[str, Any], elapsed_s: float) -> dict[str, float]:
    joules = processor.get("package_joules")
    if _is_number(joules):
        return {"Package": float(joules) * 1e3}
    found: dict[str, float] = {}
    for key, name in _ENERGY_MJ.items():
        if _is_number(processor.get(key)):
            found[name] = float(processor[key])
    for key, name in _POWER_MW.items():
        if name not in found and _is_number(processor.get(key)):
            found[name] = float(processor[key]) * elapsed_s
    return found


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
