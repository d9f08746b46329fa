"""What a mark costs: beside a context manager that does nothing, Zeus's window, and CodeCarbon's task API.

    python benchmarks/bench_markers.py

Processor time of the thread, so that a busy machine does not count. The peers are measured where they are installed.
"""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from ratios import print_ratio

from joulemap.meters.live.ground.waves import PowerWave
from joulemap.meters.live.kit import FakeTree, TreePlan
from joulemap.meters.live.marking import Mark, MarkSink, install_sink

_MARKS = 20_000
_LIMIT_NS = 1000.0


class _Nothing:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        pass


def _run_marks() -> None:
    for _ in range(_MARKS):
        with Mark("step"):
            pass


def _run_nested() -> None:
    for _ in range(_MARKS // 2):
        with Mark("outer"), Mark("inner"):
            pass


def _run_nothing() -> None:
    for _ in range(_MARKS):
        with _Nothing("step"):
            pass


def cost_ns(run: Callable[[], None], times: int, rounds: int = 15) -> float:
    """Returns the median processor time of one of ``times``, ns."""
    run()
    costs = []
    for _ in range(rounds):
        began = time.thread_time_ns()
        run()
        costs.append((time.thread_time_ns() - began) / times)
    return statistics.median(costs)


def cost_of_zeus_ns() -> float | None:
    """Returns what a window of Zeus costs on a fake tree; None where it is not installed."""
    try:
        from zeus.device.cpu import rapl
        from zeus.monitor import ZeusMonitor
    except ImportError:
        return None
    with FakeTree(TreePlan(wave=PowerWave(mean_w=65.0))) as tree:
        rapl.RAPL_DIR = str(tree.root / "class" / "powercap" / "intel-rapl")
        monitor = ZeusMonitor(gpu_indices=[], cpu_indices=[0])

        def run() -> None:
            for _ in range(50):
                monitor.begin_window("step")
                monitor.end_window("step")

        return cost_ns(run, 50, 5)


def cost_of_codecarbon_ns() -> float | None:
    """Returns what a task of CodeCarbon costs; None where it is not installed."""
    try:
        from codecarbon import OfflineEmissionsTracker
    except ImportError:
        return None
    logging.disable(logging.CRITICAL)
    tracker = OfflineEmissionsTracker(country_iso_code="DEU", save_to_file=False, log_level="critical")
    tracker.start_task("warm-up")
    tracker.stop_task("warm-up")

    def run() -> None:
        for k in range(3):
            tracker.start_task(f"{time.monotonic_ns()} {k}")
            tracker.stop_task()

    cost = cost_ns(run, 3, 3)
    logging.disable(logging.NOTSET)
    return cost


def main() -> None:
    install_sink(None)
    off = cost_ns(_run_marks, _MARKS)
    nothing = cost_ns(_run_nothing, _MARKS)
    with tempfile.TemporaryDirectory() as folder:
        sink = MarkSink(Path(folder))
        install_sink(sink)
        costs = SimpleNamespace(plain=cost_ns(_run_marks, _MARKS), nested=cost_ns(_run_nested, _MARKS))
        install_sink(None)
        sink.close()
    print(f"a mark: {costs.plain:.0f} ns, nested {costs.nested:.0f} ns, with nobody recording {off:.0f} ns;"
          f" a context manager that does nothing: {nothing:.0f} ns")  # fmt: skip
    print_ratio("a mark, in us (processor time)", costs.plain / 1e3, target="<= 1", met=costs.plain <= _LIMIT_NS)
    print_ratio("a nested mark, in us", costs.nested / 1e3, target="<= 1", met=costs.nested <= _LIMIT_NS)
    print_ratio("a mark to a context manager that does nothing", costs.plain / nothing, target="", met=None)
    for name, peer in (("Zeus's window", cost_of_zeus_ns()), ("CodeCarbon's task", cost_of_codecarbon_ns())):
        if peer is None:
            print(f"{name}: not installed here")
        else:
            print_ratio(
                f"{name} ({peer / 1e3:.4g} us) to a mark", peer / costs.plain, target="> 1", met=peer > costs.plain
            )


if __name__ == "__main__":
    main()
