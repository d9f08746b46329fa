"""What attribution and the simulated meter cost, against the least that any of them must do to the same samples.

    python benchmarks/bench_attribution.py

By overlap a run of R captures is set against a running sum over their samples, by least squares against one product
of a design of that size with itself; the meter against drawing one normal number per sample, which is most of it.
Boards are synthetic, gates last about 2.3 s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from ratios import print_ratio, time_in_turn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from joulemap.analysis.attribute import account_energy
from joulemap.meters.drivers.simulated import SimulatedMeter
from joulemap.meters.rail_integral import RailIntegral
from joulemap.meters.registry import instrument
from joulemap.trace import EnergyTrace
from synthetic_board import BOUNDARY, Board, ad01, build_board, kws, measure

REPEATS = 5
CASES = (("virtual-shunt", 12.0), ("virtual-10k", 40.0))


def many() -> Board:
    """Returns a board of 10,000 inferences of ten layers, 231 us each."""
    return build_board("10,000 inferences", (23e-6,) * 10, count=10_000, head_s=1e-6, loop_s=0.0)


def _running_sums(traces: Sequence[EnergyTrace]) -> Callable[[], object]:
    return lambda: [np.cumsum(trace.power_w, dtype=np.float64) for trace in traces]


def _product(board: Board, samples: int) -> Callable[[], object]:
    design = np.random.default_rng(0).random((samples, 4 * len(board.layers) + 1))
    return lambda: design.T @ design


def main() -> None:
    for board in (kws(), ad01(), many()):
        for name, limit in CASES:
            spec = instrument(name)
            run = measure(board, spec, seed=0, repeats=REPEATS)
            traces = [c.observation.result.recording.trace for c in run.captures if c.observation.result is not None]
            samples = sum(trace.n for trace in traces)
            least = _running_sums(traces) if spec.rate_hz > 1e5 else _product(board, samples)
            account = partial(account_energy, board.profile, run, board.layers, ops_per_inference=1, boundary=BOUNDARY)
            spent_s = time_in_turn({"account": account, "least": least})
            each_ms = spent_s["account"] / REPEATS * 1e3
            label = f"{board.name}, {name}: {samples:.3g} samples, {each_ms:.1f} ms a capture"
            ratio = spent_s["account"] / spent_s["least"]
            print_ratio(label, ratio, target=f"<= {limit:g}", met=ratio <= limit)
    board = kws()
    integral = RailIntegral.build(board.rail)
    meter = SimulatedMeter(instrument("virtual-shunt"), lambda: board.rail, 0)
    rng = np.random.default_rng(0)

    def capture() -> object:
        meter.arm(repeat=1)
        return meter.record(integral)

    samples = round(integral.duration_s * 1e6)
    spent_s = time_in_turn({"meter": capture, "noise": lambda: rng.standard_normal(samples, np.float32)})
    ratio = spent_s["meter"] / spent_s["noise"]
    print_ratio(f"meter, 1 MS/s: {spent_s['meter'] * 1e3:.0f} ms a capture", ratio, target="<= 8", met=ratio <= 8)


if __name__ == "__main__":
    main()
