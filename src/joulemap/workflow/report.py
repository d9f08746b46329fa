"""A bundle written as a report: read, built, rendered, and put in place whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from joulemap.errors import SetupError, UsageError
from joulemap.report.html.page import render_page
from joulemap.report.markdown import render_markdown
from joulemap.report.source import load_page
from joulemap.report.view.page import PageView

__all__ = ["WrittenReport", "write_reports"]

_RENDERERS: Mapping[str, Callable[[PageView], str]] = {"html": render_page, "markdown": render_markdown}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """One file that was written: ``html`` or ``markdown``, where, and how large."""

    form: str
    path: Path
    size_b: int


def write_reports(bundle: Path, targets: Mapping[str, Path], *, force: bool = False) -> tuple[WrittenReport, ...]:
    """Returns what was written.

    Args:
        bundle: folder of the bundle.
        targets: ``html`` or ``markdown`` -> file to write.
        force: replace files that are there.

    Raises:
        UsageError: nothing to write (``no-output``), or a file is there and ``force`` was not given
            (``output-exists``).
        InputError: not a bundle, or of a kind that has no page.
        FormatError: a section is damaged.
        SetupError: a folder cannot be written (``output-unwritable``).
    """
    if not targets:
        raise UsageError("report: nothing to write", hint="name --html FILE or --markdown FILE", slug="no-output")
    for path in targets.values():
        if not force and (path.exists() or path.is_symlink()):
            raise UsageError(f"{path}: is there already", hint="give --force to replace it", slug="output-exists")
    view = load_page(bundle)
    return tuple(
        WrittenReport(form=form, path=path, size_b=_write(path, _RENDERERS[form](view).encode()))
        for form, path in targets.items()
    )


def _write(path: Path, data: bytes) -> int:
    """Writes beside the target and renames, so that a reader never sees half a page; returns the size."""
    partial = ""
    try:
        descriptor, partial = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(partial).chmod(0o666 & ~mask)
        Path(partial).replace(path)
    except OSError as error:
        if partial:
            with contextlib.suppress(OSError):
                Path(partial).unlink()
        raise SetupError(
            f"{path}: cannot be written ({error.strerror})",
            hint="name a file in a writable folder",
            slug="output-unwritable",
        ) from error
    return len(data)
