"""The bundle, a folder of typed sections with a manifest written last: how one is written and how one is read.

A bundle is built in a hidden folder beside its target and renamed when it is whole: a writer that is killed leaves
nothing that looks like a bundle, and what it left is swept by the next writer of the same target. A reader verifies
every digest before anything is used and follows nothing that leads out of the folder. What the sections mean is the
business of other modules; this one knows names, bytes and digests.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from joulemap.errors import FormatError, InputError
from joulemap.formats.json_text import decode_json

__all__ = ["MANIFEST", "SCHEMA", "SCHEMA_VERSION", "Bundle", "Section", "check_section_path", "digest", "read_bundle"]

MANIFEST = "manifest.json"
SCHEMA = "joulemap.bundle"
SCHEMA_VERSION = 1
_NAME_LIMIT_B = 255
_MANIFEST_LIMIT_B = 16 * 1024 * 1024
_RETAKE = "take the bundle again from where it was made, or measure again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One file of a bundle.

    Args:
        path: inside the bundle, POSIX, relative.
        media_type: for example ``application/json``.
        schema: what it means, for example ``joulemap.trace``; empty for foreign content.
        version: of that schema.
        size_b: bytes.
        sha256: hexadecimal digest.
        optional: the bundle is whole without it.
    """

    path: str
    media_type: str
    schema: str
    version: int
    size_b: int
    sha256: str
    optional: bool = False

    def to_json(self) -> dict[str, object]:
        """Returns the manifest's form."""
        document: dict[str, object] = {
            "path": self.path,
            "media_type": self.media_type,
            "schema": self.schema,
            "version": self.version,
            "size_b": self.size_b,
            "sha256": self.sha256,
        }
        return document | {"optional": True} if self.optional else document


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A complete bundle whose sections have been verified.

    Args:
        folder: where it lies.
        kind: ``profile``, ``record``, ...
        run_id: of the run that made it.
        tool: name and version of the writer.
        created: ISO 8601 UTC, as the writer's clock said.
        validity: ``valid``, ``degraded`` or ``invalid``.
        sections: path -> section; optional ones that are gone are left out.
    """

    folder: Path
    kind: str
    run_id: str
    tool: Mapping[str, str]
    created: str
    validity: str
    sections: Mapping[str, Section]

    def has(self, path: str) -> bool:
        """True when the bundle holds the section."""
        return path in self.sections

    def locate(self, path: str, *, schema: str, version: int = 1) -> Path:
        """Returns the file of a section that the reader understands.

        Args:
            path: of the section.
            schema: that it must have.
            version: newest one that the reader knows.

        Raises:
            FormatError: the bundle lacks it, or it has another schema or a newer version.
        """
        section = self.sections.get(path)
        if section is None:
            raise FormatError(
                f"{self.folder / path}: the bundle has no such section", hint=_RETAKE, slug="bundle-damaged"
            )
        if section.schema != schema or section.version > version:
            raise FormatError(
                f"{self.folder / path}: is {section.schema} version {section.version}, wanted {schema} up to {version}",
                hint="read it with the version of joulemap that wrote it, or a newer one",
                slug="bundle-version",
            )
        return self.folder / path

    def read_json(self, path: str, *, schema: str, version: int = 1) -> dict[str, Any]:
        """Returns a section that is a JSON object.

        Raises:
            FormatError: as :meth:`locate`, or it is no JSON object.
        """
        return _read_object(self.locate(path, schema=schema, version=version))

    def read_text(self, path: str, *, schema: str, version: int = 1) -> str:
        """Returns a section as text; bytes that are not UTF-8 become their escapes.

        Raises:
            FormatError: as :meth:`locate`.
        """
        return self.locate(path, schema=schema, version=version).read_text("utf-8", errors="backslashreplace")


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_section_path(path: str) -> str:
    """Returns the path when it is a plain relative POSIX path inside the bundle.

    Raises:
        ValueError: it is not.
    """
    parts = path.split("/")
    pure = PurePosixPath(path)
    if (
        not path
        or "\\" in path
        or "\0" in path
        or ":" in path
        or pure.is_absolute()
        or any(part in {"", ".", ".."} for part in parts)
        or path == MANIFEST
        or not _is_file_name(parts)
    ):
        raise ValueError(f"{path!r} is not a path inside a bundle")
    return path


def _is_file_name(parts: Sequence[str]) -> bool:
    try:
        return all(len(part.encode()) <= _NAME_LIMIT_B for part in parts)
    except UnicodeEncodeError:  # half of a pair: no text that a name could be made of
        return False


def read_bundle(folder: Path, *, verify: bool = True) -> Bundle:
    """Returns the bundle in the folder, every section verified.

    Args:
        folder: the bundle.
        verify: compare digests; without it only presence, kind and size of the files are checked.

    Raises:
        InputError: not a bundle (``not-a-bundle``), not readable (``input-unreadable``), or of a newer schema
            (``bundle-version``).
        FormatError: a section is missing, cut, changed, or leads out of the folder (``bundle-damaged``,
            ``bundle-path``); the message names it.
    """
    try:
        manifest = _read_manifest(folder)
        sections = _read_sections(folder, manifest.get("sections"))
        present = {path: s for path, s in sections.items() if _check_file(folder, s)}
        if verify:
            for section in present.values():
                _check_digest(folder, section)
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: cannot be read ({error.strerror or error})",
            hint="make it readable",
            slug="input-unreadable",
        ) from error
    tool = manifest.get("tool")
    return Bundle(
        folder=folder,
        kind=_text(folder, manifest, "kind"),
        run_id=_text(folder, manifest, "run_id"),
        tool=MappingProxyType({str(k): str(v) for k, v in tool.items()} if isinstance(tool, dict) else {}),
        created=_text(folder, manifest, "created"),
        validity=_text(folder, manifest, "validity"),
        sections=MappingProxyType(present),
    )


def _damaged(path: Path, what: str) -> FormatError:
    return FormatError(f"{path}: {what}", hint=_RETAKE, slug="bundle-damaged")


def _text(folder: Path, document: Mapping[str, object], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise _damaged(folder / MANIFEST, f"{key} is missing or not text")
    return value


def _read_object(path: Path) -> dict[str, Any]:
    try:
        document = decode_json(path.read_bytes())
    except ValueError as error:
        raise _damaged(path, f"is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise _damaged(path, "is not a JSON object")
    return document


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    hint = "name a folder that joulemap wrote, for example RUN.jm"
    if not folder.is_dir() or path.is_symlink() or not path.is_file():
        why = "no such folder" if not folder.exists() else "not a folder" if not folder.is_dir() else f"no {MANIFEST}"
        raise InputError(f"{folder}: not a bundle ({why})", hint=hint, slug="not-a-bundle")
    if path.stat().st_size > _MANIFEST_LIMIT_B:
        raise _damaged(path, "is too large for a manifest")
    manifest = _read_object(path)
    if manifest.get("schema") != SCHEMA:
        raise InputError(f"{folder}: not a bundle (its manifest is of another kind)", hint=hint, slug="not-a-bundle")
    version = manifest.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _damaged(path, "schema_version is missing or not a number")
    if version > SCHEMA_VERSION:
        raise InputError(
            f"{folder}: bundle schema {version} is newer than {SCHEMA_VERSION}, the newest that this joulemap knows",
            hint="update joulemap",
            slug="bundle-version",
        )
    return manifest


def _read_sections(folder: Path, entries: object) -> dict[str, Section]:
    if not isinstance(entries, list):
        raise _damaged(folder / MANIFEST, "sections is missing or not a list")
    sections: dict[str, Section] = {}
    for entry in entries:
        section = _read_section(folder, entry)
        if section.path in sections:
            raise _damaged(folder / MANIFEST, f"names the section {section.path!r} twice")
        sections[section.path] = section
    return sections


def _read_section(folder: Path, entry: object) -> Section:
    if not isinstance(entry, dict):
        raise _damaged(folder / MANIFEST, "a section is not an object")
    try:
        path = check_section_path(_text(folder, entry, "path"))
    except ValueError as error:
        raise FormatError(
            f"{folder / MANIFEST}: {error}",
            hint="do not trust this bundle: it points outside itself",
            slug="bundle-path",
        ) from error
    version, size_b = entry.get("version"), entry.get("size_b")
    if type(version) is not int or type(size_b) is not int or size_b < 0:
        raise _damaged(folder / MANIFEST, f"version or size_b of {path!r} is missing or not a number")
    return Section(
        path=path,
        media_type=_text(folder, entry, "media_type"),
        schema=_text(folder, entry, "schema"),
        version=version,
        size_b=size_b,
        sha256=_text(folder, entry, "sha256"),
        optional=entry.get("optional") is True,
    )


def _check_file(folder: Path, section: Section) -> bool:
    """True when the section's file is there as a plain file of the right size; False when it may be absent and is."""
    path = folder
    try:
        for part in section.path.split("/"):
            path /= part
            mode = path.lstat()
            if stat.S_ISLNK(mode.st_mode):
                raise FormatError(
                    f"{path}: is a symbolic link",
                    hint="do not trust this bundle: it points outside itself",
                    slug="bundle-path",
                )
    except (FileNotFoundError, NotADirectoryError):
        if section.optional:
            return False
        raise _damaged(folder / section.path, "is missing") from None
    if not stat.S_ISREG(mode.st_mode):
        raise _damaged(path, "is not a file")
    if mode.st_size != section.size_b:
        raise _damaged(path, f"has {mode.st_size} bytes, the manifest says {section.size_b}")
    return True


def _check_digest(folder: Path, section: Section) -> None:
    if digest(folder / section.path) != section.sha256:
        raise _damaged(folder / section.path, "is not what was written (SHA-256 differs)")
