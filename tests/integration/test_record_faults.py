"""Meters that fail while they are recorded, on a fake tree of known truth: a gap with a finding, never a number."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.recorded.energies import estimate_energy
from joulemap.analysis.recorded.runs import measure_runs
from joulemap.estimate import Estimate
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.capture import CAPTURE_FILE
from joulemap.formats.live.segments import read_capture
from joulemap.meters.live.discovery import find_meters
from joulemap.meters.live.ground.waves import PowerWave, WaveShape
from joulemap.meters.live.kit import FakeTree, KitFault, TreePlan
from joulemap.records.recording import Recording
from joulemap.trace import EnergyTrace, integrate_between
from joulemap.workflow.record.session import SampledSession
from sysfs_trees import chip, write_tree

FAULTS = {
    "package-0": "vanish@1.5+1.2",
    "package-0/core": "freeze@2.0",
    "package-0/uncore": "backwards@2.0",
    "package-0/dram": "jump@2.0",
    "package-1": "text@1.5+1.0",
    "package-1/core": "freeze@1.2+1.6",
    "package-1/dram": "",
}


@dataclass(frozen=True)
class Recorded:
    """A recording, and the truth."""

    recording: Recording
    tree: FakeTree
    begin_ns: int
    end_ns: int

    def trace(self, domain: str) -> EnergyTrace:
        return next(t for t in self.recording.traces if t.channel.name == f"powercap:{domain}")

    def slugs(self, domain: str) -> set[str]:
        return {f.slug for f in self.recording.findings if f.message.startswith(f"powercap:{domain}:")}

    def energy_j(self, domain: str, begin_ns: int, end_ns: int) -> tuple[float, float]:
        held = integrate_between(self.trace(domain), np.array([begin_ns, end_ns], np.int64))
        return float(held.energy_j[0]), float(held.covered_s[0])

    def assert_true(self, domain: str) -> None:
        """A busy machine renews and reads late: what that is worth at the edges, the interval holds."""
        errors = MeterErrors(name="kit", gain_std=0.0, source="test")
        energy = estimate_energy(
            [measure_runs(self.trace(domain), [(self.begin_ns, self.end_ns)], [], errors=errors, update_s=0.001)]
        )
        assert isinstance(energy, Estimate)
        truth_j = self.tree.energy_j(domain, self.begin_ns, self.end_ns)
        assert energy.value == pytest.approx(truth_j, abs=energy.expanded + 0.01 * truth_j)


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    wave = PowerWave(mean_w=80.0, swing_w=30.0, period_s=0.5, shape=WaveShape.SINE)
    faults = tuple(KitFault.parse(f"{fault}:{domain}") for domain, fault in FAULTS.items() if fault)
    with FakeTree(TreePlan(wave=wave, sockets=2, faults=faults, begin_uj=100_000_000_000)) as tree:
        candidates = find_meters([f"powercap:root={tree.root},proc={tree.root}"])
        with SampledSession(candidates, rate_hz=100.0) as session:
            session.start()
            session.read_now()
            begin_ns = session.now_ns()
            time.sleep(max(0.0, 4.6 - (begin_ns - tree.start_ns) * 1e-9))
            session.read_now()
            end_ns = session.now_ns()
            yield Recorded(session.stop(), tree, begin_ns, end_ns)


def test_a_domain_without_a_fault_is_the_truth(recorded: Recorded) -> None:
    recorded.assert_true("package-1/dram")
    _, covered_s = recorded.energy_j("package-1/dram", recorded.begin_ns, recorded.end_ns)
    assert covered_s == pytest.approx((recorded.end_ns - recorded.begin_ns) * 1e-9, abs=0.05)
    assert not recorded.slugs("package-1/dram") - {"repeats_merged", "readings_failed"}


@pytest.mark.parametrize("domain", ["package-0", "package-1", "package-1/core"])
def test_what_the_counter_itself_makes_up_for_is_exact(domain: str, recorded: Recorded) -> None:
    """Files that were away, held a word, or stood still for a while: the counter went on."""
    recorded.assert_true(domain)
    assert recorded.trace(domain).lost_samples == 0
    if domain != "package-1/core":
        assert "readings_failed" in recorded.slugs(domain)


@pytest.mark.parametrize(
    ("domain", "slug"),
    [("package-0/core", "meter_frozen"), ("package-0/uncore", "counter_lost"), ("package-0/dram", "counter_lost")],
)
def test_what_cannot_be_known_is_a_gap_and_the_rest_is_the_truth(domain: str, slug: str, recorded: Recorded) -> None:
    trace = recorded.trace(domain)
    assert slug in recorded.slugs(domain)
    assert trace.lost_samples >= 1
    assert trace.edges_ns is not None
    total_j = truth_j = 0.0
    for first, last in trace.runs.tolist():
        begin_ns, end_ns = int(trace.edges_ns[first]), int(trace.edges_ns[last])
        total_j += recorded.energy_j(domain, begin_ns, end_ns)[0]
        truth_j += recorded.tree.energy_j(domain, begin_ns, end_ns)
    assert total_j == pytest.approx(truth_j, rel=0.02)
    largest_w = 1.6 * recorded.tree.energy_j(domain, 0, 10**9) * 1.5
    smooth = np.sort(trace.power_w)[: -max(3, trace.n // 50)]  # two stamps may be close together on a busy machine
    assert float(smooth.max()) < largest_w


def plug(root: Path, number: int, name: str, **files: object) -> None:
    """A chip on bus 1 at address 40, wherever the kernel numbers it now."""
    place = root / "devices" / "1-0040"
    place.mkdir(parents=True, exist_ok=True)
    write_tree(root, chip(number, name, **files))
    (root / "class" / "hwmon" / f"hwmon{number}" / "device").symlink_to(place)


@pytest.mark.parametrize(
    ("back", "notes", "goes_on"),
    [
        ({"name": "ina226", "power1_input": 3_000_000}, ["meter_lost", "meter_back"], True),
        ({"name": "ina226", "power1_input": 3_000_000, "power2_input": 9}, ["meter_lost", "meter_back"], True),
        ({"name": "ina233", "power1_input": 3_000_000}, ["meter_lost", "meter_changed"], False),
    ],
)
def test_an_instrument_that_is_plugged_in_again_goes_on_when_it_is_the_same(
    back: dict[str, object], notes: list[str], goes_on: bool, tmp_path: Path
) -> None:
    plug(tmp_path, 2, "ina226", power1_input=2_000_000)
    candidates = find_meters([f"hwmon:root={tmp_path}"])
    with SampledSession(candidates, rate_hz=50.0) as session:
        session.start()
        time.sleep(0.4)
        shutil.rmtree(tmp_path / "class" / "hwmon" / "hwmon2")
        time.sleep(0.2)
        plug(tmp_path, 5, **back)  # type: ignore[arg-type]
        time.sleep(1.6)
        session.read_now()
        recording = session.stop()
    (trace,) = recording.traces
    said = [finding.slug for finding in recording.findings if finding.slug in {*notes, "meter_changed", "meter_back"}]
    assert said == notes
    seen = np.zeros(trace.n, np.bool_)
    for first, last in trace.runs.tolist():
        seen[first:last] = True
    powers = set(np.round(trace.power_w[seen], 6).tolist())
    assert powers == ({2.0, 3.0} if goes_on else {2.0})
    assert trace.lost_samples >= 1


@pytest.mark.parametrize("resumed", ["later", "at once"])
def test_a_sampler_that_is_replaced_in_a_pause_samples_when_it_is_over(resumed: str, tmp_path: Path) -> None:
    candidates = find_meters(["simulated:mean_w=20,swing_w=10"])
    with SampledSession(candidates, rate_hz=100.0, folder=tmp_path / "live") as session:
        session.start()
        time.sleep(0.3)
        begin_ns, lost = session.pause(), session.pid
        assert begin_ns is not None
        os.kill(lost, signal.SIGKILL)
        if resumed == "later":
            wait_for_another(session, lost)
            time.sleep(0.5)
        end_ns = session.resume() or session.now_ns()
        wait_for_another(session, lost)
        time.sleep(0.5)
        recording = session.stop()
    (rows,) = read_capture(tmp_path / "live" / CAPTURE_FILE, FindingLog()).rows
    inside = int(((rows.stamp_ns > begin_ns) & (rows.stamp_ns < end_ns)).sum())
    assert inside <= 4  # the first readings of the new process, and the one at its resume
    assert int((rows.stamp_ns > end_ns).sum()) > 20
    (trace,) = recording.traces
    held = integrate_between(trace, np.array([begin_ns, end_ns, trace.end_ns], np.int64))
    assert held.covered_s[0] < 0.05
    assert held.covered_s[1] > 0.2
    said = [finding.message for finding in recording.findings if finding.slug == "sampling_paused"]
    assert "sampler_restarted" in {finding.slug for finding in recording.findings}
    if resumed == "later" or said:  # a begin that the killed process had not written yet is told as its loss alone
        assert [message.partition(" times")[0] for message in said] == ["sampling paused 1"]


def wait_for_another(session: SampledSession, lost: int) -> None:
    until_s = time.monotonic() + 30
    while session.pid == lost:
        assert time.monotonic() < until_s
        time.sleep(0.01)
