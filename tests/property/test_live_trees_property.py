"""Whatever stands in the files of a tree, discovery tells a problem or reads numbers; it never fails."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulemap.meters.live.discovery import discover
from joulemap.meters.live.registry import open_meter
from sysfs_trees import chip, write_proc, write_tree, zone

TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "-1",
            "5",
            "package-0",
            "psys",
            "dram",
            "VDD_IN",
            "nan",
            "inf",
            "1e400",
            "9" * 400,
            "0x1f",
            "1_0",
            "\0",
        ]
    ),
    st.integers(-(2**70), 2**70).map(str),
    st.text(max_size=12),
)
DRIVERS = ("powercap", "perf_event", "hwmon", "iio", "power_supply", "host")
PERF = "bus/event_source/devices/power"
FILES: dict[str, object] = {
    **zone("intel-rapl:0", "package-0", 1, constraint_0_max_power_uw=1),
    **zone("intel-rapl:0:0", "core", 1),
    **zone("intel-rapl:b/intel-rapl:b:f", "dram", 1),
    **zone("intel-rapl-mmio:0", "package-0", 1),
    **chip(0, "ina3221", in1_input=1, curr1_input=1, in1_label="a", curr1_label="a", in1_enable=1, update_interval=1),
    **chip(1, "amdgpu", power1_input=1, power1_average=1, power1_average_interval=1, energy1_input=1, power2_input=1),
    "bus/iio/devices/iio:device0/name": "pac1934",
    "bus/iio/devices/iio:device0/in_power0_raw": 1,
    "bus/iio/devices/iio:device0/in_power0_scale": 1,
    "bus/iio/devices/iio:device0/rail_name_0": "a",
    "class/power_supply/BAT0/type": "Battery",
    "class/power_supply/BAT0/status": "Discharging",
    "class/power_supply/BAT0/voltage_now": 1,
    "class/power_supply/BAT0/current_now": 1,
    "class/power_supply/BAT0/capacity": 1,
    f"{PERF}/type": 1,
    f"{PERF}/cpumask": 0,
    f"{PERF}/format/event": "config:0-7",
    f"{PERF}/events/energy-pkg": "event=0x0",
    f"{PERF}/events/energy-pkg.scale": "1e-9",
    "devices/system/cpu/cpu0/topology/physical_package_id": 0,
    "devices/system/cpu/cpufreq/policy0/scaling_cur_freq": 1,
    "class/thermal/thermal_zone0/type": "cpu",
    "class/thermal/thermal_zone0/temp": 1,
}


@pytest.mark.parametrize("examples", [20, pytest.param(300, marks=pytest.mark.soak)])
def test_any_tree_is_read_or_told(examples: int) -> None:
    settings(max_examples=examples, deadline=None)(
        given(st.dictionaries(st.sampled_from(sorted(FILES)), TEXTS), st.text(max_size=40))(check)
    )()


def check(changed: dict[str, str], cpuinfo: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_tree(root, FILES)
        proc = write_proc(root / "proc")
        (proc / "cpuinfo").write_text(cpuinfo, "utf-8")
        for name, text in changed.items():
            path = root / name
            path.write_text(text, "utf-8")
        options = {name: {"root": folder} for name in DRIVERS}
        for name in ("powercap", "perf_event", "host"):
            options[name] = {"root": folder, "proc": str(proc)}
        for candidate in discover(DRIVERS, options=options):
            assert candidate.usable == bool(candidate.domains)
            if candidate.usable:
                meter = open_meter(candidate.address)
                raw = np.full(len(meter.domains), np.inf)
                meter.read(raw)
                assert not np.isinf(raw).any()
                meter.close()
