"""A timeline as one Parquet file: ``start_ns``, ``end_ns`` and the words ``name``, ``track``, ``kind`` per slice.

The clock stands in the file's metadata. Words are dictionary columns, so that any Parquet tool shows them as text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from joulemap.errors import FormatError
from joulemap.formats.clock_json import describe_clock, parse_clock
from joulemap.formats.parquet import open_parquet, read_metadata, write_parquet
from joulemap.trace import Timeline

__all__ = ["SCHEMA", "VERSION", "read_timeline", "write_timeline"]

SCHEMA = "joulemap.timeline"
VERSION = 1
_CLOCK = "joulemap.clock"


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
        self.index = np.empty(count, np.int32)
        self.table: dict[str, int] = {}

    def fill(self, at: int, column: Any) -> None:
        """Takes a block by its dictionary's codes: a Python object per slice would cost 100 bytes each."""
        import pyarrow as pa  # noqa: PLC0415  as above

        for chunk in column.chunks:
            encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
            if encoded.null_count:
                raise ValueError("a slice lacks a word")
            words = encoded.dictionary.to_pylist()
            codes = encoded.indices.to_numpy(zero_copy_only=False)
            if codes.size and (int(codes.min()) < 0 or int(codes.max()) >= len(words)):
                raise ValueError("a slice names a word that is not there")
            first = np.full(len(words), codes.size, np.int64)
            first[codes[::-1]] = np.arange(codes.size - 1, -1, -1)  # of equal codes the last one written stays
            lookup = np.zeros(len(words), np.int32)
            for word in np.argsort(first, kind="stable").tolist():
                if first[word] == codes.size:
                    break
                lookup[word] = self.table.setdefault(words[word], len(self.table))
            self.index[at : at + codes.size] = lookup[codes]
            at += codes.size


def _read(file: Any) -> tuple[Any, list[np.ndarray[Any, np.dtype[np.int64]]], list[_Words]]:
    count = file.metadata.num_rows
    instants = [np.empty(count, np.int64) for _ in range(2)]
    words = [_Words(count) for _ in range(3)]
    at = 0
    for group in range(file.metadata.num_row_groups):
        table = file.read_row_group(group)
        for column, name in zip(instants, ("start_ns", "end_ns"), strict=True):
            if table.column(name).null_count:
                raise ValueError("a slice lacks an instant")
            column[at : at + table.num_rows] = table.column(name).to_numpy()
        for word, name in zip(words, ("name", "track", "kind"), strict=True):
            word.fill(at, table.column(name))
        at += table.num_rows
    for column in (*instants, *(word.index for word in words)):
        column.setflags(write=False)  # handed over: a timeline copies what may still change
    return read_metadata(file, _CLOCK), instants, words
