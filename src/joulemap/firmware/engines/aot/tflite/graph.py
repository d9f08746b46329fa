"""A model file as plain records: tensors, operators, sizes; checked as far as that needs no op's meaning.

Must not know the kernels or how anything is emitted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import EngineError

__all__ = ["DTYPES", "Graph", "Operator", "Quantization", "Tensor", "engine_error"]

DTYPES: Mapping[str, np.dtype[Any]] = MappingProxyType(
    {
        "FLOAT32": np.dtype("<f4"),
        "INT16": np.dtype("<i2"),
        "INT32": np.dtype("<i4"),
        "INT64": np.dtype("<i8"),
        "INT8": np.dtype("i1"),
        "UINT8": np.dtype("u1"),
    }
)
"""Element types of known size; a tensor of another type may stand in the file, but no operator may use it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantization:
    """Affine quantisation: real = scale (q - zero point).

    Args:
        scales: (n,) one, or one per index of ``dimension``.
        zero_points: (n,) quantised values that stand for 0.
        dimension: axis of a per-channel quantisation.
    """

    scales: NDArray[np.float32]
    zero_points: NDArray[np.int64]
    dimension: int

    @property
    def scale(self) -> float:
        """The one scale of a per-tensor quantisation, float32 as a Python float."""
        return float(self.scales[0])

    @property
    def zero_point(self) -> int:
        """The one zero point of a per-tensor quantisation."""
        return int(self.zero_points[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tensor:
    """One tensor of the file.

    Args:
        index: position in the file.
        name: name in the file.
        dtype: schema name, for example ``INT8``.
        shape: dimensions, all positive; empty for a scalar.
        quantization: None when it has no scale.
        data: constant content, None for an activation.
    """

    index: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    quantization: Quantization | None
    data: NDArray[Any] | None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_b(self) -> int:
        """Bytes of the content."""
        return self.elements * DTYPES[self.dtype].itemsize


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operator:
    """One operator of the file.

    Args:
        index: position in the file, which is execution order.
        op: builtin name, for example ``CONV_2D``.
        inputs: tensor indices, -1 for an optional input that is absent.
        outputs: tensor indices.
        options: fields of its options table by schema name; empty without one.
    """

    index: int
    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """The one subgraph of a model."""

    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def engine_error(
    slug: str, message: str, *, operator: Operator | None = None, tensor: Tensor | None = None, hint: str = ""
) -> EngineError:
    """Returns the error of a model that cannot be taken, with op, index and tensor in message and details."""
    where: list[str] = []
    details: dict[str, object] = {}
    if operator is not None:
        where.append(f"operator {operator.index} ({operator.op})")
        details |= {"op": operator.op, "op_index": operator.index}
    if tensor is not None:
        where.append(f"tensor {tensor.index} ({tensor.name!r})")
        details |= {"tensor": tensor.name, "tensor_index": tensor.index}
    text = f"{', '.join(where)}: {message}" if where else message
    return EngineError(text, hint=hint, slug=slug, phase="setup", details=details)
