"""Inputs of a session: checked against the model once, so that a run never fails halfway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError, UsageError
from joulemap.records.host.model import HostTensor

__all__ = ["check_arrays", "fill_shape", "refuse_precision", "timed_runs"]


def check_arrays(tensors: Sequence[HostTensor], arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Refuses inputs that the model does not take.

    Args:
        tensors: inputs of the model; open dimensions take any length.
        arrays: what is fed.

    Raises:
        InputError: one is missing or unknown, or has another type or shape (``input-mismatch``).
    """
    wanted = {tensor.name: tensor for tensor in tensors}
    missing, unknown = sorted(set(wanted) - set(arrays)), sorted(set(arrays) - set(wanted))
    if missing or unknown:
        parts = [f"{what} {', '.join(names)}" for what, names in (("lacks", missing), ("has", unknown)) if names]
        raise InputError(
            f"the input {' and '.join(parts)}",
            hint=f"give one array for each of: {', '.join(wanted)}",
            slug="input-mismatch",
        )
    for name, tensor in wanted.items():
        array = arrays[name]
        fits = len(array.shape) == len(tensor.shape) and all(
            isinstance(want, str) or want < 0 or want == have
            for want, have in zip(tensor.shape, array.shape, strict=True)
        )
        if not fits or str(array.dtype) != tensor.dtype:
            raise InputError(
                f"input {name}: is {array.dtype} {list(array.shape)}, the model takes {tensor.dtype}"
                f" {list(tensor.shape)}",
                hint="convert the array, or leave --input out for seeded random values",
                slug="input-mismatch",
            )


def fill_shape(tensor: HostTensor, batch: int | None) -> tuple[int, ...]:
    """Returns the shape with open dimensions filled by ``batch``, or as the file itself has them.

    Raises:
        InputError: there are open dimensions and no batch (``open-dimension``), or more than one in an input.
    """
    names = tensor.open_dimensions
    if batch is None and tensor.default:
        return tensor.default
    first_only = len(names) == 1 and (isinstance(tensor.shape[0], str) or tensor.shape[0] < 0)
    if names and (batch is None or not first_only):
        what = "give --batch N" if first_only else "give --input FILE.npz with an array of the wanted shape"
        raise InputError(
            f"input {tensor.name}: the model leaves {', '.join(names)} open in {list(tensor.shape)}",
            hint=what,
            slug="open-dimension",
        )
    return tuple(int(batch or 0) if isinstance(d, str) or d < 0 else d for d in tensor.shape)


def refuse_precision(runtime: str, precision: str, known: Sequence[str]) -> None:
    """Refuses a precision that the runtime does not know.

    Raises:
        UsageError: it is not one of those (``runtime-option``).
    """
    if precision and precision not in known:
        raise UsageError(
            f"--precision {precision}: {runtime} does not know it",
            hint=f"one of: {', '.join(known)}",
            slug="runtime-option",
        )


def timed_runs(call: object, count: int, stamp: object) -> NDArray[np.float64]:
    """Calls ``call()`` ``count`` times and returns how long each took by ``stamp()``, (count,) s."""
    assert callable(call)
    assert callable(stamp)
    stamps = [stamp()]
    for _ in range(count):
        call()
        stamps.append(stamp())
    return np.asarray(np.diff(np.array(stamps, np.int64)).astype(np.float64) * 1e-9, np.float64)
