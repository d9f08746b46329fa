"""Helpers of the tests of readers: read a text by name, look up a trace or a total, sum its energy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import reader
from joulemap.records.recording import Lane, Recording
from joulemap.trace import EnergyTrace

__all__ = ["energy_j", "lane", "read", "slugs", "total", "trace"]


def read(name: str, source: str | bytes | Path, folder: Path, **options: object) -> Recording:
    """Returns the recording that a reader finds in a text, bytes or a file."""
    path = source if isinstance(source, Path) else folder / "recording.dat"
    if isinstance(source, str):
        path.write_bytes(source.encode())
    elif isinstance(source, bytes):
        path.write_bytes(source)
    return reader(name).read(path, ReadOptions(**options))  # type: ignore[arg-type]


def trace(recording: Recording, name: str) -> EnergyTrace:
    """Returns the trace of a channel."""
    return next(found for found in recording.traces if found.channel.name == name)


def lane(recording: Recording, name: str) -> Lane:
    """Returns the lane of a name."""
    return next(found for found in recording.lanes if found.name == name)


def total(recording: Recording, key: str) -> float:
    """Returns a stated figure."""
    return next(found.value for found in recording.totals if found.key == key)


def slugs(recording: Recording) -> set[str]:
    """Returns the slugs of all findings."""
    return {finding.slug for finding in recording.findings}


def energy_j(found: EnergyTrace) -> float:
    """Returns the energy of a trace, J; gaps hold none."""
    assert found.edges_ns is not None
    return float((found.power_w * np.diff(found.edges_ns) * 1e-9).sum())
