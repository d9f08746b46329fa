"""``export``: a bundle for another tool. Energies are those of ``map``; what it refuses is not exported as a number."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from joulemap.errors import ReportError, UsageError
from joulemap.workflow.recordings.export_writers import write_chrome, write_csv, write_parquet, write_perfetto
from joulemap.workflow.recordings.map_bundle import BundleMapRequest, map_recording
from joulemap.workflow.recordings.placed_slices import bin_power, place_energies
from joulemap.workflow.recordings.recording_bundle import open_recordings

__all__ = ["ExportFormat", "Exported", "export_bundle"]


class ExportFormat(StrEnum):
    """What another tool reads."""

    PERFETTO = "perfetto"
    CHROME = "chrome"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written.

    Args:
        path: where.
        size_b: bytes.
        slices: slices in it.
        points: points of the power counter.
        bin_s: length of what a point stands for, s.
    """

    path: Path
    size_b: int
    slices: int
    points: int
    bin_s: float


def export_bundle(
    folder: Path, output: Path, wanted: ExportFormat, request: BundleMapRequest, *, force: bool = False
) -> Exported:
    """Writes the bundle in another tool's format and returns what was written; a failure leaves no file.

    Args:
        folder: the bundle.
        output: the file.
        wanted: its format.
        request: what is mapped, and how; rows are always by name.
        force: replace a file that is there.

    Raises:
        UsageError: the file exists, or a choice must be made.
        InputError, FormatError, NotComparableError: as ``map``.
        ReportError: the file system refused.
    """
    if output.exists() and not force:
        raise UsageError(
            f"{output}: exists", hint="replace it with --force or name another with -o", slug="output-exists"
        )
    mapped, _ = map_recording(open_recordings(folder), request)
    placed = place_energies(mapped, request.map.split)
    counters, bin_s = bin_power(mapped.traces)
    writers: dict[ExportFormat, Callable[[IO[bytes]], None]] = {
        ExportFormat.PERFETTO: lambda file: write_perfetto(file, mapped, placed, counters),
        ExportFormat.CHROME: lambda file: write_chrome(file, mapped, placed, counters),
        ExportFormat.CSV: lambda file: write_csv(file, placed, counters),
        ExportFormat.PARQUET: lambda file: write_parquet(file, placed, counters),
    }
    size_b = _write(output, writers[wanted])
    slices = 0 if placed is None else int((placed.slices.group >= 0).sum())
    return Exported(path=output, size_b=size_b, slices=slices, points=int(counters[0].size), bin_s=bin_s)


def _write(output: Path, write: Callable[[IO[bytes]], None]) -> int:
    partial: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=output.parent, prefix=f".{output.name}.", delete=False) as file:
            partial = Path(file.name)
            write(file)
            size_b = file.tell()
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o666 & ~umask)
        partial.replace(output)
    except OSError as error:
        raise ReportError(
            f"{output}: cannot be written ({error.strerror or error})",
            hint="name another file with -o",
            slug="output-unwritable",
            phase="report",
        ) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
    return size_b
