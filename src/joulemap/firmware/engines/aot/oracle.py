"""The oracle: what TensorFlow Lite Micro's reference kernels make of the same model and input.

``reference_output`` asks a process of its own, since the interpreter trusts its file and may end the process on what it
does not expect. ``open_oracle`` runs it here, with every tensor kept, for checks of single layers. The interpreter is
imported late, here and in the worker alone.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import EngineError
from joulemap.firmware.engines.aot.program import Program
from joulemap.firmware.engines.aot.tflite.graph import engine_error

__all__ = ["Oracle", "open_oracle", "oracle_name", "reference_output"]

_DISTRIBUTION = "tflite-micro"
_WORKER = Path(__file__).with_name("oracle_worker.py")
_TIMEOUT_S = 30.0
_SLOWEST_MACS_PER_S = 5e7
_ARENA_FIXED_B = 1 << 20
_PER_TENSOR_B = 512
_PER_CHANNEL_B = 16


def oracle_name() -> str | None:
    """Returns name and version of the oracle, or None when it is not installed."""
    try:
        return f"{_DISTRIBUTION} {importlib.metadata.version(_DISTRIBUTION)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def reference_output(content: bytes, program: Program, inputs: Mapping[str, NDArray[np.generic]]) -> bytes | None:
    """Returns all outputs of one inference, one after another, or None when the oracle is not installed.

    Args:
        content: the model file.
        program: what the engine made of it.
        inputs: content by input name.

    Raises:
        EngineError: the oracle does not run a model that the engine takes.
    """
    if importlib.util.find_spec("tflite_micro") is None:
        return None
    fed = [inputs[name] for name in program.input_names.values()]
    header = {
        "model_b": len(content),
        "arena_b": _arena_b(program),
        "inputs": [{"dtype": array.dtype.str, "shape": array.shape} for array in fed],
        "outputs": len(program.graph.outputs),
    }
    request = json.dumps(header).encode() + b"\n" + content + b"".join(array.tobytes() for array in fed)
    macs = sum(layer.call.macs for layer in program.layers)
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(_WORKER)],
            input=request,
            capture_output=True,
            timeout=_TIMEOUT_S + macs / _SLOWEST_MACS_PER_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _refused(f"no answer within {error.timeout:.0f} s") from error
    if done.returncode != 0:
        raise _refused(_last_words(done.returncode, done.stderr.decode("utf-8", "replace")))
    expected_b = sum(program.tensor(index).size_b for index in program.graph.outputs)
    if len(done.stdout) != expected_b:
        raise _refused(f"{len(done.stdout)} bytes of output, the model has {expected_b}")
    return done.stdout


def _last_words(status: int, said: str) -> str:
    """Returns what the interpreter said of itself, a Python traceback left out, and how it ended."""
    words = [line for line in said.splitlines() if line and not line.startswith((" ", "Traceback"))]
    ended = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return "; ".join([*words[-3:], ended])


class Oracle:
    """An interpreter of one model with every tensor kept after a run."""

    def __init__(self, interpreter: Any, program: Program) -> None:
        self._interpreter = interpreter
        self._program = program

    def run(self, inputs: Mapping[str, NDArray[np.generic]]) -> None:
        """Runs one inference.

        Args:
            inputs: content by input name.

        Raises:
            EngineError: the oracle fails at run time.
        """
        try:
            for position, name in enumerate(self._program.input_names.values()):
                self._interpreter.set_input(inputs[name], position)
            self._interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise _refused(str(error)) from error

    def tensor(self, index: int) -> bytes:
        """Returns the content of a tensor after the last run."""
        content: bytes = self._interpreter.GetTensor(index, 0)["tensor_data"].tobytes()
        return content


def open_oracle(content: bytes, program: Program) -> Oracle | None:
    """Returns an interpreter in this process, or None when the package is not installed.

    Args:
        content: a sound model file; the interpreter may end this process on another.
        program: what the engine made of it.

    Raises:
        EngineError: the oracle does not take a model that the engine takes.
    """
    try:
        from tflite_micro.python.tflite_micro import runtime  # noqa: PLC0415
    except ImportError:
        return None
    try:
        interpreter = runtime.Interpreter.from_bytes(
            content,
            arena_size=_arena_b(program),
            intrepreter_config=runtime.InterpreterConfig.kPreserveAllTensors,
        )
    except (RuntimeError, ValueError) as error:
        raise _refused(str(error)) from error
    return Oracle(interpreter, program)


def _arena_b(program: Program) -> int:
    """Returns enough bytes for every tensor at once, the interpreter's tables and the tables per channel."""
    layers = program.layers
    activations_b = sum(program.tensor(i).size_b for i in program.graph.inputs)
    activations_b += sum(program.tensor(layer.output).size_b for layer in layers)
    channels = sum(len(array.values) for layer in layers for array in layer.call.constants if array.role == "bias")
    tables_b = _PER_TENSOR_B * (len(program.graph.tensors) + len(program.graph.operators))
    scratch_b = 4 * max(program.tensor(layer.output).elements for layer in layers)
    return _ARENA_FIXED_B + 2 * activations_b + tables_b + _PER_CHANNEL_B * channels + scratch_b


def _refused(reason: str) -> EngineError:
    return engine_error(
        "oracle-refused",
        f"{_DISTRIBUTION} does not run this model: {reason}",
        hint="without it the outputs cannot be checked; export the model again with a current converter",
    )
