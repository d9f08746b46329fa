"""ONNX graphs with operators repeated in place. Needs the package ``onnx``, loaded when asked.

ONNX Runtime by itself runs last what nothing reads. Nodes are therefore put into their order of execution, and sessions
keep the order of the graph (``ExecutionOrder.PRIORITY_BASED``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from joulemap.runtimes.graphs.onnx_graph import import_onnx
from joulemap.runtimes.graphs.onnx_names import names_read, rename_reads, spare_suffix
from joulemap.runtimes.graphs.repetition import CopyLayout, NodeSize, lay_out_copies

__all__ = ["order_nodes", "repeat_nodes"]

_LARGE_B = 4096
"""Smaller constants stay in the nearest cache, and some of them are no weights but shapes and axes."""
_EXPONENTS = {
    "FLOAT": ("<u4", 0x7F80_0000, 0xFFFF),
    "DOUBLE": ("<u8", 0x7FF0_0000_0000_0000, 0xFFFF_FFFF),
    "FLOAT16": ("<u2", 0x7C00, 0xFF),
    "BFLOAT16": ("<u2", 0x7F80, 0x7F),
    "INT8": ("u1", 0, 0xFF),
    "UINT8": ("u1", 0, 0xFF),
}
"""Types whose values may change: how wide they are, the bits of their exponent, and the bits that may change."""
_SEARCHED = 4096
"""Values that are looked through for one that may change."""


def order_nodes(model: Any, order: Sequence[int]) -> list[int]:
    """Puts the nodes into the order in which they were executed, in place; does nothing unless all of them were.

    Args:
        model: a ``ModelProto``.
        order: indices of nodes.

    Returns:
        For each node its index before.
    """
    nodes = list(model.graph.node)
    if sorted(order) != list(range(len(nodes))):
        return list(range(len(nodes)))
    copied = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copied[k] for k in order)
    return list(order)


def repeat_nodes(model: Any, indices: Sequence[int], copies: int, *, outputs_b: Mapping[int, int]) -> Any:
    """Returns a model in which the nodes run ``copies`` times: one right before itself, several in passes at the end.

    Args:
        model: not changed; its nodes are in order of execution.
        indices: of nodes in the main graph.
        copies: how often each of them runs, >= 2.
        outputs_b: bytes that nodes write, by index; 0 for one that writes anything but tensors.
    """
    held_b = {tensor.name: len(tensor.raw_data) or tensor.ByteSize() for tensor in model.graph.initializer}
    sizes_b = {name: size_b for name, size_b in held_b.items() if size_b >= _LARGE_B}
    chosen = {index: model.graph.node[index] for index in sorted(indices)}
    written = {name for node in chosen.values() for name in node.output if name}
    read = written & set().union(*map(names_read, chosen.values())) if len(chosen) > 1 else set()
    weights = {index: sorted(names_read(node) & sizes_b.keys()) for index, node in chosen.items()}
    sizes = [
        NodeSize(
            weights_b=sum(sizes_b[name] for name in weights[index]),
            unread_b=0 if read.issuperset(filter(None, node.output)) else outputs_b.get(index, 0),
        )
        for index, node in chosen.items()
    ]
    layouts = lay_out_copies(sizes, copies, model_b=sum(sizes_b.values()))
    writer = _Writer(
        model=_copy(model),
        weights={t.name: t for t in model.graph.initializer},
        suffix=spare_suffix(model),
        read=frozenset(read),
    )
    repeated = [
        _Repeated(node=chosen[k], weights=weights[k], layout=one) for k, one in zip(chosen, layouts, strict=True)
    ]
    for one in repeated:
        writer.add_weights(one)
    place = min(chosen) if len(chosen) == 1 else len(model.graph.node)
    del writer.model.graph.node[place:]
    for number in range(1, copies):
        for one in repeated:
            writer.repeat(one, number)
    writer.model.graph.node.extend(model.graph.node[place:])
    return writer.model


def _copy(model: Any) -> Any:
    copied = import_onnx().ModelProto()
    copied.CopyFrom(model)
    return copied


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeated:
    node: Any
    weights: Sequence[str]
    layout: CopyLayout

    def weight(self, name: str, suffix: str, turn: int) -> str:
        return f"{name}{suffix}{self.node.name}_{turn}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    model: Any
    weights: Mapping[str, Any]
    suffix: str
    read: frozenset[str]

    def add_weights(self, one: _Repeated) -> None:
        """Adds all sets of weights but the first, which is the model's own."""
        for turn in range(1, one.layout.sets):
            for name in one.weights:
                again = self.model.graph.initializer.add()
                again.CopyFrom(self.weights[name])
                again.name = one.weight(name, self.suffix, turn)
                _change(again, turn)

    def repeat(self, one: _Repeated, number: int) -> None:
        """Appends an execution, on what the executions of the same number before it wrote."""
        again = self.model.graph.node.add()
        again.CopyFrom(one.node)
        again.name = f"{one.node.name}{self.suffix}{number}"
        turn = number % one.layout.sets
        names = {name: f"{name}{self.suffix}{number}" for name in self.read}
        if turn:
            names |= {name: one.weight(name, self.suffix, turn) for name in one.weights}
        rename_reads(again, names)
        for place, name in enumerate(one.node.output):
            again.output[place] = f"{name}{self.suffix}{number}" if name else ""
            if name and name not in self.read and one.layout.read:
                reader = self.model.graph.node.add()  # reads how large it is, not what it holds
                reader.op_type, reader.name = "Shape", f"{again.output[place]} read"
                reader.input.append(again.output[place])
                reader.output.append(reader.name)


def _change(weight: Any, turn: int) -> None:
    """Changes one value a little: the runtime packs weights of the same content once, for all who read them.

    It is one that stays what it is: a zero would become a denormal number, which a core multiplies far more slowly.
    """
    told = _EXPONENTS.get(import_onnx().TensorProto.DataType.Name(weight.data_type))
    if told is None or not weight.raw_data:
        return
    kind, exponent, free = told
    width_b = np.dtype(kind).itemsize
    data = bytes(weight.raw_data)
    bits = np.frombuffer(data[: _SEARCHED * width_b], kind)
    usual = (bits & exponent != 0) & (bits & exponent != exponent) if exponent else np.ones(bits.size, np.bool_)
    place = int(usual.argmax())
    value = int(bits[place]) if usual[place] else exponent >> 2 & exponent
    changed = (value ^ turn & free).to_bytes(width_b, "little")
    weight.raw_data = data[: place * width_b] + changed + data[(place + 1) * width_b :]
