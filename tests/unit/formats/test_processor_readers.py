"""Logs of processors and operating systems: one test per quirk and per public report, and the shared recordings."""

from __future__ import annotations

import plistlib
from datetime import datetime
from pathlib import Path

import pytest

from host_reading import energy_j, lane, read, slugs, total, trace
from joulemap.errors import FormatError, InputError
from joulemap.estimate import Boundary, Provenance
from joulemap.trace import ClockKind
from recording_files import shared_file


def test_powermetrics_text_lays_elapsed_times_end_to_end() -> None:
    found = read("powermetrics-text", shared_file("macos_powermetrics", "mock_powermetrics_log.txt"), Path())
    package, cpu = trace(found, "Package"), trace(found, "CPU")
    assert package.power_w[:3].tolist() == [1.473, 0.773, 0.396]
    assert cpu.power_w[0] == pytest.approx(trace(found, "E-Cluster").power_w[0] + trace(found, "P-Cluster").power_w[0])
    assert package.edges_ns is not None
    assert (package.edges_ns[1] - package.edges_ns[0], package.edges_ns[2] - package.edges_ns[1]) == (
        104_510_000,
        104_810_000,
    )
    assert package.clock.kind is ClockKind.UTC
    assert package.edges_ns[1] == 1699616228 * 10**9  # 12:37:08 +0100
    assert package.channel.provenance is Provenance.ESTIMATED
    assert ("DRAM", "Package") in found.overlaps
    assert ("E-Cluster", "CPU") in found.overlaps


def test_powermetrics_of_macos_13_has_combined_and_no_package(tmp_path: Path) -> None:
    block = (
        "*** Sampled system activity (Fri Nov 10 12:37:0{k} 2023 +0100) (1000.00ms elapsed) ***\nCPU Power: 900 mW\n"
        "GPU Power: 100 mW\nANE Power: 0 mW\nCombined Power (CPU + GPU + ANE): 1000 mW\n"
    )
    found = read("powermetrics-text", "".join(block.format(k=k) for k in range(2)), tmp_path)
    assert {t.channel.name for t in found.traces} == {"CPU", "GPU", "ANE", "Combined"}
    assert ("CPU", "Combined") in found.overlaps


def test_powermetrics_time_that_was_lost_is_a_gap(tmp_path: Path) -> None:
    block = (
        "*** Sampled system activity (Fri Nov 10 12:37:{s:02d} 2023 +0000) (1000.0ms elapsed) ***\nCPU Power: 900 mW\n"
    )
    found = read("powermetrics-text", "".join(block.format(s=s) for s in (1, 2, 12, 13)), tmp_path)
    assert trace(found, "CPU").gaps.tolist() == [[2, 3]]
    assert trace(found, "CPU").duration_s == pytest.approx(13.0)
    assert energy_j(trace(found, "CPU")) == pytest.approx(3.6)
    assert "time_reanchored" in slugs(found)


def test_powermetrics_plist_of_intel_reproduces_its_joules() -> None:
    found = read("powermetrics-plist", shared_file("macos_powermetrics", "powermetrics_output.output"), Path())
    package = trace(found, "Package")
    assert energy_j(package) == pytest.approx(13.0469, abs=1e-12)
    assert float(package.power_w[0]) == pytest.approx(3.03713, abs=1e-5)
    assert package.duration_s == pytest.approx(4.295788088, abs=1e-12)
    assert package.clock.kind is ClockKind.UTC


def test_powermetrics_plist_without_power_says_so() -> None:
    path = shared_file("macos_powermetrics", "powermetrics_output_unsupported_hardware.output")
    with pytest.raises(FormatError) as caught:
        read("powermetrics-plist", path, Path())
    assert caught.value.slug == "recording-empty"


def _plist(second: int, **processor: float) -> bytes:
    stamp = datetime(2026, 1, 2, 3, 4, second)  # noqa: DTZ001  # property lists have no zone: they are UTC
    return plistlib.dumps({"timestamp": stamp, "elapsed_ns": 1_000_000_000, "processor": processor})


def test_powermetrics_plists_in_a_file_are_split_at_nul_and_apple_energies_are_mj(tmp_path: Path) -> None:
    body = (
        _plist(5, package_energy=1500.0, cpu_energy=900.0) + b"\0" + _plist(6, package_energy=1600.0, cpu_energy=950.0)
    )
    found = read("powermetrics-plist", body, tmp_path)
    assert trace(found, "Package").power_w.tolist() == [1.5, 1.6]
    assert ("CPU", "Package") in found.overlaps


def test_powermetrics_plist_of_macos_13_has_powers_in_mw(tmp_path: Path) -> None:
    body = b"\0".join(_plist(5 + k, cpu_power=900.0, combined_power=1000.0 + k) for k in range(2))
    found = read("powermetrics-plist", body, tmp_path)
    assert trace(found, "Combined").power_w.tolist() == pytest.approx([1.0, 1.001], rel=1e-15)
    assert ("CPU", "Combined") in found.overlaps


def test_powermetrics_plist_that_contradicts_itself_is_said(tmp_path: Path) -> None:
    found = read("powermetrics-plist", _plist(5, package_joules=3.0, package_watts=4.0), tmp_path)
    assert "stated_disagrees" in slugs(found)
    damaged = read("powermetrics-plist", _plist(5, cpu_power=1.0) + b"\0<plist><dict>", tmp_path)
    assert "sample_damaged" in slugs(damaged)


def test_power_gadget_sums_to_its_own_joules_within_its_rounding() -> None:
    path = shared_file("intel_power_gadget", "mock_intel_power_gadget_data.csv")
    found = read("intel-power-gadget", path, Path())
    assert energy_j(trace(found, "package_0")) == pytest.approx(3.1431, abs=5e-4)
    assert total(found, "package_0_cumulative_energy_j") == 3.141
    assert trace(found, "package_0").start_ns == (14 * 3600 + 55 * 60 + 35) * 10**9 + 726_000_000 - 102_000_000
    assert trace(found, "package_0").clock.kind is ClockKind.LOCAL
    assert found.overlaps == (("ia_0", "package_0"),)
    assert trace(found, "dram_0").channel.boundary is Boundary.RAIL


def test_power_gadget_summary_is_stated_and_no_row() -> None:
    found = read("intel-power-gadget", shared_file("handmade", "intel_power_gadget", "log.csv"), Path())
    assert trace(found, "package_0").power_w.tolist() == [10.0, 20.0]
    assert energy_j(trace(found, "package_0")) == pytest.approx(3.0)
    assert total(found, "stated_cumulative_processor_energy_0_j") == 3.0
    assert total(found, "stated_average_processor_power_0_w") == 15.0


def test_power_gadget_passes_midnight_and_quoted_padded_cells(tmp_path: Path) -> None:
    text = ('"System Time","RDTSC","Elapsed Time (sec)","Processor Power_0(Watt)"\r\n'
            '"23:59:59:900","1","   0.100","  10.000"\r\n"00:00:00:000","2","   0.200","  20.000"\r\n')  # fmt: skip
    found = trace(read("intel-power-gadget", text, tmp_path), "package_0")
    assert found.power_w.tolist() == [10.0, 20.0]
    assert found.duration_s == pytest.approx(0.2)


def test_power_gadget_without_rights_lacks_its_columns(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read("intel-power-gadget", "System Time,RDTSC,Elapsed Time (sec)\n12:00:00:100,1,0.1\n", tmp_path)
    assert caught.value.slug == "column-missing"


def test_uprof_rows_have_times_of_day_and_the_preamble_the_date() -> None:
    found = read("uprof", shared_file("handmade", "uprof", "timechart.csv"), Path())
    assert trace(found, "socket0-package-power").power_w.tolist() == [9.27, 9.31, 12.02]
    edges = trace(found, "socket0-package-power").edges_ns
    assert edges is not None
    assert edges[1] == 1767323045_100000000
    assert found.overlaps == (("core0-power", "socket0-package-power"),)


def test_uprof_passes_midnight_and_needs_its_date(tmp_path: Path) -> None:
    rows = "PROFILE RECORDS,\nRecordId,Timestamp,socket0-package-power\n1,23:59:59:500,9\n2,00:00:00:500,10\n3,00:00:01:500,11\n"  # noqa: E501  # as its tool writes it
    found = trace(read("uprof", "Profile Start Time:,Jan-02-2026_23-59-58\n" + rows, tmp_path), "socket0-package-power")
    assert found.duration_s == pytest.approx(3.0)
    with pytest.raises(FormatError) as caught:
        read("uprof", rows, tmp_path)
    assert caught.value.slug == "stamp-unreadable"


def test_e3_energies_are_mj_over_their_span() -> None:
    found = read("etw-e3", shared_file("handmade", "windows", "e3_xperf_dumper.csv"), Path())
    assert energy_j(trace(found, "bench.exe cpu")) == pytest.approx(1.2)
    assert energy_j(trace(found, "bench.exe display")) == pytest.approx(0.9)
    assert trace(found, "bench.exe cpu").duration_s == pytest.approx(60.0)
    assert trace(found, "bench.exe cpu").channel.provenance is Provenance.ESTIMATED
    assert "unit_not_written" in slugs(found)


def test_srum_splits_from_the_right_and_keeps_meters_apart() -> None:
    found = read("srum", shared_file("handmade", "windows", "srumutil.csv"), Path())
    app = "\\Device\\HarddiskVolume3\\Tools, Inc\\bench.exe"
    assert energy_j(trace(found, app)) == pytest.approx(2.415)
    assert energy_j(trace(found, "EMI_RAPL_Package0")) == pytest.approx(5.4)
    assert (app, "EMI_RAPL_Package0") in found.overlaps
    assert trace(found, app).clock.kind is ClockKind.LOCAL


def test_srum_rows_of_one_application_and_time_are_added(tmp_path: Path) -> None:
    head = "AppId, UserId, TimeStamp, TimeInMSec, TotalEnergyConsumption\r\n"
    row = "app, S-1, 2026-01-02T03:00:00.0000, 60000, {}\r\n"
    assert energy_j(trace(read("srum", head + row.format(100) + row.format(50), tmp_path), "app")) == pytest.approx(
        0.15
    )


TURBO = "Core\tCPU\tAvg_MHz\tBusy%\tTotl%C0Any%C0\tGFX%C0\tCPUGFX%Pkg%pc2\tPkgWatt\tCorWatt\tGFXWattRAMWatt\tSysWatt\n"
TURBO_ROW = "-\t-\t23\t1.5\t2.0\t3.0\t4.0\t5\t6\t{w}\t3.5\t0.5\t1.0\t100\n0\t0\t23\t1.5\t2\t3\t4\t5\t6\t9\t3\t0\t1\t100\n0\t1\t23\t1.5\n"  # noqa: E501  # as its tool writes it


def test_turbostat_names_that_lost_their_tab_and_ragged_threads(tmp_path: Path) -> None:
    text = "".join(TURBO + TURBO_ROW.format(w=w) for w in (9.5, 10.5))
    with pytest.raises(InputError) as caught:
        read("turbostat", text, tmp_path)
    assert caught.value.slug == "rate-needed"
    found = read("turbostat", text, tmp_path, rate_hz=0.2)
    assert trace(found, "package").power_w.tolist() == [9.5, 10.5]
    assert trace(found, "graphics").power_w.tolist() == [0.5, 0.5]
    assert trace(found, "dram").power_w.tolist() == [1.0, 1.0]
    assert trace(found, "system").power_w.tolist() == [100.0, 100.0]
    assert trace(found, "package").duration_s == 10.0
    assert {("cores", "package"), ("package", "system"), ("dram", "system")} <= set(found.overlaps)


def test_turbostat_forked_says_its_seconds_and_its_bogus_system_power(tmp_path: Path) -> None:
    found = read("turbostat", "1.004736 sec\n" + TURBO + TURBO_ROW.format(w=9.5), tmp_path)
    assert trace(found, "package").duration_s == pytest.approx(1.004736)
    assert "system" not in {t.channel.name for t in found.traces}
    assert "system_power_bogus" in slugs(found)


def test_turbostat_joules_are_energies_of_the_interval(tmp_path: Path) -> None:
    text = "1.000000 sec\nCPU\tAvg_MHz\tBusy%\tPkg_J\tRAM_J\n-\t23\t1.5\t12.5\t1.5\n"
    found = read("turbostat", text, tmp_path)
    assert energy_j(trace(found, "package")) == pytest.approx(12.5)


def test_turbostat_header_that_does_not_fit_its_values_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read("turbostat", "1.0 sec\nCPU\tAvg_MHz\tBusy%\tPkgWatt\tRAMWatt\n-\t23\t1.5\t12.5\n", tmp_path)
    assert caught.value.slug == "columns-unclear"


def test_turbostat_with_a_time_column_is_on_utc(tmp_path: Path) -> None:
    text = "Time_Of_Day_Seconds\tCPU\tAvg_MHz\tBusy%\tPkgWatt\n" + "".join(
        f"{1767323045 + k}.250000\t-\t23\t1.5\t{9 + k}.5\n" for k in range(3)
    )
    found = trace(read("turbostat", text, tmp_path), "package")
    assert found.clock.kind is ClockKind.UTC
    assert found.end_ns == 1767323047_250000000


def test_powertop_without_battery_has_a_summary_and_no_power() -> None:
    found = read("powertop", shared_file("generated", "powertop", "powertop.csv"), Path())
    assert total(found, "system_wakeups_per_s") == 118.7
    assert total(found, "cpu_usage_share") == pytest.approx(0.941)
    assert found.traces == ()
    assert "no_power" in slugs(found)


def test_powertop_figures_that_are_no_numbers_make_no_summary(tmp_path: Path) -> None:
    text = "P o w e r T O P\nTarget: 1 units/s;System:  1.2.3 wakeup/s;CPU:  94.1% usage;\n"
    with pytest.raises(FormatError) as caught:
        read("powertop", text, tmp_path)
    assert caught.value.slug == "recording-empty"


def test_perf_interval_values_are_deltas_and_the_last_is_shorter(tmp_path: Path) -> None:
    text = "".join(
        f"     {t},{e},Joules,power/energy-pkg/,1,100.00,,\n"
        for t, e in (("1.000000000", 10), ("2.000000000", 12), ("2.500000000", 5))
    )
    found = trace(read("perf-stat", "# started on x\n" + text, tmp_path), "package")
    assert found.power_w.tolist() == [10.0, 12.0, 10.0]
    assert energy_j(found) == pytest.approx(27.0)
    assert found.channel.provenance is Provenance.MEASURED_COUNTER


def test_perf_not_counted_and_not_supported_are_missing_never_0(tmp_path: Path) -> None:
    rows = ["1.000000000,10,Joules,power/energy-pkg/,1,100.00,,", "2.000000000,<not counted>,Joules,power/energy-pkg/,0,0.00,,",  # noqa: E501  # as its tool writes it
            "3.000000000,12,Joules,power/energy-pkg/,1,100.00,,"]  # fmt: skip
    found = trace(read("perf-stat", "\n".join(rows), tmp_path), "package")
    assert found.gaps.tolist() == [[1, 2]]
    assert energy_j(found) == pytest.approx(22.0)


def test_perf_human_comma_is_thousands_in_english_and_decimal_elsewhere(tmp_path: Path) -> None:
    head = " Performance counter stats for 'system wide':\n\n"
    english = read(
        "perf-stat", head + "      1,234.56 Joules power/energy-pkg/\n     1,990,524      cycles\n", tmp_path
    )
    assert total(english, "package_energy_j") == 1234.56
    assert total(english, "cycles_count") == 1990524.0
    german = read(
        "perf-stat",
        head + "          0,05 Joules power/energy-pkg/\n      1.234,56 Joules power/energy-ram/\n",
        tmp_path,
    )
    assert total(german, "package_energy_j") == 0.05
    assert total(german, "dram_energy_j") == 1234.56


def test_perf_human_with_elapsed_time_spans_it_and_psys_contains_the_rest(tmp_path: Path) -> None:
    text = (" Performance counter stats for 'system wide':\n\n             12.74 Joules power/energy-pkg/\n"
            "              8.18 Joules power/energy-ram/\n             51.10 Joules power/energy-psys/\n\n"
            "       1.001234567 seconds time elapsed\n")  # fmt: skip
    found = read("perf-stat", text, tmp_path)
    assert energy_j(trace(found, "platform")) == pytest.approx(51.10)
    assert {("package", "platform"), ("dram", "platform")} <= set(found.overlaps)


def test_perf_repeated_runs_are_a_mean_with_its_spread(tmp_path: Path) -> None:
    text = " Performance counter stats for 'x' (3 runs):\n\n     12.74 Joules power/energy-pkg/   ( +-  1.24% )\n"
    found = read("perf-stat", text, tmp_path)
    assert total(found, "package_energy_j") == 12.74
    assert found.traces == ()
    assert "1.24%" in next(f.message for f in found.findings if f.slug == "mean_of_runs")


def test_perf_decimal_comma_between_commas(tmp_path: Path) -> None:
    found = read("perf-stat", "1.000000000,0,05,Joules,power/energy-pkg/,1,100.00,,\n", tmp_path)
    assert energy_j(trace(found, "package")) == pytest.approx(0.05)
    assert "decimal_comma_collides" in slugs(found)
    clean = read("perf-stat", "1,000000000;0,05;Joules;power/energy-pkg/;1;100.00;;\n", tmp_path)
    assert energy_j(trace(clean, "package")) == pytest.approx(0.05)


@pytest.mark.parametrize(
    "row",
    ["{t}.000100000,12.74,Joules,power/energy-pkg/,1000164,100.00,,",
     "  {t}.000100000   12.74 Joules power/energy-pkg/",
     '{{"interval" : {t}.5, "counter-value" : "12.74", "unit" : "Joules", "event" : "power/energy-pkg/"}}'],
)  # fmt: skip
def test_perf_times_out_of_range_are_said_and_left_out(row: str, tmp_path: Path) -> None:
    rows = [row.format(t=t) for t in (1, 2, "9" * 25, 3)]
    found = read("perf-stat", "# started on x\n\n" + "\n".join(rows) + "\n", tmp_path)
    assert "line_unreadable" in slugs(found)
    assert energy_j(trace(found, "package")) == pytest.approx(3 * 12.74)


def test_perf_json_values_are_text(tmp_path: Path) -> None:
    line = '{{"interval" : {t}, "counter-value" : "{e}", "unit" : "Joules", "event" : "power/energy-pkg/", "event-runtime" : 1}}\n'  # noqa: E501  # as its tool writes it
    found = read("perf-stat", line.format(t=1.0, e="10.500000") + line.format(t=2.0, e="11.500000"), tmp_path)
    assert trace(found, "package").power_w.tolist() == [10.5, 11.5]


def test_perf_per_cpu_values_stay_apart(tmp_path: Path) -> None:
    text = "".join(
        f"     {t}.000000000,CPU{c},{10 + c},Joules,power/energy-pkg/,1,100.00,,\n" for t in (1, 2) for c in (0, 8)
    )
    found = read("perf-stat", text, tmp_path)
    assert {t.channel.name for t in found.traces} == {"package CPU0", "package CPU8"}


@pytest.mark.parametrize(
    ("name", "lane_name", "first"),
    [
        ("stat_x_I100.csv", "cpu-clock", 0.57e-3 / 0.100167467),
        ("stat_semicolon_I_summary.csv", "cpu-clock", 0.59e-3 / 0.100163547),
        ("stat_human_I100.txt", "cpu-clock", 0.58e-3 / 0.100159556),
        ("stat_json_I100.txt", "cpu-clock", 0.588603e-3 / 0.100171493),
        ("stat_x_A_I200.csv", "cpu-clock CPU0", 0.20430 / 0.200283022),
    ],
)
def test_perf_files_with_intervals(name: str, lane_name: str, first: float) -> None:
    found = read("perf-stat", shared_file("generated", "perf_stat", name), Path())
    assert lane(found, lane_name).value[0] == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize(("name", "key", "value"), [
    ("stat_x.csv", "cpu_clock_s", 0.78e-3), ("stat_json.txt", "cpu_clock_s", 0.660871e-3), ("stat_x_r3.csv", "task_clock_s", 0.74e-3),  # noqa: E501  # as its tool writes it
])  # fmt: skip
def test_perf_files_of_a_whole_run(name: str, key: str, value: float) -> None:
    found = read("perf-stat", shared_file("generated", "perf_stat", name), Path())
    assert total(found, key) == pytest.approx(value, rel=1e-12)
