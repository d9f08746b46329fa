"""A bundle's recordings, opened: each trace, timeline and lane is read when it is asked for, and not before.

What a bundle only refers to is read again from its files, after they were found to be what was imported: a file that
changed is never mapped under the old name. Where the reader can, its samples are streamed and never all in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from joulemap.errors import InputError, UsageError
from joulemap.formats.base import StreamingReader
from joulemap.formats.bundle import Bundle, read_bundle
from joulemap.formats.readers import reader
from joulemap.formats.registry import (
    RECORDINGS,
    load_lane,
    load_markers,
    load_published,
    load_recordings,
    load_timeline,
    load_trace,
    open_trace,
)
from joulemap.formats.sections.file_stamp import FileStamp, is_unchanged
from joulemap.formats.sections.recording_json import RecordingEntry
from joulemap.records.published import PublishedRun
from joulemap.records.recording import Lane, MarkerTrack, SourceFile
from joulemap.trace import EnergyTrace, Timeline
from joulemap.trace.streamed import Trace
from joulemap.workflow.recordings.stated_provenance import lower_trace

__all__ = ["RecordingBundle", "open_recordings", "section_name", "timeline_name"]

_KEPT = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def section_name(text: str) -> str:
    """Returns text as a file name of a section: letters, digits, point, dash and underscore."""
    plain = "".join(sign if sign in _KEPT else "-" for sign in text).strip("-.") or "unnamed"
    return plain[:80]


def timeline_name(section: str) -> str:
    """Returns the name by which a timeline's section is asked for."""
    return section.rsplit("/", 1)[-1].removesuffix(".parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingBundle:
    """An opened bundle of kind ``recording``.

    Args:
        bundle: verified.
        entries: its recordings.
    """

    bundle: Bundle
    entries: tuple[RecordingEntry, ...]

    @property
    def traces(self) -> tuple[str, ...]:
        """Names of all traces, in order of import."""
        return tuple(trace.name for entry in self.entries for trace in entry.traces)

    @property
    def timelines(self) -> tuple[str, ...]:
        """Names of all timelines, in order of import."""
        return tuple(timeline_name(section) for entry in self.entries for section in entry.timelines)

    def entry_of(self, trace: str) -> RecordingEntry:
        """Returns the recording that holds a trace.

        Raises:
            UsageError: no trace has that name.
        """
        for entry in self.entries:
            if any(trace == known.name for known in entry.traces):
                return entry
        raise UsageError(
            f"the bundle has no trace {trace!r}",
            hint=f"one of: {', '.join(self.traces) or 'there is none'}",
            slug="trace-unknown",
        )

    def load_trace(self, name: str) -> EnergyTrace:
        """Returns a trace.

        Raises:
            UsageError: no trace has that name.
            InputError: it lies in a file that is gone or changed (``recording-missing``, ``recording-changed``).
            FormatError: a section is damaged.
        """
        entry = self.entry_of(name)
        if entry.embedded:
            return load_trace(self.bundle, name)[0]
        channel = next(trace.channel for trace in entry.traces if trace.name == name)
        path = self._verified(entry)
        recording = reader(entry.format).read(path, entry.options)
        trace = next(trace for trace in recording.traces if trace.channel.name == channel)
        return lower_trace(trace, entry.options.provenance)

    def open_trace(self, name: str) -> Trace:
        """Returns a trace whose samples stay in their file where that can be; else as :meth:`load_trace`.

        Raises:
            UsageError, InputError, FormatError: as :meth:`load_trace`.
        """
        entry = self.entry_of(name)
        chosen = reader(entry.format)
        if entry.embedded:
            return open_trace(self.bundle, name)
        if not isinstance(chosen, StreamingReader):
            return self.load_trace(name)
        channel = next(trace.channel for trace in entry.traces if trace.name == name)
        traces = chosen.open_traces(self._verified(entry), entry.options)
        trace = next(trace for trace in traces if trace.channel.name == channel)
        return lower_trace(trace, entry.options.provenance)

    def load_timeline(self, name: str) -> Timeline:
        """Returns a timeline.

        Raises:
            UsageError: no timeline has that name.
            FormatError: its section is damaged.
        """
        for entry in self.entries:
            for section in entry.timelines:
                if timeline_name(section) == name:
                    return load_timeline(self.bundle, path=section)
        raise UsageError(
            f"the bundle has no timeline {name!r}",
            hint=f"one of: {', '.join(self.timelines) or 'there is none'}",
            slug="timeline-unknown",
        )

    def load_lanes(self) -> tuple[Lane, ...]:
        """Returns all lanes."""
        return tuple(lane for entry in self.entries for lane in self.load_lanes_of(entry))

    def load_lanes_of(self, entry: RecordingEntry) -> tuple[Lane, ...]:
        """Returns the lanes of one recording."""
        return tuple(load_lane(self.bundle, path) for path in entry.lanes)

    def load_markers(self) -> tuple[MarkerTrack, ...]:
        """Returns all marker tracks."""
        return tuple(track for entry in self.entries for track in self.load_markers_of(entry))

    def load_markers_of(self, entry: RecordingEntry) -> tuple[MarkerTrack, ...]:
        """Returns the marker tracks of one recording."""
        return tuple(load_markers(self.bundle, entry.markers)) if entry.markers else ()

    def load_published(self) -> tuple[tuple[RecordingEntry, PublishedRun], ...]:
        """Returns what published rules need, each with its recording."""
        return tuple((entry, load_published(self.bundle, entry.published)) for entry in self.entries if entry.published)

    def _verified(self, entry: RecordingEntry) -> Path:
        path = Path(self.bundle.folder.parent, *Path(entry.root).parts)
        base = path if path.is_dir() else path.parent
        stamps = {stamp.name: stamp for stamp in entry.stamps}
        for source in entry.sources:
            _verify(base / source.name, source, stamps.get(source.name))
        return path


def _verify(path: Path, source: SourceFile, stamp: FileStamp | None) -> None:
    if not path.is_file():
        raise InputError(
            f"{source.name}: the bundle refers to it, and it is not where it was ({path})",
            hint="put it back, or import again with --copy to keep it inside the bundle",
            slug="recording-missing",
        )
    if not is_unchanged(path, source, stamp):
        raise InputError(
            f"{source.name}: is not the file that was imported (its size or its bytes differ)",
            hint="import it again",
            slug="recording-changed",
        )


def open_recordings(folder: Path) -> RecordingBundle:
    """Returns the recordings of a bundle.

    Raises:
        InputError: not a bundle, or one that holds no recording (``no-recording``).
        FormatError: a section is damaged.
    """
    bundle = read_bundle(folder)
    if not bundle.has(RECORDINGS):
        raise InputError(
            f"{folder}: a bundle of kind {bundle.kind} holds no imported recording",
            hint="make one with joulemap import FILE -o RUN.jm",
            slug="no-recording",
        )
    return RecordingBundle(bundle=bundle, entries=load_recordings(bundle))
