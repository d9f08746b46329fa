"""Writes two small ONNX models with seeded weights: a block of self-attention, and an LSTM over a sequence.

    python examples/make_onnx.py build/models

writes ``attention.onnx`` (16 positions of 64, 4 heads) and ``lstm.onnx`` (20 steps of 32, 64 units). Needs the package
``onnx`` (``pip install 'joulemap[host]'``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_OPSET = 17
_IR = 8


def build_attention(*, steps: int = 16, width: int = 64, heads: int = 4, seed: int = 0) -> onnx.ModelProto:
    """Returns one block: projections, scores, softmax, mixing, output, a residual sum and a feed-forward pair."""
    rng = np.random.default_rng(seed)
    depth = width // heads
    weights: dict[str, NDArray[np.generic]] = {
        name: _weights(rng, width, width) for name in ("w_query", "w_key", "w_value", "w_out")
    }
    weights |= {"w_up": _weights(rng, width, 4 * width), "w_down": _weights(rng, 4 * width, width)}
    weights |= {
        "split": np.array([0, steps, heads, depth], np.int64),
        "join": np.array([0, steps, width], np.int64),
        "scale": np.array(depth**-0.5, np.float32),
    }
    nodes = []
    for name in ("query", "key", "value"):
        turn = [0, 2, 3, 1] if name == "key" else [0, 2, 1, 3]
        nodes += [
            helper.make_node("MatMul", ["x", f"w_{name}"], [f"{name}_flat"], name=f"{name}/project"),
            helper.make_node("Reshape", [f"{name}_flat", "split"], [f"{name}_split"], name=f"{name}/split"),
            helper.make_node("Transpose", [f"{name}_split"], [name], name=f"{name}/turn", perm=turn),
        ]
    nodes += [
        helper.make_node("MatMul", ["query", "key"], ["raw"], name="attention/scores"),
        helper.make_node("Mul", ["raw", "scale"], ["scores"], name="attention/scale"),
        helper.make_node("Softmax", ["scores"], ["mix"], name="attention/softmax", axis=-1),
        helper.make_node("MatMul", ["mix", "value"], ["heads"], name="attention/mix"),
        helper.make_node("Transpose", ["heads"], ["turned"], name="attention/turn", perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["turned", "join"], ["joined"], name="attention/join"),
        helper.make_node("MatMul", ["joined", "w_out"], ["attended"], name="attention/out"),
        helper.make_node("Add", ["x", "attended"], ["summed"], name="attention/residual"),
        helper.make_node("MatMul", ["summed", "w_up"], ["up"], name="feed/up"),
        helper.make_node("Relu", ["up"], ["active"], name="feed/relu"),
        helper.make_node("MatMul", ["active", "w_down"], ["down"], name="feed/down"),
        helper.make_node("Add", ["summed", "down"], ["y"], name="feed/residual"),
    ]
    shape: list[int | str] = ["batch", steps, width]
    return _model("attention", nodes, (shape, shape), weights)


def build_lstm(*, steps: int = 20, width: int = 32, hidden: int = 64, seed: int = 0) -> onnx.ModelProto:
    """Returns an LSTM over a sequence and a classifier of ten classes on its last state."""
    rng = np.random.default_rng(seed)
    weights: dict[str, NDArray[np.generic]] = {
        "w": _weights(rng, 4 * hidden, width)[None],
        "r": _weights(rng, 4 * hidden, hidden)[None],
        "b": np.zeros((1, 8 * hidden), np.float32),
        "w_class": _weights(rng, hidden, 10),
        "b_class": np.zeros(10, np.float32),
        "flat": np.array([1, hidden], np.int64),
    }
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["", "last"], name="lstm", hidden_size=hidden),
        helper.make_node("Reshape", ["last", "flat"], ["state"], name="flatten"),
        helper.make_node("Gemm", ["state", "w_class", "b_class"], ["logits"], name="classify"),
        helper.make_node("Softmax", ["logits"], ["y"], name="softmax", axis=-1),
    ]
    return _model("lstm", nodes, ([steps, 1, width], [1, 10]), weights)


def _weights(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.float32]:
    return rng.normal(0.0, rows**-0.5, (rows, columns)).astype(np.float32)


def _model(
    name: str,
    nodes: list[onnx.NodeProto],
    shapes: tuple[Sequence[int | str], Sequence[int | str]],
    weights: dict[str, NDArray[np.generic]],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shapes[0])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shapes[1])],
        [numpy_helper.from_array(array, name=key) for key, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = _IR
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Writes both models into the folder that the command line names."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/models")
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in (("attention", build_attention()), ("lstm", build_lstm())):
        path = folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        print(f"{path}: {len(model.graph.node)} nodes, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
