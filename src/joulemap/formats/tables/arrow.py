"""Arrow IPC files and streams (Feather 2 too), by the map that the user states.

References:
    Apache Arrow columnar format, IPC. pyarrow checks little when it opens such a file: a damaged one crashes the
    process at the first access, so every batch is validated in full before (TRIAL_RECORDINGS 4).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.archive import arrow_failures, damaged_table
from joulemap.formats.tables.columnar import build_recording
from joulemap.records.recording import Recording

__all__ = ["ArrowReader"]

_FILE: Final = b"ARROW1\0\0"
_STREAM: Final = b"\xff\xff\xff\xff"


class ArrowReader:
    """Reads the mapped columns of an Arrow file or stream."""

    name = "arrow"
    certainty = Certainty.WRITTEN
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.9 for the magic number of a file, 0.4 for the continuation mark of a stream."""
        del path
        if head.startswith(_FILE):
            return 0.9
        return 0.4 if head.startswith(_STREAM) and len(head) > 8 and head[4:8] != b"\0\0\0\0" else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the rails of the map.

        Raises:
            InputError: no map, or one that does not fit.
            FormatError: the file is damaged.
        """
        import pyarrow as pa  # noqa: PLC0415  # loaded when a table is read
        from pyarrow import ipc  # noqa: PLC0415

        try:
            with path.open("rb") as handle:
                whole = handle.read(8).startswith(_FILE)
            source = pa.memory_map(str(path), "r")
            reader = ipc.open_file(source) if whole else ipc.open_stream(source)
            table = reader.read_all()
            table.validate(full=True)
            header = list(table.schema.names)
        except arrow_failures() as error:
            raise damaged_table(path, error) from error

        def load(columns: list[str]) -> Any:
            return table.select(columns)

        return build_recording(self.name, path, (load, header), options)
