"""What the service processor of a server tells over Redfish: power of the node, of its supplies, energy when it has it.

Only an address that the user names is asked. The password is read from a variable of the environment, so that no record
ever holds it.

References:
    DMTF DSP0268 (Redfish data model): Power.PowerControl.PowerConsumedWatts, PowerSupply.PowerInputWatts,
    EnvironmentMetrics.PowerWatts and EnergykWh.
"""

from __future__ import annotations

import json
import math
import os
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.http_text import check_url, fetch_text
from joulemap.meters.live.ground.options import check_options, choose_option, machine_option, number_option
from joulemap.meters.live.ground.paced_meter import Answer, AskError, PacedMeter
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "build_meter", "discover_meters"]

SUMMARY = "power of a server from its service processor (Redfish)"
EXAMPLE = "redfish:url=https://192.0.2.9,user=operator,password_env=BMC_PASSWORD"
_NAME = "redfish"
_OPTIONS = ("url", "user", "password_env", "verify", "every_s", "timeout_s", "machine")
_KWH_J = 3.6e6
_LARGEST_W = 20_000.0
_MOST_CHASSIS = 16

Fetch = Callable[[str], Any]


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the service processor that was named; nothing when none was.

    Raises:
        UsageError: an option is wrong or ``url`` is missing (``meter-option``).
    """
    if options is None:
        return ()
    return (build_meter(MeterAddress(driver=_NAME, options=options)).candidate(),)


def build_meter(address: MeterAddress) -> PacedMeter:
    """Returns the meter of one service processor.

    Args:
        address: ``url`` of the service, or of one Power resource; ``user`` and ``password_env``, the variable that
            holds the password; ``verify`` (yes or no) the certificate; ``every_s`` between questions (1),
            ``timeout_s`` (10); ``machine`` that it belongs to (default: one of its own, by its address).

    Raises:
        UsageError: an option is wrong or ``url`` is missing (``meter-option``).
    """
    check_options(address, _OPTIONS)
    url = check_url(address, EXAMPLE)
    verify = choose_option(address, "verify", ("yes", "no")) == "yes"
    every_s = number_option(address, "every_s", 1.0, exclusive=True)
    timeout_s = number_option(address, "timeout_s", 10.0, exclusive=True)
    split = urllib.parse.urlsplit(url)
    host = f"{split.scheme}://{split.netloc}"
    known: list[str] = [split.path] if split.path.startswith("/redfish/v1/Chassis/") else []

    def fetch(path: str) -> Any:
        user, variable = address.options.get("user", ""), address.options.get("password_env", "")
        password = os.environ.get(variable, "") if variable else ""
        text = fetch_text(
            host + path, timeout_s=timeout_s, user=user, password=password, verify=verify, accept="application/json"
        )
        try:
            return json.loads(text)
        except ValueError as error:
            raise AskError(f"{host}{path} answers no JSON", "is this the address of a Redfish service?") from error

    def ask() -> Answer:
        if not known:
            known.extend(_find_resources(fetch))
        found: dict[str, tuple[LiveDomain, float]] = {}
        for path in known:
            for domain, value in _figures(fetch(path), path, every_s):
                found.setdefault(domain.name, (domain, value))
        return found

    machine = machine_option(address, split.hostname or "")
    return PacedMeter(address, f"{_NAME}:{split.netloc or url}", ask, every_s=every_s, machine=machine)


def _find_resources(fetch: Fetch) -> list[str]:
    members = _list(_map(fetch("/redfish/v1/Chassis")).get("Members"))
    paths = []
    for member in members[:_MOST_CHASSIS]:
        chassis = _map(fetch(str(_map(member).get("@odata.id", "/redfish/v1/Chassis"))))
        for key in ("EnvironmentMetrics", "Power"):
            link = _map(chassis.get(key)).get("@odata.id")
            if isinstance(link, str) and link.startswith("/"):
                paths.append(link)
    return paths


def _figures(document: Any, path: str, every_s: float) -> Iterator[tuple[LiveDomain, float]]:
    body = _map(document)
    chassis = path.split("/")[4] if path.count("/") >= 4 else "chassis"
    watts, kwh = (_map(body.get(key)).get("Reading") for key in ("PowerWatts", "EnergykWh"))
    node = f"{chassis}/power"
    if _is_number(kwh):
        yield _domain(f"{chassis}/energy", Boundary.NODE, every_s, energy=True), float(kwh)
    if _is_number(watts):
        inside = (f"{chassis}/energy",) if _is_number(kwh) else ()
        yield _domain(node, Boundary.NODE, every_s, inside=inside), float(watts)
    for number, entry in enumerate(_list(body.get("PowerControl"))):
        value = _map(entry).get("PowerConsumedWatts")
        if _is_number(value):
            name = f"{chassis}/control-{number}"
            inside = () if number == 0 else (f"{chassis}/control-0",)  # parts of the node beside the whole of it
            yield _domain(name, Boundary.NODE, every_s, inside=inside), float(value)
    for number, entry in enumerate(_list(body.get("PowerSupplies"))):
        for key, word, boundary in (
            ("PowerInputWatts", "input", Boundary.WALL),
            ("PowerOutputWatts", "output", Boundary.NODE),
        ):
            value = _map(entry).get(key)
            if _is_number(value):
                inside = (f"{chassis}/control-0",) if word == "output" else ()
                yield _domain(f"{chassis}/supply-{number}-{word}", boundary, every_s, inside=inside), float(value)


def _domain(
    name: str, boundary: Boundary, every_s: float, *, energy: bool = False, inside: tuple[str, ...] = ()
) -> LiveDomain:
    return LiveDomain(
        name=name,
        reading=DomainReading.ENERGY_COUNTER if energy else DomainReading.POWER,
        unit="J" if energy else "W",
        scale=_KWH_J if energy else 1.0,
        provenance=Provenance.MEASURED_COUNTER if energy else Provenance.MEASURED_SAMPLED,
        boundary=boundary,
        largest_w=_LARGEST_W,
        update_period_s=every_s,
        inside=inside,
        source="Redfish",
    )


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
