"""The oracle: what TensorFlow Lite Micro's reference kernels make of the same model and input.

The only module that imports the interpreter, late. Only models that the engine has accepted may come here: the
interpreter trusts its file and ends the process on what it does not expect.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.firmware.engines.aot.program import Program
from joulemap.firmware.engines.aot.tflite.graph import engine_error

__all__ = ["Oracle", "open_oracle", "oracle_name"]

_DISTRIBUTION = "tflite-micro"
_ARENA_FIXED_B = 1 << 20
_PER_TENSOR_B = 512
_PER_CHANNEL_B = 16


def oracle_name() -> str | None:
    """Returns name and version of the oracle, or None when it is not installed."""
    try:
        return f"{_DISTRIBUTION} {importlib.metadata.version(_DISTRIBUTION)}"
    except importlib.metadata.PackageNotFoundError:
        return None


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
            raise _refused(error) from error

    def tensor(self, index: int) -> bytes:
        """Returns the content of a tensor after the last run."""
        content: bytes = self._interpreter.GetTensor(index, 0)["tensor_data"].tobytes()
        return content

    def output(self) -> bytes:
        """Returns all outputs of the last run, one after another."""
        count = len(self._program.graph.outputs)
        return b"".join(self._interpreter.get_output(position).tobytes() for position in range(count))


def open_oracle(content: bytes, program: Program) -> Oracle | None:
    """Returns an interpreter of the model file ``content``, or None when the package is not installed.

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
        raise _refused(error) from error
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


def _refused(error: Exception) -> Exception:
    return engine_error(
        "oracle-refused",
        f"{_DISTRIBUTION} does not run this model: {error}",
        hint="the outputs could not be checked; export the model again with a current converter",
    )
