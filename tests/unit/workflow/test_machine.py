"""The doctor's probes on trees: what is there, what is bad, and what cannot be read, which is never ok."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.records.host.machine import FactState, MachineFact
from joulemap.records.live.domain import MeterAddress, MeterCandidate
from joulemap.workflow.environment import describe_environment
from joulemap.workflow.machine.check import Check
from joulemap.workflow.machine.doctor import Verdict
from joulemap.workflow.machine.doctor_host import check_meters, check_runtimes
from joulemap.workflow.machine.permissions import RAPL_RULE, probe_permissions
from joulemap.workflow.machine.survey import describe_machine, survey_machine
from joulemap.workflow.machine.tree import MachineTree

LAPTOP = {
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave",
    "sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "powersave",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_driver": "intel_pstate",
    "sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference": "balance_performance",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "sys/devices/system/cpu/online": "0-7",
    "sys/class/power_supply/AC/type": "Mains",
    "sys/class/power_supply/AC/online": "0",
    "sys/class/power_supply/BAT0/type": "Battery",
    "sys/class/power_supply/BAT0/status": "Discharging",
    "sys/class/power_supply/mouse/type": "Battery",
    "sys/class/power_supply/mouse/scope": "Device",
    "sys/class/power_supply/mouse/status": "Full",
    "sys/firmware/acpi/platform_profile": "low-power",
    "sys/class/thermal/thermal_zone0/temp": "93000",
    "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive",
    "sys/class/thermal/thermal_zone0/trip_point_0_temp": "95000",
    "sys/class/thermal/thermal_zone1/temp": "40000",
    "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "17",
    "sys/class/dmi/id/sys_vendor": "LENOVO",
    "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme\nprocessor\t: 1\nflags\t\t: fpu vme\n",
    "proc/1/cgroup": "0::/init.scope",
    "proc/self/cgroup": "0::/user.slice/user-1000.slice",
    "proc/self/status": "Name:\tx\nCapEff:\t0000000000000000\n",
    "sys/fs/cgroup/user.slice/user-1000.slice/cpu.max": "150000 100000",
    "sys/fs/cgroup/user.slice/user-1000.slice/memory.max": "1073741824",
    "sys/fs/cgroup/user.slice/user-1000.slice/cpuset.cpus.effective": "0-3",
    "proc/loadavg": "1.50 1.0 1.0 2/100 99",
    "proc/sys/kernel/perf_event_paranoid": "2",
}


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def facts(root: Path) -> dict[str, MachineFact]:
    return {fact.key: fact for fact in survey_machine(root)}


def test_a_busy_laptop_on_battery_is_seen_as_one(tmp_path: Path) -> None:
    found = facts(plant(tmp_path, LAPTOP))
    doubtful = {key for key, fact in found.items() if fact.state is FactState.DOUBTFUL}
    assert doubtful >= {"cpu_governor", "cpu_turbo", "power_source", "power_mode", "thermal_state", "throttle_count",
                        "cpu_set", "load", "perf_access"}  # fmt: skip
    assert found["cpu_quota"].state is FactState.BAD
    assert found["cpu_quota"].value == 1.5
    assert found["memory_limit"].value == 1 << 30
    assert found["clock_source"].state is FactState.OK
    assert found["cpu_energy_preference"].value == "balance_performance"
    assert (found["power_source"].value, found["power_mode"].value) == ("battery", "low-power")
    assert found["thermal_state"].value == "93 degC"
    assert found["throttle_count"].value == 17
    assert (found["virtual_machine"].value, found["container"].value) == ("no", "no")
    assert "set it back" in found["cpu_governor"].fix
    assert "set it back" in found["cpu_turbo"].fix


def test_what_cannot_be_read_is_unknown_and_never_ok(tmp_path: Path) -> None:
    found = facts(tmp_path)
    told = {key for key, fact in found.items() if fact.state is not FactState.UNKNOWN}
    assert told <= {"realtime_priority"}  # a limit of this very process
    assert all(fact.value is None for key, fact in found.items() if key not in told)
    assert {key for key, value in describe_machine(tmp_path).items() if value is None} == set(found) - told


@pytest.mark.parametrize("name", sorted(LAPTOP))
def test_each_file_alone_may_hold_nonsense(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    for content in (b"", b"\xff\x00\xfe nonsense", b"-", b"9" * 400):
        (tmp_path / name).write_bytes(content)
        for fact in survey_machine(tmp_path):
            assert (fact.value is None) == (fact.state is FactState.UNKNOWN)


def test_a_folder_where_a_file_should_be_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "proc/loadavg").mkdir(parents=True)
    assert facts(tmp_path)["load"].state is FactState.UNKNOWN


@pytest.mark.parametrize(
    ("files", "key", "value", "state"),
    [
        ({"proc/cpuinfo": "flags : fpu hypervisor\n", "sys/class/dmi/id/sys_vendor": "QEMU"},
         "virtual_machine", "QEMU", FactState.DOUBTFUL),
        ({"proc/1/cgroup": "12:cpu:/docker/0123abc"}, "container", "docker", FactState.DOUBTFUL),
        ({"proc/1/cgroup": "0::/", "run/.containerenv": ""}, "container", "docker", FactState.DOUBTFUL),
        ({"proc/1/cgroup": "0::/kubepods.slice"}, "container", "kubepods", FactState.DOUBTFUL),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000"}, "cpu_quota", "none", FactState.OK),
        ({"proc/self/cgroup": "4:cpu,cpuacct:/job", "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "200000",
          "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000"}, "cpu_quota", 2.0, FactState.BAD),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"}, "cpu_quota", "none", FactState.OK),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, "memory_limit", "none", FactState.OK),
        ({"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
          "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet"},
         "clock_source", "hpet", FactState.DOUBTFUL),
        ({"sys/devices/system/cpu/cpufreq/boost": "0"}, "cpu_turbo", "off", FactState.OK),
        ({"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance"}, "cpu_governor", "performance",
         FactState.OK),
        ({"var/lib/nvpmodel/status": "pmode:0002 fmode:quiet"}, "power_mode", "nvpmodel 2", FactState.OK),
        ({"sys/class/power_supply/AC/type": "Mains", "sys/class/power_supply/AC/online": "1"}, "power_source", "mains",
         FactState.OK),
        ({"sys/class/thermal/thermal_zone0/temp": "30000"}, "thermal_state", "30 degC", FactState.OK),
        ({"sys/class/powercap/intel-rapl:0/energy_uj": "123"}, "rapl_access", "readable", FactState.OK),
        ({"proc/sys/kernel/perf_event_paranoid": "-1"}, "perf_access", "allowed", FactState.OK),
        ({"proc/self/status": "CapEff:\t0000004000800000"}, "perf_access", "allowed", FactState.OK),
    ],
)  # fmt: skip
def test_facts_by_tree(tmp_path: Path, files: dict[str, str], key: str, value: object, state: FactState) -> None:
    found = facts(plant(tmp_path, files))[key]
    assert (found.value, found.state) == (value, state)


def test_counters_for_root_alone_come_with_the_reason_and_a_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, {"sys/class/powercap/intel-rapl:0/energy_uj": "1"})
    real = Path.open

    def deny(path: Path, *arguments: object, **named: object) -> object:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", deny)
    found = facts(tmp_path)["rapl_access"]
    assert (found.value, found.state, found.fix) == ("denied", FactState.BAD, RAPL_RULE)
    assert "PLATYPUS" in found.detail
    assert "chmod -R g+r" in RAPL_RULE
    assert "a+r" not in RAPL_RULE


@pytest.mark.parametrize(("limit", "value"), [(20, "allowed"), (0, "denied")])
def test_real_time_priority_by_limit(tmp_path: Path, limit: int, value: str) -> None:
    plant(tmp_path, {"proc/self/status": "CapEff:\t0"})
    found = probe_permissions(MachineTree(root=tmp_path), realtime=lambda: limit)[-1]
    assert (found.key, found.value) == ("realtime_priority", value)


def test_the_environment_of_a_bundle_holds_the_state_and_no_names(tmp_path: Path) -> None:
    plant(tmp_path, LAPTOP | {"etc/hostname": "secret-host", "proc/sys/kernel/hostname": "secret-host"})
    told = describe_environment(root=tmp_path)
    assert isinstance(told["state"], dict)
    assert told["state"]["cpu_governor"] == "powersave"
    assert "secret" not in str(told)
    assert "user-1000" not in str(told["state"])


def test_a_target_without_what_it_needs_or_with_what_is_unknown_cannot_run() -> None:
    sound = Check(name="a", ok=True, required=True, detail="")
    assert Verdict(target="t", checks=(sound, Check(name="b", ok=False, required=False, detail=""))).runnable
    for ok in (False, None):
        assert not Verdict(target="t", checks=(sound, Check(name="b", ok=ok, required=True, detail=""))).runnable


def test_meters_are_told_one_by_one_with_their_fix() -> None:
    denied = MeterCandidate(name="powercap", address=MeterAddress(driver="powercap"), problem="denied", fix="do this")
    whole, each = check_meters([denied])
    assert (whole.ok, whole.required, whole.fix) == (False, True, "do this")
    assert (each.name, each.ok, each.detail, each.fix) == ("meter powercap", False, "denied", "do this")
    assert check_meters([])[0].fix


def test_runtimes_are_told_with_their_install_line() -> None:
    whole, *each = check_runtimes()
    assert {check.name for check in each} == {"runtime onnxruntime", "runtime litert", "runtime torch"}
    assert whole.ok == any(check.ok for check in each)
    assert all(check.fix.startswith("pip install") for check in each if not check.ok)


def test_a_fact_without_value_is_unknown() -> None:
    with pytest.raises(ValueError, match="unknown"):
        MachineFact(key="x", value=None, state=FactState.OK, detail="")
