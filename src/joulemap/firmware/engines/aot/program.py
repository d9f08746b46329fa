"""What the graph becomes before it becomes C: kernel calls with their constants, and where tensors lie.

Records and nothing else; must not know the file format or the text of C.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joulemap.firmware.engines.aot.tflite.graph import Graph, Tensor

__all__ = ["ConstantArray", "KernelCall", "LayerCall", "Program"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConstantArray:
    """A table in flash.

    Args:
        role: suffix of its C name, for example ``filter``.
        values: flat content; the dtype names the C type.
    """

    role: str
    values: NDArray[np.int8] | NDArray[np.int32] | NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelCall:
    """One call of a kernel: ``kernel(&params, activations..., constants..., output)``.

    Args:
        kernel: C function; None when the layer moves no data (its output lies where its input does).
        params_type: C struct of the parameters.
        params: its fields, in order; tuples are arrays.
        activations: tensor indices of the operands, constants among them allowed.
        constants: tables that only this call reads.
        macs: multiply-accumulates, padded positions counted.
        in_place: operands whose memory the output may take over, byte for byte.
    """

    kernel: str | None
    params_type: str = ""
    params: Mapping[str, int | float | tuple[int, ...]] = field(default_factory=dict)
    activations: tuple[int, ...]
    constants: tuple[ConstantArray, ...] = ()
    macs: int = 0
    in_place: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerCall:
    """A kernel call as a layer.

    Args:
        index: position among the executed layers, from 0, dense.
        operator_index: position of its operator in the file.
        op: builtin operator name.
        call: the kernel call.
        output: tensor index.
    """

    index: int
    operator_index: int
    op: str
    call: KernelCall
    output: int

    @property
    def symbol(self) -> str:
        """Linker symbol of the layer's function."""
        return f"hpx_layer_{self.index:03d}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """A model ready to be emitted.

    Args:
        graph: the graph; tensors that were folded carry their content.
        layers: in execution order.
        folded: operator names that were computed at preparation and are no layers.
        offsets_b: tensor index -> offset in the arena, for every activation.
        arena_b: bytes of the arena.
    """

    graph: Graph
    layers: tuple[LayerCall, ...]
    folded: tuple[str, ...]
    offsets_b: Mapping[int, int]
    arena_b: int

    def tensor(self, index: int) -> Tensor:
        """Returns a tensor of the graph."""
        return self.graph.tensors[index]

    @property
    def input_names(self) -> dict[int, str]:
        """Tensor index -> name of every model input; a name that two inputs share gets the index behind it."""
        names = [self.tensor(index).name for index in self.graph.inputs]
        unique = (
            name if name and names.count(name) == 1 else f"{name}:{index}"
            for name, index in zip(names, self.graph.inputs, strict=True)
        )
        return dict(zip(self.graph.inputs, unique, strict=True))

    @property
    def constants_b(self) -> int:
        """Bytes of tables in flash: those of the layers, and constant tensors that are read or put out."""
        shared = {i for layer in self.layers for i in layer.call.activations} | set(self.graph.outputs)
        tables = sum(array.values.nbytes for layer in self.layers for array in layer.call.constants)
        return tables + sum(self.tensor(i).size_b for i in shared if self.tensor(i).data is not None)
