"""Weights of an ONNX graph, by the node that reads them: what a profile leaves out of a node's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from joulemap.runtimes.graphs.macs import Shape
from joulemap.runtimes.graphs.onnx_names import names_read, subgraphs

__all__ = ["Weights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What the nodes of a graph read.

    Args:
        inputs: of each node, by name.
        held_b: weights of each node and its bodies, bytes.
        shapes: of the weights.
    """

    inputs: tuple[tuple[str, ...], ...] = ()
    held_b: tuple[int, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Any) -> Weights:
        """Returns the weights of a ``ModelProto``; none for None."""
        if graph is None:
            return cls()
        tensors = graph.graph.initializer
        sizes_b = {tensor.name: _size_b(tensor) for tensor in tensors}
        return cls(
            inputs=tuple(tuple(node.input) for node in graph.graph.node),
            shapes={tensor.name: tuple(tensor.dims) for tensor in tensors},
            held_b=tuple(
                sum(sizes_b.get(name, 0) for name in names_read(node)) + _bodies_b(node) for node in graph.graph.node
            ),
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
        return shapes, self.held_b[position]


def _size_b(tensor: Any) -> int:
    return len(tensor.raw_data) or int(tensor.ByteSize())


def _bodies_b(node: Any) -> int:
    """Returns the bytes of the weights that the bodies of a node hold themselves."""
    return sum(sum(map(_size_b, body.initializer)) + sum(map(_bodies_b, body.node)) for body in subgraphs(node))
