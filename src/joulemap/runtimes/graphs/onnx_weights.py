"""Weights of an ONNX graph, by the node that reads them: what a profile leaves out of a node's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from joulemap.runtimes.graphs.macs import Shape

__all__ = ["Weights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Inputs of the nodes of a graph, and shape and bytes of those that are weights."""

    inputs: tuple[tuple[str, ...], ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sizes_b: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Any) -> Weights:
        """Returns the weights of a ``ModelProto``; none for None."""
        if graph is None:
            return cls()
        tensors = graph.graph.initializer
        return cls(
            inputs=tuple(tuple(node.input) for node in graph.graph.node),
            shapes={tensor.name: tuple(tensor.dims) for tensor in tensors},
            sizes_b={tensor.name: len(tensor.raw_data) or tensor.ByteSize() for tensor in tensors},
        )

    def complete(self, position: int | None, told: Sequence[Shape]) -> tuple[list[Shape], int]:
        """Returns the shapes of all inputs of a node, and the bytes of its weights.

        A profile leaves out weights that a kernel has packed for itself; these are taken from the graph.
        """
        if position is None or position >= len(self.inputs):
            return list(told), 0
        rest = list(told)
        shapes: list[Shape] = []
        for name in self.inputs[position]:
            if name in self.shapes:
                shapes.append(self.shapes[name])
                if rest and rest[0] == self.shapes[name]:
                    rest.pop(0)
            elif name and rest:
                shapes.append(rest.pop(0))
        return shapes, sum(self.sizes_b.get(name, 0) for name in self.inputs[position])
