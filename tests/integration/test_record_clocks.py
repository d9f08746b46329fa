"""A calendar that is set and a machine that sleeps while ``record`` runs: told, and in no figure."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.recorded.energies import estimate_energy
from joulemap.analysis.recorded.runs import measure_runs
from joulemap.estimate import Estimate
from joulemap.formats.base import ReadOptions
from joulemap.formats.live.capture import CaptureReader
from joulemap.meters.live.ground.waves import PowerWave, WaveShape
from joulemap.meters.live.kit import FakeTree, KitFault, TreePlan
from joulemap.records.recording import Recording
from joulemap.trace import EnergyTrace, KernelKind, integrate_between
from stepped_clocks import SteppedClocks

S = 10**9
RECORD = [sys.executable, "-c", "from joulemap.cli.main import main; main()", "record"]
EXACT = MeterErrors(name="kit", gain_std=0.0, source="test")
WAVE = PowerWave(mean_w=60.0, swing_w=20.0, period_s=1.7, shape=WaveShape.SINE)


@dataclass(frozen=True)
class Stepped:
    """What a recording left whose clocks were stepped."""

    status: int
    document: dict[str, Any]
    recording: Recording
    bundle: Path

    @property
    def counters(self) -> list[EnergyTrace]:
        return [trace for trace in self.recording.traces if trace.channel.kernel.kind is KernelKind.COUNTER]

    def findings(self, slug: str) -> list[dict[str, Any]]:
        return [finding for finding in self.document["findings"] if finding["slug"] == slug]


@pytest.fixture
def clocks(tmp_path: Path) -> SteppedClocks:
    return SteppedClocks.build(tmp_path)


def record(tree: FakeTree, clocks: SteppedClocks, command: Sequence[str], folder: Path, rate_hz: int) -> Stepped:
    """Records a command whose clocks, and those of joulemap and its sampler, are the stepped ones."""
    meters = [f"--meter=powercap:root={tree.root},proc={tree.root}", f"--meter=hwmon:root={tree.root}"]
    done = subprocess.run(
        [*RECORD, *meters, "--rate", str(rate_hz), "--keep-capture", "--json", "-o", "r.jm", "--", *command],
        cwd=folder, env=clocks.environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert clocks.asked, "nothing asked for a clock that was shifted: the shim did not stand in between"
    document = json.loads(done.stdout[done.stdout.index("{") :])
    assert "error" not in document, done.stdout
    recording = CaptureReader().read(folder / "r.jm.live", ReadOptions())
    return Stepped(done.returncode, document, recording, folder / "r.jm")


def truth_of(tree: FakeTree, trace: EnergyTrace, begin_ns: int, end_ns: int) -> float:
    return tree.energy_j(trace.channel.name.rpartition(":")[2], begin_ns, end_ns)


@pytest.mark.parametrize(("step_s", "words"), [(3, "forward by 3 s"), (-240, "back by 240 s")])
def test_a_calendar_that_is_set_changes_no_figure(
    step_s: int, words: str, clocks: SteppedClocks, tmp_path: Path
) -> None:
    with FakeTree(TreePlan(wave=WAVE)) as tree:
        began = datetime.now(UTC)
        began_ns = time.monotonic_ns()
        command = clocks.command(at_ns=began_ns + 2 * S, utc_ns=step_s * S, boot_ns=0, rest_s=1.0)
        stepped = record(tree, clocks, command, tmp_path, 100)
        whole_s = (time.monotonic_ns() - began_ns) * 1e-9
        assert stepped.status == 0
        assert stepped.document["validity"] == "valid"
        (run,) = stepped.document["runs"]
        assert 1.0 <= run["duration_s"] <= whole_s
        for trace in stepped.counters:
            energy = estimate_energy([measure_runs(trace, [(run["start_ns"], run["end_ns"])], [], errors=EXACT)])
            assert isinstance(energy, Estimate), (trace.channel.name, stepped.recording.findings)
            truth_j = truth_of(tree, trace, run["start_ns"], run["end_ns"])
            assert energy.value == pytest.approx(truth_j, abs=energy.expanded + 0.01 * truth_j)
            assert float(np.nanmin(trace.power_w)) >= 0
            assert trace.lost_samples == 0
    (said,) = stepped.findings("clock_stepped")
    assert said["severity"] == "info"
    assert words in said["message"]
    assert not stepped.findings("machine_slept")
    told = datetime.fromisoformat(stepped.recording.metadata["began"])
    assert -1 <= (told - began).total_seconds() <= whole_s
    created = datetime.fromisoformat(json.loads((stepped.bundle / "manifest.json").read_text())["created"])
    assert -1 <= (created - began).total_seconds() <= whole_s
    assert not [track for track in stepped.recording.markers if track.clock.name == "calendar"]


def test_nothing_is_claimed_of_a_sleep(clocks: SteppedClocks, tmp_path: Path) -> None:
    """The counters stand still, begin anew, and leap on meanwhile; time before and after is the truth."""
    at_s = 5.0
    faults = tuple(
        KitFault.parse(f"{kind}@{at_s}:{domain}")
        for kind, domain in (("backwards", "package-0/core"), ("jump", "package-0/dram"), ("jump", "energy1"))
    )
    plan = TreePlan(wave=WAVE, faults=faults, range_uj=1_000_000_000, begin_uj=500_000_000)
    with FakeTree(plan) as tree:
        slept_ns = tree.start_ns + round(at_s * S)
        command = clocks.command(at_ns=slept_ns, utc_ns=30 * S, boot_ns=30 * S, rest_s=1.5)
        stepped = record(tree, clocks, command, tmp_path, 10)
        (run,) = stepped.document["runs"]
        if run["start_ns"] >= slept_ns:
            pytest.skip("the machine was too busy to begin before the sleep")
        assert run["duration_s"] < 30.0
        for trace in stepped.recording.traces:
            name = trace.channel.name
            assert trace.edges_ns is not None
            held_j = truth_j = held_s = 0.0
            for first, last in trace.runs.tolist():
                begin_ns, end_ns = int(trace.edges_ns[first]), int(trace.edges_ns[last])
                held_j += float(integrate_between(trace, np.array([begin_ns, end_ns], np.int64)).energy_j[0])
                truth_j += truth_of(tree, trace, begin_ns, end_ns)
                held_s += (end_ns - begin_ns) * 1e-9
                assert not begin_ns < slept_ns < end_ns, f"{name}: the sleep is in a figure"
            assert held_j == pytest.approx(truth_j, rel=0.02), name
            assert held_s > 0.8 * run["duration_s"], name
            assert float(np.nanmin(trace.power_w)) >= 0
    (said,) = stepped.findings("machine_slept")
    assert said["severity"] == "warning"
    assert "slept for 30 s" in said["message"]
    assert not stepped.findings("clock_stepped")
    assert not stepped.findings("counter_lost")
    assert set(run["energy_j"].values()) == {None}
    assert stepped.status == 4
