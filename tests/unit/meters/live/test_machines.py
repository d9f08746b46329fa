"""Whose power a meter behind an address measures: this machine's, or another one's."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from joulemap.estimate import Boundary
from joulemap.meters.live.discovery import discover
from joulemap.meters.live.ground.options import machine_option
from joulemap.records.live.domain import MeterAddress


@pytest.mark.parametrize(
    ("stated", "host", "machine"),
    [
        (None, "", ""),
        (None, "127.0.0.1", ""),
        (None, "::1", ""),
        (None, "localhost", ""),
        (None, socket.gethostname(), ""),
        (None, "192.0.2.7", "192.0.2.7"),
        (None, "2001:db8::7", "2001:db8::7"),
        (None, "bmc.example", "bmc.example"),
        ("this", "192.0.2.7", ""),
        ("rack-1", "127.0.0.1", "rack-1"),
    ],
)
def test_an_address_of_ones_own_or_what_was_stated(stated: str | None, host: str, machine: str) -> None:
    options = {} if stated is None else {"machine": stated}
    assert machine_option(MeterAddress(driver="redfish", options=options), host) == machine


def test_a_command_for_another_host_is_that_host_and_has_its_name(tmp_path: Path) -> None:
    program = tmp_path / "ipmitool"
    program.write_text("#!/bin/sh\necho '    Instantaneous power reading:                   220 Watts'\n")
    program.chmod(0o755)
    found = {}
    for host in ("", " -H 192.0.2.9 -I lanplus", " -H192.0.2.8"):
        (candidate,) = discover(["ipmi"], options={"ipmi": {"command": f"{program}{host}"}})
        found[candidate.name] = candidate.domains[0].machine
    assert found == {"ipmi": "", "ipmi:192.0.2.9": "192.0.2.9", "ipmi:192.0.2.8": "192.0.2.8"}


@pytest.mark.parametrize(
    ("measures", "boundary"),
    [((), Boundary.NODE), (("LNXSYBUS:00",), Boundary.NODE), (("PNP0A08:00",), Boundary.RAIL)],
)
def test_the_power_meter_of_the_firmware_is_the_machine_unless_it_names_parts(
    measures: tuple[str, ...], boundary: Boundary, tmp_path: Path
) -> None:
    chip = tmp_path / "class" / "hwmon" / "hwmon0"
    (chip / "measures").mkdir(parents=True)
    (chip / "name").write_text("power_meter\n")
    (chip / "power1_average").write_text("180000000\n")
    for name in measures:
        (chip / "measures" / name).mkdir()
    (candidate,) = discover(["hwmon"], options={"hwmon": {"root": str(tmp_path)}})
    assert [domain.boundary for domain in candidate.domains] == [boundary]
