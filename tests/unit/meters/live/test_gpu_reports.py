"""Public reports about GPUs: NVML through a compiled stand-in of its C interface, AMD SMI one of its binding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import PowerError
from joulemap.estimate import Provenance
from joulemap.meters.live.drivers.device import amdsmi, nvml
from joulemap.meters.live.ground.pci import AMD, NVIDIA, has_display_device
from joulemap.meters.live.kit.nvml_stub import NVML_STUB_VARIABLE, build_nvml_stub, write_nvml_devices
from joulemap.meters.live.registry import open_meter
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterCandidate
from live_benches import amd_gpus
from sysfs_trees import write_tree

H100 = {"uuid": "GPU-11", "name": "NVIDIA H100 PCIe", "arch": 9, "energy": 1, "instant": 1, "average": 1, "mw": 250_000}
A100 = {"uuid": "GPU-22", "name": "NVIDIA A100-SXM4-40GB", "arch": 7, "energy": 1, "mw": 300_000}
A10 = {"uuid": "GPU-33", "name": "NVIDIA A10", "arch": 7, "energy": 1, "mw": 120_000}
P100 = {"uuid": "GPU-44", "name": "Tesla P100", "arch": 4, "mw": 130_000}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_nvml_stub(tmp_path_factory.mktemp("nvml"), marked=False)  # labels of the maker's own are tested


class Gpus:
    def __init__(self, library: Path, path: Path) -> None:
        self.library, self.path = library, path

    def write(self, *devices: dict[str, object]) -> None:
        write_nvml_devices(self.path, devices)

    def find(self, **options: str) -> list[MeterCandidate]:
        return list(nvml.discover_meters({"library": str(self.library), **options}))


@pytest.fixture
def gpus(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gpus:
    monkeypatch.setenv(NVML_STUB_VARIABLE, str(tmp_path / "devices.txt"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return Gpus(library, tmp_path / "devices.txt")


def named(candidate: MeterCandidate) -> dict[str, LiveDomain]:
    assert candidate.usable, candidate.problem
    return {domain.name: domain for domain in candidate.domains}


def test_energy_and_power_stand_side_by_side_and_are_never_added(gpus: Gpus) -> None:
    gpus.write(H100)
    found = named(gpus.find()[0])
    assert found["energy"].reading is DomainReading.ENERGY_COUNTER
    assert found["energy"].inside == ()
    assert found["power"].inside == found["power_average"].inside == ("energy",)


def test_the_instant_field_is_preferred_and_the_mean_says_its_second(gpus: Gpus) -> None:
    gpus.write(H100, A100, A10, P100)
    windows = {c.name: {d.name: d.window_s for d in c.domains if d.boundary} for c in gpus.find()}
    assert windows["nvml:0"] == {"energy": None, "power": None, "power_average": 1.0}
    assert windows["nvml:1"]["power"] is None  # GA100 is read at an instant
    assert windows["nvml:2"]["power"] == 1.0  # Ampere, no instant field: the mean of the last second
    assert windows["nvml:3"] == {"power": None}


def test_a_gpu_without_energy_counter_gives_power(gpus: Gpus) -> None:
    gpus.write(P100)
    assert "energy" not in named(gpus.find()[0])
    meter = open_meter(gpus.find()[0].address)
    raw = np.empty(len(meter.domains))
    meter.read(raw)
    assert raw[0] * meter.domains[0].scale == 130.0
    meter.close()


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("GPU-22", ["nvml:1"]),
        ("GPU-2", ["nvml:1"]),
        ("MIG-c1", ["nvml:1"]),
        ("MIG-c1,MIG-c2", ["nvml:1"]),
        ("MIG-GPU-22/3/0", ["nvml:1"]),
        ("1,0", ["nvml:1", "nvml:0"]),
        ("0,-1,1", ["nvml:0"]),
        ("0,7", ["nvml:0"]),
        ("", ["nvml:0", "nvml:1"]),
    ],
)
def test_visible_devices_are_indices_or_uuids_of_devices_or_slices(
    gpus: Gpus, visible: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus.write(H100, {**A100, "mig": ["MIG-c1", "MIG-c2"]})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [candidate.name for candidate in gpus.find()] == expected


def test_an_unknown_device_is_told(gpus: Gpus) -> None:
    gpus.write(H100)
    (candidate,) = gpus.find(visible="GPU-99")
    assert not candidate.usable
    assert candidate.fix == "nvidia-smi -L"


def test_slices_of_a_device_are_read_once_and_said_so(gpus: Gpus) -> None:
    gpus.write({**A100, "mig": ["MIG-c1", "MIG-c2", "MIG-c3", "MIG-c4"]})
    (candidate,) = gpus.find()
    assert "all its MIG slices" in candidate.domains[0].source
    assert "utilisation" not in named(candidate)  # not supported with slices: missing, not 0


def test_what_is_not_supported_is_missing_and_not_0(gpus: Gpus) -> None:
    gpus.write({**A100, "power": 0, "energy": 0})
    (candidate,) = gpus.find()
    assert not candidate.usable
    assert candidate.domains == ()


def test_throttle_reasons_are_kept_and_idle_is_no_throttling(gpus: Gpus) -> None:
    values = {}
    for reasons in ("0x1", "0x4", "0x48"):
        gpus.write({**H100, "reasons": reasons})
        meter = open_meter(gpus.find()[0].address)
        raw = np.empty(len(meter.domains))
        meter.read(raw)
        named_raw = dict(zip([d.name for d in meter.domains], raw, strict=True))
        values[reasons] = (named_raw["throttled"], named_raw["throttle_reasons"])
        meter.close()
    assert values == {"0x1": (0.0, 1.0), "0x4": (1.0, 4.0), "0x48": (1.0, 72.0)}


def test_the_power_limit_that_holds_is_a_signal_that_follows_its_changes(gpus: Gpus) -> None:
    gpus.write({**H100, "limit": 350_000, "enforced": 310_000})
    (candidate,) = gpus.find()
    limit = named(candidate)["power_limit"]
    assert (limit.reading, limit.unit, limit.boundary) == (DomainReading.SIGNAL, "W", None)
    meter = open_meter(candidate.address)
    at, raw, seen = list(named(candidate)).index("power_limit"), np.empty(len(meter.domains)), []
    for enforced in (310_000, 200_000):
        gpus.write({**H100, "limit": 350_000, "enforced": enforced})
        meter.read(raw)
        seen.append(raw[at] * limit.scale)
    meter.close()
    assert seen == pytest.approx([310.0, 200.0])
    gpus.write(H100)
    assert "power_limit" not in named(gpus.find()[0])


def test_a_gpu_that_falls_off_the_bus_is_lost(gpus: Gpus) -> None:
    gpus.write(H100)
    meter = open_meter(gpus.find()[0].address)
    gpus.write({**H100, "lost": 1})
    with pytest.raises(PowerError) as caught:
        meter.read(np.empty(len(meter.domains)))
    assert caught.value.slug == "meter-lost"
    meter.close()


def test_a_library_without_a_driver_says_so(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NVML_STUB_VARIABLE)
    (candidate,) = gpus.find()
    assert "Driver Not Loaded" in candidate.problem
    assert candidate.fix


@pytest.fixture
def two_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    first: dict[str, object] = {
        "name": "MI250",
        "energy_w": 400.0,
        "power": {"average_socket_power": 402},
        "activity": 80,
    }
    second: dict[str, object] = {
        "name": "MI250",
        "energy_w": 0.0,
        "power": {"average_socket_power": "N/A"},
        "activity": 75,
    }
    with amd_gpus(tmp_path, monkeypatch, [first, second]) as path:
        yield path


@pytest.mark.usefixtures("two_dies")
def test_the_first_die_of_a_card_holds_both() -> None:
    first, second = amdsmi.discover_meters({})
    assert [domain.name for domain in first.domains] == ["energy", "power", "utilisation"]
    assert not second.usable
    assert "amdsmi:0 reads both" in second.problem
    assert second.fix == "--meter amdsmi:0"


def test_na_of_amd_is_missing_and_counts_have_their_resolution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu: dict[str, object] = {
        "name": "MI300X",
        "energy_w": 500.0,
        "power": {"current_socket_power": "N/A", "average_socket_power": 65535, "socket_power": 512},
        "activity": "N/A",
    }
    with amd_gpus(tmp_path, monkeypatch, [gpu]):
        (candidate,) = amdsmi.discover_meters({})
        found = named(candidate)
        assert sorted(found) == ["energy", "power"]
        assert found["energy"].scale == pytest.approx(15.259e-6)
        assert found["power"].inside == ("energy",)
        meter = open_meter(candidate.address)
        raw = np.empty(2)
        meter.read(raw)
        assert raw[1] == 512.0
        meter.close()


def test_the_power_cap_of_amd_is_a_signal_in_watts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu: dict[str, object] = {"name": "MI300X", "energy_w": 500.0, "power": {"current_socket_power": 512}}
    with amd_gpus(tmp_path, monkeypatch, [{**gpu, "cap": 750_000_000}]) as file:
        (candidate,) = amdsmi.discover_meters({})
        limit = named(candidate)["power_limit"]
        assert (limit.reading, limit.unit, limit.boundary) == (DomainReading.SIGNAL, "W", None)
        meter = open_meter(candidate.address)
        at, raw, seen = list(named(candidate)).index("power_limit"), np.empty(len(meter.domains)), []
        for cap in (750_000_000, 300_000_000, 300, 0, "N/A"):  # microwatts; watts where a host of machines tells it
            file.write_text(json.dumps([{**gpu, "cap": cap}]), "utf-8")
            meter.read(raw)
            seen.append(raw[at] * limit.scale)
        meter.close()
    assert seen == pytest.approx([750.0, 300.0, 300.0, np.nan, np.nan], nan_ok=True)


def test_a_gpu_whose_driver_is_not_loaded_is_seen_on_its_bus(tmp_path: Path) -> None:
    write_tree(
        tmp_path, {"bus/pci/devices/0000:01:00.0/vendor": "0x10de", "bus/pci/devices/0000:01:00.0/class": "0x030200"}
    )
    write_tree(
        tmp_path, {"bus/pci/devices/0000:02:00.0/vendor": "0x1002", "bus/pci/devices/0000:02:00.0/class": "0x060400"}
    )
    assert has_display_device(NVIDIA, tmp_path)
    assert not has_display_device(AMD, tmp_path)  # a bridge
    (candidate,) = nvml.discover_meters({"library": str(tmp_path / "none.so")})
    assert "cannot be loaded" in candidate.problem
    assert candidate.fix


def test_the_stand_in_answers_nvidias_own_binding_alike(library: Path, tmp_path: Path) -> None:
    write_nvml_devices(tmp_path / "d.txt", [{**H100, "util": 55, "clock": 1755, "temp": 61, "limit": 350_000}, A100])
    program = """
import json, pynvml as n
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0)
fields = n.nvmlDeviceGetFieldValues(h, [n.NVML_FI_DEV_POWER_INSTANT, n.NVML_FI_DEV_POWER_AVERAGE, 83])
print(json.dumps([
    n.nvmlDeviceGetCount(), n.nvmlDeviceGetUUID(h), n.nvmlDeviceGetName(h), n.nvmlDeviceGetPowerUsage(h),
    [[f.fieldId, f.nvmlReturn, f.value.uiVal] for f in fields][:2], fields[2].nvmlReturn,
    n.nvmlDeviceGetUtilizationRates(h).gpu, n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM),
    n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU), n.nvmlDeviceGetArchitecture(h),
    n.nvmlDeviceGetPowerManagementLimitConstraints(h), n.nvmlDeviceGetMigMode(h),
    n.nvmlDeviceGetTotalEnergyConsumption(h) > 0, n.nvmlDeviceGetCurrentClocksThrottleReasons(h)]))
"""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), NVML_STUB_VARIABLE: str(tmp_path / "d.txt")}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == [
        *(2, "GPU-11", "NVIDIA H100 PCIe", 250_000, [[186, 0, 250_000], [185, 0, 250_000]], 3),
        *(55, 1755, 61, 9, [87_500, 350_000], [0, 0], True, 0),
    ]


def test_nothing_of_the_stand_in_that_is_shipped_passes_for_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NVML_STUB_VARIABLE, str(tmp_path / "devices.txt"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = Gpus(build_nvml_stub(tmp_path), tmp_path / "devices.txt")
    found.write(H100)
    (candidate,) = found.find()
    assert {domain.provenance for domain in named(candidate).values()} == {Provenance.SIMULATED}
