"""Exact integration against the limits of memory, numpy and pandas: targets A1 to A8.

Run: python benchmarks/bench_integrate.py [--samples 2e8] [--slices 1e6] [--rounds 5]   (6 GB and four minutes)

Data: 80..120 W uniform noise with a 150 W square wave, float32, 2 MS/s; slices start anywhere and last 1 us to 100 ms
(log-uniform), so they overlap. A8 takes log-normal power over many decades, where a plain prefix sum fails, and
compares with exactly rounded sums.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import math
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))  # a script finds its neighbour by its own folder
from ratios import print_ratio, time_in_turn

from joulemap.estimate import Boundary, Provenance
from joulemap.trace import (
    Channel,
    Clock,
    ClockKind,
    EnergyTrace,
    KernelKind,
    SensorKernel,
    integrate_energy,
    kernels,
)
from joulemap.trace.kernels.compiling import vectorised

STEP_NS = 500
TARGET_SAMPLES = 200_000_000  # the speed targets are stated at this size; below it their verdict is n/a
START_NS = 1_700_000_000_000_000_000
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def build_trace(power_w: NDArray[np.float32], edges_ns: Ints | None = None) -> EnergyTrace:
    return EnergyTrace(
        clock=Clock(name="bench", kind=ClockKind.UTC),
        channel=Channel(
            name="rail",
            boundary=Boundary.RAIL,
            provenance=Provenance.SIMULATED,
            kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=STEP_NS * 1e-9),
        ),
        power_w=power_w,
        start_ns=START_NS,
        period_s=STEP_NS * 1e-9 if edges_ns is None else None,
        edges_ns=edges_ns,
    )


def draw_power(n: int) -> NDArray[np.float32]:
    power_w = np.random.default_rng(1).random(n, dtype=np.float32)
    power_w *= 40
    power_w += 80
    for begin in range(20_000, n, 40_000):
        power_w[begin : begin + 20_000] += 150
    return power_w


def draw_edges(n: int) -> Ints:
    edges_ns = np.random.default_rng(3).integers(400, 601, n + 1, dtype=np.int64)
    edges_ns[0] = START_NS
    return np.cumsum(edges_ns, out=edges_ns)


def draw_slices(m: int, span_ns: int) -> tuple[Ints, Ints]:
    rng = np.random.default_rng(2)
    longest = min(1e8, span_ns / 4)
    duration = np.exp(rng.uniform(math.log(1e3), math.log(longest), m)).astype(np.int64)
    start = START_NS + rng.integers(0, span_ns - int(longest), m)
    return start, start + duration


def judge(samples: int, met: bool) -> bool | None:
    return met if samples >= TARGET_SAMPLES else None


def run_speed(samples: int, slices: int, rounds: int) -> None:
    power_w = draw_power(samples)
    trace = build_trace(power_w)
    few = draw_slices(max(1, slices // 10), samples * STEP_NS)
    many = draw_slices(slices, samples * STEP_NS)
    prepared = prepare_uniform(few)

    def kernel() -> None:
        index, offset_ns, order, opened, energy = prepared
        kernels.integrate_uniform(
            trace.power_w, float(STEP_NS), index, offset_ns, order, trace.runs, False, 0.0, opened, energy
        )

    calls: dict[str, Callable[[], object]] = {
        "read": lambda: read_all(power_w),
        "kernel": kernel,
        "whole": lambda: integrate_energy(trace, *many, backend="numba"),
        "numpy": lambda: integrate_energy(trace, *many, backend="numpy"),
        "cumsum": functools.partial(cumsum_gather, power_w, many),
    }
    taken = time_in_turn(calls, rounds=rounds)
    print(f"  read {samples / taken['read'] / 1e9:.2f} Gsample/s; whole {taken['whole']:.3f} s; {slices:.0e} slices")
    ratio = taken["kernel"] / taken["read"]
    print_ratio(
        f"A1 kernel / bare read, {slices // 10:.0e} slices", ratio, target="<= 1.5", met=judge(samples, ratio <= 1.5)
    )
    ratio = taken["whole"] / taken["read"]
    print_ratio("A2 whole with sort / bare read", ratio, target="<= 7", met=judge(samples, ratio <= 7))
    ratio = taken["cumsum"] / taken["whole"]
    print_ratio("A3 np.cumsum + gather / whole", ratio, target=">= 8", met=judge(samples, ratio >= 8))
    ratio = taken["cumsum"] / taken["numpy"]
    print_ratio("   np.cumsum + gather / our numpy reference", ratio, target="", met=None)

    count = 10 * slices
    unsorted = draw_slices(count, samples * STEP_NS)
    calls = {
        "whole": lambda: integrate_energy(trace, *unsorted, backend="numba"),
        "cumsum": functools.partial(cumsum_gather, power_w, unsorted),
    }
    taken = time_in_turn(calls, rounds=rounds)
    ratio = taken["cumsum"] / taken["whole"]
    label = f"A6 np.cumsum + gather / whole, {count:.0e} unsorted slices"
    print_ratio(label, ratio, target=">= 2.5", met=judge(samples, ratio >= 2.5))


def cumsum_gather(power_w: NDArray[np.float32], slices: tuple[Ints, Ints]) -> Floats:
    """What numpy's users write: a float64 prefix sum, read at both bounds with their fractions."""
    prefix = np.empty(power_w.size + 1)
    prefix[0] = 0
    np.cumsum(power_w, dtype=np.float64, out=prefix[1:])
    at = []
    for bounds in slices:
        index, rest = np.divmod(bounds - START_NS, STEP_NS)
        at.append(prefix[index] + rest / STEP_NS * power_w[index])
    return (at[1] - at[0]) * (STEP_NS * 1e-9)


def run_speed_frames(samples: int, slices: int, rounds: int) -> None:
    """A5: what users of data frames write, a prefix sum looked up by merge_asof; both must say the same first."""
    label = f"A5 pandas merge_asof on a prefix / whole, {samples:.0e} samples"
    if importlib.util.find_spec("pandas") is None:
        print_ratio(label, float("nan"), target=">= 10", met=None)
        return
    import pandas as pd

    power_w = draw_power(samples)
    trace = build_trace(power_w)
    many = draw_slices(slices, samples * STEP_NS)

    def merge_asof() -> Floats:
        frame = pd.DataFrame({"k": np.arange(samples, dtype=np.int64), "power_w": power_w})
        frame["before"] = frame.power_w.astype("f8").cumsum() - frame.power_w
        at = []
        for bounds in many:
            index, rest = np.divmod(bounds - START_NS, STEP_NS)
            query = pd.DataFrame({"k": index, "part": rest / STEP_NS, "row": np.arange(slices)}).sort_values("k")
            found = pd.merge_asof(query, frame, on="k")
            out = np.empty(slices)
            out[found.row.to_numpy()] = (found.before + found.part * found.power_w).to_numpy()
            at.append(out)
        return (at[1] - at[0]) * (STEP_NS * 1e-9)

    own = integrate_energy(trace, *many, backend="numba").energy_j
    assert np.allclose(merge_asof(), own, rtol=1e-5, atol=1e-9)
    calls = {"whole": lambda: integrate_energy(trace, *many, backend="numba"), "pandas": merge_asof}
    taken = time_in_turn(calls, rounds=rounds)
    ratio = taken["pandas"] / taken["whole"]
    print_ratio(label, ratio, target=">= 10", met=judge(10 * samples, ratio >= 10))


def prepare_uniform(slices: tuple[Ints, Ints]) -> tuple[Ints, Floats, Ints, Floats, Floats]:
    bounds = np.concatenate(slices) - START_NS
    order = np.argsort(bounds)
    index, rest = np.divmod(bounds[order], STEP_NS)
    m = slices[0].size
    return index, rest.astype(np.float64), order, np.empty((m, 4)), np.empty(m)


@vectorised
def read_all(power_w: NDArray[np.float32]) -> float:
    total = 0.0
    for k in range(len(power_w)):
        total += np.float64(power_w[k])
    return total


def run_speed_edges(samples: int, slices: int, rounds: int) -> None:
    power_w, edges_ns = draw_power(samples), draw_edges(samples)
    trace = build_trace(power_w, edges_ns)
    many = draw_slices(slices, int(edges_ns[-1] - edges_ns[0]))

    def cumsum_searchsorted() -> Floats:
        prefix = np.empty(samples + 1)
        prefix[0] = 0
        np.cumsum(power_w * np.diff(edges_ns).astype(np.float64), out=prefix[1:])
        bounds = np.concatenate(many)
        order = np.argsort(bounds)
        ordered = bounds[order]
        index = np.searchsorted(edges_ns, ordered, "right") - 1
        at = np.empty(ordered.size)
        at[order] = prefix[index] + (ordered - edges_ns[index]) * power_w[index].astype(np.float64)
        return (at[slices:] - at[:slices]) * 1e-9

    calls = {"whole": lambda: integrate_energy(trace, *many, backend="numba"), "cumsum": cumsum_searchsorted}
    taken = time_in_turn(calls, rounds=rounds)
    ratio = taken["cumsum"] / taken["whole"]
    print_ratio(
        "A4 cumsum + sorted searchsorted / whole, non-uniform", ratio, target=">= 10", met=judge(samples, ratio >= 10)
    )


def run_accuracy(samples: int) -> None:
    rng = np.random.default_rng(7)
    power_w = np.exp(rng.normal(0, 6, samples)).astype(np.float32)
    rows = 400
    for edges_ns in (None, draw_edges(samples)):
        trace = build_trace(power_w, edges_ns)
        start, end = draw_slices(rows, samples * STEP_NS * 4 // 5)
        bounds = np.concatenate([start, end])
        order = np.argsort(bounds)
        exact = np.array([sum_exactly(trace, a, b) for a, b in zip(start.tolist(), end.tolist(), strict=True)])
        for carry in (0.0, 1e13):
            opened, energy = np.empty((rows, 4)), np.empty(rows)
            if edges_ns is None:
                index, rest = np.divmod(bounds[order] - START_NS, STEP_NS)
                kernels.integrate_uniform(
                    trace.power_w,
                    float(STEP_NS),
                    index,
                    rest.astype(np.float64),
                    order,
                    trace.runs,
                    False,
                    carry,
                    opened,
                    energy,
                )
            else:
                kernels.integrate_edges(
                    trace.power_w, edges_ns, bounds[order], np.empty(0), order, trace.runs, False, carry, opened, energy
                )
            error = float(np.max(np.abs(energy - exact) / exact))
            name = "uniform" if edges_ns is None else "non-uniform"
            print_ratio(
                f"A8 worst relative error, {name}, carry {carry:.0e}", error, target="<= 1e-12", met=error <= 1e-12
            )
        error = float(
            np.max(np.abs(integrate_energy(trace, start, end, backend="numpy").energy_j * 1e9 - exact) / exact)
        )
        print_ratio(f"A8 the same by the numpy reference, {name}", error, target="<= 1e-12", met=error <= 1e-12)


def sum_exactly(trace: EnergyTrace, start: int, end: int) -> float:
    """Energy of one slice in W ns, exactly rounded: products of float32 and whole ns are exact in float64."""
    if trace.edges_ns is None:
        first, last = (start - START_NS) // STEP_NS, -(-(end - START_NS) // STEP_NS)
        edges = START_NS + np.arange(first, last + 1) * STEP_NS
    else:
        first = int(np.searchsorted(trace.edges_ns, start, "right")) - 1
        last = int(np.searchsorted(trace.edges_ns, end, "left"))
        edges = trace.edges_ns[first : last + 1]
    widths = np.diff(np.clip(edges, start, end)).astype(np.float64)
    return math.fsum(trace.power_w[first:last].astype(np.float64) * widths)


def measure_memory(samples: int, slices: int) -> float:
    """Peak of anonymous memory above what trace and slices hold themselves, MiB, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_memory, (samples, slices))


def _memory(samples: int, slices: int) -> float:
    trace = build_trace(draw_power(samples))
    start, end = draw_slices(slices, samples * STEP_NS)
    integrate_energy(trace, start[:10], end[:10], backend="numba")
    before_mib = anonymous_mib()
    peak_mib, done = [before_mib], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            peak_mib[0] = max(peak_mib[0], anonymous_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    integrate_energy(trace, start, end, backend="numba")
    done.set()
    watcher.join()
    return peak_mib[0] - before_mib


def anonymous_mib() -> float:
    """Anonymous memory of this process, MiB (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def run_threshold(rounds: int) -> None:
    """Where the compiled kernel starts to pay for the import of numba."""
    program = (
        "import time, numpy, joulemap.trace; t = time.perf_counter();"
        " import joulemap.trace.kernels as k; import numpy as n; e = n.empty(0);"
        " k.integrate_uniform(n.ones(4, 'f4'), 1.0, n.empty(0, int), e, n.empty(0, int), n.array([[0, 4]]), False, 0.0,"
        " n.empty((0, 4)), e); print(time.perf_counter() - t)"
    )
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in "123"]
    import_s = min(float(run.stdout) for run in runs)  # the first one may compile
    slope_s = {}
    for samples, slices in ((20_000_000, 100), (1_000_000, 300_000)):
        trace, bounds = build_trace(draw_power(samples)), draw_slices(slices, samples * STEP_NS)
        calls = {name: functools.partial(integrate_energy, trace, *bounds, backend=name) for name in ("numba", "numpy")}
        taken = time_in_turn(calls, rounds=rounds)
        slope_s[samples, slices] = taken["numpy"] - taken["numba"]
    per_sample, per_slice = slope_s[20_000_000, 100] / 20e6, slope_s[1_000_000, 300_000] / 3e5
    print(
        f"import and cache {import_s:.2f} s; numpy is slower by {per_sample * 1e9:.2f} ns per sample and"
        f" {per_slice * 1e9:.0f} ns per slice: it pays from {import_s / per_sample:.1e} samples"
        f" + {per_slice / per_sample:.0f} per slice"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=lambda text: int(float(text)), default=TARGET_SAMPLES)
    parser.add_argument("--slices", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    run_threshold(arguments.rounds)
    print(f"{'what':<62} {'target':<12} {'ratio':>9}")
    run_speed(arguments.samples, arguments.slices, arguments.rounds)
    run_speed_edges(arguments.samples, arguments.slices, arguments.rounds)
    run_speed_frames(arguments.samples // 10, arguments.slices, arguments.rounds)
    run_accuracy(min(arguments.samples, 2_000_000))
    memory_mib = measure_memory(arguments.samples, arguments.slices)
    limit_mib = 32 + 96 * arguments.slices / 2**20
    print_ratio(
        "A7 peak memory / (32 MB + 96 B per slice)", memory_mib / limit_mib, target="<= 1", met=memory_mib <= limit_mib
    )


if __name__ == "__main__":
    main()
