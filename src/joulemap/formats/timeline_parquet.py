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
_BLOCK = 1 << 20


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
    clock, columns = open_parquet(path, _read)
    try:
        words = [_index(columns[name]) for name in ("name", "track", "kind")]
        return Timeline(
            clock=parse_clock(clock),
            start_ns=columns["start_ns"].to_numpy(),
            end_ns=columns["end_ns"].to_numpy(),
            name_index=words[0][0],
            names=words[0][1],
            track_index=words[1][0],
            tracks=words[1][1],
            kind_index=words[2][0],
            kinds=words[2][1],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path}: is no timeline: {error}",
            hint="take the bundle again from where it was made",
            slug="timeline-damaged",
        ) from error


def _read(file: Any) -> tuple[Any, Any]:
    table = file.read().combine_chunks()
    return read_metadata(file, _CLOCK), {name: table.column(name) for name in table.column_names}


def _index(column: Any) -> tuple[np.ndarray[Any, np.dtype[np.int32]], tuple[str, ...]]:
    # by the dictionary's own codes: a Python object per slice would cost 100 bytes each
    import pyarrow as pa  # noqa: PLC0415  as above

    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(encoded, pa.ChunkedArray):  # no chunk at all
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.array([], encoded.type)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    if encoded.null_count:
        raise ValueError("a slice lacks a word")
    words = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    if codes.size and (int(codes.min()) < 0 or int(codes.max()) >= len(words)):
        raise ValueError("a slice names a word that is not there")
    first = np.full(len(words), codes.size, np.int64)
    for at in range(0, codes.size, _BLOCK):  # words in order of first appearance
        used, where = np.unique(codes[at : at + _BLOCK], return_index=True)
        first[used] = np.minimum(first[used], where + at)
    kept = [int(word) for word in np.argsort(first, kind="stable") if first[word] < codes.size]
    table = {word: k for k, word in enumerate(dict.fromkeys(words[k] for k in kept))}
    lookup = np.array([table.get(word, -1) for word in words], np.int32)
    return lookup[codes] if codes.size else np.empty(0, np.int32), tuple(table)
