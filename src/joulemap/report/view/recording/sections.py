"""What the page of a recording is made from: documents, traces and slices, all on one clock. No arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.sections.recording_json import RecordingEntry
from joulemap.records.finding import Finding
from joulemap.report.view.scene import PowerUncertainty
from joulemap.trace import Clock, EnergyTrace, Timeline

__all__ = ["Document", "MarkLine", "PlacedWork", "PowerLine", "RecordingSections", "ValueLine"]

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerLine:
    """One trace of power.

    Args:
        name: in the bundle.
        trace: on the page's clock; None when nothing relates its clock to the page's.
        inside: names of the traces that contain it.
        mapped: its energy is what the map shares out.
        energy: of the whole trace, as the contract's JSON.
        power: mean, likewise.
        boundary: what it feeds.
        samples: their number.
        step_s: their usual distance, s.
        limits: of its meter.
    """

    name: str
    trace: EnergyTrace | None
    inside: tuple[str, ...]
    mapped: bool
    energy: Document
    power: Document
    boundary: str
    samples: int
    step_s: float
    limits: PowerUncertainty


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueLine:
    """A counter over time that is no power.

    Args:
        name: as the source has it.
        unit: SI unit, or ``1``.
        time_ns: (n,) ns on the page's clock, non-decreasing.
        value: (n,) NaN for what is missing.
    """

    name: str
    unit: str
    time_ns: NDArray[np.int64]
    value: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkLine:
    """An instant: label and ns on the page's clock."""

    label: str
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedWork:
    """What ran, on the page's clock.

    Args:
        name: of the timeline in the bundle; empty for the only one.
        timeline: its slices in order of start.
        energy_j: (n,) J held by each slice; NaN where the samples do not tell, or there is no power.
        shift_s: standard uncertainty of its place on the page's clock, s.
        per: name or kind of the slices that are one unit of work; empty for none.
    """

    name: str
    timeline: Timeline
    energy_j: NDArray[np.float64]
    shift_s: float
    per: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordingSections:
    """A bundle of recordings, mapped.

    Args:
        document: of ``map``; None when the bundle holds no power.
        tables: grouping -> rows of the map, the wanted one first; ``name`` is among them when there are slices.
        paths: rows by path, for the icicle; empty without.
        entries: recordings of the bundle.
        imported: the document of the import.
        created: ISO 8601 UTC.
        digest: SHA-256 of the manifest, which holds the digest of everything else.
        clock: of the page.
        lines: traces, the mapped ones first.
        work: what ran; None without.
        values: counters.
        marks: instants.
        points: counters that were read once: label and text.
        findings: of the page itself; those of the map are in its document.
        flags: of ``map`` that made the page what it is.
    """

    document: Document | None
    tables: Mapping[str, Sequence[Document]]
    paths: Sequence[Document]
    entries: tuple[RecordingEntry, ...]
    imported: Document
    created: str
    digest: str
    clock: Clock
    lines: tuple[PowerLine, ...]
    work: PlacedWork | None
    values: tuple[ValueLine, ...]
    marks: tuple[MarkLine, ...]
    points: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    flags: tuple[str, ...]
