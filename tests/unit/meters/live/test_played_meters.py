"""Meters that measure nothing: a recording that is played, an estimate from load, a simulation."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from joulemap.errors import PowerError, SetupError, UsageError
from joulemap.estimate import Provenance
from joulemap.meters.live.discovery import discover
from joulemap.meters.live.drivers.virtual import replay
from joulemap.meters.live.drivers.virtual.replay import ReplayMeter
from joulemap.meters.live.drivers.virtual.simulated import SimulatedLiveMeter
from joulemap.meters.live.ground.cpu_load import CpuLoad
from joulemap.records.live.domain import MeterAddress
from meter_readings import Hand, values
from sysfs_trees import write_proc


def replayed(path: Path, clock: Hand, **options: str) -> ReplayMeter:
    meter = ReplayMeter(MeterAddress(driver="replay", options={"file": str(path), **options}), clock)
    meter.open()
    return meter


def test_a_recording_is_played_against_the_clock(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("time_s,power_w\n0,9\n1,2\n2,4\n3,6\n")
    clock = Hand()
    meter = replayed(tmp_path / "p.csv", clock)
    seen = []
    for step in (0.0, 0.5, 1.0, 1.0):
        clock.ns += round(step * 1e9)
        seen.append(values(meter)["p"])
    assert seen == pytest.approx([0.0, 1.0, 4.0, 9.0])  # 2 W, then 4 W, then 6 W
    assert values(meter)["p power"] == 4.0
    clock.ns += 10**9
    with pytest.raises(PowerError, match="over"):
        values(meter)


def test_a_gap_of_a_recording_is_missing_and_no_time_without_energy(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("time_s,power_w\n0,1\n1,2\n2,\n3,6\n")
    clock = Hand()
    meter = replayed(tmp_path / "p.csv", clock)
    seen = []
    for step in (0.5, 1.0, 1.0):
        clock.ns += round(step * 1e9)
        seen.append(values(meter)["p"])
    assert seen[0] == pytest.approx(1.0)
    assert math.isnan(seen[1])
    assert seen[2] < seen[0]  # the counter falls: a step across the gap is lost


def test_a_recording_may_go_round_and_faster(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("time_s,energy_j\n10,100\n11,102\n12,106\n")
    clock = Hand()
    meter = replayed(tmp_path / "e.csv", clock, loop="yes", speed="2")
    clock.ns += round(2.5e9)  # 5 s of the recording: twice through it and one second more
    assert values(meter)["e"] == pytest.approx(14.0)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "time_s,power_w\n0,x\n1,2\n", "time_s,power_w\n1,1\n0,2\n"])
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(SetupError) as caught:
        replayed(tmp_path / "p.csv", Hand())
    assert caught.value.slug == "meter-unusable"


def test_an_estimate_needs_its_two_powers_and_says_what_it_is(tmp_path: Path) -> None:
    for options in ({}, {"idle_w": "5"}, {"idle_w": "9", "full_w": "5"}, {"idle_w": "x", "full_w": "5"}):
        with pytest.raises(UsageError) as caught:
            discover(["estimate"], options={"estimate": options})
        assert caught.value.slug == "meter-option"
    options = {"idle_w": "10", "full_w": "50", "proc": str(write_proc(tmp_path))}
    (candidate,) = discover(["estimate"], options={"estimate": options})
    assert candidate.domains[0].provenance is Provenance.ESTIMATED
    assert not [c for c in discover() if c.address.driver == "estimate"]


def test_utilisation_is_the_share_of_time_that_was_not_idle(tmp_path: Path) -> None:
    clock = Hand()
    stat = write_proc(tmp_path) / "stat"
    load = CpuLoad(stat, every_s=1.0, now_ns=clock)
    load.open()
    assert math.isnan(load.read())  # no interval has passed
    descriptor_text = "cpu  130 0 50 860 30 0 0 0 0 0\n"
    stat.write_text(descriptor_text)
    clock.ns += 10**9
    assert load.read() == pytest.approx(0.3)
    clock.ns += 10**9
    assert load.read() == pytest.approx(0.3)  # the kernel counted no tick since
    load.close()


def test_a_simulated_meter_is_its_power_function() -> None:
    clock = Hand()
    options = {"mean_w": "20", "swing_w": "10", "period_s": "0.5", "shape": "square"}
    meter = SimulatedLiveMeter(MeterAddress(driver="simulated", options=options), clock)
    meter.open()
    before, start_ns = values(meter)["rail"], clock.ns
    clock.ns += 123_456_789
    energy_j = values(meter)["rail"] - before
    assert energy_j == pytest.approx(meter.wave.energy_j(start_ns, clock.ns), abs=2e-6)
    power = SimulatedLiveMeter(MeterAddress(driver="simulated", options={**options, "reading": "power"}), clock)
    power.open()
    clock.ns += 10**8
    assert values(power)["rail"] == pytest.approx(power.wave.mean_power_w(clock.ns - 10**8, clock.ns))
    with pytest.raises(UsageError):
        SimulatedLiveMeter(MeterAddress(driver="simulated", options={"mean_w": "1", "swing_w": "2"}))


def test_a_device_or_a_pipe_is_not_replayed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")  # reading either would never end
    for path in (tmp_path / "pipe.csv", Path("/dev/zero")):
        (candidate,) = replay.discover_meters({"file": str(path)})
        assert "no regular file" in candidate.problem
