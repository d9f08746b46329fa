"""The seam of every reader of recordings: sniffed by content, streaming, bounded, typed in its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from joulemap.records.recording import Recording
from joulemap.trace.streamed import StreamedTrace

__all__ = ["Certainty", "ReadOptions", "Reader", "StreamingReader"]


class Certainty(StrEnum):
    """What a reader was built on; shown on its page."""

    RECORDING = "recording"  # genuine recordings or the writer's own source
    WRITTEN = "written"  # files that the real tool or library wrote here
    DESCRIBED = "described"  # a public description or several independent readers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What the user may say about a file that the file does not say itself.

    Args:
        columns: generic tables: role (``time``, ``power``, ``current``, ``voltage``, ...) -> column name.
        units: generic tables: role -> unit as written by the user, for example ``ms``, ``mW``.
        voltage_v: supply for a file that holds current only, V; None when not given.
        rate_hz: sample rate for a file that does not say it, Hz; None when not given.
        utc_offset_s: offset of a local time stamp from UTC, s east; None when not given.
        boundary: what the power feeds, when the format cannot know; None when not given.
        provenance: what the powers of the file are at best, where the user knows that they are no measurement; None
            when not given.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    voltage_v: float | None = None
    rate_hz: float | None = None
    utc_offset_s: float | None = None
    boundary: str | None = None
    provenance: str | None = None


class Reader(Protocol):
    """Reads one format. One file, one registry line."""

    @property
    def name(self) -> str:
        """Registry name in kebab-case, for example ``tegrastats``."""
        ...

    @property
    def certainty(self) -> Certainty:
        """What it was built on."""
        ...

    @property
    def folders(self) -> bool:
        """True when it takes a folder of files that belong together."""
        ...

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns how surely the content is this format, 0 (not) to 1 (a magic number or an unmistakable header).

        Args:
            path: file or folder; its name is no evidence.
            head: first 64 KiB of a file; empty for a folder.
        """
        ...

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns what the file holds.

        Raises:
            FormatError: the content breaks the format; names file and line or offset.
            InputError: the file needs something that the user must say (``options``) or is missing.
            UsageError: the user said what is no unit or no boundary.
            SetupError: an extra is missing.
        """
        ...


@runtime_checkable
class StreamingReader(Reader, Protocol):
    """A reader whose traces can stay in their file, however long they are."""

    def open_traces(self, path: Path, options: ReadOptions) -> tuple[StreamedTrace, ...]:
        """Returns the traces of a file, named as :meth:`read` names them; their samples are streamed from it.

        Raises:
            FormatError, InputError, SetupError: as :meth:`read`.
        """
        ...
