"""Prometheus text and Redfish: one test per public report, and the shared recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from host_reading import energy_j, lane, read, slugs, total, trace
from joulemap.errors import InputError
from joulemap.estimate import Boundary, Provenance
from recording_files import shared_file

T0 = 1767323045000


def scrapes(*lines: str, times: range = range(4)) -> str:
    return "".join(line.format(k=k, t=T0 + 1000 * k) + "\n" for k in times for line in lines)


def test_one_scrape_gives_stated_figures_in_si_units() -> None:
    found = read("prometheus", shared_file("handmade", "prometheus", "mixed.prom"), Path())
    assert total(found, "scaphandre_host_power_w") == 12.5
    assert total(found, "scaphandre_host_counter_energy_j") == pytest.approx(987.654321)
    assert total(found, "kepler_cpu_package_intel_rapl_0_n1_energy_j") == 1234.5
    assert total(found, "dcgm_gpu_gpu_x_counter_energy_j") == pytest.approx(123456.789)
    assert total(found, "triton_gpu_gpu_x_power_w") == 61.25
    assert found.traces == ()


def test_node_exporter_rapl_and_hwmon_of_a_recording() -> None:
    found = read("prometheus", shared_file("prometheus", "node_exporter_e2e-output.txt"), Path())
    assert total(found, "rapl_package_intel_rapl_0_0_energy_j") == 240422.366267
    assert total(found, "rapl_core_intel_rapl_0_0_0_energy_j") == 118821.284256
    assert lane(found, "hwmon voltage nct6779 in0").value.tolist() == [0.792]
    assert lane(found, "hwmon temperature platform_coretemp_0 temp1").value.tolist() == [55.0]


def test_scrapes_with_stamps_are_traces_and_milliseconds_or_seconds(tmp_path: Path) -> None:
    line = 'node_rapl_package_joules_total{{index="0"}} {k}00 '
    milli = trace(read("prometheus", scrapes(line + "{t}"), tmp_path), "rapl package 0")
    assert milli.power_w.tolist() == [100.0, 100.0, 100.0]
    seconds = (
        "".join(f'node_rapl_package_joules_total{{index="0"}} {k}00 {T0 // 1000 + k}.0\n' for k in range(4)) + "# EOF\n"
    )
    assert trace(read("prometheus", seconds, tmp_path), "rapl package 0").start_ns == milli.start_ns


def test_scrapes_without_stamps_need_a_rate(tmp_path: Path) -> None:
    text = scrapes('kepler_node_cpu_watts{{zone="package"}} 1{k}.5')
    with pytest.raises(InputError) as caught:
        read("prometheus", text, tmp_path)
    assert caught.value.slug == "rate-needed"
    found = trace(read("prometheus", text, tmp_path, rate_hz=0.5), "kepler cpu package")
    assert found.power_w.tolist() == [10.5, 11.5, 12.5, 13.5]
    assert found.duration_s == 8.0


def test_zones_of_one_name_are_told_apart_by_path_and_never_added(tmp_path: Path) -> None:
    text = scrapes(
        'node_rapl_package_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0"}} {k}00 {t}',
        'node_rapl_package_joules_total{{index="0",path="/sys/class/powercap/intel-rapl-mmio:0"}} {k}00 {t}',
        'node_rapl_dram_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0:1"}} {k}0 {t}',
        'node_rapl_dram_joules_total{{index="1",path="/sys/class/powercap/intel-rapl:1:1"}} {k}1 {t}',
        'node_rapl_core_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0:0"}} {k}0 {t}',
        'node_rapl_psys_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:2"}} {k}50 {t}',
    )
    found = read("prometheus", text, tmp_path)
    names = {t.channel.name for t in found.traces}
    assert {"rapl dram intel-rapl:0:1 0", "rapl dram intel-rapl:1:1 1"} <= names
    pairs = set(found.overlaps)
    package, psys = "rapl package intel-rapl:0 0", "rapl psys intel-rapl:2 0"
    assert {(package, psys), ("rapl dram intel-rapl:0:1 0", psys), ("rapl core intel-rapl:0:0 0", package)} <= pairs
    assert ("rapl package intel-rapl-mmio:0 0", package) in pairs
    assert ("rapl dram intel-rapl:0:1 0", package) not in pairs  # a package excludes its memory


def test_a_counter_that_jumps_beyond_any_power_is_a_gap(tmp_path: Path) -> None:
    values = [100, 150, 200, 300_000_200, 300_000_250, 300_000_300]
    text = "".join(f"kepler_node_platform_joules_total {v} {T0 + 1000 * k}\n" for k, v in enumerate(values))
    found = read("prometheus", text, tmp_path)
    assert trace(found, "kepler platform").gaps.tolist() == [[2, 3]]
    assert energy_j(trace(found, "kepler platform")) == pytest.approx(200.0)
    assert "counter_lost" in slugs(found)


def test_a_glitch_within_the_limit_is_kept_and_flagged(tmp_path: Path) -> None:
    values = [100, 135, 170, 9170, 9205, 9240]
    text = "".join(f"kepler_node_platform_joules_total {v} {T0 + 1000 * k}\n" for k, v in enumerate(values))
    found = read("prometheus", text, tmp_path)
    assert energy_j(trace(found, "kepler platform")) == pytest.approx(9140.0)
    assert "outlier_power" in slugs(found)


def test_a_counter_that_falls_is_a_gap_and_never_negative(tmp_path: Path) -> None:
    text = "".join(
        f"node_rapl_package_joules_total {v} {T0 + 1000 * k}\n" for k, v in enumerate((65000, 65500, 30, 530))
    )
    found = read("prometheus", text, tmp_path)
    assert trace(found, "rapl package").gaps.tolist() == [[1, 2]]
    assert "counter_lost" in slugs(found)


def test_a_counter_slower_than_the_poll_is_spread_over_its_real_period(tmp_path: Path) -> None:
    text = "".join(f"node_rapl_package_joules_total {100 + 20 * (k // 2)} {T0 + 1000 * k}\n" for k in range(8))
    found = trace(read("prometheus", text, tmp_path), "rapl package")
    assert found.power_w.tolist() == [10.0, 10.0, 10.0]


def test_a_frozen_counter_gives_no_energy(tmp_path: Path) -> None:
    text = scrapes("node_rapl_package_joules_total 500 {t}", 'kepler_node_cpu_watts{{zone="package"}} 1{k} {t}')
    found = read("prometheus", text, tmp_path)
    assert "rapl package" not in {t.channel.name for t in found.traces}
    assert "counter_frozen" in slugs(found)


def test_mig_rows_repeat_the_card_and_zeros_of_mig_are_missing(tmp_path: Path) -> None:
    text = scrapes(*(f'DCGM_FI_DEV_POWER_USAGE{{{{UUID="GPU-x",GPU_I_ID="{i}"}}}} 6{{k}} {{t}}' for i in range(1, 5)))
    found = read("prometheus", text, tmp_path)
    assert [t.channel.name for t in found.traces] == ["dcgm gpu GPU-x"]
    assert trace(found, "dcgm gpu GPU-x").power_w.tolist() == [60.0, 61.0, 62.0, 63.0]
    assert "mig_whole_device" in slugs(found)
    zeros = scrapes(
        'DCGM_FI_DEV_POWER_USAGE{{UUID="GPU-x",GPU_I_ID="1"}} 0 {t}', "node_rapl_package_joules_total {k}00 {t}"
    )
    found = read("prometheus", zeros, tmp_path)
    assert [t.channel.name for t in found.traces] == ["rapl package"]
    assert "mig_zero" in slugs(found)


def test_pods_are_estimates_bounded_by_physics(tmp_path: Path) -> None:
    text = "".join(
        f'kepler_pod_cpu_joules_total{{pod_name="p",zone="package"}} {v} {T0 + 1000 * k}\n'
        for k, v in enumerate((0.0, 5.0, 1e15, 1e15 + 5))
    )
    found = read("prometheus", text, tmp_path)
    pod = next(t for t in found.traces if "pod" in t.channel.name)
    assert pod.channel.provenance is Provenance.ESTIMATED
    assert energy_j(pod) == pytest.approx(10.0)


def test_boundaries_of_sources_are_named(tmp_path: Path) -> None:
    text = scrapes(
        "node_rapl_package_joules_total {k}00 {t}",
        "kepler_node_platform_joules_total {k}50 {t}",
        'DCGM_FI_DEV_POWER_USAGE{{UUID="g"}} 6{k} {t}',
        "scaph_host_power_microwatts 1{k}000000 {t}",
    )
    found = read("prometheus", text, tmp_path)
    assert {t.channel.name: t.channel.boundary for t in found.traces} == {
        "rapl package": Boundary.PACKAGE, "kepler platform": Boundary.NODE, "dcgm gpu g": Boundary.BOARD,
        "scaphandre host": Boundary.NODE,
    }  # fmt: skip


def test_counter_and_power_of_a_card_that_disagree_are_both_kept(tmp_path: Path) -> None:
    text = scrapes(
        'DCGM_FI_DEV_POWER_USAGE{{UUID="g"}} 65.4 {t}', 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{UUID="g"}} {k}7400 {t}'
    )
    text = text.replace(" 07400", " 0").replace("17400", "37400").replace("27400", "74800")
    found = read("prometheus", text.replace("37400 1767323048000", "112200 1767323048000"), tmp_path)
    assert {t.channel.name for t in found.traces} == {"dcgm gpu g", "dcgm gpu g counter"}
    assert "counter_disagrees" in slugs(found)
    assert ("dcgm gpu g", "dcgm gpu g counter") in found.overlaps


def test_redfish_states_powers_and_doubts_an_input_that_is_a_rating() -> None:
    found = read("redfish", shared_file("redfish", "dell_power.json"), Path())
    assert total(found, "control_0_power_w") == 429.0
    assert total(found, "control_0_mean_power_w") == 426.0
    assert total(found, "supply_0_output_power_w") == 203.0
    assert total(found, "supply_0_input_power_w") == 900.0
    assert "stated_disagrees" in slugs(found)
    assert found.traces == ()
