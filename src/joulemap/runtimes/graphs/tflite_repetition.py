"""TFLite graphs with operators repeated in place, and without any. Needs ``ai-edge-litert``, loaded when asked.

A delegate leaves out what nothing reads: what a copy writes is an output of the model, or a slice of it is, one element
large, where the copies would otherwise fill the near caches.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from joulemap.runtimes.graphs.repetition import CopyLayout, NodeSize, lay_out_copies
from joulemap.runtimes.graphs.tflite_graph import LiteGraph, constant_b, import_litert, pack_main

__all__ = ["pack_bare", "pack_repeated"]

_SLICED: Final = ("FLOAT32", "INT8", "UINT8")
_SLICE_VERSION: Final = 5
_WIDTHS_B: Final = {"FLOAT32": 4, "INT32": 4, "INT64": 8, "FLOAT64": 8, "FLOAT16": 2, "INT16": 2}


def pack_repeated(
    graph: LiteGraph,
    indices: Sequence[int],
    copies: int,
    *,
    shapes: Mapping[int, tuple[int, ...]],
    sliced: frozenset[int],
) -> bytes:
    """Returns a model in which the operators are there ``copies`` times: one right before itself, several in passes.

    Args:
        graph: not changed.
        indices: of operators in the main graph.
        copies: how often each of them runs, >= 2.
        shapes: of the tensors, by index, as the interpreter has them.
        sliced: operators whose outputs a slice may read: one that runs where they run.
    """
    writer = _Writer.of(graph, shapes)
    main = graph.subgraphs[0]
    chosen = {index: main.operators[index] for index in sorted(indices)}
    written = {int(t) for operator in chosen.values() for t in operator.outputs}
    read = written.intersection(int(t) for operator in chosen.values() for t in operator.inputs)
    sizes = [writer.size(operator, read, sliced=index in sliced) for index, operator in chosen.items()]
    layouts = lay_out_copies(sizes, copies, model_b=writer.model_b())
    repeated = [
        _Repeated(operator=operator, sets=writer.sets(operator, layout), layout=layout)
        for operator, layout in zip(chosen.values(), layouts, strict=True)
    ]
    place = min(chosen) if len(chosen) == 1 else len(main.operators)
    writer.operators.extend(main.operators[:place])
    for number in range(1, copies):
        writer.repeat(repeated, read, number)
    writer.operators.extend(main.operators[place:])
    return writer.pack()


def pack_bare(graph: LiteGraph, *, shapes: Mapping[int, tuple[int, ...]], delegated: bool) -> bytes:
    """Returns a model with the same inputs that executes no operator of the model.

    Args:
        graph: not changed.
        shapes: of the tensors, by index, as the interpreter has them.
        delegated: operators of the model run in a delegate: a slice of one element takes their place there, so that the
            cost of calling the delegate is seen.
    """
    writer = _Writer.of(graph, shapes)
    inputs = [int(t) for t in graph.subgraphs[0].inputs]
    first = next((t for t in inputs if writer.can_slice(t)), None) if delegated else None
    writer.outputs[:] = inputs if first is None else [writer.slice(first, rank=len(shapes[first]))]
    return writer.pack()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeated:
    operator: Any
    sets: Sequence[Any]
    layout: CopyLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    graph: LiteGraph
    schema: Any
    shapes: Mapping[int, tuple[int, ...]]
    buffers: list[Any]
    codes: list[Any]
    tensors: list[Any]
    outputs: list[int]
    operators: list[Any] = field(default_factory=list)
    constants: dict[tuple[int, ...], int] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: LiteGraph, shapes: Mapping[int, tuple[int, ...]]) -> _Writer:
        main = graph.subgraphs[0]
        return cls(
            graph=graph,
            schema=import_litert(),
            shapes=shapes,
            buffers=list(graph.buffers),
            codes=list(graph.operatorCodes),
            tensors=list(main.tensors),
            outputs=[int(t) for t in main.outputs],
        )

    def model_b(self) -> int:
        return sum(0 if buffer.data is None else len(buffer.data) for buffer in self.graph.buffers)

    def size(self, operator: Any, read: AbstractSet[int], *, sliced: bool) -> NodeSize:
        weights_b = sum(constant_b(self.graph, t) for t in {int(t) for t in operator.inputs if t >= 0})
        places = [int(t) for t in operator.outputs if int(t) not in read]
        known = sliced and all(map(self.can_slice, places))
        unread_b = sum(_WIDTHS_B.get(self._type(t), 1) * int(np.prod(self.shapes[t])) for t in places) if known else 0
        return NodeSize(weights_b=weights_b, unread_b=unread_b)

    def can_slice(self, tensor: int) -> bool:
        return self._type(tensor) in _SLICED and len(self.shapes.get(tensor, ())) > 0

    def _type(self, tensor: int) -> str:
        number = self.tensors[tensor].type
        return next((k for k, v in vars(self.schema.TensorType).items() if v == number and k.isupper()), "")

    def sets(self, operator: Any, layout: CopyLayout) -> list[Any]:
        """Returns what executions of the operator read in turn: the first set of weights is the operator's own."""
        weights = [operator.inputs, *(self._own_weights(operator.inputs) for _ in range(1, layout.sets))]
        return [self._own_state(inputs) for inputs in weights]

    def repeat(self, repeated: Sequence[_Repeated], read: AbstractSet[int], number: int) -> None:
        """Appends an execution of each operator, on what the ones before it wrote."""
        made: dict[int, int] = {}
        for one in repeated:
            again = copy.copy(one.operator)
            inputs = one.sets[number % one.layout.sets]
            again.inputs = np.array([made.get(int(t), int(t)) for t in inputs], np.int32)
            own = {int(t): self._again(int(t)) for t in one.operator.outputs}
            again.outputs = np.array(list(own.values()), np.int32)
            self.operators.append(again)
            made |= own
            for place, t in own.items():
                if place not in read:
                    self.outputs.append(self.slice(t, rank=len(self.shapes[place])) if one.layout.read else t)

    def _own_state(self, inputs: Any) -> Any:
        """Returns the inputs with other tensors for those that the operator writes to."""
        places = map(int, inputs)
        return np.array([self._again(p) if p >= 0 and self.tensors[p].isVariable else p for p in places], np.int32)

    def _own_weights(self, inputs: Any) -> Any:
        places = []
        for place in map(int, inputs):
            if place >= 0 and constant_b(self.graph, place):
                buffer = copy.copy(self.buffers[self.tensors[place].buffer])
                self.buffers.append(buffer)
                place = self._again(place, len(self.buffers) - 1)  # noqa: PLW2901
            places.append(place)
        return np.array(places, np.int32)

    def _again(self, place: int, buffer: int = 0) -> int:
        tensor = copy.copy(self.tensors[place])
        tensor.buffer, tensor.name = buffer, f"again {len(self.tensors)}".encode()
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def slice(self, place: int, *, rank: int) -> int:
        """Appends a slice of one element and returns the tensor that it writes; a file need not tell the rank."""
        first = self._again(place)
        self.tensors[first].shape, self.tensors[first].shapeSignature = np.ones(rank, np.int32), None
        operator = self.schema.OperatorT()
        operator.opcodeIndex = self._slice_code()
        operator.inputs = np.array([place, self._constant((0,) * rank), self._constant((1,) * rank)], np.int32)
        operator.outputs = np.array([first], np.int32)
        operator.builtinOptionsType = self.schema.BuiltinOptions.SliceOptions
        operator.builtinOptions = self.schema.SliceOptionsT()
        self.operators.append(operator)
        return first

    def _slice_code(self) -> int:
        if len(self.codes) == len(self.graph.operatorCodes):
            code = self.schema.OperatorCodeT()
            code.builtinCode = code.deprecatedBuiltinCode = self.schema.BuiltinOperator.SLICE
            code.version = _SLICE_VERSION
            self.codes.append(code)
        return len(self.codes) - 1

    def _constant(self, values: tuple[int, ...]) -> int:
        if values not in self.constants:
            buffer, tensor = self.schema.BufferT(), self.schema.TensorT()
            buffer.data = np.frombuffer(np.array(values, np.int32).tobytes(), np.uint8)
            self.buffers.append(buffer)
            tensor.shape, tensor.type = np.array([len(values)], np.int32), self.schema.TensorType.INT32
            tensor.buffer, tensor.name, tensor.hasRank = len(self.buffers) - 1, b"bounds", True
            self.tensors.append(tensor)
            self.constants[values] = len(self.tensors) - 1
        return self.constants[values]

    def pack(self) -> bytes:
        changed, main = copy.copy(self.graph), copy.copy(self.graph.subgraphs[0])
        changed.buffers, changed.operatorCodes = self.buffers, self.codes
        main.tensors, main.operators = self.tensors, self.operators
        main.outputs = np.array(self.outputs, np.int32)
        return pack_main(changed, main)
