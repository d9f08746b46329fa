"""Tasmota's SENSOR messages, one JSON object per line: local time, watts now, kilowatt-hours since reset."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, ClassVar

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import local_clock, read_stamp
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.records.recording import Recording
from joulemap.trace import KernelKind

__all__ = ["TasmotaReader"]

_FIRST_DAY_2000_NS = 946_684_800_000_000_000  # before it had the time from the network a plug writes 1970


class TasmotaReader:
    """Reads Tasmota's energy messages. Power may be a list, one per channel; Total has steps of a watt-hour.

    References:
        Tasmota documentation, "Power Monitoring" (SENSOR, ENERGY); FORMATS_MORE, "Smart plugs".
    """

    name: ClassVar[str] = "tasmota"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a line that is a JSON object with Time and ENERGY."""
        del path
        lines = head_lines(head, 1)
        known = bool(lines) and lines[0].startswith("{") and '"Time"' in lines[0] and '"ENERGY"' in lines[0]
        return 1.0 if known else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power and counter of each channel, voltage and current as lanes.

        Raises:
            FormatError: no message with an energy.
        """
        log = FindingLog()
        clock, shift_ns = local_clock(options, log, name="plug", resolution_ns=1e9)
        book = SampleBook(clock, log)
        boundary = boundary_of(options.boundary, Boundary.WALL)
        power = Domain(boundary=boundary, kind=KernelKind.POINT, window_s=0.0)
        counter = Domain(
            boundary=boundary, provenance=Provenance.MEASURED_COUNTER, meaning=Meaning.COUNTER, scale=3.6e6
        )
        for line, text in read_lines(path):
            if not text.strip():
                continue
            try:
                message = json.loads(text)
            except (ValueError, RecursionError):
                log.add("line_unreadable", f"not a message: {text[:40]!r}", f"line {line}")
                continue
            energy = message.get("ENERGY") if isinstance(message, dict) else None
            stamp = read_stamp(log, str(message.get("Time")), line) if isinstance(energy, dict) else None
            if stamp is None or not isinstance(energy, dict):
                continue
            if stamp.ns < _FIRST_DAY_2000_NS:
                log.add("clock_unset", "the plug had no time yet; the message is left out", f"line {line}")
                continue
            time_ns = stamp.ns + shift_ns
            for number, value in enumerate(_numbers(energy.get("Power"))):
                book.series(f"channel {number}", power).add(time_ns, value, line)
            for number, value in enumerate(_numbers(energy.get("Total"))):
                book.series(f"channel {number} counter", counter).add(time_ns, value, line)
            for key, unit in (("Voltage", "V"), ("Current", "A")):
                for number, value in enumerate(_numbers(energy.get(key))):
                    book.lane(f"channel {number} {key.lower()}", unit, time_ns, value)
        overlaps = [(name, f"{name} counter") for name in book.names if not name.endswith("counter")]
        return recording_of(self.name, path, book, overlaps=overlaps)


def _numbers(value: Any) -> list[float]:
    items = value if isinstance(value, list) else [value]
    return [_number(item) for item in items if isinstance(item, (int, float)) and not isinstance(item, bool)]


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return math.nan
