"""Public reports about hwmon, iio and boards; batteries; the tree of other projects."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from joulemap.estimate import Boundary
from joulemap.meters.live.discovery import discover
from joulemap.meters.live.drivers.host import hwmon, iio, power_supply
from joulemap.meters.live.registry import open_meter
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterCandidate
from recording_files import shared_file
from sysfs_trees import chip, write_tree


def chips(root: Path) -> list[MeterCandidate]:
    return list(hwmon.discover_meters({"root": str(root)}))


def readings(candidate: MeterCandidate) -> dict[str, float]:
    meter = open_meter(candidate.address)
    raw = np.empty(len(meter.domains))
    meter.read(raw)
    found = {domain.name: raw[at] * domain.scale for at, domain in enumerate(meter.domains)}
    meter.close()
    return found


def only(candidates: list[MeterCandidate]) -> dict[str, LiveDomain]:
    (candidate,) = candidates
    assert candidate.usable, candidate.problem
    return {domain.name: domain for domain in candidate.domains}


def test_the_input_rail_of_a_nano_contains_the_others(tmp_path: Path) -> None:
    rails = {"in1_label": "POM_5V_IN", "in2_label": "POM_5V_GPU", "in3_label": "POM_5V_CPU"}
    values = {f"in{n}_input": 5000 for n in (1, 2, 3)} | {f"curr{n}_input": 400 // n for n in (1, 2, 3)}
    found = only(chips(write_tree(tmp_path, chip(0, "ina3221", **rails, **values))))
    assert found["POM_5V_IN"].boundary is Boundary.BOARD
    assert found["POM_5V_IN"].inside == ()
    assert found["POM_5V_GPU"].inside == ("POM_5V_IN",)
    assert readings(chips(tmp_path)[0])["POM_5V_IN"] == pytest.approx(2.0)


def test_agx_orin_has_no_total_so_its_rails_are_side_by_side(tmp_path: Path) -> None:
    first = chip(0, "ina3221", in1_label="VDD_GPU_SOC", in2_label="VDD_CPU_CV", in3_label="VIN_SYS_5V0")
    second = chip(1, "ina3221", in1_label="NC", in2_label="VDDQ_VDD2_1V8AO", in3_label="NC")
    values = {f"{kind}{n}_input": 5000 for n in (1, 2, 3) for kind in ("in", "curr")}
    files = first | second | {f"class/hwmon/hwmon{c}/{key}": v for c in (0, 1) for key, v in values.items()}
    found = chips(write_tree(tmp_path, files))
    assert [sorted(d.name for d in c.domains) for c in found] == [
        ["VDD_CPU_CV", "VDD_GPU_SOC", "VIN_SYS_5V0"],
        ["NC@curr1", "NC@curr3", "VDDQ_VDD2_1V8AO"],
    ]
    assert all(not domain.inside and domain.boundary is Boundary.RAIL for c in found for domain in c.domains)


def test_a_total_on_one_chip_contains_the_rails_of_the_other(tmp_path: Path) -> None:
    files = {
        **chip(0, "ina3221", in1_label="VDD_IN", in1_input=5000, curr1_input=1000),
        **chip(1, "ina3221", in1_label="VDD_CPU", in1_input=5000, curr1_input=300),
    }
    first, second = chips(write_tree(tmp_path, files))
    assert second.domains[0].inside == (f"{first.name}:VDD_IN",)
    assert first.domains[0].inside == ()
    assert {
        domain.name for c in discover(["hwmon"], options={"hwmon": {"root": str(tmp_path)}}) for domain in c.domains
    }


@pytest.mark.parametrize("driver", ["ina3221", "ina3221x"])
def test_rails_are_found_below_the_folder_of_their_driver(tmp_path: Path, driver: str) -> None:
    folder = f"bus/i2c/drivers/{driver}/1-0040/hwmon/hwmon3"
    facts = {"name": "ina3221", "in1_label": "VDD_IN", "in1_input": 5000, "curr1_input": 1060}
    write_tree(tmp_path, {f"{folder}/{key}": value for key, value in facts.items()})
    found = chips(tmp_path)
    assert list(only(found)) == ["VDD_IN"]
    assert readings(found[0])["VDD_IN"] == pytest.approx(5.3)


def test_iio_power_is_in_milliwatts(tmp_path: Path) -> None:
    device = "bus/i2c/drivers/ina3221x/1-0040/iio:device0"
    rails = {"rail_name_0": "VDD_IN", "in_power0_input": 3566, "rail_name_1": "VDD_SYS_GPU", "in_power1_input": 152}
    write_tree(tmp_path, {f"{device}/{key}": value for key, value in rails.items()})
    (candidate,) = iio.discover_meters({"root": str(tmp_path)})
    assert readings(candidate) == {"VDD_IN": pytest.approx(3.566), "VDD_SYS_GPU": pytest.approx(0.152)}
    assert {domain.name: domain.inside for domain in candidate.domains} == {"VDD_IN": (), "VDD_SYS_GPU": ("VDD_IN",)}


def test_iio_raw_is_scaled_and_energy_is_in_joules(tmp_path: Path) -> None:
    device = "bus/iio/devices/iio:device2"
    files = {"in_power0_raw": 1000, "in_power0_scale": "0.25", "in_energy0_raw": 40, "in_energy0_scale": "0.5"}
    write_tree(tmp_path, {f"{device}/{key}": value for key, value in files.items()} | {f"{device}/name": "pac1934"})
    (candidate,) = iio.discover_meters({"root": str(tmp_path)})
    assert readings(candidate) == {"power0": pytest.approx(0.25), "energy0": pytest.approx(20.0)}


def test_a_channel_with_an_input_error_is_left_out(tmp_path: Path) -> None:
    write_tree(tmp_path, chip(0, "ina3221", in1_input=5000, curr1_input=100, curr3_input=100))
    (tmp_path / "class/hwmon/hwmon0/in3_input").symlink_to("/proc/self/mem")  # gives EIO at its start
    assert list(only(chips(tmp_path))) == ["curr1"]


def test_a_channel_that_is_switched_off_is_left_out(tmp_path: Path) -> None:
    files = chip(0, "ina3221", in1_input=5000, curr1_input=100, in2_input=5000, curr2_input=1, in2_enable=0)
    write_tree(
        tmp_path, files | {"class/hwmon/hwmon0/in7_label": "sum of shunt voltages", "class/hwmon/hwmon0/in7_input": 9}
    )
    assert list(only(chips(tmp_path))) == ["curr1"]


def test_voltage_and_current_are_paired_by_label_and_not_by_luck(tmp_path: Path) -> None:
    write_tree(tmp_path, chip(0, "max20730", in1_input=48000, in2_input=12000, curr1_input=10000))
    assert chips(tmp_path) == []  # in1 is the input, curr1 the output
    labels = {"in2_label": "vout1", "curr1_label": "vout1", "in1_label": "vin"}
    write_tree(tmp_path, {f"class/hwmon/hwmon0/{key}": value for key, value in labels.items()})
    assert readings(chips(tmp_path)[0]) == {"vout1": pytest.approx(120.0)}


def test_a_current_that_runs_backwards_is_negative_power(tmp_path: Path) -> None:
    write_tree(tmp_path, chip(0, "ina226", in1_input=12000, curr1_input=-500, power1_input=6_000_000))
    assert readings(chips(tmp_path)[0]) == {"power1": pytest.approx(-6.0)}


def test_an_energy_counter_contains_the_power_of_its_channel(tmp_path: Path) -> None:
    files = chip(0, "ina238", power1_input=2_000_000, energy1_input=123_000_000, update_interval=20)
    found = only(chips(write_tree(tmp_path, files)))
    assert found["energy1"].reading is DomainReading.ENERGY_COUNTER
    assert found["power1"].inside == ("energy1",)
    assert found["power1"].window_s == found["power1"].update_period_s == 0.02


def test_cores_of_amd_energy_are_inside_their_socket(tmp_path: Path) -> None:
    files = chip(0, "amd_energy", energy1_label="Ecore000", energy1_input=5, energy2_label="Esocket0", energy2_input=9)
    found = only(chips(write_tree(tmp_path, files)))
    assert found["Ecore000"].inside == ("Esocket0",)
    assert found["Esocket0"].boundary is Boundary.PACKAGE
    assert found["Esocket0"].inside == ("powercap:package-0",)  # the same counter by another road


def test_the_tree_of_another_project_reads_as_its_files_say(tmp_path: Path) -> None:
    path = shared_file("sysfs_fixtures", "kepler_testdata_tree.txt")
    lines = re.findall(r"^sys/(class/hwmon/\S+) = (.*?) ?$", path.read_text("utf-8"), flags=re.MULTILINE)
    write_tree(tmp_path, {name: text for name, text in lines if not name.endswith("/device")})
    found = {c.address.options["chip"]: c for c in chips(tmp_path) if c.usable}
    names = {place: sorted(domain.name for domain in c.domains) for place, c in found.items()}
    assert names["hwmon0"] == ["Core", "Package"]
    assert names["hwmon1"] == ["GPU"]
    assert "hwmon_max20730" not in names
    assert names["hwmon_disabled_channel"] == ["channel_1", "channel_2"]
    assert names["hwmon_disabled_power"] == ["PSU_Rail_A", "PSU_Rail_B"]
    assert names["hwmon_energy_disabled"] == ["Rail_A", "Rail_B"]
    assert readings(found["hwmon_ina226"]) == {"curr1": pytest.approx(60.0)}
    assert readings(found["hwmon_ina3221"])["curr1"] == pytest.approx(12.0)
    assert readings(found["hwmon1"]) == {"GPU": pytest.approx(120.0)}


def battery(**files: object) -> dict[str, object]:
    facts = {"type": "Battery", "present": 1, "status": "Discharging", **files}
    return {f"class/power_supply/BAT0/{key}": value for key, value in facts.items()}


def battery_power_w(root: Path) -> float:
    (candidate,) = power_supply.discover_meters({"root": str(root)})
    assert candidate.usable, candidate.problem
    return readings(candidate)["BAT0"]


@pytest.mark.parametrize("current_ua", [1_500_000, -1_500_000])
def test_a_battery_that_discharges_gives_power_whatever_the_sign(tmp_path: Path, current_ua: int) -> None:
    write_tree(tmp_path, battery(voltage_now=12_000_000, current_now=current_ua))
    assert battery_power_w(tmp_path) == pytest.approx(18.0)


def test_a_battery_that_tells_its_power_is_believed(tmp_path: Path) -> None:
    write_tree(tmp_path, battery(voltage_now=12_000_000, power_now=9_500_000, energy_now=20_000_000, capacity=40))
    (candidate,) = power_supply.discover_meters({"root": str(tmp_path)})
    found = readings(candidate)
    assert found == {
        "BAT0": pytest.approx(9.5),
        "BAT0/energy_now": pytest.approx(72_000.0),
        "BAT0/voltage_now": pytest.approx(12.0),
        "BAT0/capacity": pytest.approx(0.4),
    }


def test_on_the_mains_a_battery_says_nothing(tmp_path: Path) -> None:
    write_tree(tmp_path, battery(voltage_now=12_000_000, power_now=9_500_000))
    (candidate,) = power_supply.discover_meters({"root": str(tmp_path)})
    meter = open_meter(candidate.address)
    raw = np.empty(len(meter.domains))
    (tmp_path / "class/power_supply/BAT0/status").write_text("Charging\n")
    meter.read(raw)
    assert np.isnan(raw[0])
    meter.close()
    (refused,) = power_supply.discover_meters({"root": str(tmp_path)})
    assert refused.fix == "unplug the mains adapter"


def test_the_battery_of_a_mouse_is_not_the_machine(tmp_path: Path) -> None:
    write_tree(tmp_path, battery(voltage_now=1, current_now=1, scope="Device"))
    assert power_supply.discover_meters({"root": str(tmp_path)})[0].problem == "this machine has no battery"
