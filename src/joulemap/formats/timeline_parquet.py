"""A timeline as one Parquet file: ``start_ns``, ``end_ns`` and the words ``name``, ``track``, ``kind`` per slice.

The clock stands in the file's metadata. Words are dictionary columns, so that any Parquet tool shows them as text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from joulemap.errors import FormatError
from joulemap.formats.clock_json import describe_clock, parse_clock
from joulemap.formats.parquet import open_parquet, plain_values, read_metadata, write_parquet
from joulemap.trace import Timeline

__all__ = ["SCHEMA", "VERSION", "read_timeline", "write_timeline"]

SCHEMA = "joulemap.timeline"
VERSION = 1
_CLOCK = "joulemap.clock"
_BATCH = 1 << 17
"""Slices decoded at a time."""


def write_timeline(path: Path, timeline: Timeline) -> None:
    """Writes the timeline."""
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost

    words = {
        "name": (timeline.name_index, timeline.names),
        "track": (timeline.track_index, timeline.tracks),
        "kind": (timeline.kind_index, timeline.kinds),
    }
    columns: dict[str, Any] = {"start_ns": timeline.start_ns, "end_ns": timeline.end_ns}
    for column, (index, table) in words.items():
        columns[column] = pa.DictionaryArray.from_arrays(pa.array(index), pa.array(table, pa.string()))
    packed = {"start_ns": "DELTA_BINARY_PACKED", "end_ns": "DELTA_BINARY_PACKED"}
    write_parquet(path, pa.table(columns), metadata={_CLOCK: describe_clock(timeline.clock)}, encodings=packed)


def read_timeline(path: Path) -> Timeline:
    """Returns the timeline; its word tables hold the words in use, in order of first appearance.

    Raises:
        FormatError: the file is damaged or is no timeline (``parquet-damaged``, ``timeline-damaged``).
    """
    try:
        clock, instants, words = open_parquet(path, _read)
        return Timeline(
            clock=parse_clock(clock),
            start_ns=instants[0],
            end_ns=instants[1],
            name_index=words[0].index,
            names=tuple(words[0].table),
            track_index=words[1].index,
            tracks=tuple(words[1].table),
            kind_index=words[2].index,
            kinds=tuple(words[2].table),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path}: is no timeline: {error}",
            hint="take the bundle again from where it was made",
            slug="timeline-damaged",
        ) from error


class _Words:
    """Indices into a table of distinct words in order of first appearance, filled block by block."""

    def __init__(self, count: int) -> None:
        self.index = np.zeros(count, np.int32)
        self.table: dict[str, int] = {}
        self._known: list[str] = []

    def fill(self, at: int, column: Any) -> None:
        """Takes a block by its dictionary's codes: a Python object per slice would cost 100 bytes each."""
        import pyarrow as pa  # noqa: PLC0415  as above

        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        if encoded.null_count:
            raise ValueError("a slice lacks a word")
        words = encoded.dictionary.to_pylist()
        codes = plain_values(encoded.indices)
        if codes.size and (int(codes.min()) < 0 or int(codes.max()) >= len(words)):
            raise ValueError("a slice names a word that is not there")
        if words and words == self._known[: len(words)]:
            if len(words) > 1:  # the index is all 0 as it was made, and memory that nobody wrote to is none
                self.index[at : at + codes.size] = codes
            return
        used = np.flatnonzero(np.bincount(codes, minlength=len(words)))
        if any(words[word] not in self.table for word in used):
            first = np.full(len(words), codes.size, np.int64)
            first[codes[::-1]] = np.arange(codes.size - 1, -1, -1)  # of equal codes the last one written stays
            used = used[np.argsort(first[used], kind="stable")]
        lookup = np.zeros(len(words), np.int32)
        for word in used.tolist():
            lookup[word] = self.table.setdefault(words[word], len(self.table))
        self._known = list(self.table)
        same = bool(np.array_equal(lookup[used], used))
        if len(self.table) > 1:
            self.index[at : at + codes.size] = codes if same else lookup[codes]


def _read(file: Any) -> tuple[Any, list[np.ndarray[Any, np.dtype[np.int64]]], list[_Words]]:
    import pyarrow as pa  # noqa: PLC0415  as above

    count = file.metadata.num_rows
    instants = [np.empty(count, np.int64) for _ in range(2)]
    words = [_Words(count) for _ in range(3)]
    at = 0
    for batch in file.iter_batches(_BATCH, columns=["start_ns", "end_ns", "name", "track", "kind"]):
        for column, name in zip(instants, ("start_ns", "end_ns"), strict=True):
            if batch.column(name).null_count:
                raise ValueError("a slice lacks an instant")
            column[at : at + batch.num_rows] = plain_values(batch.column(name))
        for word, name in zip(words, ("name", "track", "kind"), strict=True):
            word.fill(at, batch.column(name))
        at += batch.num_rows
        del batch
    for column in (*instants, *(word.index for word in words)):
        column.setflags(write=False)  # handed over: a timeline copies what may still change
    pa.default_memory_pool().release_unused()  # what decoding took is not wanted again
    return read_metadata(file, _CLOCK), instants, words
