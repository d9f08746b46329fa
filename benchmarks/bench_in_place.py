"""What operators repeated in place and the gap miss of their model's time: the error of an energy by repetition.

    python benchmarks/bench_in_place.py [MODEL...] [--threads 1] [--operators 12] [--rounds 9] [--cached]

Without models it takes the light models of the package ``onnx``, the two of ``examples/make_onnx.py``, and rows of
dense layers, one that no cache holds and some that a cache does. Operators that read their weights as fast as only
caches give them are not repeated; with ``--cached`` they are, which shows why. Wants a quiet machine: a neighbour's
turn falls into one window and not into another.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from ratios import print_ratio

from joulemap.analysis.host.plan import plan_loads
from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.base import RuntimeSession
from joulemap.runtimes.registry import choose_runtime
from joulemap.workflow.host.context import operator_shares
from joulemap.workflow.host.inputs import build_inputs
from joulemap.workflow.host.load_stages import find_times, settle
from joulemap.workflow.host.windows.weight_room import find_room

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from make_onnx import build_attention, build_lstm

_WHOLE = 0.99
_ROWS = ((48, 1024), (10, 128), (8, 256), (12, 512))
_LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def build_dense(*, layers: int, width: int) -> onnx.ModelProto:
    """Returns dense layers one after the other."""
    rng = np.random.default_rng(0)
    nodes, weights = [], []
    for k in range(layers):
        array = (rng.standard_normal((width, width)) / width**0.5).astype(np.float32)
        weights.append(numpy_helper.from_array(array, f"w{k}"))
        nodes.append(helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"x{k + 1}"], name=f"dense{k}"))
    ends = [helper.make_tensor_value_info(f"x{k}", TensorProto.FLOAT, [1, width]) for k in (0, layers)]
    graph = helper.make_graph(nodes, "dense", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def write_models(folder: Path) -> Iterator[Path]:
    """Writes the made models and lists the others."""
    rows = ((f"dense_{layers}x{width}", build_dense(layers=layers, width=width)) for layers, width in _ROWS)
    for name, made in (("attention", build_attention()), ("lstm", build_lstm()), *rows):
        path = folder / f"{name}.onnx"
        path.write_bytes(made.SerializeToString())
        yield path
    yield from sorted(_LIGHT.glob("*.onnx"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """What copies and gap miss of a model's time, relative.

    Args:
        off: over all rounds.
        spread: standard deviation of a round.
        limit: declared by the runtime.
        share: of the operators' time that was repeated.
    """

    off: float
    spread: float
    limit: float
    share: float


def miss(model: Path, given: argparse.Namespace) -> Missed:
    """Measures it."""
    chosen = choose_runtime("", model)
    session = chosen.open(SessionRequest(model=model, threads=given.threads, batch=1), time.perf_counter_ns)
    session.feed(build_inputs(session.model.inputs, batch=1, file=None, seed=0))
    latency_s = settle(session, 1.0)
    shares = operator_shares(find_times(session, latency_s, lambda _: None))
    room = find_room(session, shares * latency_s)
    kept = frozenset() if given.cached else room.cached
    loads = plan_loads(shares, session.repeatable - kept, most=given.operators, room=room)
    told = [k for load in loads for k in load.operators]
    error = chosen.traits.in_place_error
    bare = session.bare()
    gap_s = 0.0 if bare is None else settle(bare, 0.05)
    missed = []
    for _ in range(given.rounds):
        found = gap_s / latency_s - 1.0
        for load in loads:  # a new session each time: where its memory lies is part of what differs
            base, repeated = session.again(), session.repeated(load.operators, load.copies)
            found += time_ratio(repeated, base, given.window_s) / (load.copies - 1)
            base.close()
            repeated.close()
        missed.append(found)
    return Missed(
        off=statistics.median(missed),
        spread=statistics.stdev(missed),
        limit=error.half_width(latency_s, executions=len(told)) / latency_s,
        share=float(shares[told].sum()),
    )


def time_ratio(repeated: RuntimeSession, base: RuntimeSession, window_s: float) -> float:
    """Returns by how much more an execution takes, relative: both take turns, so a neighbour's load meets both."""
    counts = {opened: max(round(window_s / 4 / settle(opened, 0.02)), 2) for opened in (repeated, base)}
    turns = [[float(np.median(opened.run(count))) for opened, count in counts.items()] for _ in range(4)]
    return statistics.median(more_s / base_s for more_s, base_s in turns) - 1.0


def main() -> None:
    """Prints a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--operators", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--window-s", type=float, default=0.1)
    parser.add_argument("--cached", action="store_true", help="repeat operators, too, that read weights from a cache")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for model in given.models or write_models(Path(folder)):
            found = miss(model, given)
            if found.share < _WHOLE:
                print(f"{model.stem}: {found.share:.0%} of the operators' time is repeated: nothing to add up")
                continue
            label = f"{model.stem}: missed of the whole (sd of a round {found.spread:.1%})"
            print_ratio(label, found.off, target=f"within {found.limit:.1%}", met=abs(found.off) <= found.limit)


if __name__ == "__main__":
    main()
