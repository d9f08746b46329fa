"""Parquet tables, by the map that the user states.

References:
    Apache Parquet format 2.x, read by pyarrow; validated in full before any value is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.archive import arrow_failures, damaged_table
from joulemap.formats.tables.columnar import build_recording
from joulemap.records.recording import Recording

__all__ = ["ParquetReader"]

_MAGIC: Final = b"PAR1"


class ParquetReader:
    """Reads the mapped columns of a Parquet file."""

    name = "parquet"
    certainty = Certainty.WRITTEN
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.9 for the magic number."""
        del path
        return 0.9 if head.startswith(_MAGIC) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the rails of the map.

        Raises:
            InputError: no map, or one that does not fit.
            FormatError: the file is damaged.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415  # loaded when a table is read

        try:
            file = pq.ParquetFile(path)
            header = list(file.schema_arrow.names)
        except arrow_failures() as error:
            raise damaged_table(path, error) from error

        def load(columns: list[str]) -> Any:
            table = file.read(columns=columns, use_threads=False)
            table.validate(full=True)
            return table

        with file:
            return build_recording(self.name, path, (load, header), options)
