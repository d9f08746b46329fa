"""A recording as a bundle: the traces and marks as an import has them, the figures as the result."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from joulemap import __version__
from joulemap.formats.base import ReadOptions
from joulemap.formats.bundle_writer import BundleWriter
from joulemap.formats.registry import RESULT, RUN, add_recordings
from joulemap.records.live.capture_header import CaptureHeader
from joulemap.records.recording import Recording
from joulemap.workflow.environment import describe_environment
from joulemap.workflow.record.request import Recorded, RecordRequest
from joulemap.workflow.record.result import SCHEMA, describe_record
from joulemap.workflow.record.session import SampledSession
from joulemap.workflow.recordings.import_recording import ImportRequest, SectionNames, store_recording

__all__ = ["RecordBundle", "write_recording"]


class RecordBundle:
    """The bundle of a recording, claimed before anything runs; a context manager that leaves nothing half-made.

    Args:
        request: what is recorded.

    Raises:
        UsageError: the output exists (``bundle-exists``).
        SetupError: it cannot be written (``output-unwritable``).
    """

    def __init__(self, request: RecordRequest) -> None:
        self._request = request
        self.run_id = uuid.uuid4().hex
        self._writer = open_writer(request.output, self.run_id, force=request.force)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.discard()

    def write(self, recorded: Recorded, session: SampledSession) -> dict[str, object]:
        """Writes the bundle and returns its document.

        Raises:
            ReportError: the file system refused (``output-unwritable``).
        """
        header = session.header
        argv = self._request.command
        document, _ = describe_record(recorded, header, argv=argv, run_id=self.run_id)
        run = {
            "command": list(argv),
            "repeats": self._request.repeats,
            "baseline_s": self._request.baseline_s,
            "rate_hz": self._request.rate_hz,
            "meters": [candidate.name for candidate in session.meters],
        }
        where = session.folder, self._request.output
        recording = recorded.recording  # a map of the bundle then says too what became of the command
        kept = replace(recording, findings=(*recording.findings, *recorded.findings))
        return write_recording(self._writer, kept, (document, run, header), where)


def open_writer(output: Path, run_id: str, *, force: bool) -> BundleWriter:
    """Returns the writer of a bundle of this kind.

    Raises:
        UsageError, SetupError: as :class:`RecordBundle`.
    """
    return BundleWriter(
        output,
        kind="recording",
        run_id=run_id,
        tool={"name": "joulemap", "version": __version__},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        force=force,
    )


def write_recording(
    writer: BundleWriter,
    recording: Recording,
    told: tuple[dict[str, object], dict[str, object], CaptureHeader],
    where: tuple[Path, Path],
) -> dict[str, object]:
    """Writes every section, commits, and returns the document with its bundle.

    Args:
        writer: claimed.
        recording: of the capture.
        told: result, facts of the run, header of the capture.
        where: folder of the capture, and the bundle.

    Raises:
        ReportError: the file system refused (``output-unwritable``).
    """
    document, run, header = told
    folder, output = where
    request = ImportRequest(paths=(folder,), options=ReadOptions(), copy=True)
    asked = (folder.with_name(output.stem), request, output.absolute().parent)  # whose name the timeline takes
    entry, summary = store_recording(writer, recording, asked, (SectionNames(), SectionNames(), 0))
    add_recordings(writer, [entry])
    document = document | {"recordings": [summary | {"certainty": "written"}]}
    run = run | {"environment": describe_environment(), "capture": header.to_json()}
    writer.write_json(RUN, run, schema="joulemap.record_run")
    writer.write_json(RESULT, document, schema=SCHEMA)
    writer.commit(validity=str(document["validity"]))
    return document | {"bundle": str(output)}
