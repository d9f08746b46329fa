"""Members of zip archives, streamed and bounded; whatever is broken in an archive or an Arrow table as one error."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from joulemap.errors import FormatError

__all__ = [
    "ZIP_MAGIC",
    "arrow_failures",
    "damaged_table",
    "is_zip",
    "member_bytes",
    "member_chunks",
    "member_names",
    "open_archive",
]

ZIP_MAGIC: Final = b"PK\x03\x04"

_BROKEN: Final = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, KeyError, OSError, EOFError, RuntimeError,
    ValueError, OverflowError,
)  # fmt: skip


def _damaged(name: str, error: Exception) -> FormatError:
    return FormatError(
        f"{name}: the archive is damaged ({type(error).__name__}: {error})",
        hint="Export the recording again, or repair the archive with a zip tool first.",
        slug="archive-damaged",
    )


def is_zip(head: bytes) -> bool:
    """Returns whether a head is that of a zip archive with at least one member."""
    return head.startswith(ZIP_MAGIC)


def member_names(path: Path) -> tuple[str, ...]:
    """Returns the names of an archive's members; empty when it is no readable archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(archive.namelist())
    except _BROKEN:
        return ()


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Opens a zip archive.

    Raises:
        FormatError: it is no archive, or damaged.
    """
    try:
        archive = zipfile.ZipFile(path)
    except _BROKEN as error:
        raise _damaged(path.name, error) from error
    with archive:
        yield archive


def member_chunks(archive: zipfile.ZipFile, name: str, chunk_b: int) -> Iterator[bytes]:
    """Yields a member's bytes, ``chunk_b`` at a time (the last piece shorter).

    Raises:
        FormatError: it is not there, damaged (also by its checksum) or encrypted.
    """
    try:
        with archive.open(name) as handle:
            while block := handle.read(chunk_b):
                yield block
    except _BROKEN as error:
        raise _damaged(name, error) from error


def member_bytes(archive: zipfile.ZipFile, name: str, limit_b: int = 1 << 22) -> bytes:
    """Returns a whole small member.

    Raises:
        FormatError: as ``member_chunks``, or it holds more than ``limit_b``.
    """
    body = b""
    for block in member_chunks(archive, name, 1 << 20):
        body += block
        if len(body) > limit_b:
            raise FormatError(
                f"archive member {name} holds more than {limit_b} bytes",
                hint="The archive is damaged.",
                slug="archive-damaged",
            )
    return body


def arrow_failures() -> tuple[type[Exception], ...]:
    """Returns what pyarrow raises on damaged files."""
    import pyarrow as pa  # noqa: PLC0415  # loaded when a table is read

    return (pa.ArrowException, OSError, ValueError, OverflowError, RuntimeError, KeyError, TypeError)


def damaged_table(path: Path, error: Exception) -> FormatError:
    """Returns the error of a table that cannot be read."""
    return FormatError(
        f"{path.name}: the table is damaged ({type(error).__name__}: {str(error)[:200]})",
        hint="Write it again.",
        slug="table-damaged",
    )
