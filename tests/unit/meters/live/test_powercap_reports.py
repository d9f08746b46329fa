"""Public reports about RAPL and powercap: a tree for each, and the right result."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.ground.values import difference_counter
from joulemap.meters.live.discovery import find_meters
from joulemap.meters.live.drivers.host import powercap, signals
from joulemap.meters.live.ground.cpu_facts import CpuFacts
from joulemap.meters.live.ground.rapl import absence_of_rapl
from joulemap.records.live.domain import LiveDomain, MeterAddress, MeterCandidate
from joulemap.workflow.record.session import SampledSession
from sysfs_trees import AMD, GUEST, INTEL, RANGE_UJ, public_folder, write_proc, write_tree, zone


def survey(root: Path, cpuinfo: str = INTEL) -> MeterCandidate:
    proc = write_proc(root / "proc", cpuinfo)
    (candidate,) = powercap.discover_meters({"root": str(root), "proc": str(proc)})
    return candidate


def domains(root: Path, cpuinfo: str = INTEL) -> dict[str, LiveDomain]:
    candidate = survey(root, cpuinfo)
    assert candidate.usable, candidate.problem
    return {domain.name: domain for domain in candidate.domains}


def step_j(domain: LiveDomain, before: float, after: float, *, over_s: float = 1.0) -> float | None:
    largest = None if domain.largest_w is None else domain.largest_w * over_s / domain.scale
    steps = difference_counter(np.array([before, after]), modulus=domain.modulus, largest=largest)
    return None if steps.lost[0] else float(steps.delta[0]) * domain.scale


def test_a_wrap_adds_the_modulus_of_the_zone(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", 262_143_000_000))
    package = domains(tmp_path)["package-0"]
    assert step_j(package, 262_143_000_000, 1_000_000) == pytest.approx(1.328911, abs=1e-6)


def test_the_modulus_is_32_bits_of_the_unit_and_not_of_a_word(tmp_path: Path) -> None:
    files = zone("intel-rapl:0", "package-0", 1, max_energy_range_uj=65_712_999_613)
    write_tree(tmp_path, files | zone("intel-rapl:1", "package-1", 1))
    found = domains(tmp_path)
    assert found["package-0"].modulus == pytest.approx(65_712_999_613 + 15.3, abs=0.1)
    assert found["package-1"].modulus == pytest.approx(RANGE_UJ + 61.035, abs=0.01)


@pytest.mark.parametrize("text", ["0", "", "unknown", None])
def test_without_a_range_a_fall_is_no_energy(tmp_path: Path, text: str | None) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", 4_000_000_000, max_energy_range_uj=text))
    package = domains(tmp_path)["package-0"]
    assert package.modulus is None
    assert step_j(package, 4_000_000_000, 10_000) is None


def test_modulus_and_limit_tell_how_often_to_read(tmp_path: Path) -> None:
    files = zone("intel-rapl:0", "package-0", 1, constraint_0_max_power_uw=125_000_000)
    write_tree(tmp_path, files)
    package = domains(tmp_path)["package-0"]
    assert package.modulus is not None
    assert package.largest_w == 500.0
    assert package.modulus * package.scale / package.largest_w == pytest.approx(524.3, abs=0.1)


def test_the_range_of_amd_is_its_own(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", 1, max_energy_range_uj=65_532_610_987))
    package = domains(tmp_path, AMD)["package-0"]
    assert package.provenance is Provenance.MODELLED
    assert package.modulus == pytest.approx(65_532_610_987 + 15.258, abs=0.01)


def test_a_processor_before_haswell_models_its_counter(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", 1))
    assert domains(tmp_path)["package-0"].provenance is Provenance.MEASURED_COUNTER
    old = INTEL.replace("158", "42")
    assert domains(tmp_path, old)["package-0"].provenance is Provenance.MODELLED


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_a_counter_for_root_only_names_the_reason_and_the_fix() -> None:
    with public_folder() as root:
        write_tree(root, zone("intel-rapl:0", "package-0", 1))
        write_proc(root / "proc")
        (root / "class/powercap/intel-rapl:0/energy_uj").chmod(0o400)
        program = (
            "import os, sys; from joulemap.meters.live.drivers.host import powercap; os.setuid(65534)\n"
            f"(c,) = powercap.discover_meters({{'root': {str(root)!r}}})\n"
            "print(c.usable, c.problem, '|', c.fix)"
        )
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("False")
    assert "PLATYPUS" in ran.stdout
    assert f"| sudo chmod a+r {root}/class/powercap/*/energy_uj" in ran.stdout


def test_counters_that_a_container_hides_are_told_so(tmp_path: Path) -> None:
    folder = tmp_path / "class/powercap"
    folder.mkdir(parents=True)
    (folder / "intel-rapl:0").symlink_to(tmp_path / "masked")
    candidate = survey(tmp_path)
    assert "hidden" in candidate.problem
    assert "systempaths=unconfined" in candidate.fix


def test_memory_of_four_sockets_is_four_domains(tmp_path: Path) -> None:
    files: dict[str, object] = {}
    for socket in range(4):
        files |= zone(f"intel-rapl:{socket}", f"package-{socket}", 1)
        files |= zone(f"intel-rapl:{socket}/intel-rapl:{socket}:0", "dram", socket)
    found = domains(write_tree(tmp_path, files))
    assert sorted(found) == sorted(f"package-{n}{part}" for n in range(4) for part in ("", "/dram"))


def test_zones_of_one_name_at_one_place_stay_apart(tmp_path: Path) -> None:
    write_tree(tmp_path, {**zone("intel-rapl:0", "psys", 1), **zone("intel-rapl:1", "psys", 2)})
    assert sorted(domains(tmp_path)) == ["psys@intel-rapl:0", "psys@intel-rapl:1"]


def test_the_platform_contains_packages_and_memory_and_a_package_its_cores_alone(tmp_path: Path) -> None:
    files = {
        **zone("intel-rapl:0", "package-0", 1),
        **zone("intel-rapl:0:0", "core", 1),
        **zone("intel-rapl:0:1", "uncore", 1),
        **zone("intel-rapl:0:2", "dram", 1),
        **zone("intel-rapl:1", "psys", 1),
    }
    found = domains(write_tree(tmp_path, files))
    assert found["psys"].inside == ()
    assert found["package-0"].inside == ("psys",)
    assert found["package-0/core"].inside == ("package-0", "psys")
    assert found["package-0/uncore"].inside == ("package-0", "psys")
    assert found["package-0/dram"].inside == ("psys",)  # a package does not contain its memory


def test_a_machine_without_memory_counter_has_no_such_domain(tmp_path: Path) -> None:
    write_tree(tmp_path, {**zone("intel-rapl:0", "package-0", 1), **zone("intel-rapl:0:0", "core", 1)})
    assert sorted(domains(tmp_path)) == ["package-0", "package-0/core"]


def test_amd_before_linux_5_11_says_what_to_install() -> None:
    cpu = CpuFacts(vendor="AuthenticAMD", family=23, model=49)
    assert absence_of_rapl(cpu, (5, 4), "m") == (
        "Linux 5.4 offers no counter of AMD processors",
        "install Linux 5.11 or newer",
    )
    assert absence_of_rapl(cpu, (6, 1), "m")[1] == "sudo modprobe m"


def test_a_virtual_machine_is_told_and_nothing_is_guessed(tmp_path: Path) -> None:
    candidate = survey(tmp_path, GUEST)
    assert not candidate.usable
    assert "virtual machine" in candidate.problem
    assert candidate.domains == ()


def test_a_module_that_is_not_loaded_has_its_fix(tmp_path: Path) -> None:
    assert survey(tmp_path).fix == "sudo modprobe intel_rapl_msr"


def test_microjoules_are_a_millionth(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", 1))
    assert domains(tmp_path)["package-0"].scale == 1e-6


def test_a_step_beyond_physics_is_no_energy(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", 1))
    package = domains(tmp_path)["package-0"]
    assert step_j(package, 1e6, 1e6 + 300_000e6) is None  # 300 kW over a second
    assert step_j(package, 200_000e6, 10e6) is None  # a reset by suspend would be a wrap of 62 kJ
    assert step_j(package, 1e6, 66e6) == pytest.approx(65.0)


def test_every_domain_names_its_boundary(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            **zone("intel-rapl:0", "package-0", 1),
            **zone("intel-rapl:0:0", "dram", 1),
            **zone("intel-rapl:1", "psys", 1),
        },
    )
    found = domains(tmp_path)
    assert found["package-0"].boundary is Boundary.PACKAGE
    assert found["package-0/dram"].boundary is Boundary.RAIL
    assert found["psys"].boundary is Boundary.NODE


def test_hex_ids_are_zones_and_their_children_find_them(tmp_path: Path) -> None:
    write_tree(tmp_path, {**zone("intel-rapl:a", "package-10", 1), **zone("intel-rapl:a:0", "dram", 1)})
    assert sorted(domains(tmp_path)) == ["package-10", "package-10/dram"]


def test_the_memory_mapped_twin_is_read_once(tmp_path: Path) -> None:
    write_tree(tmp_path, {**zone("intel-rapl:0", "package-0", 1), **zone("intel-rapl-mmio:0", "package-0", 1)})
    assert sorted(domains(tmp_path)) == ["package-0"]


def test_the_memory_mapped_counter_counts_where_it_is_the_only_one(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl-mmio:0", "package-0", 1))
    assert sorted(domains(tmp_path)) == ["package-0"]


def test_a_counter_that_is_text_is_left_out(tmp_path: Path) -> None:
    write_tree(tmp_path, {**zone("intel-rapl:0", "package-0", "<error>"), **zone("intel-rapl:1", "package-1", 5)})
    assert sorted(domains(tmp_path)) == ["package-1"]
    write_tree(tmp_path, zone("intel-rapl:1", "package-1", "none"))
    assert "no number" in survey(tmp_path).problem


def test_enabled_0_does_not_mean_that_it_does_not_count(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", 1, enabled=0))
    assert sorted(domains(tmp_path)) == ["package-0"]


def limits(root: Path) -> dict[str, tuple[float, str]]:
    """Power limits and their windows as the signals of the processor tell them, with their units."""
    meter = signals.build_meter(MeterAddress(driver="host", options={"root": str(root), "proc": str(root / "proc")}))
    meter.open()
    raw = np.empty(len(meter.domains))
    meter.read(raw)
    meter.close()
    told = zip(meter.domains, raw.tolist(), strict=True)
    return {d.name: (round(value * d.scale, 9), d.unit) for d, value in told if "power_limit" in d.name}


def constraint(number: int, name: str | None, limit_uw: object, window_us: object = None) -> dict[str, object]:
    facts = {"name": name, "power_limit_uw": limit_uw, "time_window_us": window_us, "max_power_uw": 1}
    return {f"constraint_{number}_{key}": value for key, value in facts.items()}


def test_power_limits_are_signals_with_their_windows(tmp_path: Path) -> None:
    both = constraint(0, "long_term", 45_000_000, 27_983_872) | constraint(1, "short_term", 60_000_000, 2440)
    files = zone("intel-rapl:0", "package-0", 1, **both, **constraint(2, "peak_power", 122_000_000))
    files |= zone("intel-rapl:0:0", "dram", 1, **constraint(0, None, 9_500_000), **constraint(1, "long_term", "n/a"))
    files |= zone("intel-rapl-mmio:0", "package-0", 1, **constraint(0, "long_term", 15_000_000, 27_983_872))
    write_tree(tmp_path, files)
    write_proc(tmp_path / "proc", INTEL)
    assert limits(tmp_path) == {
        "package-0/power_limit_long_term": (45.0, "W"),
        "package-0/power_limit_long_term_window": (27.983872, "s"),
        "package-0/power_limit_short_term": (60.0, "W"),
        "package-0/power_limit_short_term_window": (2.44e-3, "s"),
        "package-0/power_limit_peak_power": (122.0, "W"),
        "package-0/dram/power_limit_0": (9.5, "W"),
        "package-0@intel-rapl-mmio:0/power_limit_long_term": (15.0, "W"),
        "package-0@intel-rapl-mmio:0/power_limit_long_term_window": (27.983872, "s"),
    }


def test_limits_of_one_name_are_told_apart(tmp_path: Path) -> None:
    twice = constraint(0, "power_limit", 1_000_000) | constraint(1, "power_limit", 2_000_000)
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", 1, **twice))
    write_proc(tmp_path / "proc", INTEL)
    assert [name[-13:] for name in limits(tmp_path)] == ["power_limit_0", "power_limit_1"]


def test_a_limit_that_changes_while_it_is_recorded_shows(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", 1, **constraint(0, "long_term", 45_000_000, 1_000_000)))
    proc = write_proc(tmp_path / "proc", INTEL)
    chosen = find_meters([f"host:root={tmp_path},proc={proc}", "simulated"])
    with SampledSession(chosen, rate_hz=20.0) as session:
        session.start()
        file = tmp_path / "class/powercap/intel-rapl:0/constraint_0_power_limit_uw"
        file.write_text("20000000\n", "ascii")
        time.sleep(0.7)
        recording = session.stop()
    lane = next(lane for lane in recording.lanes if lane.name.endswith("package-0/power_limit_long_term"))
    assert (lane.unit, lane.value[0], lane.value[-1]) == ("W", pytest.approx(45.0), pytest.approx(20.0))
    window = next(lane for lane in recording.lanes if lane.name.endswith("power_limit_long_term_window"))
    assert (window.unit, set(window.value.tolist())) == ("s", {1.0})
