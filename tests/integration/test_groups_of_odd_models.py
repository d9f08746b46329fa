"""Groups of operators that runtimes execute again after the model: odd nodes, odd values, many operators."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from joulemap.errors import InputError
from joulemap.firmware.engines.aot.tflite.writer import ModelWriter
from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.graphs.outputs import is_alike
from joulemap.runtimes.registry import choose_runtime
from joulemap.workflow.host.inputs import build_inputs

WIDE = 64
FLOAT, BOOL, INT64 = 1, 9, 7
node, told = onnx.helper.make_node, onnx.helper.make_tensor_value_info


def floats(*shape: int, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.1).astype(np.float32)


def body(name: str, nodes: list[Any], takes: list[Any], gives: list[Any]) -> Any:
    return onnx.helper.make_graph(nodes, name, takes, gives)


def open_onnx(folder: Path, nodes: list[Any], outputs: list[Any], weights: dict[str, Any]) -> Any:
    given = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = onnx.helper.make_graph(nodes, "g", [told("x", FLOAT, [WIDE, WIDE])], outputs, given)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = folder / "odd.onnx"
    onnx.save(model, str(path))
    return open_fed(path)


def open_fed(path: Path, provider: str = "") -> Any:
    name = "litert" if path.suffix == ".tflite" else "onnxruntime"
    session = choose_runtime(name, path).open(
        SessionRequest(model=path, threads=1, provider=provider), time.monotonic_ns
    )
    session.feed(build_inputs(session.model.inputs, batch=None, file=None, seed=1))
    return session


def executed(session: Any) -> list[str]:
    return [event["name"].removesuffix("_kernel_time") for event in session._events(1)[0]]


def assert_groups_run_and_answer(session: Any, copies: int) -> None:
    """Every group of two or more: the answer stays, twice, and each copy runs."""
    wanted, plain = session.answer(), executed(session)
    for size in range(1, len(plain) + 1):
        for load in itertools.combinations(range(len(plain)), size):
            again = session.repeated(load, copies)
            for _ in range(2):
                assert all(map(is_alike, wanted, again.answer()))
            ran = executed(again)
            assert [name for name in ran if "__again" not in name] == plain
            for k in load:
                assert len({name for name in ran if name.startswith(f"{plain[k]}__again") and " " not in name}) == (
                    copies - 1
                )
            again.close()


def loop(inner: list[Any]) -> Any:
    square = [WIDE, WIDE]
    taken = [told("n", INT64, []), told("go", BOOL, []), told("v", FLOAT, square)]
    nodes = [node("Identity", ["go"], ["still"]), *inner]
    return body("turn", nodes, taken, [told("still", BOOL, []), told("next", FLOAT, square)])


def branches() -> tuple[Any, Any]:
    made = []
    for name, op in (("t", "Add"), ("e", "Sub")):
        nodes = [node(op, ["a", "b"], [f"{name}1"]), node("MatMul", [f"{name}1", "w"], [f"{name}2"])]
        made.append(body(name, nodes, [], [told(f"{name}1", FLOAT, None), told(f"{name}2", FLOAT, None)]))
    return made[0], made[1]


CONDITION = [
    node("Sigmoid", ["x"], ["a"]),
    node("Tanh", ["a"], ["b"]),
    node("ReduceSum", ["b"], ["s"], keepdims=0),
    node("Greater", ["s", "zero"], ["c"]),
]
ODD = {
    "bodies read values of the group": (
        [
            *CONDITION,
            node("If", ["c"], ["i", "j"], then_branch=branches()[0], else_branch=branches()[1]),
            node("Tanh", ["j"], ["y"]),
        ],
        [told("y", FLOAT, None), told("b", FLOAT, None)],
    ),
    "a loop reads what the group wrote": (
        [
            *CONDITION[:2],
            node("Loop", ["three", "", "a"], ["f"], body=loop([node("Add", ["v", "b"], ["next"])])),
            node("Mul", ["f", "f"], ["y"]),
        ],
        [told("y", FLOAT, None), told("a", FLOAT, None)],
    ),
    "outputs left out": (
        [
            node("Unique", ["x"], ["u", "i", "", "k"]),
            node("Cast", ["i"], ["d"], to=FLOAT),
            node("ReduceSum", ["d"], ["y"], keepdims=0),
        ],
        [told("y", FLOAT, None), told("k", INT64, None)],
    ),
    "sequences": (
        [
            node("Relu", ["x"], ["r"]),
            node("SequenceConstruct", ["r", "x", "r"], ["q"]),
            node("ConcatFromSequence", ["q"], ["y"], axis=0),
        ],
        [told("y", FLOAT, None)],
    ),
    "what may be there": (
        [node("Relu", ["x"], ["r"]), node("Optional", ["r"], ["o"]), node("OptionalGetElement", ["o"], ["y"])],
        [told("y", FLOAT, None)],
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_a_group_of_odd_nodes_runs_and_leaves_the_answer(tmp_path: Path, name: str) -> None:
    """With 24 copies what they write is more than a near cache holds: where it is a tensor, something reads it."""
    nodes, outputs = ODD[name]
    weights = {"w": floats(WIDE, WIDE), "zero": np.float32(0), "three": np.int64(3)}
    session = open_onnx(tmp_path, nodes, outputs, weights)
    assert_groups_run_and_answer(session, 24)


def test_a_kernel_that_writes_to_its_weights_shows_when_the_group_has_run_once(tmp_path: Path) -> None:
    """Its copies run after the model: the first answer is right."""
    norm = node("BatchNormalization", ["r", "s", "b", "m", "v"], ["n", "mean", "variance"], training_mode=1)
    nodes = [node("Relu", ["x"], ["r"]), norm, node("Tanh", ["n"], ["y"])]
    weights = {name: np.abs(floats(WIDE, seed=k)) for k, name in enumerate("sbmv")}
    session = open_onnx(tmp_path, nodes, [told("y", FLOAT, None), told("mean", FLOAT, None)], weights)
    for load in ((1,), (0, 1), (0, 1, 2)):
        with pytest.raises(InputError, match="answers otherwise"):
            session.repeated(load, 3)
    assert session.repeated((0, 2), 3).run(2).size == 2


@pytest.mark.parametrize("provider", ["xnnpack", "builtin"])
def test_a_file_that_tells_no_shape_of_what_lies_between_is_repeated(tmp_path: Path, provider: str) -> None:
    writer = ModelWriter()
    x, a, y = (writer.tensor(name, (WIDE, 512), "FLOAT32") for name in "xay")
    writer.input(x)
    writer.operator("TANH", (x,), (a,))
    writer.operator("LOGISTIC", (a,), (y,))
    writer.output(y)
    for place in (a, y):
        writer._graph.tensors[place].shape = None
    path = tmp_path / "bare.tflite"
    path.write_bytes(writer.build())
    session = open_fed(path, provider)
    session.run(1)
    wanted = session._interpreter.get_tensor(y)
    for load in ((0,), (1,), (0, 1)):
        again = session.repeated(load, 6)
        first = again._interpreter.get_output_details()[0]
        np.testing.assert_allclose(again._interpreter.get_tensor(first["index"]), wanted, rtol=1e-5)
