"""A bundle written as a report: read, built, rendered, and put in place whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from joulemap.analysis.mapping.keys import MapKey
from joulemap.errors import SetupError, UsageError
from joulemap.formats.bundle import Bundle
from joulemap.report.html.page import render_page
from joulemap.report.markdown import render_markdown
from joulemap.report.source import load_page
from joulemap.report.view.page import PageView
from joulemap.report.view.recording.page import build_recording_page
from joulemap.workflow.outputs import check_outputs
from joulemap.workflow.recordings.map_bundle import BundleMapRequest
from joulemap.workflow.recordings.report_recording import collect_sections

__all__ = ["ReportRequest", "WrittenReport", "load_view", "write_reports"]

_RENDERERS: Mapping[str, Callable[[PageView], str]] = {"html": render_page, "markdown": render_markdown}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """One file that was written: ``html`` or ``markdown``, where, and how large."""

    form: str
    path: Path
    size_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """What the page is to show.

    Args:
        map: of a bundle of recordings; a profile takes its key alone.
        flags: of the command line that say so, for the line that reproduces the page.
    """

    map: BundleMapRequest = field(default_factory=BundleMapRequest)
    flags: tuple[str, ...] = ()


def write_reports(
    bundle: Path, targets: Mapping[str, Path], *, force: bool = False, request: ReportRequest | None = None
) -> tuple[WrittenReport, ...]:
    """Returns what was written.

    Args:
        bundle: folder of the bundle.
        targets: ``html`` or ``markdown`` -> file to write.
        force: replace files that are there.
        request: what the page is to show.

    Raises:
        UsageError: nothing to write (``no-output``), a file is there and ``force`` was not given
            (``output-exists``), or a choice that the bundle does not hold.
        InputError: not a bundle, or of a kind that has no page.
        FormatError: a section is damaged.
        SetupError: a folder cannot be written (``output-unwritable``).
    """
    if not targets:
        raise UsageError("report: nothing to write", hint="name --html FILE or --markdown FILE", slug="no-output")
    check_outputs(targets.values(), bundle, force=force)
    view = load_view(bundle, request or ReportRequest())
    return tuple(
        WrittenReport(form=form, path=path, size_b=_write(path, _RENDERERS[form](view).encode()))
        for form, path in targets.items()
    )


def load_view(folder: Path, request: ReportRequest) -> PageView:
    """Returns the page of a bundle of any kind.

    Raises:
        UsageError, InputError, NotComparableError, FormatError: as :func:`write_reports`.
    """
    recordings: list[Bundle] = []

    def build(bundle: Bundle) -> PageView:
        recordings.append(bundle)
        return build_recording_page(collect_sections(bundle, request.map, flags=request.flags))

    view = load_page(folder, {"recording": build})
    return view if recordings else _regroup(view, request)


def _regroup(view: PageView, request: ReportRequest) -> PageView:
    """Returns a profile's page with the wanted table first; refuses what only recordings have."""
    others = sorted({flag for flag in request.flags if flag.startswith("--")} - {"--by"})
    if others:
        raise UsageError(
            f"{', '.join(others)}: the bundle is a profile", hint="they are for recordings", slug="flags-contradict"
        )
    key = "layer" if request.map.map.key is MapKey.NAME else str(request.map.map.key)
    first = [table for table in view.tables if table.key == key]
    if not first and key not in ("layer", "op"):  # without a table by operator every layer is one of its own
        raise UsageError(
            f"--by {key}: the profile has no such table",
            hint=f"it has {', '.join(table.key for table in view.tables)}",
            slug="flags-contradict",
        )
    return replace(view, tables=(*first, *(table for table in view.tables if table.key != key)))


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
