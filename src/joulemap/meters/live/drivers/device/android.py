"""The battery of an Android phone or tablet through ``adb``: current times voltage while it discharges.

Makers disagree about the unit of a current (microamperes by the rule, milliamperes on some) and about its sign. The
status decides the sign; a value too small for a phone that is awake tells milliamperes. ``unit=`` settles it.

References:
    Android BatteryManager (BATTERY_PROPERTY_CURRENT_NOW, microamperes); dumpsys battery; FORMATS_MORE (Perfetto
    android.power: millivolts where microvolts are promised).
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import socket
import threading
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.command_stream import CommandStream, run_command
from joulemap.meters.live.ground.losses import lost_meter, refused_meter
from joulemap.meters.live.ground.options import check_options, choose_option, number_option
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "AndroidMeter", "build_meter", "discover_meters"]

SUMMARY = "the battery of an Android device (adb): current times voltage while it discharges"
EXAMPLE = ""
_NAME = "android"
_OPTIONS = ("serial", "adb", "unit", "every_s", "patience_s")
_FIELD = re.compile(r"^\s*([A-Za-z][A-Za-z _]*?)\s*:\s*(-?\w+)\s*$", re.MULTILINE)
_DISCHARGING = "3"
_ADB_PORT = 5037
_AWAKE_UA = 15_000.0
"""A phone that runs a program draws more than 15 mA, so a smaller figure is in milliamperes."""
_LARGEST_W = 100.0
_END = b"joulemap-end"
_SCRIPT = (
    "while true; do dumpsys battery; "
    "echo current_now: $(cmd battery get current_now 2>/dev/null || "
    "cat /sys/class/power_supply/battery/current_now 2>/dev/null); "
    "echo {end}; sleep {every}; done"
)
_STATES = {
    "unauthorized": ("has not allowed this computer", "confirm on the screen of the device"),
    "offline": ("does not answer", "adb reconnect"),
    "no permissions": (
        "may not be opened by this user",
        "add a udev rule for it, or sudo adb kill-server; sudo adb devices",
    ),
}


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns one meter per attached device; nothing without adb unless it was asked for.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    given = dict(options or {})
    build_meter(MeterAddress(driver=_NAME, options=given))
    adb = shlex.split(given.get("adb", "adb"))
    if shutil.which(adb[0]) is None:
        if options is None:
            return ()
        problem, fix = f"{adb[0]} is not installed", "sudo apt-get install adb"
        return (
            MeterCandidate(name=_NAME, address=MeterAddress(driver=_NAME, options=given), problem=problem, fix=fix),
        )
    if options is None and not _server_runs():  # asking adb would start a server that stays
        problem, fix = "adb's server does not run, so no device is known", "attach the device and run adb start-server"
        return (MeterCandidate(name=_NAME, address=MeterAddress(driver=_NAME), problem=problem, fix=fix),)
    _, text, _ = run_command([*adb, "devices"], 10.0)
    found = []
    for line in text.splitlines()[1:]:
        serial, _, state = line.strip().partition("\t")
        if not state or ("serial" in given and given["serial"] != serial):
            continue
        address = MeterAddress(driver=_NAME, options={**given, "serial": serial})
        name = f"{_NAME}:{serial}"
        known = next((words for start, words in _STATES.items() if state.startswith(start)), None)
        if known is not None:
            found.append(MeterCandidate(name=name, address=address, problem=known[0], fix=known[1]))
        elif state == "device":
            found.append(AndroidMeter(address).candidate())
    return tuple(found)


def _server_runs() -> bool:
    port = os.environ.get("ANDROID_ADB_SERVER_PORT", "")
    try:
        with socket.create_connection(("127.0.0.1", int(port) if port.isdecimal() else _ADB_PORT), timeout=0.5):
            return True
    except (OSError, OverflowError):
        return False


def build_meter(address: MeterAddress) -> AndroidMeter:
    """Returns the meter of one device, not yet opened.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    return AndroidMeter(address)


class AndroidMeter:
    """Reads one device.

    Args:
        address: ``serial`` of the device, ``adb`` that stands for the command, ``unit`` of the current (auto, ua, ma),
            ``every_s`` between samples (1), ``patience_s`` for the first (10).

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """

    def __init__(self, address: MeterAddress) -> None:
        check_options(address, _OPTIONS)
        self._address = address
        self._unit = choose_option(address, "unit", ("auto", "ua", "ma"))
        self._every_s = number_option(address, "every_s", 1.0, exclusive=True)
        self._patience_s = number_option(address, "patience_s", 10.0, exclusive=True)
        self._lock = threading.Lock()
        self._stream: CommandStream | None = None
        self._largest_raw = 0.0
        self._last: dict[str, float] = {}
        self._domains: tuple[LiveDomain, ...] = ()
        self.name = f"{_NAME}:{address.options.get('serial', 'device')}"

    @property
    def address(self) -> MeterAddress:
        """What opens it again."""
        return self._address

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """Power, and what else the device tells; empty before ``open``."""
        return self._domains

    def candidate(self) -> MeterCandidate:
        """Returns what discovery says, after one look at the device."""
        status, text, problem = run_command([*self._adb(), "shell", _SCRIPT_ONCE], self._patience_s)
        if status or not self.take(text.encode("utf-8", "replace")):
            why = problem or "the device tells no current of its battery"
            return MeterCandidate(
                name=self.name, address=self._address, problem=why, fix="try unit=ua or another device"
            )
        if math.isnan(self._last["power"]):
            return MeterCandidate(
                name=self.name,
                address=self._address,
                problem="the battery does not discharge: the device is charged over the cable",
                fix="adb shell dumpsys battery unplug only hides it: use adb over Wi-Fi (adb tcpip 5555; adb connect)",
            )
        return MeterCandidate(name=self.name, address=self._address, domains=self._describe())

    def open(self) -> None:
        """Starts the stream of samples; no effect when it runs.

        Raises:
            SetupError: there is no adb, no device, or no current (``meter-unusable``).
        """
        if self._stream is not None:
            return
        script = _SCRIPT.format(end=_END.decode("ascii"), every=f"{self._every_s:g}")
        stream = CommandStream([*self._adb(), "shell", script], _END, self.take)
        try:
            answered = stream.start(self._patience_s)
        except OSError as error:
            problem = f"adb cannot be started ({error.strerror})"
            raise refused_meter(self.name, problem, "sudo apt-get install adb") from error
        if not answered:
            stream.stop()
            raise refused_meter(self.name, "the device tells no current of its battery", "adb devices lists them")
        self._stream, self._domains = stream, self._describe()

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes the last sample: W, V, degrees Celsius, share.

        Raises:
            PowerError: the device is gone (``meter-lost``).
        """
        if self._stream is None or self._stream.ended:
            raise lost_meter(self.name, "the device is gone")
        with self._lock:
            for at, domain in enumerate(self._domains):
                raw[at] = self._last.get(domain.name, math.nan)

    def close(self) -> None:
        """Ends the stream; idempotent."""
        if self._stream is not None:
            self._stream.stop()
            self._stream = None

    def take(self, piece: bytes) -> bool:
        """Keeps one sample; False when it holds no current."""
        fields = {key.lower(): text for key, text in _FIELD.findall(piece.decode("utf-8", "replace"))}
        current, voltage_v = (
            _number(fields.get("current_now", fields.get("current now"))),
            _volts(fields.get("voltage")),
        )
        if math.isnan(current) or math.isnan(voltage_v):
            return False
        self._largest_raw = max(self._largest_raw, abs(current))
        milli = self._unit == "ma" or (self._unit == "auto" and self._largest_raw < _AWAKE_UA)
        current_a = abs(current) * (1e-3 if milli else 1e-6)
        discharging = fields.get("status") == _DISCHARGING
        with self._lock:
            self._last = {
                "power": current_a * voltage_v if discharging else math.nan,
                "voltage": voltage_v,
                "temperature": _number(fields.get("temperature")) * 0.1,
                "level": _number(fields.get("level")) * 1e-2,
            }
        return True

    def _adb(self) -> list[str]:
        serial = self._address.options.get("serial")
        return [*shlex.split(self._address.options.get("adb", "adb")), *(["-s", serial] if serial else [])]

    def _describe(self) -> tuple[LiveDomain, ...]:
        power = LiveDomain(
            name="power",
            reading=DomainReading.POWER,
            unit="W",
            scale=1.0,
            provenance=Provenance.MEASURED_SAMPLED,
            boundary=Boundary.NODE,
            largest_w=_LARGEST_W,
            machine=f"{_NAME}:{self._address.options.get('serial', 'device')}",
            update_period_s=self._every_s,
            source="fuel gauge of the device, current times voltage",
        )
        signals = [
            LiveDomain(
                name=name,
                reading=DomainReading.SIGNAL,
                unit=unit,
                scale=1.0,
                provenance=Provenance.MEASURED_SAMPLED,
                update_period_s=self._every_s,
                source="dumpsys battery",
            )
            for name, unit in (("voltage", "V"), ("temperature", "degC"), ("level", "1"))
            if not math.isnan(self._last.get(name, math.nan))
        ]
        return (power, *signals)


_SCRIPT_ONCE = _SCRIPT.removeprefix("while true; do ").split("echo {end}", 1)[0]


def _number(text: str | None) -> float:
    try:
        return float(int(text or ""))
    except ValueError:
        return math.nan


def _volts(text: str | None) -> float:
    value = _number(text)
    for largest, scale in ((100.0, 1.0), (100_000.0, 1e-3)):  # volts, millivolts, else microvolts
        if value < largest:
            return value * scale
    return value * 1e-6
