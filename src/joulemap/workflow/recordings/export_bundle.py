"""``export``: a bundle for another tool. Energies are those of ``map``; what it refuses is not exported as a number."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from joulemap.analysis.mapping.keys import MapKey
from joulemap.errors import ReportError, UsageError
from joulemap.estimate import weakest
from joulemap.formats.bundle import read_bundle
from joulemap.records.finding import collapse_findings
from joulemap.trace.streamed import Trace
from joulemap.workflow.outputs import check_outputs
from joulemap.workflow.recordings.export_profile import place_profile
from joulemap.workflow.recordings.export_tables import write_table_csv, write_table_parquet
from joulemap.workflow.recordings.export_writers import (
    ExportSource,
    write_chrome,
    write_csv,
    write_parquet,
    write_perfetto,
)
from joulemap.workflow.recordings.map_bundle import BundleMapRequest, map_bundle, map_recording
from joulemap.workflow.recordings.placed_slices import Counters, PlacedSlices, bin_power, place_energies
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
        rows: of a table.
    """

    path: Path
    size_b: int
    slices: int
    points: int
    bin_s: float
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """What an export holds: slices and counters, or rows."""

    source: ExportSource
    placed: PlacedSlices | None
    counters: Counters
    bin_s: float


def export_bundle(
    folder: Path,
    output: Path,
    wanted: ExportFormat,
    request: BundleMapRequest,
    *,
    force: bool = False,
    table: bool = False,
) -> Exported:
    """Writes the bundle in another tool's format and returns what was written; a failure leaves no file.

    Args:
        folder: the bundle.
        output: the file.
        wanted: its format.
        request: what is mapped, and how; slices are always by name.
        force: replace a file that is there.
        table: the rows of the map (of a profile: per inference) instead of slices; CSV and Parquet only.

    Raises:
        UsageError: the file exists, or a choice must be made, or a table is asked of a format of slices.
        InputError, FormatError, NotComparableError: as ``map``; InputError too for a profile without a waveform.
        ReportError: the file system refused.
    """
    check_outputs([output], folder, force=force)
    if table:
        return _export_table(folder, output, wanted, request)
    made = _collect(folder, request)
    writers: dict[ExportFormat, Callable[[IO[bytes]], None]] = {
        ExportFormat.PERFETTO: lambda file: write_perfetto(file, made.source, made.placed, made.counters),
        ExportFormat.CHROME: lambda file: write_chrome(file, made.source, made.placed, made.counters),
        ExportFormat.CSV: lambda file: write_csv(file, made.source, made.placed, made.counters),
        ExportFormat.PARQUET: lambda file: write_parquet(file, made.source, made.placed, made.counters),
    }
    size_b = _write(output, writers[wanted])
    slices = 0 if made.placed is None else int((made.placed.slices.group >= 0).sum())
    points = int(made.counters[0].size)
    return Exported(path=output, size_b=size_b, slices=slices, points=points, bin_s=made.bin_s)


def _collect(folder: Path, request: BundleMapRequest) -> _Content:
    bundle = read_bundle(folder)
    if bundle.kind == "profile":
        if request.timeline or request.rule or request.per:
            raise UsageError(
                f"{folder.name} is a profile: --timeline, --rule and --per are for recordings",
                hint="name a capture with --trace, or leave them out",
                slug="flags-contradict",
            )
        source, placed, whole = place_profile(bundle, request.traces)
        traces: tuple[Trace, ...] = whole
    else:
        named = replace(request, map=replace(request.map, key=MapKey.NAME))  # a slice has a name, whatever rows go by
        mapped, _ = map_recording(open_recordings(folder), named)
        placed, traces = place_energies(mapped, request.map.split), mapped.traces
        source = ExportSource(
            name=" + ".join(mapped.trace_names),
            boundary=str(mapped.traces[0].channel.boundary),
            provenance=str(weakest(trace.channel.provenance for trace in mapped.traces)),
            clock=mapped.clock,
            findings=collapse_findings((*mapped.findings, *mapped.map.findings)),
        )
    counters, bin_s = bin_power(traces)
    return _Content(source=source, placed=placed, counters=counters, bin_s=bin_s)


def _export_table(folder: Path, output: Path, wanted: ExportFormat, request: BundleMapRequest) -> Exported:
    if wanted not in (ExportFormat.CSV, ExportFormat.PARQUET):
        raise UsageError(
            f"--table: {wanted} holds slices", hint="use --to csv or --to parquet", slug="flags-contradict"
        )
    document = map_bundle(folder, request)
    rows = document["rows"]
    assert isinstance(rows, Sequence)  # map_bundle made it
    if rows:
        rows = [*rows, _rest(document)]
    write = write_table_csv if wanted is ExportFormat.CSV else write_table_parquet
    size_b = _write(output, lambda file: write(file, rows))
    return Exported(path=output, size_b=size_b, slices=0, points=0, bin_s=0.0, rows=len(rows))


def _rest(document: Mapping[str, Any]) -> dict[str, object]:
    """Returns what no row holds as a row: with it the own energies add up to the whole."""
    idle, busy_s = document["idle_j"], document["busy_s"]
    rest_s = max(document["duration_s"] - busy_s, 0.0)
    known = idle["value"] is not None
    return {
        "key": "between layers" if document.get("per") else "idle",
        "count": None,
        "duration_s": rest_s,
        "self_s": rest_s,
        "energy_j": idle,
        "self_j": idle,
        "share": idle["value"] / document["total_j"]["value"] if known and document["total_j"]["value"] else None,
        "mean_power_w": {"value": idle["value"] / rest_s if known and rest_s > 0 else None},
        "resolution": "rest" if known else "refused",
        "reason": None if known else idle.get("reason"),
        "runs_needed": None,
    }


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
