"""How operators are executed several times, so that a copy costs what its operator costs within the model.

Copies of one operator run right before it, in place, and read the same inputs. Several operators run once more in a
pass, in their order and each on what the one before it wrote, one pass after the other once the model is through: so
they find activations and weights where they find them in the model. Two things would still make a copy cheaper or
dearer than its operator, and a layout sees to both:

* Weights that a copy has just read lie in a nearer cache. Executions take turns with several sets of weights, so many
  that a set has left that cache when it is read again; and no more, since the sets together would push the model out of
  the cache that it lies in.
* What nothing reads stays until the inference ends: each copy would write to memory of its own, which no near cache
  holds. An operator that costs next to nothing reads it, and the next copy finds the same memory free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Caches", "CopyLayout", "NodeSize", "lay_out_copies", "read_caches", "spare_weights_b"]

_KEPT_B = 256 << 10
"""Copies that write less than this together stay in a near cache (L2 of current cores: 0.25..2 MiB)."""
_LEFT_FIRST_B = 128 << 10
"""So much read in between leaves nothing in the first level (32..64 KiB; 128 KiB of some)."""
_READ_B = 16 << 10
"""An operator that writes less runs for little longer than the one that would read it (0.2 us)."""
_USUAL_NEAR_B, _USUAL_LAST_B = 1 << 20, 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSize:
    """What a node moves.

    Args:
        weights_b: constants that it reads, bytes.
        unread_b: bytes that a copy writes and no other copy reads; 0 where they are no tensors, or not known.
    """

    weights_b: int
    unread_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLayout:
    """How the executions of one node are laid out.

    Args:
        sets: of its weights, which its executions take turns with, >= 1.
        read: something reads what nothing else does of each copy, so that its memory is free again.
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

    Args:
        nodes: that are executed ``copies`` times each.
        copies: executions, >= 2.
        model_b: weights of the whole model, bytes.
        caches: None to ask this machine.
    """
    apart_b = _apart_b(model_b, read_caches() if caches is None else caches)
    own_b = sum(node.weights_b for node in nodes)
    sets = min(copies, max(1, math.floor(apart_b / own_b + 0.5))) if own_b else 1
    kept_b = (copies - 1) * sum(node.unread_b for node in nodes)
    return tuple(
        CopyLayout(sets=sets if node.weights_b else 1, read=kept_b > _KEPT_B and node.unread_b >= _READ_B)
        for node in nodes
    )


def _apart_b(model_b: int, caches: Caches) -> int:
    """Returns how much is read between two uses of a set of weights, so that it lies where the model's own lie."""
    if model_b <= caches.near_b:
        return min(model_b, _LEFT_FIRST_B)
    return min(model_b, 4 * caches.near_b) if model_b <= caches.last_b else model_b


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
