"""Build cache addressed by content: what was built once from the same input is never built again.

An entry is a folder ``<kind>/<key>/`` with the built file and its digest. It appears by one rename, so that an
interrupted build leaves no half entry and two builds of the same thing may race. A damaged entry is dropped and built
again. Must not know compilers or ELF.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from joulemap.errors import SetupError

__all__ = ["BuildCache", "default_cache_dir", "digest_of"]

_DIGEST_NAME = "sha256"
_STALE_S = 24 * 3600.0


def default_cache_dir() -> Path:
    """Returns ``$JOULEMAP_CACHE_DIR``, else ``joulemap`` in the platform's cache folder; always absolute.

    Raises:
        SetupError: no folder is named and this user has no home (``cache-unwritable``).

    References:
        XDG Base Directory Specification 0.8: a relative ``XDG_CACHE_HOME`` is to be ignored.
    """
    named = os.environ.get("JOULEMAP_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if named:
            return Path(named).expanduser().resolve()
        return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "joulemap"
    except RuntimeError as error:  # pathlib's word for a user without a home
        raise SetupError(
            f"there is no folder for the build cache: {error}",
            hint="point JOULEMAP_CACHE_DIR at a writable folder",
            slug="cache-unwritable",
        ) from error


def digest_of(*parts: str) -> str:
    """Returns the SHA-256 of the parts, each with its length, so that no two lists of parts share a digest."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


class BuildCache:
    """Folder of built files, each verified against its digest whenever it is taken out.

    Args:
        root: folder of the cache; made when it is missing.

    Raises:
        SetupError: the folder cannot be made or written (``cache-unwritable``).
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._scratch = root / "scratch"
        try:
            self._scratch.mkdir(parents=True, exist_ok=True)
            self._sweep()
        except OSError as error:
            raise self._unwritable(error) from error

    def find(self, kind: str, key: str) -> Path | None:
        """Returns the file of an intact entry; None when there is none (a damaged one is dropped)."""
        entry = self.root / kind / key
        try:
            wanted = (entry / _DIGEST_NAME).read_text(encoding="ascii")
            name, digest = wanted.split("\n", 1)
            content = (entry / name).read_bytes()
        except FileNotFoundError:
            if entry.exists():
                self._drop(entry)
            return None
        except (OSError, ValueError):
            self._drop(entry)
            return None
        if hashlib.sha256(content).hexdigest() != digest:
            self._drop(entry)
            return None
        return entry / name

    def build(self, kind: str, key: str, name: str, make: Callable[[Path], None]) -> tuple[Path, bool]:
        """Returns the file of an entry and whether it was there already.

        Args:
            kind: group of entries, for example ``object``.
            key: digest of everything that the content depends on.
            name: file name inside the entry.
            make: fills an empty folder with at least the file ``name``; may raise, then no entry appears.

        Raises:
            SetupError: the cache cannot be written, or was taken away meanwhile (``cache-unwritable``).
        """
        try:
            found = self.find(kind, key)
            return (found, True) if found is not None else (self._make(kind, key, name, make), False)
        except OSError as error:
            raise self._unwritable(error) from error

    def _make(self, kind: str, key: str, name: str, make: Callable[[Path], None]) -> Path:
        with self.workspace() as work:
            make(work)
            fresh = work / ".entry"
            fresh.mkdir()
            content = (work / name).read_bytes()
            (work / name).rename(fresh / name)
            (fresh / _DIGEST_NAME).write_text(f"{name}\n{hashlib.sha256(content).hexdigest()}", encoding="ascii")
            entry = self.root / kind / key
            entry.parent.mkdir(parents=True, exist_ok=True)
            try:
                fresh.rename(entry)
            except OSError:
                if self.find(kind, key) is None:  # another build won the race; its entry must be intact
                    fresh.rename(entry)
        return self.root / kind / key / name

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """Yields an empty folder on the cache's own file system; it is gone afterwards, whatever happened."""
        work = Path(tempfile.mkdtemp(dir=self._scratch))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _unwritable(self, error: OSError) -> SetupError:
        return SetupError(
            f"the build cache {self.root} cannot be written: {error.strerror or error}",
            hint="point JOULEMAP_CACHE_DIR at a writable folder",
            slug="cache-unwritable",
        )

    def _drop(self, entry: Path) -> None:
        doomed = Path(tempfile.mkdtemp(dir=self._scratch))
        try:
            entry.rename(doomed / "entry")
        except FileNotFoundError:
            pass  # another process dropped it first
        finally:
            shutil.rmtree(doomed, ignore_errors=True)

    def _sweep(self) -> None:
        """Removes workspaces that a killed build left behind."""
        oldest = time.time() - _STALE_S
        for leftover in self._scratch.iterdir():
            try:
                if leftover.stat().st_mtime < oldest:
                    shutil.rmtree(leftover, ignore_errors=True)
            except FileNotFoundError:
                continue
