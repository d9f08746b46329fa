"""Events of ONNX Runtime's profile: which nodes ran, in which order, and what each of them read and wrote."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from joulemap.records.host.model import HostOperator
from joulemap.runtimes.graphs.macs import count_macs
from joulemap.runtimes.graphs.onnx_weights import Weights

__all__ = ["describe_operator", "node_positions", "node_runs", "written_b"]

_DTYPES = {
    "float": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "double": "fp64",
    "int8": "int8",
    "uint8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "bool": "bool",
}
_WIDTHS_B = {"double": 8, "int64": 8, "float": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2}


def node_runs(events: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Returns the node events of each run but the first, in order of execution; bodies of control flow left out."""
    runs = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("name") == "model_run")
    nodes = [e for e in events if e.get("cat") == "Node" and str(e.get("name", "")).endswith("_kernel_time")]
    nodes.sort(key=lambda e: (e["ts"], -e["dur"]))
    found = []
    for start, end in runs[1:] or runs:
        inside: list[dict[str, Any]] = []
        reach = start
        for event in nodes:
            if start <= event["ts"] <= end and event["ts"] >= reach:
                inside.append(event)
                reach = event["ts"] + event["dur"]
        found.append(inside)
    return found


def _position(name: str) -> int | None:
    own = name.removesuffix("_kernel_time").removeprefix("op")
    return int(own) if own.isdecimal() else None


def node_positions(events: Sequence[dict[str, Any]]) -> list[int] | None:
    """Returns the indices of the nodes in order of execution; None where the events do not tell them."""
    found = [_position(event["name"]) for event in events]
    known = [position for position in found if position is not None]
    return known if len(set(known)) == len(found) else None


def written_b(event: dict[str, Any], node: Any) -> int:
    """Returns the bytes that a node writes; 0 where it writes anything but tensors."""
    shapes = _shapes(event.get("args", {}).get("output_type_shape"))
    if len(shapes) != sum(map(bool, node.output)):
        return 0
    return sum(_WIDTHS_B.get(kind, 1) * math.prod(shape) for kind, shape in shapes)


def describe_operator(index: int, event: dict[str, Any], names: Sequence[str], weights: Weights) -> HostOperator:
    """Returns the operator of an event.

    Args:
        index: in order of execution.
        event: of its kernel.
        names: of the nodes in the file, by position; empty where they are not known.
        weights: of the graph.
    """
    told = event.get("args", {})
    inputs, outputs = (_shapes(told.get(key)) for key in ("input_type_shape", "output_type_shape"))
    op = str(told.get("op_name", ""))
    position = _position(event["name"])
    name = names[position] if names and position is not None else event["name"].removesuffix("_kernel_time")
    read, weights_b = weights.complete(position, [shape for _, shape in inputs])
    held_b = weights_b or int(told.get("parameter_size") or 0)
    held_b += sum(int(told.get(key) or 0) for key in ("activation_size", "output_size"))
    return HostOperator(
        index=index,
        op=op,
        name=name,
        macs=count_macs(op, read, [shape for _, shape in outputs]),
        bytes=held_b,
        weights_b=weights_b,
        provider=str(told.get("provider", "")),
        dtype=_DTYPES.get(inputs[0][0] if inputs else outputs[0][0] if outputs else "", ""),
    )


def _shapes(told: Any) -> list[tuple[str, tuple[int, ...]]]:
    if not isinstance(told, list):
        return []
    return [(str(kind), tuple(shape)) for entry in told for kind, shape in entry.items()]
