"""How a file that a bundle refers to is known again without reading all of it: by its time and some of its bytes.

A file is taken as unchanged when its size, the time of its last change and the bytes at sixty-four places are those of
the import. Where the time differs (a copy, a touch) the whole file is compared by its SHA-256. So only who changes
bytes elsewhere *and* sets the time back to the nanosecond is not seen.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from joulemap.formats.bundle import digest
from joulemap.records.recording import SourceFile

__all__ = ["FileStamp", "is_unchanged", "stamp_file"]

_PLACES = 64
_PLACE_B = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStamp:
    """A file at the time of its import.

    Args:
        name: of the source file.
        modified_ns: time of the last change, ns since 1970, as the file system has it.
        places_sha256: digest of the bytes at some places.
    """

    name: str
    modified_ns: int
    places_sha256: str


def stamp_file(path: Path, name: str) -> FileStamp:
    """Returns the stamp of a file as it is now."""
    return FileStamp(name=name, modified_ns=path.stat().st_mtime_ns, places_sha256=_places(path))


def is_unchanged(path: Path, source: SourceFile, stamp: FileStamp | None) -> bool:
    """Returns whether a file is the one that was imported.

    Args:
        path: the file; it exists.
        source: as it was imported.
        stamp: of the import; None to compare the whole file.
    """
    state = path.stat()
    if state.st_size != source.size_b:
        return False
    if stamp is not None:
        if _places(path) != stamp.places_sha256:
            return False
        if state.st_mtime_ns == stamp.modified_ns:
            return True
    return digest(path) == source.sha256


def _places(path: Path) -> str:
    size_b = path.stat().st_size
    found = hashlib.sha256()
    with path.open("rb") as file:
        for k in range(_PLACES):
            file.seek(max(size_b - _PLACE_B, 0) * k // (_PLACES - 1))
            found.update(file.read(_PLACE_B))
    return found.hexdigest()
