"""Rows of a map as JSON, each made when it is asked for: a timeline may have a million names."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, overload

from joulemap.analysis.mapping.refused_rows import RefusedRows, list_refused
from joulemap.analysis.mapping.rows import RowTable
from joulemap.records.mapping.energy_map import MapRow
from joulemap.records.mapping.row_fit_facts import RowGroup

__all__ = ["RowDocuments", "describe_group", "describe_row"]

Document = dict[str, object]
_PLAIN: Final = json.JSONEncoder(allow_nan=False).encode
_VARYING: Final = ("key", "count", "outside", "duration_s", "self_s")
"""Keys in which two refused rows of one kind differ, in the order of a document."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowDocuments(Sequence[Document]):
    """The rows of a document.

    Args:
        rows: of the map.
        more: further keys of a row; of one without figure and plan they say no more than why it has none.
    """

    rows: Sequence[MapRow]
    more: Callable[[MapRow], Document]
    _alike: dict[int, tuple[str, ...]] = field(default_factory=dict)

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

    def texts(self, first: int, last: int) -> list[str]:
        """Returns the documents of rows ``first`` to ``last`` as JSON, a text each."""
        refused = list_refused(self.rows, first, last) if isinstance(self.rows, RowTable) else None
        if refused is None:
            return [_PLAIN(self[at]) for at in range(first, min(last, len(self)))]
        return self._refused(refused, first)

    def _refused(self, rows: RefusedRows, first: int) -> list[str]:
        """Returns rows without a figure as JSON: what all of a kind have in common is made once."""
        texts = []
        columns = (rows.key, rows.count, rows.outside, rows.duration_s, rows.self_s, rows.kind)
        for at, (key, count, outside, duration_s, self_s, kind) in enumerate(zip(*columns, strict=True), first):
            alike = self._alike.get(kind)
            if alike is None:
                alike = self._alike[kind] = _around(self[at])
            head, to_count, to_outside, to_duration, to_self, tail = alike
            texts.append(
                f"{head}{_PLAIN(key)}{to_count}{count}{to_outside}{outside}{to_duration}{duration_s!r}"
                f"{to_self}{self_s!r}{tail}"
            )
        return texts

    def _document(self, row: MapRow) -> Document:
        return describe_row(row) | self.more(row)


def _around(document: Document) -> tuple[str, ...]:
    """Returns the JSON of a document before, between and after what varies."""
    parts, text = [], "{"
    for number, (key, value) in enumerate(document.items()):
        text += f"{', ' if number else ''}{_PLAIN(key)}: "
        if key in _VARYING:
            parts.append(text)
            text = ""
        else:
            text += _PLAIN(value)
    return (*parts, text + "}")


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
