"""tegrastats in all its forms, and jtop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from host_reading import lane, read, slugs, total, trace
from joulemap.errors import InputError
from joulemap.estimate import Boundary
from joulemap.trace import ClockKind, KernelKind
from recording_files import shared_file

NANO = (
    "RAM 1903/3964MB (lfb 40x4MB) SWAP 0/1982MB (cached 0MB) IRAM 0/252kB(lfb 252kB) CPU [22%@102,15%@102,off,off] "
    "EMC_FREQ 0%@1600 GR3D_FREQ 22%@76 APE 25 PLL@38C CPU@41.5C PMIC@100C thermal@40.25C POM_5V_IN {a}/2132 POM_5V_GPU 0/0 "  # noqa: E501  # as its tool writes it
    "POM_5V_CPU 500/480"
)
ORIN = (
    "01-02-2026 03:04:{s:02d} RAM 2462/7620MB (lfb 4x2MB) CPU [5%@729,off] EMC_FREQ 0%@2133 GR3D_FREQ {g} VIC_FREQ @0 "
    "cpu@48.5C gpu@-256C tj@48.5C/105C VDD_IN {w}mW/5500mW VDD_CPU_GPU_CV 1000mW/900mW VDD_SOC 1405mW/1400mW"
)


def orin(second: int, watts: int, gpu: str = "43%@[305,0]") -> str:
    return ORIN.format(s=second, w=watts, g=gpu)


def test_nano_form_has_no_unit_no_date_and_an_input_rail_that_contains_the_others(tmp_path: Path) -> None:
    text = "\n".join(NANO.format(a=2132 + 100 * k) for k in range(3))
    with pytest.raises(InputError) as caught:
        read("tegrastats", text, tmp_path)
    assert caught.value.slug == "rate-needed"
    found = read("tegrastats", text, tmp_path, rate_hz=1.0)
    assert trace(found, "POM_5V_IN").power_w.tolist() == [2.132, 2.232, 2.332]
    assert trace(found, "POM_5V_IN").channel.boundary is Boundary.BOARD
    assert set(found.overlaps) == {("POM_5V_GPU", "POM_5V_IN"), ("POM_5V_CPU", "POM_5V_IN")}


def test_ram_and_swap_are_no_rails(tmp_path: Path) -> None:
    text = "\n".join(NANO.format(a=2132) for _ in range(2))
    found = read("tegrastats", text, tmp_path, rate_hz=1.0)
    assert {t.channel.name for t in found.traces} == {"POM_5V_IN", "POM_5V_GPU", "POM_5V_CPU"}


def test_tx2_form_of_the_input_rail(tmp_path: Path) -> None:
    text = "\n".join(f"RAM 1/2MB (lfb 4x2MB) CPU [1%@345] VDD_IN {3566 + k}/3566 VDD_CPU 229/229" for k in range(2))
    found = read("tegrastats", text, tmp_path, rate_hz=1.0)
    assert trace(found, "VDD_IN").power_w.tolist() == [3.566, 3.567]
    assert found.overlaps == (("VDD_CPU", "VDD_IN"),)


def test_jetpack_5_form_with_mw_and_a_local_date(tmp_path: Path) -> None:
    found = read("tegrastats", "\n".join(orin(k, 5542 + k) for k in range(3)), tmp_path)
    assert trace(found, "VDD_IN").power_w.tolist() == [5.542, 5.543, 5.544]
    assert trace(found, "VDD_IN").clock.kind is ClockKind.LOCAL
    assert trace(found, "VDD_IN").channel.kernel.kind is KernelKind.POINT
    assert total(found, "vdd_in_running_mean_power_w") == 5.5


def test_a_skipped_second_is_the_period_and_no_gap_but_a_long_pause_is(tmp_path: Path) -> None:
    found = read("tegrastats", "\n".join(orin(k, 5000 + k) for k in (0, 1, 3, 4, 5)), tmp_path)
    assert trace(found, "VDD_IN").gaps.size == 0
    paused = read("tegrastats", "\n".join(orin(k, 5000 + k) for k in (0, 1, 2, 12, 13)), tmp_path)
    assert trace(paused, "VDD_IN").lost_samples == 1
    assert "time_gap" in slugs(paused)


def test_samples_of_one_second_are_spread_over_it_and_said(tmp_path: Path) -> None:
    found = read("tegrastats", "\n".join(orin(k // 4, 5000 + k) for k in range(8)), tmp_path)
    edges = trace(found, "VDD_IN").edges_ns
    assert edges is not None
    assert np.diff(edges).tolist() == [250_000_000] * 8
    assert "stamps_spread" in slugs(found)


def test_two_rails_named_nc_stay_two(tmp_path: Path) -> None:
    text = "\n".join(orin(k, 5000) + " NC 0mW/0mW NC 7mW/7mW" for k in range(2))
    found = read("tegrastats", text, tmp_path)
    assert trace(found, "NC").power_w.tolist() == [0.0, 0.0]
    assert trace(found, "NC#2").power_w.tolist() == [0.007, 0.007]


def test_agx_orin_has_no_total_rail(tmp_path: Path) -> None:
    text = "\n".join(
        f"01-02-2026 03:04:0{k} RAM 1/2MB (lfb 4x2MB) CPU [1%@345] VDD_GPU_SOC 2000mW/2000mW VDD_CPU_CV 400mW/400mW "
        "VIN_SYS_5V0 3000mW/3000mW" for k in range(2)
    )  # fmt: skip
    found = read("tegrastats", text, tmp_path)
    assert found.overlaps == ()
    assert "no_total_rail" in slugs(found)
    assert trace(found, "VIN_SYS_5V0").channel.boundary is Boundary.RAIL


@pytest.mark.parametrize(
    ("written", "share", "clock_hz"),
    [
        ("22%", 0.22, None),
        ("43%@[305,0]", 0.43, 305e6),
        ("@0", None, 0.0),
        ("0%@[1300,1300]", 0.0, 1300e6),
        ("22%@76", 0.22, 76e6),
    ],
)
def test_gr3d_in_every_form(written: str, share: float | None, clock_hz: float | None, tmp_path: Path) -> None:
    found = read("tegrastats", "\n".join(orin(k, 5000, written) for k in range(2)), tmp_path)
    names = {one.name for one in found.lanes}
    assert ("gr3d utilisation" in names) == (share is not None)
    if share is not None:
        assert lane(found, "gr3d utilisation").value[0] == pytest.approx(share)
    assert ("gr3d clock" in names) == (clock_hz is not None)
    if clock_hz is not None:
        assert lane(found, "gr3d clock").value[0] == clock_hz


def test_cores_that_are_off_and_sensors_at_minus_256_are_missing(tmp_path: Path) -> None:
    found = read("tegrastats", "\n".join(orin(k, 5000) for k in range(2)), tmp_path)
    names = {one.name for one in found.lanes}
    assert lane(found, "cpu0 utilisation").value.tolist() == [0.05, 0.05]
    assert "cpu1 utilisation" not in names  # never on
    assert "gpu temperature" not in names  # powered off
    assert lane(found, "tj temperature").value.tolist() == [48.5, 48.5]


def test_jtop_row_with_off_and_a_comma_in_the_uptime() -> None:
    found = read("jtop", shared_file("handmade", "jetson", "jtop.csv"), Path())
    assert total(found, "tot_power_w") == pytest.approx(6.35)
    assert total(found, "vdd_cpu_gpu_cv_power_w") == pytest.approx(2.31)
    assert lane(found, "cpu1 utilisation").value.tolist() == [0.12]
    assert lane(found, "cpu temperature").value.tolist() == [48.5]
    assert found.metadata["nvpmodel"] == "MAXN"


def test_jtop_total_contains_the_rails_and_a_change_of_mode_is_said(tmp_path: Path) -> None:
    head = "time,uptime,Power VDD_SOC,Power TOT,nvpmodel\n"
    text = (
        head
        + '2026-01-02 03:04:05.5,"1 day, 0:00:10",1405,6350,MAXN\n2026-01-02 03:04:06.5,"1 day, 0:00:11",1405,6450,15W\n'  # noqa: E501  # as its tool writes it
    )
    found = read("jtop", text, tmp_path)
    assert trace(found, "TOT").power_w.tolist() == [6.3500000000000005, 6.45]
    assert found.overlaps == (("VDD_SOC", "TOT"),)
    assert "mode_changed" in slugs(found)
