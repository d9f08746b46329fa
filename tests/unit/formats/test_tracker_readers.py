"""Logs of energy tools and smart plugs: one test per quirk and per public report, and the shared recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from host_reading import energy_j, lane, read, slugs, total, trace
from joulemap.errors import InputError
from joulemap.estimate import Boundary, Provenance
from joulemap.trace import ClockKind
from recording_files import shared_file


def test_energibridge_energies_are_cumulative_and_twins_of_a_core_count_once(tmp_path: Path) -> None:
    text = "CORE0_ENERGY (J),CORE1_ENERGY (J),Delta,PACKAGE_ENERGY (J),Time\n" + "".join(
        f"{10 + k},{10 + k},{200 if k else 0},{100 + 4 * k},{1700000000000 + 200 * k}\n" for k in range(4)
    )
    found = read("energibridge", text, tmp_path)
    assert energy_j(trace(found, "PACKAGE")) == pytest.approx(12.0)
    assert {t.channel.name for t in found.traces} == {"CORE0", "PACKAGE"}
    assert "thread_twin" in slugs(found)
    assert found.overlaps == (("CORE0", "PACKAGE"),)
    assert trace(found, "PACKAGE").clock.kind is ClockKind.UTC


def test_energibridge_cores_that_differ_are_no_twins(tmp_path: Path) -> None:
    text = "CORE0_ENERGY (J),CORE1_ENERGY (J),Delta,Time\n10,10,0,1700000000000\n11,12,200,1700000000200\n12,13,200,1700000000400\n"  # noqa: E501  # as its tool writes it
    assert len(read("energibridge", text, tmp_path).traces) == 2


def test_energibridge_first_two_rows_share_a_time(tmp_path: Path) -> None:
    text = "Delta,PACKAGE_ENERGY (J),Time\n0,100,1700000000000\n199,101,1700000000000\n200,104,1700000000200\n200,108,1700000000400\n"  # noqa: E501  # as its tool writes it
    found = read("energibridge", text, tmp_path)
    assert energy_j(trace(found, "PACKAGE")) == pytest.approx(8.0)
    assert "duplicate_stamp" in slugs(found)


def test_energibridge_of_macos_is_a_power_that_repeats(tmp_path: Path) -> None:
    text = "Delta,SYSTEM_POWER (Watts),Time\n" + "".join(
        f"200,{10 + k // 5}.5,{1700000000000 + 200 * k}\n" for k in range(20)
    )
    found = trace(read("energibridge", text, tmp_path), "SYSTEM")
    assert found.power_w.tolist() == [10.5, 11.5, 12.5, 13.5]
    assert found.channel.boundary is Boundary.NODE


def test_energibridge_counter_that_falls_without_its_range_is_a_gap_never_negative(tmp_path: Path) -> None:
    text = "Delta,PACKAGE_ENERGY (J),Time\n" + "".join(
        f"200,{e},{1700000000000 + 200 * k}\n" for k, e in enumerate((100, 104, 3, 7))
    )
    found = read("energibridge", text, tmp_path)
    assert trace(found, "PACKAGE").gaps.tolist() == [[1, 2]]
    assert energy_j(trace(found, "PACKAGE")) == pytest.approx(8.0)
    assert "counter_lost" in slugs(found)


def test_codecarbon_parts_add_up_to_the_total_and_the_last_power_is_not_used() -> None:
    found = read("codecarbon", shared_file("codecarbon", "emissions.csv"), Path())
    assert total(found, "line_2_energy_j") == pytest.approx(0.0004047892176375 * 3.6e6, rel=1e-15)
    assert energy_j(trace(found, "total")) == pytest.approx(sum(
        energy_j(trace(found, part)) for part in ("cpu", "gpu", "ram")
    ), rel=0.1)  # fmt: skip
    row_3_cpu_j = 5.449607793429826e-05 * 3.6e6
    cpu = trace(found, "cpu")
    assert cpu.edges_ns is not None
    span_s = (cpu.edges_ns[3] - cpu.edges_ns[2]) * 1e-9
    assert cpu.power_w[2] * span_s == pytest.approx(row_3_cpu_j)
    assert "stated_disagrees" not in slugs(found)
    assert cpu.clock.kind is ClockKind.LOCAL


def test_codecarbon_flushes_of_one_run_are_differenced() -> None:
    found = read("codecarbon", shared_file("codecarbon", "emissions.csv"), Path())
    assert found.findings[1].slug == "run_flushed"
    energies = [total(found, f"line_{line}_energy_j") for line in (8, 9, 10, 11, 12, 13)]
    assert energies == sorted(energies)  # cumulative within the run
    assert energy_j(trace(found, "total")) < sum(t.value for t in found.totals)


def test_codecarbon_header_generations() -> None:
    old = read("codecarbon", shared_file("codecarbon", "emissions_invalid_headers.csv"), Path())
    assert energy_j(trace(old, "total")) == pytest.approx(0.001308618772068 * 3.6e6)
    new = read("codecarbon", shared_file("codecarbon", "emissions_valid_headers.csv"), Path())
    assert energy_j(trace(new, "ram")) == pytest.approx(0.00057442898176 * 3.6e6)


def test_codecarbon_memory_is_a_model_and_the_rest_an_estimate() -> None:
    found = read("codecarbon", shared_file("codecarbon", "emissions.csv"), Path())
    assert trace(found, "ram").channel.provenance is Provenance.MODELLED
    assert trace(found, "cpu").channel.provenance is Provenance.ESTIMATED


CODECARBON = (
    "timestamp,project_name,run_id,duration,emissions,gpu_power,cpu_energy,gpu_energy,ram_energy,energy_consumed\n"
)


def test_codecarbon_one_machine_counted_once_per_rank_is_counted_once(tmp_path: Path) -> None:
    rows = "".join(f"2026-01-02T03:04:3{k},p,r{k},30.0,0,1,0.001,0.001,0.001,0.003\n" for k in (0, 2, 4))
    found = read("codecarbon", CODECARBON + rows, tmp_path)
    assert energy_j(trace(found, "total")) == pytest.approx(0.003 * 3.6e6)
    assert "interval_overlap" in slugs(found)


def test_codecarbon_gpu_without_counter_has_no_energy_rather_than_0(tmp_path: Path) -> None:
    row = "2026-01-02T03:04:30,p,r,30.0,0,75.0,0.001,0.0,0.001,0.002\n"
    found = read("codecarbon", CODECARBON + row, tmp_path)
    assert "gpu" not in {t.channel.name for t in found.traces}
    assert "gpu_energy_zero" in slugs(found)


def test_powerjoular_dates_without_zero_padding() -> None:
    found = read("powerjoular", shared_file("handmade", "powerjoular", "powerjoular.csv"), Path())
    cpu = trace(found, "cpu")
    assert cpu.power_w.tolist() == [12.5, 15.0]
    assert cpu.edges_ns is not None
    assert cpu.edges_ns[1] == 1767323045_043000000
    assert lane(found, "cpu utilisation").value.tolist() == [0.125, 0.25]
    assert set(found.overlaps) == {("cpu", "total"), ("gpu", "total")}


def test_powerjoular_negative_power_of_a_wrap_is_a_gap(tmp_path: Path) -> None:
    text = "Date,CPU Utilization,CPU Power\n" + "".join(
        f"2026-01-02 03:04:0{k},0.1,{w}\n" for k, w in enumerate((12.5, -8000.25, 13.5))
    )
    found = read("powerjoular", text, tmp_path)
    assert trace(found, "cpu").gaps.tolist() == [[1, 2]]
    assert "impossible_power" in slugs(found)


def test_powerjoular_header_that_comes_again_is_no_row(tmp_path: Path) -> None:
    head = "Date,CPU Utilization,CPU Power\n"
    text = head + "2026-01-02 03:04:01,0.1,12.5\n" + head + "2026-01-02 03:04:02,0.1,13.5\n"
    assert trace(read("powerjoular", text, tmp_path), "cpu").power_w.tolist() == [12.5, 13.5]


def test_scaphandre_unclosed_report_of_microwatts() -> None:
    found = read("scaphandre", shared_file("handmade", "scaphandre", "report.json"), Path())
    assert total(found, "host_power_w") == 12.5
    assert total(found, "socket_0_dram_power_w") == pytest.approx(1.2)
    assert total(found, "process_usr_bin_bench_42_power_w") == 3.5
    assert "recording_unfinished" in slugs(found)


def _step(k: int, **more: object) -> str:
    return json.dumps(
        {
            "host": {"consumption": 12_000_000.0 + 1e6 * k, "timestamp": 1767323045.5 + k},
            "consumers": [],
            "sockets": [],
            **more,
        }
    )


def test_scaphandre_steps_without_host_leave_a_comma(tmp_path: Path) -> None:
    found = read("scaphandre", "[," + ",\n".join(_step(k) for k in range(3)) + ",,\n", tmp_path)
    assert trace(found, "host").power_w.tolist() == [12.0, 13.0, 14.0]


def test_scaphandre_machine_without_dram_has_no_dram_channel(tmp_path: Path) -> None:
    socket = [{"id": 0, "consumption": 9e6, "timestamp": 1767323045.5, "domains": []}]
    found = read("scaphandre", "[" + _step(0, sockets=socket) + "]", tmp_path)
    assert not any("dram" in figure.key for figure in found.totals)


def test_scaphandre_processes_are_estimates_within_the_host(tmp_path: Path) -> None:
    steps = [
        _step(k, consumers=[{"exe": "/bin/a", "pid": 7, "consumption": 2e6, "timestamp": 1767323045.5 + k}])
        for k in range(3)
    ]
    found = read("scaphandre", "[" + ",".join(steps) + "]", tmp_path)
    assert trace(found, "process /bin/a 7").channel.provenance is Provenance.ESTIMATED
    assert trace(found, "process /bin/a 7").power_w.tolist() == [2.0, 2.0, 2.0]
    assert ("process /bin/a 7", "host") in found.overlaps


def test_alumet_reads_what_ends_in_a_unit_and_names_the_rest() -> None:
    found = read("alumet", shared_file("handmade", "alumet", "alumet-output.csv"), Path())
    assert total(found, "rapl_consumed_energy_package_total_energy_j") == 1.25
    assert found.metadata["metrics_not_read"] == "cpu_time_delta_ns"


def test_alumet_energies_are_steps_to_the_nanosecond(tmp_path: Path) -> None:
    head = "metric;timestamp;value;resource_kind;resource_id;consumer_kind;consumer_id;domain;__late_attributes\n"
    rows = "".join(
        f"rapl_consumed_energy_J;2026-01-02T03:04:0{k}.123456789Z;{e};local_machine;;local_machine;;{d};\n"
        for k, e in ((0, 9.0), (1, 2.5), (2, 3.5)) for d in ("package", "pp0")
    )  # fmt: skip
    found = read("alumet", head + rows, tmp_path)
    package = trace(found, "rapl_consumed_energy package")
    assert package.power_w.tolist() == [2.5, 3.5]
    assert package.start_ns == 1767323040_123456789
    assert ("rapl_consumed_energy pp0", "rapl_consumed_energy package") in found.overlaps
    assert "first_interval_unknown" in slugs(found)


def test_green_metrics_microjoules_per_interval_and_the_cut_last_line() -> None:
    found = read("green-metrics", shared_file("handmade", "gmt", "cpu_energy_rapl_msr.log"), Path())
    package = trace(found, "Package_0")
    assert energy_j(package) == pytest.approx(0.118002)
    assert package.duration_s == pytest.approx(0.100045)
    assert "tail_cut" in slugs(found)


def test_green_metrics_blank_first_line_crlf_and_quoted_details_need_a_unit(tmp_path: Path) -> None:
    text = "\r\n" + "".join(f'{1767323045000000 + 100000 * k} {30000 + k} "GPU name-0"\r\n' for k in range(3))
    with pytest.raises(InputError) as caught:
        read("green-metrics", text, tmp_path)
    assert caught.value.slug == "unit-needed"
    found = read("green-metrics", text, tmp_path, units={"power": "mW"})
    assert trace(found, "GPU name-0").power_w.tolist() == pytest.approx([30.0, 30.001, 30.002])


def test_green_metrics_rows_of_one_time_are_said(tmp_path: Path) -> None:
    text = "".join(f"{1767323045000000 + 100000 * k} 118000 Package_0\n" for k in (0, 1, 1, 2))
    found = read("green-metrics", text, tmp_path)
    assert trace(found, "Package_0").n == 2
    assert "duplicate_stamp" in slugs(found)


def test_zeus_windows_nest_and_only_those_that_do_not_overlap_are_a_trace() -> None:
    found = read("zeus-energy", shared_file("generated", "zeus", "zeus_energy.csv"), Path())
    assert total(found, "window_1_step_gpu0_energy_j") == 9.233
    assert total(found, "window_4_epoch_gpu1_energy_j") == 28.168
    assert [piece.name for piece in found.timelines[0]] == ["epoch", "step", "step", "step"]
    assert energy_j(trace(found, "gpu0")) == pytest.approx(9.233 + 9.234 + 9.234)
    assert "interval_overlap" in slugs(found)


def test_zeus_power_log_has_no_header_and_repeats_values() -> None:
    found = read("zeus-power", shared_file("generated", "zeus", "zeus_power.csv"), Path())
    assert trace(found, "gpu0").power_w.tolist() == [61.5]
    assert trace(found, "gpu1").power_w.tolist() == [62.5]
    assert energy_j(trace(found, "gpu0")) == pytest.approx(61.5 * trace(found, "gpu0").duration_s)


LOGS = ("generated", "carbontracker", "logs")


def test_carbontracker_epochs_are_not_multiplied_by_the_pue() -> None:
    found = read("carbontracker", shared_file(*LOGS, "32578.444528_2026-11-29T153940Z_carbontracker.log"), Path())
    joules = energy_j(trace(found, "gpu")) + energy_j(trace(found, "cpu"))
    assert joules == pytest.approx(232.5 * 3.6)
    assert found.metadata["pue"] == "1.58"
    assert [piece.name for piece in found.timelines[0]] == ["epoch 1", "epoch 2", "epoch 3"]


def test_carbontracker_consumptions_hold_the_pue() -> None:
    found = read(
        "carbontracker", shared_file(*LOGS, "32578.444528_2026-11-29T153940Z_carbontracker_output.log"), Path()
    )
    assert total(found, "actual_energy_j") == pytest.approx(837 * 1.58, rel=2e-4)
    assert total(found, "predicted_energy_j") == pytest.approx(0.000367419570 * 3.6e6)
    assert found.totals[0].boundary is Boundary.FACILITY
    assert "pue_included" in slugs(found)


def test_shelly_watt_hours_of_a_minute_lie_between_its_extremes() -> None:
    found = read("shelly", shared_file("handmade", "plugs", "shelly_emdata.csv"), Path())
    assert energy_j(trace(found, "phase a")) == pytest.approx(0.5123 * 3600)
    assert trace(found, "phase a").start_ns == 1767323040 * 10**9
    assert "stated_disagrees" not in slugs(found)


def test_shelly_energy_outside_its_extremes_is_said(tmp_path: Path) -> None:
    text = "timestamp,a_total_act_energy,a_max_act_power,a_min_act_power\n1767323040,512.3,31.2,30.1\n"
    assert "stated_disagrees" in slugs(read("shelly", text, tmp_path))


def test_tasmota_power_may_be_a_list_and_1970_is_no_time(tmp_path: Path) -> None:
    found = read("tasmota", shared_file("handmade", "plugs", "tasmota_sensor.jsonl"), Path())
    assert trace(found, "channel 0").power_w.tolist() == [52.0, 52.0]
    assert total(found, "channel_1_power_w") == 5.0
    early = '{"Time":"1970-01-01T00:00:05","ENERGY":{"Total":1.0,"Power":50}}\n'
    late = "".join(
        f'{{"Time":"2026-01-02T03:04:0{k}","ENERGY":{{"Total":{2 + k / 1000},"Power":{52 + k}}}}}\n' for k in range(3)
    )
    mixed = read("tasmota", early + late, tmp_path)
    assert trace(mixed, "channel 0").n == 3
    assert energy_j(trace(mixed, "channel 0 counter")) == pytest.approx(0.002 * 3.6e6)
    assert ("channel 0", "channel 0 counter") in mixed.overlaps
    assert "clock_unset" in slugs(mixed)


def test_home_assistant_holds_the_last_value_and_needs_units() -> None:
    path = shared_file("handmade", "plugs", "homeassistant_history.csv")
    with pytest.raises(InputError) as caught:
        read("home-assistant", path, Path())
    assert caught.value.slug == "unit-needed"
    found = read("home-assistant", path, Path(), units={"power": "W", "energy": "kWh"})
    plug = trace(found, "sensor.plug_power")
    assert plug.power_w.tolist() == [52.1, 0.0]
    assert plug.gaps.tolist() == [[1, 2]]  # unavailable
    assert plug.edges_ns is not None
    assert (plug.edges_ns[1] - plug.edges_ns[0]) * 1e-9 == pytest.approx(354.877)
    assert total(found, "sensor_plug_power_last_power_w") == 51.8
    assert "last_value_open" in slugs(found)
