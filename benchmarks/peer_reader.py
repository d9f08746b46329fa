"""Reads a tree of sysfs with one other tool and prints what it says as JSON. Runs in the environment of that tool.

``peer_reader.py codecarbon|pyjoules|zeus SECONDS READS``: energy over about SECONDS, then READS single readings timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def main() -> None:
    peer, seconds, reads = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    print(
        json.dumps({"codecarbon": read_codecarbon, "pyjoules": read_pyjoules, "zeus": read_zeus}[peer](seconds, reads))
    )


def time_reads(read: Callable[[], object], reads: int) -> float:
    """CPU time of one reading, s."""
    read()
    before = time.process_time()
    for _ in range(reads):
        read()
    return (time.process_time() - before) / reads


def read_codecarbon(seconds: float, reads: int) -> dict[str, Any]:
    import codecarbon
    from codecarbon import OfflineEmissionsTracker
    from codecarbon.core.cpu import IntelRAPL
    from codecarbon.core.units import Time

    tracker = OfflineEmissionsTracker(
        country_iso_code="FRA", measure_power_secs=1, save_to_file=False, log_level="error", allow_multiple_runs=True
    )
    tracker.start()
    start_ns = time.monotonic_ns()
    time.sleep(seconds)
    end_ns = time.monotonic_ns()
    tracker.stop()
    energy_j = tracker.final_emissions_data.cpu_energy * 3.6e6
    rapl = IntelRAPL()
    rapl.start()
    second = Time.from_seconds(1)
    cpu_s = time_reads(lambda: rapl.get_cpu_details(second), reads)
    return {"version": codecarbon.__version__, "energy_j": energy_j, "start_ns": start_ns, "end_ns": end_ns,
            "cpu_s": cpu_s, "reads": "package"}  # fmt: skip


def read_pyjoules(seconds: float, reads: int) -> dict[str, Any]:
    from importlib.metadata import version

    from pyJoules.device.rapl_device import RaplDevice, RaplPackageDomain
    from pyJoules.energy_meter import EnergyMeter

    device = RaplDevice()
    device.configure([RaplPackageDomain(0)])
    meter = EnergyMeter([device])
    start_ns = time.monotonic_ns()
    meter.start(tag="window")
    time.sleep(seconds)
    meter.stop()
    end_ns = time.monotonic_ns()
    energy_j = next(iter(meter.get_trace()[0].energy.values())) * 1e-6
    return {"version": version("pyJoules"), "energy_j": energy_j, "start_ns": start_ns, "end_ns": end_ns,
            "cpu_s": time_reads(device.get_energy, reads), "reads": "package"}  # fmt: skip


def read_zeus(seconds: float, reads: int) -> dict[str, Any]:
    from importlib.metadata import version

    from zeus.device.cpu import get_cpus
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor(gpu_indices=[], cpu_indices=[0])
    monitor.begin_window("window", sync_execution=False)
    start_ns = time.monotonic_ns()
    time.sleep(seconds)
    end_ns = time.monotonic_ns()
    measured = monitor.end_window("window", sync_execution=False)
    energy_j = measured.cpu_energy[0]
    cpus = get_cpus()
    cpu_s = time_reads(lambda: cpus.get_total_energy_consumption(0), reads)
    return {"version": version("zeus"), "energy_j": energy_j, "start_ns": start_ns, "end_ns": end_ns,
            "cpu_s": cpu_s, "reads": "package and dram"}  # fmt: skip


if __name__ == "__main__":
    main()
