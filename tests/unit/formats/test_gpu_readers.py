"""Logs of graphics cards: one test per quirk and per public report, and the shared recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from host_reading import energy_j, lane, read, slugs, total, trace
from joulemap.analysis.checks.plausible import stated_limit_w
from joulemap.errors import FormatError, InputError
from joulemap.estimate import Boundary
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import sniff
from joulemap.trace import ClockKind
from recording_files import shared_file

CSV = "timestamp, power.draw [W]\n"


def test_smi_csv_units_stand_in_header_or_cell_and_missing_forms_are_gaps(tmp_path: Path) -> None:
    rows = [
        "2024/10/30 18:42:33.189, 22.89 W",
        "2024/10/30 18:42:33.289, 24.89",
        "2024/10/30 18:42:33.389, [N/A]",
        "2024/10/30 18:42:33.489, [Not Supported]",
        "2024/10/30 18:42:33.589, N/A",
        "2024/10/30 18:42:33.689, 25 W",
    ]
    found = trace(read("nvidia-smi-csv", CSV + "\n".join(rows), tmp_path), "gpu")
    assert found.power_w.tolist() == [22.89, 24.89, 0.0, 0.0, 0.0, 25.0]
    assert found.gaps.tolist() == [[2, 5]]
    assert found.channel.boundary is Boundary.BOARD


def test_smi_csv_polled_faster_than_the_sensor_has_each_value_once(tmp_path: Path) -> None:
    rows = [f"2024/10/30 18:42:33.{k * 50:03d}, {20 + k // 2}.5 W" for k in range(20)]
    found = read("nvidia-smi-csv", CSV + "\n".join(rows), tmp_path)
    assert trace(found, "gpu").power_w.tolist() == [20.5 + k for k in range(10)]
    assert "repeats_merged" in slugs(found)
    assert energy_j(trace(found, "gpu")) == pytest.approx(sum((20.5 + k // 2) * 0.05 for k in range(20)))


def test_smi_csv_time_is_local_unless_the_zone_is_stated(tmp_path: Path) -> None:
    text = CSV + "2024/10/30 18:42:33.189, 22.89 W\n2024/10/30 18:42:33.289, 23.89 W\n"
    local = trace(read("nvidia-smi-csv", text, tmp_path), "gpu")
    assert local.clock.kind is ClockKind.LOCAL
    utc = trace(read("nvidia-smi-csv", text, tmp_path, utc_offset_s=3600.0), "gpu")
    assert utc.clock.kind is ClockKind.UTC
    assert local.start_ns - utc.start_ns == 3600 * 10**9


def test_smi_csv_says_that_power_draw_may_be_a_mean_of_one_second(tmp_path: Path) -> None:
    text = CSV + "2024/10/30 18:42:33.189, 22.89 W\n2024/10/30 18:42:33.289, 23.89 W\n"
    found = read("nvidia-smi-csv", text, tmp_path)
    assert "sensor_window" in slugs(found)
    assert trace(found, "gpu").channel.kernel.window_s == 1.0


def test_smi_csv_tells_cards_apart_by_uuid_of_a_gpu_or_mig(tmp_path: Path) -> None:
    rows = [
        f"2024/10/30 18:42:3{k}.000, {u}, {w} W" for k in range(3) for u, w in (("GPU-a", 10 + k), ("MIG-b", 20 + k))
    ]
    found = read("nvidia-smi-csv", "timestamp, uuid, power.draw [W]\n" + "\n".join(rows), tmp_path)
    assert [t.channel.name for t in found.traces] == ["gpu GPU-a", "gpu MIG-b"]
    assert trace(found, "gpu MIG-b").power_w.tolist() == [20.0, 21.0, 22.0]


def test_smi_csv_keeps_average_and_instant_apart_and_never_adds_them(tmp_path: Path) -> None:
    text = "timestamp, power.draw.average [W], power.draw.instant [W]\n" + "".join(
        f"2024/10/30 18:42:3{k}.000, {10 + k} W, {20 + k} W\n" for k in range(3)
    )
    found = read("nvidia-smi-csv", text, tmp_path)
    assert {t.channel.name for t in found.traces} == {"gpu average", "gpu instant"}


def test_smi_csv_without_a_time_stamp_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read("nvidia-smi-csv", "index, power.draw [W]\n0, 22 W\n", tmp_path)
    assert caught.value.slug == "column-missing"


def test_smi_csv_one_call_gives_a_stated_power_and_no_energy(tmp_path: Path) -> None:
    found = read("nvidia-smi-csv", CSV + "2024/10/30 18:42:33.189, 22.89 W\n", tmp_path)
    assert found.traces == ()
    assert total(found, "gpu_power_w") == 22.89
    assert "single_reading" in slugs(found)


def test_smi_xml_of_three_driver_generations_reads_the_right_element() -> None:
    old = read("nvidia-smi-xml", shared_file("nvidia_smi", "gtx-1070-ti.xml"), Path())
    assert old.totals == ()
    assert "channel_empty" in slugs(old)
    middle = read("nvidia-smi-xml", shared_file("nvidia_smi", "a100-sxm4-v12.xml"), Path())
    assert total(middle, "gpu0_power_w") == 67.03
    assert "mig_whole_device" in slugs(middle)
    new = read("nvidia-smi-xml", shared_file("nvidia_smi", "rtx-3080-v13.xml"), Path())
    assert total(new, "gpu0_average_power_w") == 139.62
    assert total(new, "gpu0_instant_power_w") == 142.33
    assert not any("module" in figure.key for figure in new.totals)
    assert new.metadata["driver_version"] == "595.58.03"


def test_smi_xml_of_many_documents_is_one_trace_and_a_cut_one_is_said(tmp_path: Path) -> None:
    one = (
        '<?xml version="1.0" ?>\n<nvidia_smi_log><timestamp>Fri Aug  4 11:44:{s} 2023</timestamp>'
        "<gpu id='0'><power_readings><power_draw>{w} W</power_draw></power_readings></gpu></nvidia_smi_log>\n"
    )
    text = "".join(one.format(s=30 + k, w=60 + k) for k in range(3)) + one.format(s=33, w=63)[:-20]
    found = read("nvidia-smi-xml", text, tmp_path)
    assert trace(found, "gpu0").power_w.tolist() == [60.0, 61.0, 62.0, 63.0]
    assert "tail_cut" in slugs(found)


def test_xml_with_an_entity_is_refused(tmp_path: Path) -> None:
    bomb = '<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "b">]>\n<nvidia_smi_log>&a;</nvidia_smi_log>'
    with pytest.raises(FormatError) as caught:
        read("nvidia-smi-xml", bomb, tmp_path)
    assert caught.value.slug == "xml-damaged"


def test_dmon_with_date_and_time_reads_watts_and_shares() -> None:
    found = read("nvidia-dmon", shared_file("handmade", "nvidia", "dmon_oDT.txt"), Path())
    assert trace(found, "gpu0").power_w.tolist() == [61.0, 305.0]
    assert lane(found, "gpu0 utilisation").value.tolist() == [0.0, 0.98]
    memory = lane(found, "gpu0 memory temperature").value
    assert np.isnan(memory[0])
    assert memory[1] == 60.0


def test_dmon_without_time_needs_a_rate_and_repeats_its_header(tmp_path: Path) -> None:
    text = "# gpu    pwr     sm\n# Idx      W      %\n    0     61      0\n\n# gpu    pwr     sm\n# Idx      W      %\n    0      -      5\n    0     65      5\n"  # noqa: E501  # as its tool writes it
    with pytest.raises(InputError) as caught:
        read("nvidia-dmon", text, tmp_path)
    assert caught.value.slug == "rate-needed"
    found = trace(read("nvidia-dmon", text, tmp_path, rate_hz=1.0), "gpu0")
    assert found.power_w.tolist() == [61.0, 0.0, 65.0]
    assert found.gaps.tolist() == [[1, 2]]
    assert found.duration_s == 3.0


def test_dmon_rows_that_begin_with_a_mark_are_values(tmp_path: Path) -> None:
    text = "# gpu    pwr     sm\n# Idx      W      %\n#   0     61      0\n#   0     62      0\n"
    assert trace(read("nvidia-dmon", text, tmp_path, rate_hz=1.0), "gpu0").power_w.tolist() == [61.0, 62.0]


def test_pmon_has_no_power_but_shares_of_processes() -> None:
    found = read("nvidia-pmon", shared_file("handmade", "nvidia", "pmon.txt"), Path())
    assert found.traces == ()
    assert lane(found, "gpu0 pid 4321 python3 bench.p utilisation").value.tolist() == [0.98]
    assert "clock_missing" in slugs(found)


def test_dcgmi_by_position_with_two_word_entities_and_without_mig_rows() -> None:
    found = read("dcgmi-dmon", shared_file("handmade", "nvidia", "dcgmi_dmon.txt"), Path(), rate_hz=1.0)
    assert trace(found, "gpu0").power_w.tolist() == [61.25, 300.118]
    assert energy_j(trace(found, "gpu0 counter")) == pytest.approx((123756907 - 123456789) * 1e-3)
    assert ("gpu0", "gpu0 counter") in found.overlaps
    assert {"mig_whole_device", "counter_disagrees"} <= slugs(found)
    with pytest.raises(InputError) as caught:
        read("dcgmi-dmon", shared_file("handmade", "nvidia", "dcgmi_dmon.txt"), Path())
    assert caught.value.slug == "rate-needed"


def test_dcgmi_blank_cells_shift_nothing_and_cut_values_are_missing(tmp_path: Path) -> None:
    head = "#Entity         POWER             TOTEC                   SMCLK\n"
    text = (
        head
        + "GPU 0                             123456789               210\nGPU 0           62.5              12345678...             211\nGPU 0           63.5              123518289               212\n"  # noqa: E501  # as its tool writes it
    )
    found = read("dcgmi-dmon", text, tmp_path, rate_hz=1.0)
    assert trace(found, "gpu0").power_w.tolist() == [0.0, 62.5, 63.5]
    assert trace(found, "gpu0").gaps.tolist() == [[0, 1]]
    assert lane(found, "gpu0 sm clock").value.tolist() == [210e6, 211e6, 212e6]
    assert "value_unreadable" in slugs(found)


@pytest.mark.parametrize(
    ("name", "powers"),
    [
        ("mi100_rocm571", [39.0, 37.0, 35.0, 39.0, 39.0, 40.0]),
        ("mi100_rocm602", [36.0, 44.0, 43.0, 39.0]),
        ("rx6700xt_rocm612", [6.0]),
    ],
)
def test_rocm_smi_json_of_three_versions(name: str, powers: list[float]) -> None:
    found = read("rocm-smi", shared_file("rocm_smi", f"{name}.json"), Path())
    assert [figure.value for figure in found.totals] == powers


def test_dcgmi_with_a_header_that_names_no_column_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read("dcgmi-dmon", "#Entity\nID\nGPU 0  61.250\n", tmp_path, rate_hz=1.0)
    assert caught.value.slug == "recording-empty"


@pytest.mark.parametrize("name", ["rocm-smi", "nvtop", "amd-smi"])
def test_a_byte_order_mark_before_json_changes_nothing(name: str, tmp_path: Path) -> None:
    bodies = {
        "rocm-smi": '{"card0": {"Average Graphics Package Power (W)": "31.0"}}',
        "nvtop": '[{"device_name": "A", "power_draw": "31W"}]',
        "amd-smi": '[{"gpu": 0, "power": {"socket_power": {"value": 31, "unit": "W"}}}]',
    }
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbf" + bodies[name].encode())
    assert sniff(path).name == name
    assert [stated.value for stated in read(name, path, tmp_path).totals] == [31.0]


def test_rocm_smi_second_die_is_no_card_with_0_w() -> None:
    found = read("rocm-smi", shared_file("handmade", "amd", "rocmsmi_showpower.csv"), Path())
    assert [(figure.key, figure.value) for figure in found.totals] == [("card0_power_w", 142.0)]
    assert "second_die" in slugs(found)


def test_rocm_smi_loop_needs_a_rate(tmp_path: Path) -> None:
    text = "device,Average Graphics Package Power (W)\ncard0,142.0\n\ndevice,Average Graphics Package Power (W)\ncard0,144.0\n"  # noqa: E501  # as its tool writes it
    with pytest.raises(InputError) as caught:
        read("rocm-smi", text, tmp_path)
    assert caught.value.slug == "rate-needed"
    assert trace(read("rocm-smi", text, tmp_path, rate_hz=2.0), "card0").power_w.tolist() == [142.0, 144.0]


def test_amd_smi_metric_and_monitor_and_a_card_without_reading() -> None:
    metric = read("amd-smi", shared_file("handmade", "amd", "amdsmi_metric_power.csv"), Path())
    assert [(figure.key, figure.value) for figure in metric.totals] == [("gpu0_power_w", 142.0)]
    assert "channel_empty" in slugs(metric)
    monitor = read("amd-smi", shared_file("handmade", "amd", "amdsmi_monitor.csv"), Path())
    assert lane(monitor, "gpu0 hotspot temperature").value.tolist() == [45.0]


def test_amd_smi_watch_repeats_its_header_and_its_blank_lines(tmp_path: Path) -> None:
    head = "timestamp,gpu,power_usage\r\n"
    text = "".join(f"{head}{1767323045 + k},0,{142 + k}\r\n\r\n" for k in range(3))
    found = trace(read("amd-smi", text, tmp_path), "gpu0")
    assert found.power_w.tolist() == [142.0, 143.0, 144.0]
    assert found.clock.kind is ClockKind.UTC


def test_amd_smi_json_wraps_value_and_unit(tmp_path: Path) -> None:
    text = '[{"gpu": 0, "power": {"socket_power": {"value": 142, "unit": "W"}, "gfx_voltage": {"value": 800, "unit": "mV"}}}]'  # noqa: E501  # as its tool writes it
    found = read("amd-smi", text, tmp_path)
    assert total(found, "gpu0_power_w") == 142.0
    assert lane(found, "gpu0 gfx voltage").value.tolist() == [0.8]


def test_amd_smi_milliwatts_of_an_apu_are_impossible_watts(tmp_path: Path) -> None:
    text = "timestamp,gpu,socket_power\n1767323045,0,14200\n1767323046,0,15\n1767323047,0,16\n"
    found = read("amd-smi", text, tmp_path)
    assert trace(found, "gpu0").gaps.tolist() == [[0, 1]]
    assert "impossible_power" in slugs(found)


def test_nvtop_snapshot_has_one_stated_power_per_card() -> None:
    found = read("nvtop", shared_file("gpu_json", "beszel_nvtop.json"), Path())
    assert [figure.value for figure in found.totals] == [13.0, 9.0]
    assert found.metadata["gpu1_product"] == "AMD Radeon 680M"


def test_a_stated_power_limit_is_a_lane_of_the_card(tmp_path: Path) -> None:
    text = "timestamp, index, power.draw [W], power.limit [W], enforced.power.limit [W]\n"
    text += "".join(f"2024/10/30 18:42:3{k}.000, 0, {200 + k}.00 W, 320.00 W, 300.00 W\n" for k in range(4))
    found = read("nvidia-smi-csv", text, tmp_path)
    limit, enforced = lane(found, "gpu0 power limit"), lane(found, "gpu0 enforced power limit")
    assert (limit.unit, limit.value.tolist()) == ("W", [320.0] * 4)
    assert enforced.value.tolist() == [300.0] * 4
    assert stated_limit_w(trace(found, "gpu0"), found.lanes) == 320.0


@pytest.mark.parametrize(
    ("place", "name", "limit_w"),
    [
        (("nvidia_smi", "a100-sxm4-v12.xml"), "gpu0", 500.0),
        (("nvidia_smi", "rtx-3080-v13.xml"), "gpu0", 320.0),
        (("rocm_smi", "mi100_rocm602.json"), "card0", 290.0),
    ],
)
def test_shared_recordings_state_their_power_limits(place: tuple[str, ...], name: str, limit_w: float) -> None:
    path = shared_file(*place)
    assert lane(sniff(path).read(path, ReadOptions()), f"{name} power limit").value.tolist() == [limit_w]
