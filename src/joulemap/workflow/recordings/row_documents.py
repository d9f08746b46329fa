"""Rows of a map as JSON, each made when it is asked for: a timeline may have a million names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from joulemap.records.mapping.energy_map import MapRow
from joulemap.records.mapping.row_fit_facts import RowGroup

__all__ = ["RowDocuments", "describe_group", "describe_row"]

Document = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowDocuments(Sequence[Document]):
    """The rows of a document.

    Args:
        rows: of the map.
        more: further keys of a row.
    """

    rows: Sequence[MapRow]
    more: Callable[[MapRow], Document]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Document: ...

    @overload
    def __getitem__(self, at: slice) -> list[Document]: ...

    def __getitem__(self, at: int | slice) -> Document | list[Document]:
        if isinstance(at, slice):
            return [self._document(row) for row in self.rows[at]]
        return self._document(self.rows[at])

    def _document(self, row: MapRow) -> Document:
        return describe_row(row) | self.more(row)


def describe_group(group: RowGroup) -> Document:
    """Returns rows that are known as a sum alone as JSON."""
    return {
        "keys": list(group.keys),
        "contains_idle": group.contains_idle,
        "energy_j": group.energy_j.to_json(),
        "self_s": group.self_s,
    }


def describe_row(row: MapRow) -> Document:
    """Returns a row as JSON."""
    return {
        "key": row.key,
        "count": row.count,
        "outside": row.outside,
        "energy_j": row.energy_j.to_json(),
        "self_j": row.self_j.to_json(),
        "share": row.share,
        "cumulative_share": row.cumulative_share,
        "duration_s": row.duration_s,
        "self_s": row.self_s,
        "mean_power_w": row.mean_power_w.to_json(),
        "resolution": str(row.resolution),
        "reason": row.reason or None,
        "runs_needed": row.runs_needed,
    }
