"""nvtop -s: one JSON snapshot of the cards of all vendors, values as text with their unit."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.json_stream import read_json
from joulemap.formats.ground.logs import read_quantity
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["NvtopReader"]


class NvtopReader:
    """Reads nvtop's snapshot: stated powers, no time.

    References:
        A recording: henrygd/beszel f1e5797c, agent/test-data/nvtop.json.
    """

    name: ClassVar[str] = "nvtop"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for an array whose objects begin with a device name and hold a power draw."""
        del path
        opening = b"".join(head[:512].split())
        return 0.95 if opening.startswith(b'[{"device_name"') and b'"power_draw"' in head else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the stated power of each card.

        Raises:
            FormatError: no card with a reading.
        """
        log = FindingLog()
        document = read_json(path)
        if not isinstance(document, list):
            raise FormatError(f"{path.name} is no list of cards", hint="Use nvtop -s.", slug="json-unexpected")
        book = SampleBook(Clock(name="poll", kind=ClockKind.SAMPLE_INDEX), log)
        domain = Domain(boundary=boundary_of(options.boundary, Boundary.BOARD))
        metadata = {}
        for number, card in enumerate(document):
            if not isinstance(card, dict):
                continue
            metadata[f"gpu{number}_product"] = str(card.get("device_name"))
            power_w = read_quantity(log, str(card.get("power_draw")), number + 1)
            book.series(f"gpu{number}", domain).add(0, power_w, number + 1)
            share = read_quantity(log, str(card.get("gpu_util")), number + 1)
            book.lane(f"gpu{number} utilisation", "1", 0, share)
        return recording_of(self.name, path, book, metadata=metadata)
