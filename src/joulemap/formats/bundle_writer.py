"""Writes a bundle: hidden folder beside the target, manifest last, one rename; an old one stays until then.

The hidden folder ``.NAME.*.partial`` holds a lock that dies with its process, so that the next writer of the
same target can tell what was left behind by a killed one from what another writer is still filling.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from joulemap.errors import InputError, ReportError, SetupError, UsageError
from joulemap.formats.bundle import MANIFEST, SCHEMA, SCHEMA_VERSION, Section, check_section_path, digest, read_bundle
from joulemap.formats.json_text import encode_json

__all__ = ["BundleWriter"]

JSON = "application/json"
_LOCK = "lock"
_BODY = "bundle"
_ASIDE = "replaced"
_AT_FDCWD = -100
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2  # linux/fs.h


class BundleWriter:
    """A bundle in the making; a context manager that leaves nothing behind unless :meth:`commit` was reached.

    Args:
        target: the folder to become, for example ``RUN.jm``.
        kind: ``profile``, ``record``, ...
        run_id: of the run.
        tool: name and version of the writer.
        created: ISO 8601 UTC; the caller's clock.
        force: replace a bundle that is there.

    Raises:
        UsageError: something is at the target and ``force`` was not given, or what is there is no bundle
            (``bundle-exists``).
        SetupError: the folder around the target cannot be written (``output-unwritable``).
    """

    def __init__(
        self, target: Path, *, kind: str, run_id: str, tool: Mapping[str, str], created: str, force: bool = False
    ) -> None:
        self._target = Path(os.path.abspath(target))  # noqa: PTH100  resolve() would follow a link at the target
        self._head = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "kind": kind,
            "run_id": run_id,
            "tool": dict(tool),
            "created": created,
        }
        self._force = force
        self._sections: dict[str, tuple[str, str, int, bool]] = {}
        try:
            _sweep(self._target)
            self._check_target()
            self._partial, self._lock = _open_partial(self._target)
        except OSError as error:
            raise SetupError(
                f"{self._target.parent}: cannot write there ({error.strerror})",
                hint="name a writable folder with -o",
                slug="output-unwritable",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def place(self, path: str, *, media_type: str, schema: str, version: int = 1, optional: bool = False) -> Path:
        """Returns the file that the caller is to write for a new section; its folders exist.

        Args:
            path: inside the bundle.
            media_type: for example ``application/json``.
            schema: what it means; empty for foreign content.
            version: of that schema.
            optional: the bundle is whole without it (``truth/``).

        Raises:
            ValueError: the path leads out of the bundle or is taken.
            ReportError: the folder cannot be written (``output-unwritable``).
        """
        check_section_path(path)
        if path in self._sections:
            raise ValueError(f"the section {path!r} was already placed")
        file = self._partial / _BODY / path
        with self.writing():
            file.parent.mkdir(parents=True, exist_ok=True)
        self._sections[path] = (media_type, schema, version, optional)
        return file

    def write_bytes(
        self, path: str, data: bytes, *, media_type: str, schema: str, version: int = 1, optional: bool = False
    ) -> None:
        """Writes a section of raw bytes.

        Raises:
            ValueError, ReportError: as :meth:`place`.
        """
        file = self.place(path, media_type=media_type, schema=schema, version=version, optional=optional)
        with self.writing():
            file.write_bytes(data)

    def write_json(self, path: str, document: object, *, schema: str, version: int = 1, optional: bool = False) -> None:
        """Writes a section as JSON.

        Raises:
            ValueError, TypeError: as :meth:`place`, or the document is not JSON (NaN, infinity, another type).
            ReportError: as :meth:`place`.
        """
        self.write_bytes(
            path, encode_json(document), media_type=JSON, schema=schema, version=version, optional=optional
        )

    def write_text(self, path: str, text: str, *, schema: str, version: int = 1, optional: bool = False) -> None:
        """Writes a section as UTF-8 text.

        Raises:
            ValueError, ReportError: as :meth:`place`.
        """
        data = text.encode("utf-8", errors="backslashreplace")
        self.write_bytes(path, data, media_type="text/plain", schema=schema, version=version, optional=optional)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Turns an error of the file system inside it into a ReportError (``output-unwritable``, exit 3)."""
        try:
            yield
        except OSError as error:
            raise ReportError(
                f"{self._target}: cannot be written ({error.strerror or error})",
                hint="free some space or name another folder with -o",
                slug="output-unwritable",
                phase="report",
            ) from error

    def commit(self, *, validity: str) -> Path:
        """Writes the manifest, puts the bundle in its place and returns the target.

        Args:
            validity: of the result: ``valid``, ``degraded`` or ``invalid``.

        Raises:
            UsageError: something came to the target meanwhile (``bundle-exists``).
            ReportError: the file system refused (``output-unwritable``).
        """
        body = self._partial / _BODY
        with self.writing():
            sections = [self._describe(path) for path in sorted(self._sections)]
            manifest = self._head | {"validity": validity, "sections": [section.to_json() for section in sections]}
            for section in sections:
                _flush(body / section.path)
            (body / MANIFEST).write_bytes(encode_json(manifest))
            _flush(body / MANIFEST)
        self._check_target()
        with self.writing():
            if self._force and self._target.exists():
                _rename_flagged(body, self._target, _RENAME_EXCHANGE)
            else:
                self._rename(body)
            _flush(self._target.parent)
        self.discard()
        return self._target

    def discard(self) -> None:
        """Removes what is not part of a finished bundle; idempotent."""
        _remove(self._partial)
        with contextlib.suppress(OSError):
            os.close(self._lock)
        self._lock = -1

    def _describe(self, path: str) -> Section:
        media_type, schema, version, optional = self._sections[path]
        file = self._partial / _BODY / path
        return Section(
            path=path,
            media_type=media_type,
            schema=schema,
            version=version,
            size_b=file.stat().st_size,
            sha256=digest(file),
            optional=optional,
        )

    def _rename(self, body: Path) -> None:
        try:
            _rename_flagged(body, self._target, _RENAME_NOREPLACE)
        except FileExistsError:
            raise self._taken("exists since this run began") from None

    def _check_target(self) -> None:
        if not os.path.lexists(self._target):
            return
        if not self._force:
            raise self._taken("exists")
        if self._target.is_symlink():
            raise self._taken("is a symbolic link")
        try:
            read_bundle(self._target, verify=False)
        except InputError as error:
            if (self._target / MANIFEST).is_file() and error.slug != "not-a-bundle":
                return  # a damaged or newer bundle is still one
            raise self._taken("is not a bundle and will not be replaced") from error

    def _taken(self, why: str) -> UsageError:
        hint = "name another with -o" if self._force else "replace it with --force or name another with -o"
        return UsageError(f"{self._target}: {why}", hint=hint, slug="bundle-exists")


def _open_partial(target: Path) -> tuple[Path, int]:
    while True:
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        try:
            lock = os.open(partial / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # swept by another writer in the instant before it was locked
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat(partial / _LOCK)  # noqa: PTH116  still there now that it is ours
            (partial / _BODY).mkdir()
        except (BlockingIOError, FileNotFoundError):
            os.close(lock)
            continue
        return partial, lock


def _sweep(target: Path) -> None:
    """Removes what killed writers of the same target left; what a living writer holds stays."""
    for partial in target.parent.glob(f".{glob.escape(target.name)}.*.partial"):
        if partial.is_symlink() or not partial.is_dir():
            continue
        try:
            lock = os.open(partial / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            with contextlib.suppress(OSError):
                partial.rmdir()  # killed before it was locked: empty, or not ours
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (partial / _ASIDE).is_dir() and not os.path.lexists(target):
                (partial / _ASIDE).rename(target)  # killed between the two renames of a plain exchange
            _remove(partial)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


def _remove(partial: Path) -> None:
    # the manifest first: what is half removed must not look like a bundle; the lock's folder last
    with contextlib.suppress(OSError):
        (partial / _BODY / MANIFEST).unlink()
    shutil.rmtree(partial / _BODY, ignore_errors=True)
    shutil.rmtree(partial, ignore_errors=True)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_flagged(source: Path, target: Path, flags: int) -> None:
    """Renames as one step of the file system with renameat2's flags; a plain rename where it is not known.

    References:
        Linux man-pages 6, rename(2).
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        if rename(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
            return
        code = ctypes.get_errno()
        if code not in {errno.ENOSYS, errno.EINVAL}:
            raise OSError(code, os.strerror(code), str(target))
    if flags == _RENAME_EXCHANGE:
        aside = source.with_name(_ASIDE)
        target.rename(aside)
        source.rename(target)
        aside.rename(source)
    elif os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    else:
        source.rename(target)
