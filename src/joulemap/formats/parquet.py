"""Parquet as this house writes it: zstd, fixed row groups, the same bytes for the same columns; pyarrow comes late."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.formats.json_text import decode_json, encode_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ROW_GROUP",
    "open_file",
    "open_parquet",
    "open_writer",
    "plain_values",
    "read_columns",
    "read_metadata",
    "write_parquet",
]

ROW_GROUP = 1 << 20
"""Rows per row group: 4 MiB of float32, so that a reader can stream in bounded memory."""

_REALS = {"halffloat": "float16", "float": "float32", "double": "float64"}

_T = TypeVar("_T")


def write_parquet(
    path: Path, table: pa.Table, *, metadata: Mapping[str, object] | None = None, encodings: Mapping[str, str]
) -> None:
    """Writes the table.

    Args:
        path: file to write.
        table: columns.
        metadata: key -> JSON document, kept in the file's schema.
        encodings: column -> Parquet encoding; the columns not named are dictionary-encoded.
    """
    with open_writer(path, table.schema, metadata=metadata, encodings=encodings) as put:
        put(table)


@contextmanager
def open_writer(
    path: Path, schema: pa.Schema, *, metadata: Mapping[str, object] | None = None, encodings: Mapping[str, str]
) -> Iterator[Callable[[pa.Table], None]]:
    """Yields what appends a table to the file, in row groups; the arguments are as for :func:`write_parquet`."""
    import pyarrow.parquet as pq  # noqa: PLC0415  0.2 s that only files should cost

    encoded = {key.encode(): encode_json(document) for key, document in (metadata or {}).items()}
    schema = schema.with_metadata(encoded or None)
    plain = [name for name in schema.names if name not in encodings]
    with (
        path.open("wb") as file,  # pyarrow itself takes no path that is not UTF-8, and some others for addresses
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=3,
            use_dictionary=plain,
            column_encoding=dict(encodings) or None,
            write_statistics=False,
            version="2.6",
        ) as writer,
    ):
        yield lambda table: writer.write_table(table.cast(schema), row_group_size=ROW_GROUP)


def open_parquet(path: Path, read: Callable[[Any], _T]) -> _T:
    """Returns what ``read`` takes from the opened file.

    Args:
        path: a Parquet file.
        read: called with the ``pyarrow.parquet.ParquetFile``.

    Raises:
        FormatError: the file is no Parquet file, or its content breaks while it is read (``parquet-damaged``).
    """
    with open_file(path) as file:
        return read(file)


@contextmanager
def open_file(path: Path) -> Iterator[Any]:
    """Yields the opened ``pyarrow.parquet.ParquetFile``.

    Raises:
        FormatError: as :func:`open_parquet`.
    """
    import pyarrow as pa  # noqa: PLC0415  as above
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    try:
        with path.open("rb") as content, pq.ParquetFile(content) as file:
            yield file
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(
            f"{path}: cannot be read as Parquet: {reason}",
            hint="take the bundle again from where it was made",
            slug="parquet-damaged",
        ) from error


def read_columns(path: Path, names: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Returns columns as lists, by name, in the file's order; for tables of results, not for samples.

    Raises:
        FormatError: as :func:`open_parquet`, or a named column is missing.
    """
    return open_parquet(path, lambda file: dict(file.read(columns=names and list(names)).to_pydict()))


def plain_values(column: Any) -> NDArray[np.generic]:
    """Returns the numbers of an array without nulls as a view; pyarrow's own way loads pandas where it is installed.

    Raises:
        TypeError: they are no whole or real numbers of one to eight bytes.
    """
    kind, buffer = str(column.type), column.buffers()[1]
    dtype = np.dtype(_REALS.get(kind, kind))
    if not len(column) or buffer is None:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, len(column), column.offset * dtype.itemsize)


def read_metadata(file: Any, key: str) -> object:
    """Returns the JSON document under the key of an opened file's schema.

    Raises:
        KeyError: there is none.
        ValueError: it is not JSON.
    """
    return decode_json((file.schema_arrow.metadata or {})[key.encode()])
