"""What runtimes really execute when operators are repeated: where, with whose weights, and to which answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.base import RuntimeSession
from joulemap.runtimes.onnxruntime import OnnxRuntime, OnnxRuntimeSession
from joulemap.workflow.host.inputs import build_inputs

WIDTH = 256
SHAPE = [WIDTH // 2, 2 * WIDTH]


def branches() -> Any:
    """Two branches and their sum: an order that the file does not tell, weights of 256 KiB, a reshape by a constant."""
    rng = np.random.default_rng(0)
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    weights = [
        onnx.numpy_helper.from_array(rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 16, f"w{k}")
        for k in range(3)
    ]
    weights.append(onnx.numpy_helper.from_array(np.array(SHAPE, np.int64), "shape"))
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], name="left"),
        helper.make_node("MatMul", ["x", "w1"], ["b"], name="right"),
        helper.make_node("Sigmoid", ["b"], ["c"], name="bend"),
        helper.make_node("Add", ["a", "c"], ["d"], name="join"),
        helper.make_node("MatMul", ["d", "w2"], ["e"], name="last"),
        helper.make_node("Reshape", ["e", "shape"], ["y"], name="shape it"),
    ]
    ends = [helper.make_tensor_value_info(name, floats, shape) for name, shape in (("x", [WIDTH, WIDTH]), ("y", SHAPE))]
    graph = helper.make_graph(nodes, "branches", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


@pytest.fixture
def session(tmp_path: Path) -> Iterator[OnnxRuntimeSession]:
    path = tmp_path / "branches.onnx"
    path.write_bytes(branches().SerializeToString())
    opened = OnnxRuntime().open(SessionRequest(model=path, threads=1), time.monotonic_ns)
    opened.feed(build_inputs(opened.model.inputs, batch=None, file=None, seed=1))
    yield opened
    opened.close()


def executed(session: OnnxRuntimeSession) -> list[str]:
    """Names of the nodes in the order in which ONNX Runtime ran them."""
    return [event["name"].removesuffix("_kernel_time") for event in session._events(1)[0]]


def answer(session: OnnxRuntimeSession) -> Any:
    return session._session.run(["y"], session._feed)[0]


def test_copies_run_right_before_their_operator(session: OnnxRuntimeSession) -> None:
    plain = executed(session)
    assert len(plain) == len(session.model.operators)
    for k, name in enumerate(plain):
        again = session.repeated((k,), 4)
        copies = [f"{name}__again{n}" for n in (1, 2, 3)]
        ran = [one for one in executed(again) if not one.endswith(" read")]
        assert ran == [*plain[:k], *copies, *plain[k:]]
        again.close()


def test_several_operators_run_in_passes_each_on_what_the_one_before_it_wrote(session: OnnxRuntimeSession) -> None:
    plain = executed(session)
    again = session.repeated(range(1, len(plain)), 3)
    ran = [one for one in executed(again) if not one.endswith(" read")]
    assert ran == [*plain, *(f"{name}__again{n}" for n in (1, 2) for name in plain[1:])]
    nodes = {node.name: node for node in again._graph.graph.node}
    written = {name: other for node in nodes.values() for other, name in ((node.name, one) for one in node.output)}
    for n in (1, 2):
        read = {written.get(name, "") for one in plain[1:] for name in nodes[f"{one}__again{n}"].input}
        copies = {name for name in read if "__again" in name}
        assert copies == {f"{name}__again{n}" for name in plain[1:-1]}  # the last one's output is the model's
        assert read - copies <= {"", plain[0]}
    again.close()


def test_a_large_copy_is_read_right_after_it_ran(session: OnnxRuntimeSession) -> None:
    """256 KiB each: what nothing reads would stay until the inference ends."""
    ran = executed(session.repeated((0,), 4))
    assert ran[:6:2] == [name.removesuffix("_kernel_time") for name in ran[:6] if not name.endswith(" read")][:3]
    assert [name.endswith(" read") for name in ran[:7]] == [False, True, False, True, False, True, False]


def test_the_answer_is_that_of_the_model_and_weights_differ(session: OnnxRuntimeSession) -> None:
    """Copies read weights of their own, a bit apart: a runtime packs what has the same content only once."""
    wanted = answer(session)
    for load in ((0,), (1, 3), tuple(range(len(session.model.operators)))):
        again = session.repeated(load, 3)
        np.testing.assert_allclose(answer(again), wanted, rtol=1e-6)
        again.close()
    graph = session.repeated((0,), 3)._graph.graph
    large = [tensor.raw_data for tensor in graph.initializer if len(tensor.raw_data) == 4 * WIDTH * WIDTH]
    assert len(large) == 5  # three of the model, two more of the operator
    assert len(set(large)) == 5
    values = [onnx.numpy_helper.to_array(t) for t in graph.initializer if len(t.raw_data) == 4 * WIDTH * WIDTH]
    own = [v for v in values if sum(np.allclose(v, other, atol=1e-2) for other in values) == 3]
    assert len(own) == 3
    shapes = [onnx.numpy_helper.to_array(t).tolist() for t in graph.initializer if t.data_type == 7]
    assert shapes == [SHAPE]  # no weight: as it was, and once


def test_another_session_answers_alike_and_stands_alone(session: OnnxRuntimeSession) -> None:
    wanted = answer(session)
    other: RuntimeSession = session.again()
    assert isinstance(other, OnnxRuntimeSession)
    assert executed(other) == executed(session)
    np.testing.assert_array_equal(answer(other), wanted)
    other.close()
    np.testing.assert_array_equal(answer(session), wanted)
