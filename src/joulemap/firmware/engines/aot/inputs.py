"""The input that both images run on: the caller's, checked, or seeded random values in the range of the model.

Must not know C or the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError
from joulemap.firmware.engines.aot.program import Program
from joulemap.firmware.engines.aot.tflite.graph import DTYPES, Quantization, Tensor

__all__ = ["check_inputs", "draw_inputs"]

_FLOAT_LIMIT_STEPS = 2.0**31


def draw_inputs(program: Program, seed: int) -> dict[str, NDArray[np.generic]]:
    """Returns uniform random inputs by name.

    Integers take their type's full range; reals the range that the following QUANTIZE can tell apart, else [-1, 1).
    """
    rng = np.random.default_rng(seed)
    drawn: dict[str, NDArray[np.generic]] = {}
    for index, name in program.input_names.items():
        tensor = program.tensor(index)
        if tensor.dtype == "FLOAT32":
            low, high = _float_range(program, tensor)
            drawn[name] = rng.uniform(low, high, tensor.shape).astype(np.float32)
        else:
            limits = np.iinfo(DTYPES[tensor.dtype])
            drawn[name] = rng.integers(limits.min, limits.max, tensor.shape, limits.dtype, endpoint=True)
    return drawn


def check_inputs(program: Program, given: Mapping[str, NDArray[np.number]]) -> dict[str, NDArray[np.generic]]:
    """Returns the caller's inputs by tensor name, contiguous.

    Args:
        program: the program.
        given: by tensor name; one entry of any name for a model with one input.

    Raises:
        InputError: an input is missing or unknown, or of another shape, type or range; says how to mend it.
    """
    names = list(program.input_names.values())
    if len(names) == 1 and len(given) == 1:
        given = {names[0]: next(iter(given.values()))}
    if set(given) != set(names):
        raise InputError(
            f"inputs {sorted(given)} were given, the model takes {names}",
            hint="name the arrays of the .npz file after the model's inputs",
            slug="input-names",
        )
    return {
        name: _checked(program, program.tensor(i), np.asarray(given[name])) for i, name in program.input_names.items()
    }


def _checked(program: Program, tensor: Tensor, values: NDArray[np.number]) -> NDArray[np.generic]:
    wanted = DTYPES[tensor.dtype]
    if values.dtype != wanted:
        raise InputError(
            f"input {tensor.name!r} is {values.dtype}, the model takes {wanted.name}",
            hint=_cast_hint(tensor),
            slug="input-dtype",
        )
    if values.shape != tensor.shape:
        raise InputError(
            f"input {tensor.name!r} has shape {values.shape}, the model takes {tensor.shape}",
            hint=f"reshape it to {tensor.shape}",
            slug="input-shape",
        )
    if values.dtype.kind == "f":
        limit = min((_FLOAT_LIMIT_STEPS * q.scale for q in _following_steps(program, tensor)), default=np.inf)
        if not np.all(np.isfinite(values)) or np.any(np.abs(values) >= limit):
            raise InputError(
                f"input {tensor.name!r} holds values that are not finite or beyond {limit:g}",
                hint="clip it to the range that the model was calibrated on",
                slug="input-range",
            )
    return np.ascontiguousarray(values)


def _cast_hint(tensor: Tensor) -> str:
    if tensor.quantization is None or tensor.dtype == "FLOAT32":
        return f"convert it with astype({DTYPES[tensor.dtype].name!r})"
    scale, zero_point = tensor.quantization.scale, tensor.quantization.zero_point
    limits = np.iinfo(DTYPES[tensor.dtype])
    return (
        f"quantise it: np.clip(np.round(x / {scale:g}) + {zero_point}, {limits.min}, {limits.max})"
        f".astype({DTYPES[tensor.dtype].name!r})"
    )


def _following_steps(program: Program, tensor: Tensor) -> list[Quantization]:
    """Returns the quantisation of every QUANTIZE that reads the tensor, a RESHAPE between them or not."""
    found: list[Quantization] = []
    same_content = {tensor.index}
    for layer in program.layers:
        if not same_content.intersection(layer.call.activations):
            continue
        quantization = program.tensor(layer.output).quantization
        if layer.op == "RESHAPE":
            same_content.add(layer.output)
        elif layer.op == "QUANTIZE" and quantization is not None:
            found.append(quantization)
    return found


def _float_range(program: Program, tensor: Tensor) -> tuple[float, float]:
    """Returns the reals between the lowest and the highest int8 step of the first QUANTIZE that follows."""
    following = _following_steps(program, tensor)
    if not following:
        return -1.0, 1.0
    low, high = (following[0].scale * (step - following[0].zero_point) for step in (-128, 127))
    return low, high
