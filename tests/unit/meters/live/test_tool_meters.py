"""Meters that a program prints: powermetrics, adb, ipmitool."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from joulemap.errors import SetupError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.discovery import discover
from joulemap.meters.live.drivers.device.android import AndroidMeter
from joulemap.meters.live.drivers.host.powermetrics import PowermetricsMeter
from joulemap.meters.live.registry import open_meter
from joulemap.records.live.domain import DomainReading, MeterAddress
from live_benches import BATTERY, adb_program, write_program
from meter_readings import values


def plist(elapsed_ns: int, **processor: float) -> bytes:
    body = "".join(f"<key>{key}</key><real>{value}</real>" for key, value in processor.items())
    head = '<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>'
    inner = f"<key>elapsed_ns</key><integer>{elapsed_ns}</integer><key>processor</key><dict>{body}</dict>"
    return f"{head}{inner}</dict></plist>\n".encode()


def apple(tmp_path: Path, *pieces: bytes) -> PowermetricsMeter:
    (tmp_path / "out.bin").write_bytes(b"\0".join(pieces))
    program = write_program(
        tmp_path / "powermetrics",
        f"import sys, time\nsys.stdout.buffer.write(open({str(tmp_path / 'out.bin')!r}, 'rb').read())\n"
        "sys.stdout.flush()\nsys.stdout.close()\ntime.sleep(20)\n",
    )
    return PowermetricsMeter(MeterAddress(driver="powermetrics", options={"command": str(program)}))


def settled(meter: PowermetricsMeter, name: str) -> float:
    """Energy once the stream has been read to its end."""
    before, deadline = -1.0, time.monotonic() + 5.0
    while time.monotonic() < deadline:
        now = values(meter)[name]
        if now == before:
            return now
        before = now
        time.sleep(0.05)
    return before


def test_combined_of_macos_13_is_not_a_package(tmp_path: Path) -> None:
    sample = plist(200_000_000, combined_power=1500.0, cpu_power=1000.0, gpu_power=400.0, ane_power=100.0)
    meter = apple(tmp_path, sample, sample)
    meter.open()
    found = {domain.name: domain for domain in meter.domains}
    assert "Package" not in found
    assert found["Combined"].boundary is Boundary.SOC
    assert found["CPU"].inside == ("Combined",)
    assert all(domain.provenance is Provenance.ESTIMATED for domain in found.values())
    assert settled(meter, "Combined") == pytest.approx(2 * 1.5 * 0.2)
    meter.close()


def test_energy_belongs_to_its_interval_and_never_flickers(tmp_path: Path) -> None:
    meter = apple(tmp_path, plist(1_000_000_000, cpu_energy=947.0, package_energy=1473.0))
    meter.open()
    found = {domain.name: domain for domain in meter.domains}
    assert found["CPU"].reading is DomainReading.ENERGY_COUNTER
    assert found["CPU"].inside == ("Package",)
    assert settled(meter, "Package") == pytest.approx(1.473)
    assert len({values(meter)["Package"] for _ in range(50)}) == 1  # polled faster than it is renewed
    meter.close()


def test_a_package_of_intel_is_a_counter(tmp_path: Path) -> None:
    meter = apple(tmp_path, plist(4_295_788_088, package_joules=13.0469, package_watts=3.03713))
    meter.open()
    (package,) = meter.domains
    assert (package.boundary, package.provenance) == (Boundary.PACKAGE, Provenance.MEASURED_COUNTER)
    assert settled(meter, "Package") == pytest.approx(13.0469)
    meter.close()


def test_a_virtual_mac_has_no_power(tmp_path: Path) -> None:
    meter = apple(tmp_path, plist(1_000_000_000))
    with pytest.raises(SetupError) as caught:
        meter.open()
    assert "no power" in caught.value.message


def test_a_damaged_sample_is_left_out(tmp_path: Path) -> None:
    good = plist(1_000_000_000, combined_power=2000.0)
    meter = apple(tmp_path, b"<plist>cut", good, b"\x01\x02", good)
    meter.open()
    assert settled(meter, "Combined") == pytest.approx(4.0)
    meter.close()


def phone(tmp_path: Path, battery: str = BATTERY, current: str = "-412345", **options: str) -> AndroidMeter:
    program = adb_program(tmp_path, battery, current)
    return AndroidMeter(MeterAddress(driver="android", options={"adb": str(program), "serial": "R58", **options}))


@pytest.mark.parametrize(
    ("current", "options", "expected_a"),
    [
        ("-412345", {}, 0.412345),
        ("412345", {}, 0.412345),
        ("-412", {}, 0.412),
        ("900", {"unit": "ua"}, 0.0009),
        ("20000", {"unit": "ma"}, 20.0),
    ],
)
def test_unit_and_sign_of_a_phone_are_found_out(
    tmp_path: Path, current: str, options: dict[str, str], expected_a: float
) -> None:
    meter = phone(tmp_path, current=current, **options)
    meter.open()
    assert values(meter)["power"] == pytest.approx(expected_a * 3.852)
    meter.close()


@pytest.mark.parametrize(("written", "volts"), [("3852", 3.852), ("3852000", 3.852), ("4", 4.0)])
def test_a_voltage_is_in_milli_or_microvolts(tmp_path: Path, written: str, volts: float) -> None:
    meter = phone(tmp_path, BATTERY.replace("3852", written))
    meter.open()
    assert values(meter)["voltage"] == pytest.approx(volts)
    assert values(meter)["temperature"] == pytest.approx(28.1)
    assert values(meter)["level"] == pytest.approx(0.57)
    meter.close()


def test_a_phone_on_its_charger_says_nothing(tmp_path: Path) -> None:
    meter = phone(tmp_path, BATTERY.replace("status: 3", "status: 2"), "900000")
    assert "charged" in meter.candidate().problem
    assert "Wi-Fi" in meter.candidate().fix
    meter.open()
    assert math.isnan(values(meter)["power"])
    meter.close()


@pytest.mark.parametrize(
    ("state", "words"), [("unauthorized", "allowed"), ("offline", "does not answer"), ("no permissions (x)", "may not")]
)
def test_a_phone_that_cannot_be_used_has_its_fix(tmp_path: Path, state: str, words: str) -> None:
    program = adb_program(tmp_path, BATTERY, "1", devices=f"R58\t{state}")
    (candidate,) = discover(["android"], options={"android": {"adb": str(program)}})
    assert words in candidate.problem
    assert candidate.fix


def test_without_adb_the_fix_is_to_install_it(tmp_path: Path) -> None:
    (candidate,) = discover(["android"], options={"android": {"adb": str(tmp_path / "none")}})
    assert candidate.fix == "sudo apt-get install adb"


SENSORS = """PS1 Input Power  | C0h | ok  | 10.1 | 180 Watts
PS2 Input Power  | C1h | ok  | 10.2 | 176 Watts
CPU1 Power       | D0h | ok  |  3.1 | 90 Watts
FAN1             | 41h | ok  | 29.1 | 4200 RPM
"""


@pytest.mark.parametrize("dcmi", ["", "Instantaneous power reading: 0 Watts\nPower reading state is: deactivated"])
def test_without_dcmi_the_power_sensors_are_read(tmp_path: Path, dcmi: str) -> None:
    program = write_program(
        tmp_path / "ipmitool", f"import sys\nprint({dcmi!r} if 'dcmi' in sys.argv else {SENSORS!r})\n"
    )
    (candidate,) = discover(["ipmi"], options={"ipmi": {"command": str(program)}})
    found = {domain.name: domain for domain in candidate.domains}
    assert sorted(found) == ["CPU1 Power", "PS1 Input Power", "PS2 Input Power"]
    assert found["CPU1 Power"].inside == ("PS1 Input Power", "PS2 Input Power")
    meter = open_meter(candidate.address)
    assert values(meter)["PS1 Input Power"] == 180.0


def test_a_service_processor_for_root_only_has_its_fix(tmp_path: Path) -> None:
    said = "Could not open device at /dev/ipmi0 or /dev/ipmi/0: Permission denied"
    program = write_program(tmp_path / "ipmitool", f"import sys\nsys.exit({said!r})\n")
    (candidate,) = discover(["ipmi"], options={"ipmi": {"command": str(program)}})
    assert candidate.fix.startswith("sudo chmod a+rw /dev/ipmi0")
