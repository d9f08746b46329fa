"""The sampling process as its owner sees it: its plan, its priority, its shared memory, its begin and end."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import UsageError
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.segments import read_capture
from joulemap.meters.live.sampling.clocks import read_clocks
from joulemap.meters.live.sampling.plan import NamedMeter, Priority, SamplingPlan
from joulemap.meters.live.sampling.process import SamplerProcess
from joulemap.meters.live.sampling.ring import RingReader, RingWriter, open_ring_memory
from joulemap.records.live.domain import MeterAddress


def test_a_short_slice_is_asked_for_and_leaves_policy_and_nice_alone() -> None:
    code = (
        "import os\n"
        "from joulemap.meters.live.sampling.plan import Priority\n"
        "from joulemap.meters.live.sampling.scheduling import request_short_slice, take_priority\n"
        "before = os.nice(0), os.sched_getscheduler(0), os.sched_getaffinity(0)\n"
        "granted = request_short_slice(), request_short_slice()\n"
        "print(*granted, take_priority(Priority.NORMAL))\n"
        "assert before == (os.nice(0), os.sched_getscheduler(0), os.sched_getaffinity(0))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() in (["True", "True", "normal"], ["False", "False", "normal"])
    linux = sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"}
    if linux and tuple(map(int, platform.release().split(".")[:2])) >= (6, 12):
        assert done.stdout.startswith("True")


def test_a_live_reader_sees_each_row_once_and_counts_what_it_missed() -> None:
    memory = open_ring_memory()
    writer = RingWriter(memory, [1, 2], 8)
    reader = RingReader(memory, [1, 2], 8)
    for k in range(5):
        writer.write(1, k, np.array([k, -k], np.float64).data)
    rows = reader.read(1)
    assert rows.stamp_ns.tolist() == [0, 1, 2, 3, 4]
    assert rows.lost == 0
    assert reader.read(1).stamp_ns.size == 0
    for k in range(5, 25):
        writer.write(1, k, np.array([k, -k], np.float64).data)
    rows = reader.read(1)
    assert rows.stamp_ns.tolist() == list(range(18, 25))  # the place of the next row counts as gone
    assert rows.lost == 13
    np.testing.assert_array_equal(rows.raw[:, 1], -np.arange(18.0, 25.0))
    os.close(memory)


def test_a_plan_survives_the_trip() -> None:
    plan = SamplingPlan(
        meters=(NamedMeter(name="a", address=MeterAddress(driver="simulated", options={"mean_w": "3"})),),
        rate_hz=12.5,
        session="s",
        file="x",
        priority=Priority.NICE,
    )
    back = SamplingPlan.from_line(plan.to_line())
    assert (back.rate_hz, back.priority, back.file) == (12.5, Priority.NICE, "x")
    assert dict(back.meters[0].address.options) == {"mean_w": "3"}
    with pytest.raises(ValueError, match="rate"):
        SamplingPlan(meters=plan.meters, rate_hz=0.0, session="s")


def test_clocks_are_read_together() -> None:
    first, second = read_clocks(), read_clocks()
    assert second.monotonic_ns >= first.monotonic_ns
    assert first.width_ns >= 0


def plan_of(file: Path, **options: str) -> SamplingPlan:
    address = MeterAddress(driver="simulated", options=options)
    return SamplingPlan(
        meters=(NamedMeter(name="simulated", address=address),), rate_hz=100.0, session="s", file=str(file)
    )


def test_a_process_that_cannot_open_its_meter_says_why(tmp_path: Path) -> None:
    sampler = SamplerProcess(plan_of(tmp_path / "c", colour="red"))
    with pytest.raises(UsageError) as caught:
        sampler.start()
    assert caught.value.slug == "meter-option"
    sampler.stop()


def test_a_process_loads_nothing_heavy(tmp_path: Path) -> None:
    """The modules of the entry, as the process imports them."""
    import subprocess
    import sys

    heavy = "numba pyarrow scipy pandas rich click"
    program = (
        "import sys, joulemap.meters.live.sampling.entry, joulemap.meters.live.drivers.virtual.simulated, "
        "joulemap.meters.live.drivers.host.powercap\n"
        f"print([m for m in {heavy.split()!r} if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout.strip() == "[]"


def test_a_process_reads_when_asked_and_ends_when_told(tmp_path: Path) -> None:
    file = tmp_path / "c"
    sampler = SamplerProcess(plan_of(file))
    sampler.start()
    pid = sampler.pid
    first = sampler.read_now()
    second = sampler.read_now()
    assert first is not None
    assert second is not None
    assert second > first
    assert sampler.pause() is not None
    assert sampler.resume() is not None
    end = sampler.stop()
    assert end.status == 0
    assert end.told["reason"] == "stopped"
    assert not Path(f"/proc/{pid}").exists()
    capture = read_capture(file, FindingLog())
    assert capture.ended
    assert len(capture.pauses) == 1
    assert sampler.read_now() is None
