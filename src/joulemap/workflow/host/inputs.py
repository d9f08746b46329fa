"""What the model is fed: an ``.npz``, or seeded values in the range that its types declare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError
from joulemap.firmware.stages.input_arrays import read_input_arrays
from joulemap.firmware.stages.seeds import named_stream
from joulemap.records.host.model import HostTensor
from joulemap.runtimes.base import Arrays
from joulemap.runtimes.graphs.feeding import fill_shape

__all__ = ["build_inputs"]


def build_inputs(tensors: Sequence[HostTensor], *, batch: int | None, file: Path | None, seed: int) -> Arrays:
    """Returns one array per input of the model.

    Quantised tensors take all of their range, floats -1..1, other whole numbers 0 or 1: a model says no range for
    these, and as indices larger ones could point outside.

    Args:
        tensors: inputs of the model.
        batch: value of open dimensions.
        file: ``.npz`` with all of them; None for seeded values.
        seed: of the values.

    Raises:
        InputError: the file cannot be read (``input-unreadable``), or the model leaves dimensions open that nothing
            fills (``open-dimension``), or takes what no array can hold (``input-mismatch``).
    """
    if file is not None:
        arrays = read_input_arrays(file)
        if len(arrays) == len(tensors) == 1 and tensors[0].name not in arrays:
            return {tensors[0].name: next(iter(arrays.values()))}
        return arrays
    return {
        tensor.name: _draw(tensor, fill_shape(tensor, batch), np.random.default_rng(named_stream(seed, "input", k)))
        for k, tensor in enumerate(tensors)
    }


def _draw(tensor: HostTensor, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.generic]:
    try:
        dtype = np.dtype(tensor.dtype)
    except TypeError as error:
        raise InputError(
            f"input {tensor.name}: values of type {tensor.dtype} are not drawn",
            hint="give them with --input FILE.npz",
            slug="input-mismatch",
        ) from error
    if dtype.kind == "f":
        return rng.uniform(-1.0, 1.0, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if tensor.scale or dtype.itemsize == 1:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)
