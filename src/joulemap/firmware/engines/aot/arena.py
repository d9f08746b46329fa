"""Places buffers with lifetimes in one arena so that no two live ones overlap.

Pure: buffers in, offsets out. Must not know tensors, operators or C.

References:
    Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, MLSys 2020 (greedy by size).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ALIGNMENT_B", "ArenaBuffer", "ArenaPlan", "plan_arena"]

ALIGNMENT_B = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaBuffer:
    """A stretch of memory and the steps during which its content matters, both ends included.

    Args:
        size_b: bytes, > 0.
        first: step that writes it.
        last: last step that reads it.
    """

    size_b: int
    first: int
    last: int

    def __post_init__(self) -> None:
        if self.size_b <= 0 or self.last < self.first:
            raise ValueError(f"a buffer of {self.size_b} bytes that lives from {self.first} to {self.last}")

    def overlaps(self, other: ArenaBuffer) -> bool:
        """Returns True when both are live in some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaPlan:
    """Where each buffer starts.

    Args:
        offsets_b: one per buffer, a multiple of the alignment.
        size_b: bytes of the arena.
    """

    offsets_b: tuple[int, ...]
    size_b: int


def plan_arena(buffers: Sequence[ArenaBuffer], *, alignment_b: int = ALIGNMENT_B) -> ArenaPlan:
    """Returns offsets by descending size, each buffer in the lowest gap that its lifetime leaves free."""
    offsets: dict[int, int] = {}
    for index in sorted(range(len(buffers)), key=lambda i: (-buffers[i].size_b, i)):
        buffer = buffers[index]
        start = 0
        for other in sorted((i for i in offsets if buffers[i].overlaps(buffer)), key=lambda i: offsets[i]):
            if start + buffer.size_b <= offsets[other]:
                break
            end = offsets[other] + buffers[other].size_b
            start = max(start, -(-end // alignment_b) * alignment_b)
        offsets[index] = start
    size_b = max((offsets[i] + buffers[i].size_b for i in offsets), default=0)
    return ArenaPlan(offsets_b=tuple(offsets[i] for i in range(len(buffers))), size_b=size_b)
