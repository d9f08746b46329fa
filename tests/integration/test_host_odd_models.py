"""Models that a runtime takes and that no one thinks of: sequences, maps, text, types without numpy, tiny ones."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from joulemap.cli.main import run
from joulemap.errors import InputError
from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.graphs.outputs import is_alike
from joulemap.runtimes.registry import choose_runtime
from joulemap.workflow.host.inputs import build_inputs

FLOAT, STRING, BF16 = 1, 8, 16


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
