"""Which slices a map counts, and under which key each of them falls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError
from joulemap.trace import Timeline

__all__ = ["Grouping", "MapKey", "group_slices"]

_NUMBER = re.compile(r"(\s*#\d+|[_:/.]\d+)$")
"""A trailing instance number: ``CONV_2D #3``, ``conv_17``."""

_KINDS = {
    "layer": ("layer",),
    "kernel": ("kernel", "gpu_kernel", "cuda_kernel"),
    "op": ("operator", "op", "cpu_op", "node", "layer", "kernel"),
}


class MapKey(StrEnum):
    """What a row of a map stands for."""

    NAME = "name"
    OP = "op"
    LAYER = "layer"
    KERNEL = "kernel"
    PATH = "path"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouping:
    """Keys of a timeline's slices.

    Args:
        keys: one per group.
        group: (n,) group of each slice; -1 for one that is not counted.
        by_path: the groups are names; paths are made while sweeping.
    """

    keys: tuple[str, ...]
    group: NDArray[np.int32]
    by_path: bool = False

    def label(self, path_parent: NDArray[np.int64], path_name: NDArray[np.int64], at: int) -> str:
        """Returns the path of a group made while sweeping, outermost name first."""
        names: list[str] = []
        while at >= 0:
            names.append(self.keys[int(path_name[at])])
            at = int(path_parent[at])
        return ";".join(reversed(names))


def group_slices(timeline: Timeline, key: MapKey) -> Grouping:
    """Returns the key of every slice.

    ``name`` and ``path`` take all slices. ``layer`` and ``kernel`` take those kinds alone; ``op`` takes the innermost
    kind that works on operators and drops the number that tells instances apart.

    Args:
        timeline: the slices.
        key: what a row stands for.

    Raises:
        InputError: no slice is of the kind (``no-such-slices``).
    """
    names = np.arange(len(timeline.names), dtype=np.int32)
    if key in (MapKey.NAME, MapKey.PATH):
        return Grouping(keys=timeline.names, group=timeline.name_index, by_path=key is MapKey.PATH)
    wanted = [k for k, kind in enumerate(timeline.kinds) if kind.lower() in _KINDS[str(key)]]
    if not wanted and key is not MapKey.OP:
        raise InputError(
            f"the timeline has no slice of kind {key}",
            hint=f"its kinds are {', '.join(kind or 'none' for kind in timeline.kinds)}; try --by name",
            slug="no-such-slices",
        )
    keys = timeline.names
    if key is MapKey.OP:
        operators = {name: _NUMBER.sub("", name) or name for name in timeline.names}
        table = {op: k for k, op in enumerate(dict.fromkeys(operators.values()))}
        names = np.array([table[operators[name]] for name in timeline.names], np.int32)
        keys = tuple(table)
    group = names[timeline.name_index] if key is MapKey.OP else timeline.name_index
    if wanted and len(wanted) < len(timeline.kinds):
        counted = np.isin(timeline.kind_index, np.array(wanted, np.int32))
        group = np.where(counted, group, np.int32(-1))
    return Grouping(keys=keys, group=np.asarray(group, np.int32))
