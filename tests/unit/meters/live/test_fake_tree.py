"""The test kit: a tree that a known power function drives, its truth, and its faults as a meter sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import PowerError, SetupError
from joulemap.estimate import Provenance
from joulemap.formats.ground.values import difference_counter
from joulemap.meters.live.discovery import discover
from joulemap.meters.live.ground.waves import PowerWave, WaveShape
from joulemap.meters.live.kit import FakeTree, KitFault, KitFaultKind, TreePlan
from joulemap.meters.live.registry import open_meter
from joulemap.records.live.domain import LiveDomain, MeterAddress
from sysfs_trees import public_folder

RANGE_UJ = 20_000_000


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What polling gave: stamps, ns, raw values of one domain, and the domain."""

    stamp_ns: np.ndarray[tuple[int], np.dtype[np.int64]]
    raw: np.ndarray[tuple[int], np.dtype[np.float64]]
    domain: LiveDomain
    lost: int


def poll(tree: FakeTree, until_s: float, name: str = "package-0") -> Seen:
    """Polls the tree's powercap meter at about 500 Hz until so long after its start; opens a lost meter again."""
    address = MeterAddress(driver="powercap", options={"root": str(tree.root)})
    meter = open_meter(address)
    at = [domain.name for domain in meter.domains].index(name)
    domain = meter.domains[at]
    row = np.empty(len(meter.domains))
    stamps, values, lost, away = [], [], 0, False
    end_ns = tree.start_ns + round(until_s * 1e9)
    while time.monotonic_ns() < end_ns:
        try:
            if away:
                meter.open()
                away = False
            meter.read(row)
            value = float(row[at])
        except (PowerError, SetupError) as error:
            lost += error.slug == "meter-lost"
            meter.close()
            value, away = np.nan, True
        stamps.append(time.monotonic_ns())
        values.append(value)
        time.sleep(0.002)
    meter.close()
    return Seen(stamp_ns=np.array(stamps, np.int64), raw=np.array(values), domain=domain, lost=lost)


def with_fault(kind: KitFaultKind, lasts_s: float = 0.3) -> TreePlan:
    fault = KitFault(kind=kind, at_s=1.0, lasts_s=lasts_s)  # long after the meter was opened
    return TreePlan(wave=PowerWave(mean_w=65.0), range_uj=RANGE_UJ, faults=(fault,))


@pytest.mark.parametrize("shape", list(WaveShape))
def test_counters_follow_the_power_function_through_their_wraps(shape: WaveShape) -> None:
    wave = PowerWave(mean_w=65.0, swing_w=30.0, period_s=0.13, shape=shape)
    plan = TreePlan(wave=wave, range_uj=RANGE_UJ, psys=True, sockets=2)
    with FakeTree(plan) as tree:
        seen = poll(tree, 1.5, "psys")
        assert seen.domain.modulus is not None
        changed = np.flatnonzero(np.diff(seen.raw)) + 1  # a counter is exact where it was just renewed
        first, last = changed[0], changed[-1]
        steps = difference_counter(seen.raw[first : last + 1], modulus=seen.domain.modulus)
        truth_j = tree.energy_j("psys", int(seen.stamp_ns[first]), int(seen.stamp_ns[last]))
    assert steps.wrapped.sum() >= 4
    assert steps.delta.sum() * seen.domain.scale == pytest.approx(truth_j, rel=0.02)  # a busy machine writes late


def test_all_kinds_of_meters_read_one_tree() -> None:
    with FakeTree(TreePlan(wave=PowerWave(mean_w=40.0))) as tree:
        options = {name: {"root": str(tree.root)} for name in ("powercap", "hwmon", "power_supply")}
        found = {candidate.name: candidate for candidate in discover(options, options=options)}
        values: dict[str, float] = {}
        for candidate in found.values():
            meter = open_meter(candidate.address)
            row = np.empty(len(meter.domains))
            meter.read(row)
            values |= {domain.name: value * domain.scale for domain, value in zip(meter.domains, row, strict=True)}
            meter.close()
    assert sorted(found) == ["hwmon:fake_energy", "hwmon:ina226", "power_supply", "powercap"]
    assert values["VDD_IN"] == pytest.approx(40.0)
    assert values["BAT0"] == pytest.approx(72.0)
    domains = [domain for candidate in found.values() for domain in candidate.domains]
    assert {domain.provenance for domain in domains} == {Provenance.SIMULATED}  # a made-up tree is never measured


def test_a_domain_that_vanishes_is_lost_and_comes_back() -> None:
    with FakeTree(with_fault(KitFaultKind.VANISH)) as tree:
        seen = poll(tree, 1.9)
    assert seen.lost >= 1
    assert np.isnan(seen.raw).any()
    assert np.isfinite(seen.raw[-5:]).all()


def test_a_counter_that_freezes_stands_still() -> None:
    with FakeTree(with_fault(KitFaultKind.FREEZE)) as tree:
        seen = poll(tree, 1.8)
    longest_ns = np.diff(seen.stamp_ns[np.flatnonzero(np.diff(seen.raw))]).max()
    assert longest_ns > 0.2e9
    assert seen.lost == 0


def test_text_is_no_number() -> None:
    with FakeTree(with_fault(KitFaultKind.TEXT)) as tree:
        seen = poll(tree, 1.8)
    assert np.isnan(seen.raw).any()
    assert np.isfinite(seen.raw[-5:]).all()
    assert seen.lost == 0


@pytest.mark.parametrize("kind", [KitFaultKind.BACKWARDS, KitFaultKind.JUMP])
def test_a_leap_of_the_counter_is_beyond_physics(kind: KitFaultKind) -> None:
    plan = with_fault(kind)
    with FakeTree(TreePlan(wave=plan.wave, range_uj=2_000_000_000, begin_uj=900_000_000, faults=plan.faults)) as tree:
        seen = poll(tree, 1.5)
    assert seen.domain.largest_w is not None
    late_s = 0.1  # a busy machine renews the counter late, and then by more
    largest = seen.domain.largest_w * (np.diff(seen.stamp_ns) * 1e-9 + late_s) / seen.domain.scale
    steps = difference_counter(seen.raw, modulus=seen.domain.modulus, largest=largest)
    assert steps.lost.sum() == 1


def test_two_wraps_between_two_values_show_as_a_gap_longer_than_the_modulus_lasts() -> None:
    plan = TreePlan(
        wave=PowerWave(mean_w=65.0),
        range_uj=10_000_000,
        faults=(KitFault(kind=KitFaultKind.WRAP_TWICE, at_s=1.0),),
    )
    with FakeTree(plan) as tree:
        seen = poll(tree, 1.8)
    assert seen.domain.modulus is not None
    gap_s = float(np.diff(seen.stamp_ns[np.flatnonzero(np.diff(seen.raw))]).max()) * 1e-9
    assert gap_s > seen.domain.modulus * seen.domain.scale / 65.0


def test_a_file_that_only_root_may_read_takes_the_place_of_another() -> None:
    with FakeTree(with_fault(KitFaultKind.DENY, lasts_s=5.0)) as tree:
        file = tree.root / "class/powercap/intel-rapl/intel-rapl:0/energy_uj"
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline and (not file.exists() or file.stat().st_mode & 0o444 != 0o400):
            time.sleep(0.01)
        assert file.stat().st_mode & 0o777 == 0o400


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_who_loses_the_permission_midway_is_told_the_fix() -> None:
    program = """
import os, sys, time
import numpy as np
from joulemap.errors import PowerError, SetupError
from joulemap.meters.live.registry import open_meter
from joulemap.meters.live.drivers.host import powercap  # before this user is left, who alone may read the library
from joulemap.records.live.domain import MeterAddress
os.setuid(65534)
address = MeterAddress(driver="powercap", options={"root": sys.argv[1]})
deadline = time.monotonic() + 20.0
while time.monotonic() < deadline:
    try:
        meter = open_meter(address)
        raw = np.empty(len(meter.domains))
        while True:
            meter.read(raw)
            time.sleep(0.002)
    except PowerError as error:
        print(error.slug)
        meter.close()
    except SetupError as error:
        print(error.slug, error.message, "|", error.hint)
        if "PLATYPUS" in error.message:
            break
    time.sleep(0.05)
"""
    plan = TreePlan(range_uj=RANGE_UJ, faults=(KitFault(kind=KitFaultKind.DENY, at_s=3.0),))
    with public_folder() as root, FakeTree(plan, root=root):
        command = [sys.executable, "-c", program, str(root)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "meter-lost" in ran.stdout
    assert f"| sudo chmod a+r {root}/class/powercap/*/energy_uj" in ran.stdout


def test_the_command_tells_domains_and_truth(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "joulemap.meters.live.kit", str(tmp_path), "--seconds", "0.2", "--mean-w", "10"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    begin, end = map(json.loads, ran.stdout.splitlines())
    assert {"package-0", "package-0/dram", "VDD_IN", "BAT0"} <= set(begin["domains"])
    assert end["energy_j"]["package-0"] == pytest.approx(10.0 * (end["end_ns"] - begin["start_ns"]) * 1e-9)


@pytest.mark.parametrize(
    "arguments", [["--fault", "melt@2"], ["--fault", "freeze"], ["--mean-w", "-1"], ["--rate-hz", "0"]]
)
def test_a_plan_that_makes_no_sense_is_refused(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "joulemap.meters.live.kit", str(tmp_path), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "error:" in ran.stderr


def test_a_tree_that_cannot_be_written_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "class").write_text("in the way")
    with pytest.raises(SetupError) as caught, FakeTree(TreePlan(), root=tmp_path):
        pass
    assert caught.value.slug == "kit-failed"
    assert capfd.readouterr().err


@pytest.mark.parametrize("text", ["vanish@2.0", "freeze@0.5+1.5:package-0", "text@1.0+0.25"])
def test_faults_are_written_as_they_are_read(text: str) -> None:
    assert KitFault.parse(text).format() == text


def test_a_wave_gives_its_mean_over_whole_periods_and_its_power_in_between() -> None:
    for shape in WaveShape:
        wave = PowerWave(mean_w=20.0, swing_w=10.0, period_s=0.2, shape=shape)
        assert wave.energy_j(10**9, 2 * 10**9) == pytest.approx(20.0, rel=1e-9)
        at = 12_345_678_901
        assert wave.mean_power_w(at, at + 1000) == pytest.approx(wave.power_w(at + 500), rel=1e-4)
