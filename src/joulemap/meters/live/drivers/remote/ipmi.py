"""Power of a server from its service processor through ``ipmitool``: DCMI power reading, else the power sensors.

References:
    DCMI 1.5, 6.6.1 (Get Power Reading); ipmitool(1), "dcmi power reading" and "sdr type 'Power Supply'".
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.command_stream import run_command
from joulemap.meters.live.ground.options import check_options, machine_option, number_option
from joulemap.meters.live.ground.paced_meter import Answer, AskError, PacedMeter
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "build_meter", "discover_meters"]

SUMMARY = "power of a server from its service processor (ipmitool)"
EXAMPLE = ""
_NAME = "ipmi"
_OPTIONS = ("command", "every_s", "timeout_s", "machine")
_INSTANT = re.compile(r"Instantaneous power reading:\s*(\d+(?:\.\d+)?)\s*Watts", re.IGNORECASE)
_ACTIVE = re.compile(r"Power reading state is:\s*activated", re.IGNORECASE)
_SENSOR = re.compile(r"^\s*([^|]+?)\s*\|(?:[^|]*\|){1,3}\s*(\d+(?:\.\d+)?)\s*Watts\s*$", re.IGNORECASE | re.MULTILINE)
_DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")
_LARGEST_W = 20_000.0
_TOTAL = re.compile(r"total|system|sys[ _]?power|pwr consumption|input power", re.IGNORECASE)


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the service processor of this machine, or the one of a named command; nothing when there is none.

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    address = MeterAddress(driver=_NAME, options=options or {})
    meter = build_meter(address)
    device = next((path for path in map(Path, _DEVICES) if path.exists()), None)
    if "command" not in address.options:
        if device is None and options is None:
            return ()
        if device is None:
            problem = "this machine has no service processor that Linux knows"
            return (
                MeterCandidate(name=_NAME, address=address, problem=problem, fix="sudo modprobe ipmi_devintf ipmi_si"),
            )
        if shutil.which("ipmitool") is None:
            problem = "ipmitool is not installed"
            return (MeterCandidate(name=_NAME, address=address, problem=problem, fix="sudo apt-get install ipmitool"),)
    return (meter.candidate(),)


def build_meter(address: MeterAddress) -> PacedMeter:
    """Returns the meter of one service processor.

    Args:
        address: ``command`` that stands for ``ipmitool`` (with the arguments that reach another machine), ``every_s``
            between questions (1), ``timeout_s`` (10); ``machine`` that it belongs to (default: this one, or what ``-H``
            of the command names).

    Raises:
        UsageError: an option is wrong (``meter-option``).
    """
    check_options(address, _OPTIONS)
    command = shlex.split(address.options.get("command", "ipmitool"))
    every_s = number_option(address, "every_s", 1.0, exclusive=True)
    timeout_s = number_option(address, "timeout_s", 10.0, exclusive=True)

    def ask() -> Answer:
        status, text, problem = run_command([*command, "dcmi", "power", "reading"], timeout_s)
        match = _INSTANT.search(text)
        if status == 0 and match is not None and (float(match[1]) > 0 or _ACTIVE.search(text)):
            domain = _domain("node", Boundary.NODE, every_s)
            return {domain.name: (domain, float(match[1]))}
        if status in {124, 127} or "Could not open device" in problem:
            raise AskError(problem or "no answer", _fix(problem))
        return _sensors(command, timeout_s, every_s)

    host = _host_of(command)
    machine = machine_option(address, host)
    return PacedMeter(address, f"{_NAME}:{host}" if host else _NAME, ask, every_s=every_s, machine=machine)


def _host_of(command: list[str]) -> str:
    """Returns the host that ``-H`` of a command names; empty without one."""
    for at, word in enumerate(command[1:], 1):
        if word.startswith("-H"):
            return word[2:] or (command[at + 1] if at + 1 < len(command) else "")
    return ""


def _sensors(command: list[str], timeout_s: float, every_s: float) -> Answer:
    status, text, problem = run_command([*command, "sdr", "elist", "full"], timeout_s)
    if status != 0:
        raise AskError(problem or "no answer", _fix(problem))
    found: dict[str, tuple[LiveDomain, float]] = {}
    names = [name for name, _ in _SENSOR.findall(text)]
    totals = tuple(name for name in names if _TOTAL.search(name))
    for name, watts in _SENSOR.findall(text):
        whole = name in totals
        inside = () if whole else totals
        found.setdefault(
            name, (_domain(name, Boundary.NODE if whole else Boundary.RAIL, every_s, inside=inside), float(watts))
        )
    if not found:
        raise AskError("the service processor measures no power (no DCMI, no power sensor)")
    return found


def _fix(problem: str) -> str:
    if "Could not open device" in problem or "ermission" in problem:
        return "sudo chmod a+rw /dev/ipmi0   (until the next boot)"
    return "check that ipmitool dcmi power reading works by itself"


def _domain(name: str, boundary: Boundary, every_s: float, *, inside: tuple[str, ...] = ()) -> LiveDomain:
    return LiveDomain(
        name=name,
        reading=DomainReading.POWER,
        unit="W",
        scale=1.0,
        provenance=Provenance.MEASURED_SAMPLED,
        boundary=boundary,
        largest_w=_LARGEST_W,
        update_period_s=every_s,
        inside=inside,
        source="IPMI, DCMI power reading" if name == "node" else f"IPMI sensor {name}",
    )
