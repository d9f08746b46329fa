"""What a file of somebody else's measurement holds, read faithfully: traces, timelines, lanes, markers, totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Boundary, Provenance
from joulemap.records.finding import Finding
from joulemap.records.published import PublishedRun
from joulemap.trace import Clock, EnergyTrace, Marker, Timeline
from joulemap.trace.streamed import StreamedTrace, Trace

__all__ = ["Lane", "MarkerTrack", "Recording", "SourceFile", "StatedTotal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file that a recording was read from.

    Args:
        name: file name, or path relative to the imported folder; never absolute.
        size_b: bytes.
        sha256: digest of its bytes.
    """

    name: str
    size_b: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lane:
    """A counter over time that is no power: utilisation, clock, temperature, voltage, a throttle flag.

    Args:
        name: for example ``gpu0 utilisation``.
        unit: SI unit, or ``1`` for a share of 0..1.
        clock: the clock of time_ns.
        time_ns: (n,) ns, non-decreasing.
        value: (n,) float64; NaN for a sample that the source marks as missing.
    """

    name: str
    unit: str
    clock: Clock
    time_ns: NDArray[np.int64]
    value: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, dtype in (("time_ns", np.int64), ("value", np.float64)):
            column = np.array(getattr(self, name), dtype)
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        if self.time_ns.ndim != 1 or self.time_ns.shape != self.value.shape:
            raise ValueError(f"lane {self.name}: time_ns and value must be one-dimensional and of one length")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerTrack:
    """Markers of one source on one clock, in order of time."""

    name: str
    clock: Clock
    markers: tuple[Marker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTotal:
    """A figure that the source itself states (its own energy, mean power, count), kept beside what we compute.

    Args:
        key: snake_case with its unit, for example ``package_energy_j``.
        value: in that unit.
        provenance: of the figure.
        boundary: None when it has none.
        span: where it stands: line or offset.
    """

    key: str
    value: float
    provenance: Provenance
    boundary: Boundary | None = None
    span: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """Everything that a reader found, nothing that it guessed.

    Args:
        format: registry name of the reader.
        sources: the files read.
        traces: power of rails or domains; counters are differenced, polled duplicates removed.
        timelines: what happened when.
        lanes: counters over time that are no power.
        markers: edges and marks.
        totals: figures that the source states itself.
        overlaps: pairs of trace channel names of which the second contains the first: they are never added.
        metadata: facts of the source as text (device, version, zone, sample rate as written).
        findings: every doubtful thing, with line or offset.
        streamed: further traces, too large for memory: their samples stay in the file.
        published: what the source's own published scoring rule needs; None when it has none.
    """

    format: str
    sources: tuple[SourceFile, ...]
    traces: tuple[EnergyTrace, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    lanes: tuple[Lane, ...] = ()
    markers: tuple[MarkerTrack, ...] = ()
    totals: tuple[StatedTotal, ...] = ()
    overlaps: tuple[tuple[str, str], ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    streamed: tuple[StreamedTrace, ...] = ()
    published: PublishedRun | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))
        names = [trace.channel.name for trace in self.all_traces]
        if len(set(names)) != len(names):
            raise ValueError(f"trace channel names must be unique within a recording, got {names}")

    @property
    def all_traces(self) -> tuple[Trace, ...]:
        """Traces in memory, then streamed ones."""
        return (*self.traces, *self.streamed)
