"""Names in an ONNX graph: what a node reads, its bodies too, and names that nothing has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["names_read", "rename_reads", "spare_suffix", "subgraphs"]

_SUFFIX = "__again"


def spare_suffix(model: Any) -> str:
    """Returns what no name in a ``ModelProto`` holds: a name with it appended, and whatever after, is free."""
    taken = set(_names(model.graph))
    suffix = _SUFFIX
    while any(suffix in name for name in taken):
        suffix += "_"
    return suffix


def subgraphs(node: Any) -> Iterator[Any]:
    """Yields the bodies of a node: of If, Loop, Scan."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def names_read(node: Any) -> set[str]:
    """Returns the names that a node and its bodies read, those of the bodies' own values among them."""
    inner = (inside for body in subgraphs(node) for inside in body.node)
    return set(node.input).union(*map(names_read, inner))


def rename_reads(node: Any, names: Mapping[str, str]) -> None:
    """Lets a node and its bodies read other values, in place.

    Args:
        node: changed in place.
        names: of the values that it shall read, by those that it reads.
    """
    for place, name in enumerate(node.input):
        node.input[place] = names.get(name, name)
    for body in subgraphs(node):
        own = {value.name for value in (*body.input, *body.initializer)}.union(*(inner.output for inner in body.node))
        left = {name: other for name, other in names.items() if name not in own}
        for inner in body.node:
            rename_reads(inner, left)


def _names(graph: Any) -> Iterator[str]:
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        yield value.name
    for tensor in graph.sparse_initializer:
        yield tensor.values.name
    for node in graph.node:
        yield from (node.name, *node.input, *node.output)
        for body in subgraphs(node):
            yield from _names(body)
