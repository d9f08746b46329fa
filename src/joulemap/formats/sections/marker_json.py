"""Marker tracks as JSON: clock, name, and each mark as time, name and direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from joulemap.errors import FormatError
from joulemap.formats.clock_json import describe_clock, parse_clock
from joulemap.records.recording import MarkerTrack
from joulemap.trace import EdgeDirection, Marker

__all__ = ["SCHEMA", "VERSION", "describe_markers", "parse_markers"]

SCHEMA = "joulemap.markers"
VERSION = 1


def describe_markers(tracks: Sequence[MarkerTrack]) -> dict[str, object]:
    """Returns the tracks as a JSON document."""
    return {
        "schema": SCHEMA,
        "schema_version": VERSION,
        "tracks": [
            {
                "name": track.name,
                "clock": describe_clock(track.clock),
                "markers": [[mark.time_ns, mark.name, str(mark.direction)] for mark in track.markers],
            }
            for track in tracks
        ],
    }


def parse_markers(document: Mapping[str, Any]) -> tuple[MarkerTrack, ...]:
    """Returns the tracks of a document.

    Raises:
        FormatError: it describes none (``markers-damaged``).
    """
    try:
        return tuple(
            MarkerTrack(
                name=str(track["name"]),
                clock=parse_clock(track["clock"]),
                markers=tuple(
                    Marker(time_ns=int(time_ns), name=str(name), direction=EdgeDirection(direction))
                    for time_ns, name, direction in track["markers"]
                ),
            )
            for track in document["tracks"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"the markers of the bundle cannot be read: {error}",
            hint="take the bundle again from where it was made",
            slug="markers-damaged",
        ) from error
