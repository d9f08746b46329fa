"""Models that a runtime takes and that no one thinks of: sequences, maps, text, types without numpy, tiny ones."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from joulemap.cli.main import run
from joulemap.errors import InputError
from joulemap.firmware.engines.aot.tflite.writer import ModelWriter
from joulemap.records.host.request import HostRequest, SessionRequest
from joulemap.runtimes.graphs.outputs import is_alike
from joulemap.runtimes.litert import LiteSession
from joulemap.runtimes.onnxruntime import OnnxRuntime, OnnxRuntimeSession
from joulemap.runtimes.registry import choose_runtime
from joulemap.workflow.host.inputs import build_inputs
from joulemap.workflow.host.profile_host import profile_host
from joulemap.workflow.host.services import open_services

FLOAT, STRING, INT64, BF16 = 1, 8, 7, 16
WIDE = 64
QUICK = [
    "--target",
    "host",
    "--meter",
    "simulated",
    "--operators",
    "3",
    "--repeats",
    "2",
    "--window-s",
    "0.05",
    "--json",
]


def write_model(folder: Path, nodes: list[tuple[str, list[str], list[str]]], kind: int, outputs: list[object]) -> Path:
    helper = onnx.helper
    made = [helper.make_node(op, reads, writes) for op, reads, writes in nodes]
    taken = helper.make_tensor_value_info("x", kind, [1, 4])
    graph = helper.make_graph(made, "g", [taken], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    path = folder / "odd.onnx"
    onnx.save(model, str(path))
    return path


def test_a_sequence_as_output_is_run_and_repeated_without_a_bare_call(tmp_path: Path) -> None:
    sequence = onnx.helper.make_tensor_sequence_value_info("y", FLOAT, None)
    path = write_model(tmp_path, [("Relu", ["x"], ["r"]), ("SequenceConstruct", ["r", "x"], ["y"])], FLOAT, [sequence])
    session = choose_runtime("onnxruntime", path).open(SessionRequest(model=path), time.monotonic_ns)
    session.feed(build_inputs(session.model.inputs, batch=None, file=None, seed=0))
    assert [operator.op for operator in session.model.operators] == ["Relu", "SequenceConstruct"]
    assert session.bare() is None
    assert session.repeated((0,), 3).run(2).size == 2
    session.close()


def test_values_that_the_binding_cannot_take_are_an_input_error(tmp_path: Path) -> None:
    out = onnx.helper.make_tensor_value_info("y", BF16, [1, 4])
    path = write_model(tmp_path, [("Identity", ["x"], ["y"])], BF16, [out])
    session = choose_runtime("onnxruntime", path).open(SessionRequest(model=path), time.monotonic_ns)
    inputs = build_inputs(session.model.inputs, batch=None, file=None, seed=0)
    with pytest.raises(InputError, match="ONNX Runtime refuses"):
        session.feed(inputs)


def test_outputs_of_every_kind_are_compared() -> None:
    floats = np.array([1.0, np.nan], np.float32)
    assert is_alike(floats, floats * np.float32(1.0 + 1e-5))
    assert not is_alike(floats, floats * np.float32(1.1))
    assert is_alike(np.array(["a", "b"], object), np.array(["a", "b"], object))
    assert not is_alike(np.array(["a", "b"], object), np.array(["a", "c"], object))
    assert is_alike([{"cat": 0.25, "dog": 0.75}], [{"cat": 0.25, "dog": 0.75}])  # what classifiers give
    assert not is_alike([{"cat": 0.25}], [{"dog": 0.25}])
    assert not is_alike([floats], [floats, floats])
    assert not is_alike(np.array([1, 2]), np.array([1, 3]))


def test_a_model_that_takes_less_than_the_call_itself_has_intervals_that_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = onnx.helper.make_tensor_value_info("y", FLOAT, [1, 4])
    path = write_model(tmp_path, [("Relu", ["x"], ["y"])], FLOAT, [out])
    flags = ["--target", "host", "--meter", "simulated", "--operators", "0", "--repeats", "2", "--window-s", "0.05"]
    code = run(["profile", str(path), *flags, "--json", "-o", str(tmp_path / "odd.jm")])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    (layer,) = document["layers"]
    assert layer["resolution"] == "time_share"
    assert layer["energy_j"]["provenance"] == "modelled"
    assert layer["energy_j"]["std"] > 0


def open_fed(path: Path) -> Any:
    name = "litert" if path.suffix == ".tflite" else "onnxruntime"
    session = choose_runtime(name, path).open(SessionRequest(model=path, threads=1), time.monotonic_ns)
    session.feed(build_inputs(session.model.inputs, batch=None, file=None, seed=0))
    return session


def write_onnx(
    folder: Path, nodes: list[Any], outputs: list[Any], weights: dict[str, Any] | None = None, **saved: Any
) -> Path:
    helper = onnx.helper
    taken = helper.make_tensor_value_info("x", FLOAT, [1, WIDE])
    given = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", [taken], outputs, given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = folder / "odd.onnx"
    onnx.save(model, str(path), **saved)
    return path


def floats(*shape: int, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.1).astype(np.float32)


def told(name: str, kind: int = FLOAT) -> Any:
    return onnx.helper.make_tensor_value_info(name, kind, None)


node = onnx.helper.make_node


def same_answers(session: OnnxRuntimeSession, copies: int = 5) -> None:
    wanted = session.answer()
    for k in range(len(session.model.operators)):
        again = session.repeated((k,), copies)
        assert all(map(is_alike, wanted, again.answer()))
        again.close()


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ([node("Relu", ["x"], ["r"]), node("Cast", ["r"], ["s"], to=STRING)], [told("s", STRING)]),
        ([node("Relu", ["x"], ["y"])], [told("y"), told("x")]),
        ([node("Relu", ["x"], ["y"])], [told("y"), told("y")]),
    ],
    ids=["text", "an input", "one twice"],
)
def test_a_call_without_operators_gives_back_whatever_the_model_gives(
    tmp_path: Path, nodes: list[Any], outputs: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_onnx(tmp_path, nodes, outputs)
    session = open_fed(path)
    bare = session.bare()
    shapes = [np.shape(array) for array in session.answer()]
    assert [np.shape(array) for array in bare.answer()] == shapes
    same_answers(session)
    assert run(["profile", str(path), *QUICK, "-o", str(tmp_path / "odd.jm")]) == 0
    assert json.loads(capsys.readouterr().out)["host"]["closure"]["independent"]


def test_weights_in_a_file_of_their_own_are_found_beside_the_model(tmp_path: Path) -> None:
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["y"])]
    path = write_onnx(
        tmp_path, nodes, [told("y")], {"w": floats(WIDE, WIDE)},
        save_as_external_data=True, location="odd.data", size_threshold=0,
    )  # fmt: skip
    session = open_fed(path)
    assert session.repeatable == {0, 1}
    assert session.model.operators[0].weights_b == 4 * WIDE * WIDE
    same_answers(session)


def test_names_that_copies_would_have_may_be_there_already(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("MatMul", ["a", "w__againop0_1"], ["a__again1"]),
        node("Softmax", ["a__again1"], ["a__again1 read"]),
        node("Add", ["a__again1 read", "a"], ["y"]),
    ]
    outputs = [told(name) for name in ("y", "a__again1", "a__again1 read")]
    weights = {"w": floats(WIDE, WIDE), "w__againop0_1": floats(WIDE, WIDE, seed=1)}
    session = open_fed(write_onnx(tmp_path, nodes, outputs, weights))
    same_answers(session)
    assert session.bare() is not None


def test_a_kernel_that_writes_to_its_weights_is_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Batch normalisation in training: its running mean takes the place of the mean where it is no output."""
    norm = node("BatchNormalization", ["x", "s", "b", "m", "v"], ["n", "mean", "variance"], training_mode=1)
    weights = {name: np.abs(floats(WIDE, seed=k)) for k, name in enumerate("sbmv")}
    path = write_onnx(
        tmp_path, [norm, node("MatMul", ["n", "w"], ["y"])], [told("y"), told("mean"), told("variance")],
        weights | {"w": floats(WIDE, WIDE)},
    )  # fmt: skip
    session = open_fed(path)
    with pytest.raises(InputError, match="answers otherwise"):
        session.repeated((0,), 3)
    wanted = session.answer()
    assert all(map(is_alike, wanted, session.repeated((1,), 3).answer()))
    assert run(["profile", str(path), *QUICK, "-o", str(tmp_path / "odd.jm")]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    slugs = {finding["slug"] for finding in findings}  # the latter where the profiler takes longer than the model
    assert slugs & {"operators_modelled", "operator_times_missing"}


def test_weights_that_only_the_bodies_of_an_operator_read_are_its_own(tmp_path: Path) -> None:
    def body(name: str, weight: str) -> Any:
        return onnx.helper.make_graph([node("MatMul", ["x", weight], [name])], name, [], [told(name)])

    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Greater", ["s", "zero"], ["c"]),
        node("If", ["c"], ["i"], then_branch=body("t", "w0"), else_branch=body("e", "w1")),
        node("MatMul", ["i", "w2"], ["y"]),
    ]
    weights = {f"w{k}": floats(WIDE, WIDE, seed=k) for k in range(3)} | {"zero": np.float32(0)}
    session = open_fed(write_onnx(tmp_path, nodes, [told("y")], weights))
    same_answers(session)
    chosen = [operator.op for operator in session.model.operators].index("If")
    assert session.model.operators[chosen].weights_b == 2 * 4 * WIDE * WIDE
    read = [
        inner.input[1]
        for again in session.repeated((chosen,), 4)._graph.graph.node
        if again.op_type == "If"
        for attribute in again.attribute
        for inner in attribute.g.node
    ]
    assert len(set(read)) == 4  # two sets: the other copies take turns
    assert len(read) == 8


def test_a_table_of_indices_stays_as_it_is(tmp_path: Path) -> None:
    table = np.full(2000, WIDE - 1, np.int64)
    nodes = [node("Gather", ["x", "i"], ["g"], axis=1), node("Add", ["g", "w"], ["y"])]
    session = open_fed(write_onnx(tmp_path, nodes, [told("y")], {"i": table, "w": floats(50, 2000)}))
    same_answers(session)
    for tensor in session.repeated((0,), 4)._graph.graph.initializer:
        if tensor.data_type == INT64:
            np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), table)


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
@pytest.mark.parametrize("first", [0.0, -np.inf, np.nan, 1.0])
def test_a_changed_weight_costs_no_more_to_multiply(tmp_path: Path, kind: str, first: float) -> None:
    """No zero turns into a denormal number, no infinity into a NaN; and one value differs."""
    weight = np.full((WIDE, WIDE), first, kind)
    weight[0, 9:] = 0.5
    numbers = onnx.helper.np_dtype_to_tensor_dtype(weight.dtype)
    nodes = [node("Cast", ["x"], ["c"], to=numbers), node("Concat", ["c", "w"], ["y"], axis=0)]
    nodes.append(node("Concat", ["y", "v"], ["z"], axis=0))
    session = open_fed(
        write_onnx(tmp_path, nodes, [told("z", numbers)], {"w": weight, "v": np.ones((4 * WIDE, WIDE), kind)})
    )
    reader = next(k for k, operator in enumerate(session.model.operators) if operator.weights_b == weight.nbytes)
    graph = session.repeated((reader,), 4)._graph.graph
    found = [onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer]
    changed = [array for array in found if array.shape == weight.shape]
    assert len({array.tobytes() for array in changed}) == len(changed) > 1
    tiny = np.finfo(weight.dtype).tiny
    for array in changed:
        other = array.view(f"u{array.itemsize}") != weight.view(f"u{array.itemsize}")
        assert other.sum() <= 1
        assert np.all(np.isfinite(array[other]) & (np.abs(array[other]) >= tiny))


def write_lite(path: Path, build: Any) -> Path:
    writer = ModelWriter()
    build(writer)
    path.write_bytes(writer.build())
    return path


def lite_op(writer: Any, op: str, reads: tuple[int, ...], write: int, table: str = "", **options: Any) -> None:
    writer.operator(op, reads, (write,))
    if table:
        made = getattr(writer._schema, f"{table}T")()
        for name, value in options.items():
            setattr(made, name, value)
        operator = writer._graph.operators[-1]
        operator.builtinOptionsType, operator.builtinOptions = getattr(writer._schema.BuiltinOptions, table), made


def lite_answers(session: LiteSession, count: int) -> list[Any]:
    taken = []
    interpreter = session._interpreter
    for _ in range(count):
        interpreter.invoke()
        taken.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy())
    return taken


def test_copies_have_a_state_of_their_own(tmp_path: Path) -> None:
    def build(writer: Any) -> None:
        x, state, y = (
            writer.tensor(name, shape, "FLOAT32") for name, shape in (("x", (1, 32)), ("s", (1, 128)), ("y", (1, 16)))
        )
        writer.input(x)
        writer._graph.tensors[state].isVariable = True
        first = writer.tensor("wf", (16, 32), "FLOAT32", data=floats(16, 32))
        second = writer.tensor("wt", (16, 8), "FLOAT32", data=floats(16, 8))
        lite_op(writer, "SVDF", (x, first, second, -1, state), y, "SVDFOptions", rank=1, fusedActivationFunction=0)
        z = writer.output(writer.tensor("z", (1, 16), "FLOAT32"))
        lite_op(writer, "TANH", (y,), z)

    session = open_fed(write_lite(tmp_path / "state.tflite", build))
    wanted = lite_answers(session.again(), 6)
    assert not np.allclose(wanted[0], wanted[1])  # the state shows
    for load in ((0,), (0, 1)):
        again = session.repeated(load, 4)
        np.testing.assert_allclose(lite_answers(again, 5), wanted[1:], rtol=1e-5)  # it ran once when it was opened


def test_weights_that_a_delegate_unpacks_are_counted_and_what_it_leaves_out_is_no_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def build(writer: Any) -> None:
        x = writer.input(writer.tensor("x", (1, WIDE), "FLOAT32"))
        half = writer.tensor("h", (WIDE, WIDE), "FLOAT16", data=floats(WIDE, WIDE).astype(np.float16))
        whole, y = writer.tensor("w", (WIDE, WIDE), "FLOAT32"), writer.tensor("y", (1, WIDE), "FLOAT32")
        bias = writer.tensor("b", (WIDE,), "FLOAT32", data=floats(WIDE))
        lite_op(writer, "DEQUANTIZE", (half,), whole, "DequantizeOptions")
        lite_op(writer, "FULLY_CONNECTED", (x, whole, bias), y, "FullyConnectedOptions", fusedActivationFunction=0)
        writer.output(y)

    path = write_lite(tmp_path / "half.tflite", build)
    assert [o.weights_b for o in open_fed(path).model.operators] == [2 * WIDE**2, 4 * WIDE**2 + 4 * WIDE]
    assert run(["profile", str(path), *QUICK, "-o", str(tmp_path / "half.jm")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [layer["resolution"] for layer in document["layers"]] == ["time_share", "in_place"]
    assert "operator_times_missing" in {finding["slug"] for finding in document["findings"]}


class _Failing(OnnxRuntime):
    """Its sessions of repeated operators open once: the second opening is refused."""

    opened: dict[tuple[int, ...], int]

    def open(self, request: SessionRequest, stamp: Any) -> Any:
        session = super().open(request, stamp)
        self.opened, make = {}, session.repeated

        def repeated(operators: Any, copies: int) -> Any:
            load = (*operators, copies)
            self.opened[load] = self.opened.get(load, 0) + 1
            if self.opened[load] > 1:
                raise InputError("no memory left", hint="", slug="model-unsupported")
            return make(operators, copies)

        session.repeated = repeated  # type: ignore[method-assign]
        return session


def test_a_session_that_does_not_open_again_ends_the_run_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path = write_onnx(tmp_path, [node("MatMul", ["x", "w"], ["y"])], [told("y")], {"w": floats(WIDE, WIDE)})
    asked = HostRequest(
        session=SessionRequest(model=path, threads=1), meters=("simulated",), window_s=0.3, repeats=2, warm_up_s=0.5
    )
    runtime = _Failing()
    with pytest.raises(InputError, match="no memory left"):
        profile_host(asked, tmp_path / "odd.jm", services=lambda given: (runtime, open_services(given)[1]))
    assert max(runtime.opened.values()) == 2
    assert sorted(found.name for found in tmp_path.iterdir()) == ["odd.onnx", "temporary"]
    assert not list((tmp_path / "temporary").iterdir())
