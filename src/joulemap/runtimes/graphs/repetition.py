"""How operators are executed several times in place, so that a copy costs what its operator costs within the model.

A copy right before its operator reads the same inputs, and nothing reads what it writes. Two things would still make it
cheaper or dearer than the operator, and a layout sees to both:

* Weights that a copy has just read lie in a near cache. The executions of an operator take turns with several sets of
  its weights, so many that as much is read between two uses of one set as in an inference of the model.
* What nothing reads stays until the inference ends: each copy would write to memory of its own, which no near cache
  holds. An operator that costs next to nothing reads each copy, and the next copy finds the same memory free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Caches", "CopyLayout", "NodeSize", "lay_out_copies", "read_caches", "spare_weights_b"]

_KEPT_B = 256 << 10
"""Copies that write less than this together stay in a near cache (L2 of current cores: 0.25..2 MiB)."""
_READ_B = 16 << 10
"""An operator that writes less runs for little longer than the one that would read it (0.2 us)."""
_USUAL_NEAR_B, _USUAL_LAST_B = 1 << 20, 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSize:
    """What a node moves.

    Args:
        weights_b: constants that it reads, bytes.
        outputs_b: bytes that it writes; 0 where they are no tensors, or not known.
    """

    weights_b: int
    outputs_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLayout:
    """How the executions of one node are laid out.

    Args:
        sets: of its weights, which its executions take turns with, >= 1.
        read: something reads each copy, so that its memory is free again.
    """

    sets: int
    read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """What the weights of a model may count on: activations, and whatever else runs, take the rest.

    Args:
        near_b: half of a core's own cache (L2), bytes.
        last_b: a quarter of the last level, bytes: others on the machine, or beside a virtual one, share it.
        whole_b: the last level, bytes: a model that is larger is read from memory.
    """

    near_b: int
    last_b: int
    whole_b: int


def lay_out_copies(
    nodes: Sequence[NodeSize], copies: int, *, model_b: int, caches: Caches | None = None
) -> tuple[CopyLayout, ...]:
    """Returns the layout of each node of a load.

    The copies of several nodes cannot be as far apart as in the model. Where the model is larger than the cache each
    has a set of weights of its own, and all come from memory, as they do there. Else weights of their own would be
    farther away than in the model, and shared ones nearer: half of the copies have the one, half the other.

    Args:
        nodes: that are executed ``copies`` times each.
        copies: executions, >= 2.
        model_b: weights of the whole model, bytes.
        caches: None to ask this machine.
    """
    larger = model_b > (read_caches() if caches is None else caches).last_b
    kept_b = (copies - 1) * sum(node.outputs_b for node in nodes)

    def sets(own_b: int) -> int:
        if not own_b:
            return 1
        if len(nodes) == 1:
            return min(copies, math.ceil(model_b / own_b))
        return copies if larger else (copies + 2) // 2

    return tuple(
        CopyLayout(sets=sets(node.weights_b), read=kept_b > _KEPT_B and node.outputs_b >= _READ_B) for node in nodes
    )


def spare_weights_b(model_b: int, caches: Caches | None = None, *, fast: bool = False) -> int:
    """Returns how many bytes of weights the copies of a load may read besides the model's own.

    Runtimes pack weights for each copy by itself. More than this would push a model that fits into a cache out of it,
    or take more memory than the model twice.

    Args:
        model_b: weights of the model, bytes.
        caches: None to ask this machine.
        fast: the copies read their weights so fast that it matters which cache holds them.
    """
    caches = read_caches() if caches is None else caches
    if fast:
        return next((room_b - model_b for room_b in (caches.near_b, caches.last_b) if model_b <= room_b), model_b)
    return max(model_b, caches.last_b // 2)


def read_caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> Caches:
    """Returns what a model may count on of the caches; of 1 MiB and 32 MiB where the system does not tell.

    Args:
        folder: of the caches of one core.

    References:
        Linux Documentation/ABI/testing/sysfs-devices-system-cpu (cache/index*/level, size).
    """
    told: dict[int, int] = {}
    for entry in folder.glob("index*"):
        try:
            level = int((entry / "level").read_text("ascii"))
            size = (entry / "size").read_text("ascii").strip()
            told[level] = max(told.get(level, 0), int(size.removesuffix("K")) << 10)
        except (OSError, ValueError):
            continue
    level = max(told, default=0)
    near_b, last_b = told.get(2, _USUAL_NEAR_B), told[level] if level > 1 else _USUAL_LAST_B
    return Caches(near_b=near_b // 2, last_b=max(last_b // 4, near_b // 2), whole_b=max(last_b, near_b))
