"""The sampling process beside a thread of the measured program, and beside peers, on one fake powercap tree.

    python benchmarks/bench_sampler.py [SECONDS]

Jitter is how far the distance of two readings is from the period, 99th percentile, while the program's own thread runs
Python. Processor time is that of the sampling process (of the thread) per reading of every zone. Peers are measured
where they are installed.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ratios import print_ratio

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.segments import read_capture
from joulemap.meters.live.ground.waves import PowerWave
from joulemap.meters.live.kit import FakeTree, TreePlan
from joulemap.meters.live.registry import open_meter
from joulemap.meters.live.sampling.plan import NamedMeter, Priority, SamplingPlan
from joulemap.meters.live.sampling.process import SamplerProcess
from joulemap.meters.live.sampling.ring import RingWriter, open_ring_memory
from joulemap.meters.live.sampling.stream import MeterStream
from joulemap.records.live.capture_layout import EXTRA_TICK
from joulemap.records.live.domain import MeterAddress

_RATE_HZ = 1000.0
_PERIOD_NS = 1_000_000


@dataclass(frozen=True)
class Sampled:
    """p50 and p99 of the jitter, us; processor share of one core; processor time per reading, us; share achieved."""

    p50_us: float
    p99_us: float
    core: float
    each_us: float
    kept: float


def _jitter(stamps: np.ndarray, span_s: float, cpu_s: float) -> Sampled:
    off_us = np.abs(np.diff(stamps) - _PERIOD_NS) / 1e3
    p50, p99 = np.percentile(off_us, [50, 99])
    return Sampled(p50, p99, cpu_s / span_s, cpu_s / stamps.size * 1e6, stamps.size / (span_s * _RATE_HZ))


def _work(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        total = 0
        for k in range(1000):
            total += k * k


def sample_by_process(
    address: MeterAddress, seconds: float, work: Callable[[float], None], priority: Priority
) -> Sampled:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "capture"
        plan = SamplingPlan(
            meters=(NamedMeter(name="powercap", address=address),), rate_hz=_RATE_HZ, session="bench", file=str(file),
            priority=priority,
        )  # fmt: skip
        sampler = SamplerProcess(plan)
        sampler.start()
        before, began = _cpu_s(sampler.pid), time.monotonic()
        work(seconds)
        span_s, cpu_s = time.monotonic() - began, _cpu_s(sampler.pid) - before
        sampler.stop()
        rows = read_capture(file, FindingLog()).rows[0]
        stamps = rows.stamp_ns[rows.tick != EXTRA_TICK]
    return _jitter(stamps, span_s, cpu_s)


def sample_by_thread(address: MeterAddress, seconds: float, work: Callable[[float], None]) -> Sampled:
    meter = open_meter(address)
    raw = np.empty(len(meter.domains))
    stamps: list[int] = []
    cpu: list[float] = []
    stopped = threading.Event()

    def run() -> None:
        began_ns, number = time.monotonic_ns(), 0
        cpu_ns = time.thread_time_ns()
        while not stopped.is_set():
            number = max(number + 1, (time.monotonic_ns() - began_ns) // _PERIOD_NS)
            left_ns = began_ns + number * _PERIOD_NS - time.monotonic_ns()
            if left_ns > 0:
                time.sleep(left_ns * 1e-9)
            meter.read(raw)
            stamps.append(time.monotonic_ns())
        cpu.append((time.thread_time_ns() - cpu_ns) * 1e-9)

    thread = threading.Thread(target=run)
    began = time.monotonic()
    thread.start()
    work(seconds)
    stopped.set()
    span_s = time.monotonic() - began
    thread.join()
    meter.close()
    return _jitter(np.array(stamps), span_s, cpu[0])


def _cpu_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) * 1e-9


def cost_of_read_us(read: Callable[[], object], times: int = 2000) -> float:
    """Returns the median processor time of one reading, us, over blocks of 100."""
    costs = []
    for _ in range(times // 100):
        began = time.thread_time_ns()
        for _ in range(100):
            read()
        costs.append((time.thread_time_ns() - began) / 100e3)
    return statistics.median(costs)


def _cost_of_ours_us(address: MeterAddress) -> float:
    """Returns what one reading of every zone costs in the sampling loop, stamps and shared memory included, us."""
    meter = open_meter(address)
    widths = [len(meter.domains)]
    stream = MeterStream(
        0, "powercap", meter, every=1, capacity=4096, reopen=open_meter, note=lambda *_: None, now_ns=time.monotonic_ns
    )
    memory = open_ring_memory()
    stream.ring = RingWriter(memory, widths, 4096)

    def read() -> None:
        stream.read(1)

    costs = []
    for _ in range(20):
        costs.append(cost_of_read_us(read, 100))
        stream.take()
    stream.close()
    os.close(memory)
    return statistics.median(costs)


def list_peers(root: Path) -> dict[str, Callable[[], object] | None]:
    """Returns how each peer reads the tree once; None where it is not installed."""
    base = str(root / "class" / "powercap" / "intel-rapl")
    peers: dict[str, Callable[[], object] | None] = dict.fromkeys(("CodeCarbon", "pyJoules", "Zeus"))
    try:
        from codecarbon.core.cpu import IntelRAPL

        rapl = IntelRAPL(rapl_dir=str(root / "class" / "powercap"))
        from codecarbon.core.units import Time

        peers["CodeCarbon"] = lambda: rapl.get_cpu_details(Time.from_seconds(1.0))
    except ImportError:
        pass
    try:
        from pyJoules.device import rapl_device

        rapl_device.RAPL_API_DIR = base
        device = rapl_device.RaplDevice()
        device.configure()
        peers["pyJoules"] = device.get_energy
    except ImportError:
        pass
    try:
        from zeus.device.cpu import rapl as zeus_rapl

        zeus_rapl.RAPL_DIR = base
        cpus = zeus_rapl.RAPLCPUs()
        peers["Zeus"] = lambda: cpus.get_total_energy_consumption(0)
    except ImportError:
        pass
    return peers


def _print(name: str, found: Sampled) -> None:
    print(f"{name:<34} jitter p50 {found.p50_us:8.1f} us  p99 {found.p99_us:9.1f} us  {found.core:6.2%} of a core"
          f"  {found.each_us:6.1f} us a reading  {found.kept:7.2%} of readings", flush=True)  # fmt: skip


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    with FakeTree(TreePlan(wave=PowerWave(mean_w=65.0))) as tree:
        address = MeterAddress(driver="powercap", options={"root": str(tree.root), "proc": str(tree.root)})
        ways: dict[str, Callable[[], Sampled]] = {
            "thread, Python load": lambda: sample_by_thread(address, seconds, _work),
            "process, Python load": lambda: sample_by_process(address, seconds, _work, Priority.NORMAL),
            "process real-time, Python load": lambda: sample_by_process(address, seconds, _work, Priority.REALTIME),
            "process, idle": lambda: sample_by_process(address, seconds, time.sleep, Priority.NORMAL),
        }
        rounds = 3
        runs: dict[str, list[Sampled]] = {}
        for _ in range(rounds):
            for name, sample in ways.items():
                runs.setdefault(name, []).append(sample())
                _print(name, runs[name][-1])
        median = {
            name: Sampled(*(statistics.median(getattr(run, key) for run in found) for key in Sampled.__annotations__))
            for name, found in runs.items()
        }
        thread, process = median["thread, Python load"], median["process, Python load"]
        ratio = process.p99_us / thread.p99_us
        print_ratio("S1 p99 jitter to an in-process thread's", ratio, target="<= 0.05", met=ratio <= 0.05)
        real = median["process real-time, Python load"].p99_us / thread.p99_us
        print_ratio("S1 the same with real-time priority", real, target="<= 0.05", met=real <= 0.05)
        print_ratio("S1 processor share of one core at 1 kHz", process.core, target="<= 0.03", met=process.core <= 0.03)
        ours_us = _cost_of_ours_us(address)
        print(f"a reading of ours without its sleep: {ours_us:.4g} us, with it {process.each_us:.4g} us")
        for name, read in list_peers(tree.root).items():
            if read is None:
                print(f"{name}: not installed here")
                continue
            peer_us = cost_of_read_us(read)
            met = ours_us < peer_us
            print_ratio(
                f"a reading of ours to one of {name} ({peer_us:.4g} us)",
                ours_us / peer_us,
                target="< 1",
                met=met,
            )


if __name__ == "__main__":
    main()
