"""A trace drawn: lowest, highest and exact mean of 4,000 bins, against one np.sum over the same samples. Target V2.

Run: python benchmarks/bench_envelope.py [--samples 5e7] [--rounds 7]   (1 GB and half a minute)

V2 counts the pass of the compiled kernel over float32 (which is what meters give); float64, lost samples and the two
passes of plain numpy are shown beside it. The last line says from how many samples loading numba pays.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial

import numpy as np
from numpy.typing import NDArray
from ratios import print_ratio, time_in_turn

from joulemap.estimate import Boundary, Provenance
from joulemap.report.view.waveform.tracks import plan_edges
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel
from joulemap.trace.resample import build_envelope


def build_trace(power_w: NDArray[np.float32] | NDArray[np.float64], gaps: int, kind: KernelKind) -> EnergyTrace:
    begin = np.linspace(0, power_w.size, gaps, endpoint=False).astype(np.int64)
    return EnergyTrace(
        clock=Clock(name="instrument", kind=ClockKind.SAMPLE_INDEX),
        channel=Channel(
            name="rail",
            boundary=Boundary.RAIL,
            provenance=Provenance.SIMULATED,
            kernel=SensorKernel(kind=kind, window_s=0.0 if kind is KernelKind.POINT else 1e-6),
        ),
        power_w=power_w,
        start_ns=0,
        period_s=1e-6,
        gaps=np.stack([begin, begin + 10], axis=1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=lambda text: int(float(text)), default=50_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    power_w = np.random.default_rng(0).normal(0.01, 1e-3, arguments.samples).astype(np.float32)
    numpy_slower_s = 0.0
    for label, power, gaps, kind in (
        ("V2 envelope with its exact mean over np.sum, float32", power_w, 0, KernelKind.INTERVAL_MEAN),
        ("V2 the same of points (trapezoid)", power_w, 0, KernelKind.POINT),
        ("V2 the same with 10,000 gaps", power_w, 10_000, KernelKind.INTERVAL_MEAN),
        ("V2 the same in float64", power_w.astype(np.float64), 0, KernelKind.INTERVAL_MEAN),
    ):
        trace = build_trace(power, gaps, kind)
        edges_ns = plan_edges(trace.start_ns, trace.end_ns)
        compare(trace, edges_ns)
        taken_s = time_in_turn(
            {
                "numba": partial(build_envelope, trace, edges_ns, backend="numba"),
                "numpy": partial(build_envelope, trace, edges_ns, backend="numpy"),
                "sum": partial(np.sum, power),
            },
            rounds=arguments.rounds,
        )
        ratio = taken_s["numba"] / taken_s["sum"]
        print_ratio(label, ratio, target="<= 1.5", met=ratio <= 1.5)
        print_ratio("   by plain numpy, two passes", taken_s["numpy"] / taken_s["sum"], target="", met=None)
        numpy_slower_s = numpy_slower_s or taken_s["numpy"] - taken_s["numba"]
    program = "import time, numpy, joulemap.trace; t = time.perf_counter(); import joulemap.trace.kernels as k;"
    program += (
        " import numpy as n; p = n.ones(4, 'f4'); k.bin_uniform(p, p.view('i4'), n.int32(31), n.int32(2**31 - 1), 1.0,"
        " n.array([0, 4]), n.zeros(2), n.array([[0, 4]]), False, n.empty(1), n.empty((1, 2), 'i4'));"
        " print(time.perf_counter() - t)"
    )
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in "123"]
    import_s = min(float(run.stdout) for run in runs)  # the first one may compile
    pays = import_s / numpy_slower_s * arguments.samples
    print(f"import and cache {import_s:.2f} s: it pays from {pays:.1e} samples on")


def compare(trace: EnergyTrace, edges_ns: NDArray[np.int64]) -> None:
    """Both ways must say the same before their speed means anything."""
    one, two = (build_envelope(trace, edges_ns, backend=backend) for backend in ("numba", "numpy"))
    assert np.array_equal(one.low_w, two.low_w)
    assert np.array_equal(one.high_w, two.high_w)
    assert np.allclose(one.mean_w, two.mean_w, rtol=1e-12, atol=0)


if __name__ == "__main__":
    main()
