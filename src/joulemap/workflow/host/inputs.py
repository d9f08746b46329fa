"""What the model is fed: an ``.npz``, or seeded values in the range that its types declare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError
from joulemap.firmware.stages.input_arrays import read_input_arrays
from joulemap.firmware.stages.seeds import named_stream
from joulemap.records.finding import Finding, Severity
from joulemap.records.host.model import HostTensor
from joulemap.runtimes.base import Arrays
from joulemap.runtimes.graphs.feeding import fill_shape

__all__ = ["build_inputs", "doubt_inputs"]

_INPUT_LIMIT_B = 1 << 30
"""A batch for a machine; a file that says more is taken for a damaged one."""


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
            fills (``open-dimension``), no dimension is as long as the batch (``batch-fixed``), or it takes
            what no array can hold (``input-mismatch``).
    """
    if file is not None:
        arrays: Arrays = read_input_arrays(file, limit_b=_INPUT_LIMIT_B, bools=True)
        if len(arrays) == len(tensors) == 1 and tensors[0].name not in arrays:
            arrays = {tensors[0].name: next(iter(arrays.values()))}
    else:
        arrays = {
            tensor.name: _draw(tensor, fill_shape(tensor, batch), np.random.default_rng(named_stream(seed, "input", k)))
            for k, tensor in enumerate(tensors)
        }
    if batch is not None and not any(batch in array.shape for array in arrays.values()):
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
        raise InputError(
            f"--batch {batch}: no input has a dimension of that length ({shapes or 'there is none'})",
            hint="leave --batch out, or export the model with an open first dimension",
            slug="batch-fixed",
        )
    return arrays


def doubt_inputs(arrays: Arrays) -> tuple[Finding, ...]:
    """Returns a doubt about inputs that hold no numbers: times and energies then may not be those of real work."""
    odd = [name for name, a in arrays.items() if a.dtype.kind == "f" and not np.isfinite(a.astype(np.float32)).all()]
    if not odd:
        return ()
    message = f"input {', '.join(odd)} holds NaN or infinity: the work may be another than with real values"
    return (Finding(slug="input_not_finite", severity=Severity.WARNING, message=message),)


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
